"""What is played: the same scenes in every arm, cells for every task, and refusals in one line."""

from __future__ import annotations

import re

import pytest
from tests.factories import make_act, make_slot_mlp

from fetchlab.errors import UserError
from fetchlab.eval import parallel
from fetchlab.eval.plan import (
    CellPlan,
    Scope,
    chosen_world,
    evaluate,
    make_plan,
    plan_cells,
    refusal,
)
from fetchlab.eval.suites import SUITES
from fetchlab.policy.base import Policy
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.tasks.registry import TASKS

RICH = EnvConfig(
    task="mixed",
    cameras=(),
    shapes=("block", "mug", "ball"),
    languages=tuple(LANGUAGES),
    phrasings="training",
)
PARTS = ("fetch", "place_in_box", "place_beside")


def cells_of(suite: str, policy: Policy | None = None, **scope: object) -> tuple[CellPlan, ...]:
    asked = {"counts": (4, 5), "episodes": 3, "seed": 2, **scope}
    return plan_cells("expert", policy or Expert(RICH), SUITES[suite], Scope(**asked))  # type: ignore[arg-type]


def test_every_arm_plays_every_task_and_count_with_the_same_seeds() -> None:
    cells = cells_of("crowding")
    assert [(c.key.arm, c.key.task, c.key.n_objects) for c in cells] == [
        (arm, task, count) for arm in ("control", "touching") for task in PARTS for count in (4, 5)
    ]
    half = len(cells) // 2
    assert [c.specs for c in cells[:half]] == [c.specs for c in cells[half:]]
    assert [c.key.control for c in cells] == [True] * half + [False] * half
    worlds = {c.key.arm: c.role.world.crowding for c in cells if c.role}
    assert worlds == {"control": "apart", "touching": "touching"}


def test_parts_are_asked_for_by_name_and_a_single_task_needs_none() -> None:
    assert {c.key.task for c in cells_of("counts", tasks=("place_beside",))} == {"place_beside"}
    assert {spec.task for c in cells_of("counts") for spec in c.specs} == set(PARTS)
    single = cells_of("counts", Expert(EnvConfig(cameras=())))
    assert {(c.key.task, spec.task) for c in single for spec in c.specs} == {("fetch", None)}
    with pytest.raises(UserError, match="unknown task of expert 'reach'"):
        cells_of("counts", tasks=("reach",))


def test_a_part_is_the_task_of_its_scenes() -> None:
    env = Tabletop.from_config(RICH)
    for cell in cells_of("counts"):
        for spec in cell.specs:
            env.reset(seed=spec.seed, options={"n_objects": spec.n_objects, "task": spec.task})
            assert env.scene.goal.task == cell.key.task
            assert TASKS["mixed"].request(env.task_description).task == cell.key.task


def test_memory_has_one_name_for_the_task_with_and_without_it() -> None:
    cells = cells_of("memory")
    assert {(c.key.arm, c.key.task, c.role.world.task) for c in cells if c.role} == {
        ("control", "remember", "fetch"),
        ("remember", "remember", "remember"),
    }


def test_an_arm_for_which_there_is_no_scene_is_refused_and_the_others_are_played() -> None:
    expert = Expert(EnvConfig(task="place_beside", cameras=(), shapes=("block", "mug")))
    notes = {cell.key.arm: cell.note for cell in cells_of("distractors", expert, counts=(4,))}
    assert notes["control"] == notes["shape"] == ""
    assert notes["colour"].startswith("the shapes block, mug make no scene of 4 objects with")


@pytest.mark.parametrize(
    ("policy", "suite", "arm", "note"),
    [
        (make_act(), "cameras", "wrist_dark", ""),
        (make_act(), "cameras", "overhead_dark", "needs the overhead camera"),
        (make_act(inputs="objects", cameras=()), "cameras", "control", "needs images"),
        (make_act(), "distractors", "control", "needs several shapes"),
        (make_act(), "languages", "english", "needs several languages"),
        (make_act(), "phrasings", "held_out", "does not know .* words of it, such as "),
        (make_act(), "memory", "remember", ""),
        (make_slot_mlp(), "counts", "", r"cannot take 8 objects \(6 slots\)"),
        (make_slot_mlp(), "memory", "remember", "needs images"),
        (Expert(EnvConfig(cameras=())), "cameras", "wrist_dark", ""),
        (Expert(EnvConfig(cameras=())), "phrasings", "held_out", ""),
        (Expert(EnvConfig(cameras=())), "ablations", "images_removed", "sees no images"),
        (make_slot_mlp(), "ablations", "instruction_removed", "reads whole sentences"),
    ],
)
def test_what_a_policy_cannot_play_is_said_in_one_line(
    policy: Policy, suite: str, arm: str, note: str
) -> None:
    count = 8 if suite == "counts" else 5
    said = refusal(policy, SUITES[suite], SUITES[suite].arm(arm), count)
    assert "\n" not in said and bool(said) == bool(note)
    cell = next(c for c in cells_of(suite, policy, counts=(count,), episodes=1) if c.key.arm == arm)
    assert cell.note == said and bool(cell.specs) != bool(note)
    assert re.match(note, said)


def test_the_expert_plays_every_arm_of_every_suite_twice_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel, "BATCH", 1)
    scope = Scope(counts=(5,), episodes=1, seed=0)
    plans = [make_plan("expert", scope, suite=suite, world=RICH) for suite in SUITES]
    plans += [make_plan("expert_blind", scope, suite=suite, world=RICH) for suite in ("counts",)]
    cells, _ = evaluate(plans, workers=1)
    again, _ = evaluate(plans[2::-1], workers=1)
    assert set(map(repr, again)) < set(map(repr, cells))
    played = [cell for cell in cells if cell.n_episodes and cell.policy == "expert"]
    assert len(played) > 90
    fair = [cell for cell in played if cell.arm != "instruction_swapped"]
    assert sum(cell.n_success for cell in fair) >= 0.95 * len(fair)
    told_otherwise = [cell for cell in played if cell not in fair]
    assert told_otherwise and not any(cell.n_success for cell in told_otherwise)


def test_variations_leave_the_scene_and_the_sentence_as_they_are() -> None:
    cells = {cell.key.arm: cell for cell in cells_of("disturbance", counts=(4,), tasks=("fetch",))}
    drawn = []
    for cell in cells.values():
        assert cell.role is not None
        env = Tabletop.from_config(cell.role.world)
        for spec in cell.specs:
            env.reset(seed=spec.seed, options={"n_objects": spec.n_objects, "task": spec.task})
            drawn.append((env.scene, env.task_description))
        env.close()
    assert drawn[:3] == drawn[3:6] == drawn[6:]


def test_a_scripted_policy_acts_in_the_world_that_is_wished_for() -> None:
    world = chosen_world("expert", {"task": "place_beside", "shapes": ("mug", "ball")})
    assert (world.task, world.shapes, world.cameras) == ("place_beside", ("mug", "ball"), ())


def test_a_trained_policy_keeps_its_own_world(tmp_path: object) -> None:
    folder = f"{tmp_path}/act"
    make_act().save_pretrained(folder)
    assert chosen_world(folder, {"task": "fetch", "shapes": None}).cameras == ("front", "wrist")
    with pytest.raises(UserError, match="was made for shapes block, not mug ball"):
        chosen_world(folder, {"shapes": ("mug", "ball")})
