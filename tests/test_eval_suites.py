"""`fetchlab eval --suite`: tasks and arms apart, beside their control, and paired by `compare`."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.factories import make_act

from fetchlab.errors import UserError
from fetchlab.eval import generalization, parallel
from fetchlab.eval.arms import Suite
from fetchlab.eval.benchmark.recipe import WORLD
from fetchlab.eval.compare import match_table, matches, read_contestants
from fetchlab.eval.generalization import EvalConfig, run_eval
from fetchlab.eval.results import RESULTS, Cell, CellKey, Results, read_results, world
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.suites import SUITES
from fetchlab.eval.tables import against_control, cell_table, control_of
from fetchlab.eval.video import RolloutConfig, cast_rollout, run_rollout
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.scene import Scene
from fetchlab.sim.tasks.registry import TASKS


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generalization, "SWAP_PAIRS", 0)
    monkeypatch.setattr(parallel, "BATCH", 2)


def evaluated(out: Path, **settings: object) -> Results:
    defaults = {"policy": "expert", "counts": (4,), "episodes": 2, "workers": 1}
    run_eval(EvalConfig(out=out, **{**defaults, **settings}))  # type: ignore[arg-type]
    return read_results(out)


def made(won: str, arm: str = "", task: str = "fetch", policy: str = "act", **more: Any) -> Cell:
    """A cell of the suite cameras: `10` is a success, then a failure."""
    key = CellKey(
        policy=policy,
        suite="cameras",
        n_objects=5,
        arm=arm,
        control=arm == "control",
        task=task,
        **more,
    )
    results = [
        EpisodeResult(
            seed=2 * i + 1,
            n_objects=5,
            success=one == "1",
            steps=9,
            reason="" if one == "1" else "no_reach",
            instruction="fetch the mug",
            target=0,
        )
        for i, one in enumerate(won)
    ]
    return Cell.count(key, results)


def text_of(table: object) -> str:
    console = Console(width=100, file=io.StringIO())
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_a_policy_of_several_tasks_gives_a_cell_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = evaluated(tmp_path, task="mixed", shapes=("block", "mug"), yardstick=True)
    assert results.task == "mixed"
    assert [(cell.policy, cell.task) for cell in results.cells] == [
        (policy, task)
        for policy in ("expert", "expert_blind")
        for task in ("fetch", "place_in_box", "place_beside")
    ]
    assert all(cell.n_success == 2 for cell in results.cells if cell.policy == "expert")
    assert re.search(r"place in box +4 +2/2", capsys.readouterr().out)


def test_the_expert_plays_a_task_by_its_name(tmp_path: Path) -> None:
    [cell] = evaluated(tmp_path, task="place_beside").cells
    assert (cell.task, cell.arm, cell.n_success) == ("place_beside", "", 2)
    assert all(" the " in episode.instruction for episode in cell.episodes)


def test_a_suite_plays_its_control_and_its_arms_by_default_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = evaluated(tmp_path, suite="crowding", counts=())
    assert [(c.arm, c.control, c.n_objects) for c in results.cells] == [
        ("control", True, 6),
        ("touching", False, 6),
    ]
    seeds = [[episode.seed for episode in cell.episodes] for cell in results.cells]
    assert seeds[0] == seeds[1]
    assert "minus control" in capsys.readouterr().out


def test_what_a_trained_policy_was_not_made_for_is_refused(tmp_path: Path) -> None:
    make_act().save_pretrained(tmp_path / "act")
    with pytest.raises(UserError, match="was made for task fetch, not mixed"):
        evaluated(tmp_path / "out", policy=str(tmp_path / "act"), task="mixed")
    with pytest.raises(UserError, match="cannot play languages: it needs several languages"):
        evaluated(tmp_path / "out", policy=str(tmp_path / "act"), suite="languages")
    with pytest.raises(UserError, match="unknown task of act 'reach'"):
        evaluated(tmp_path / "out", policy=str(tmp_path / "act"), tasks=("reach",))
    assert not (tmp_path / "out").exists()


def test_an_arm_is_measured_against_the_control_of_its_own_task_and_policy() -> None:
    control, dark = made("1111", "control"), made("1000", "front_dark")
    others = [made("0000", "control", task="reach"), made("0000", "control", policy="expert")]
    cells = [*others, control, dark]
    assert control_of(dark, cells) == control and control_of(control, cells) is None
    assert against_control(dark, cells).startswith("-75.0 (")
    assert against_control(control, cells) == against_control(dark, others) == ""


def test_the_title_says_whether_the_control_has_the_same_scenes() -> None:
    cells = [made(12 * "1" + 8 * "0", "control"), made(7 * "1" + 13 * "0", "touching")]
    assert "control in the same scenes" in text_of(cell_table(cells))
    crowded = [replace(cell, suite="crowding") for cell in cells]
    assert "with the same seeds, in other scenes" in text_of(cell_table(crowded))
    memory = [replace(cell, suite="memory") for cell in cells]
    assert "the control is new, too" in text_of(cell_table(memory))
    paired, apart = (against_control(some[1], some) for some in (cells, crowded))
    assert paired.startswith("-25.0 (") and apart.startswith("-25.0 (") and paired != apart


def what_lies_there(scene: Scene) -> tuple[object, ...]:
    """All of a scene but the name of its task."""
    return scene.objects, scene.box, replace(scene.goal, task="")


def scenes_of(world: EnvConfig, n_objects: int) -> list[tuple[object, ...]]:
    """What some seeds mean, in each task that the world's is made of."""
    with contextlib.closing(Tabletop.from_config(world)) as env:
        found = []
        for part, seed in product(TASKS[world.task].parts, (1, 3, 5)):
            several = len(TASKS[world.task].parts) > 1
            options = {"n_objects": n_objects} | ({"task": part.name} if several else {})
            env.reset(seed=seed, options=options)
            found.append(what_lies_there(env.scene))
        return found


@pytest.mark.parametrize(
    "suite", [s for s in SUITES.values() if len(s.arms) > 1], ids=lambda s: s.name
)
def test_a_suite_knows_whether_its_arms_share_the_scenes_of_the_control(suite: Suite) -> None:
    usual = replace(WORLD, cameras=())
    scenes = {arm.name: scenes_of(replace(usual, **arm.env), 6) for arm in suite.arms}
    same = [scenes[arm.name] == scenes[arm.control] for arm in suite.arms if arm.control]
    assert same == [suite.same_scenes] * len(same)


def test_tables_show_arms_as_words_and_say_why_a_cell_is_empty() -> None:
    refused = Cell.refused(made("1", "overhead_dark").key, "needs the overhead camera")
    text = text_of(cell_table([made("11", "control"), made("10", "front_dark"), refused]))
    assert re.search(r"front dark +5 +1/2 +50.0 % +-50.0 \(.*\) +no reach 1", text)
    assert re.search(r"overhead dark +5 +– +needs the", text)
    assert "task" not in text
    assert "place beside" in text_of(cell_table([made("1"), made("0", task="place_beside")]))


def test_compare_pairs_cells_of_the_same_arm_and_task(tmp_path: Path) -> None:
    base = evaluated(tmp_path / "a", episodes=1)
    mine = made("1111", "control"), made("1100", "front_dark"), made("11", task="reach")
    theirs = made("0000", "control"), made("1001", "front_dark"), made("10", task="fetch")
    for name, cells in (("a", mine), ("b", theirs)):
        named = tuple(replace(cell, policy="expert") for cell in cells)
        replace(base, cells=named).write(tmp_path / name)
    found = matches(*read_contestants([tmp_path / "a", tmp_path / "b"]))
    assert [(m.arm, m.task, m.comparison.n_first, m.comparison.n_second) for m in found] == [
        ("control", "fetch", 4, 0),
        ("front_dark", "fetch", 2, 2),
    ]
    assert re.search(r"front dark +5 +50.0 % +50.0 % +1 +1", text_of(match_table(found)))
    assert "suite" not in text_of(match_table(found))
    other = [*found, replace(found[0], suite="appearance")]
    assert re.search(r"appearance +control +5", text_of(match_table(other)))


def test_compare_pairs_what_was_taught_alike(tmp_path: Path) -> None:
    base = evaluated(tmp_path / "a", episodes=1)
    for name in ("a", "b"):
        cells = (made("11", trained="pairs_seen"), made("10"), made("01", trained=name))
        mine = tuple(replace(cell, policy="expert") for cell in cells)
        replace(base, cells=mine).write(tmp_path / name)
    found = matches(*read_contestants([tmp_path / "a", tmp_path / "b"]))
    assert [(m.trained, m.comparison.n_first) for m in found] == [("pairs_seen", 2), ("nominal", 1)]
    assert re.search(r"pairs seen +5 +100 %", text_of(match_table(found)))


def test_compare_refuses_other_seeds(tmp_path: Path) -> None:
    base = evaluated(tmp_path / "a", episodes=2)
    [cell] = base.cells
    swapped = replace(cell, episodes=cell.episodes[::-1])
    replace(base, cells=(swapped,)).write(tmp_path / "b")
    with pytest.raises(UserError, match=r"a seed at 4 objects, fetch is \d+ there and \d+ here"):
        matches(*read_contestants([tmp_path / "a", tmp_path / "b"]))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("shapes", ["mug"], "shapes is block there and mug here"), ("crowding", "touching", "")],
)
def test_compare_refuses_another_world(
    tmp_path: Path, name: str, value: object, shown: str
) -> None:
    base = evaluated(tmp_path / "a", episodes=1)
    [facts] = base.policies
    elsewhere = replace(facts, env={**facts.env, name: value})
    replace(base, policies=(elsewhere,)).write(tmp_path / "b")
    with pytest.raises(UserError, match=shown or f"{name} is"):
        matches(*read_contestants([tmp_path / "a", tmp_path / "b"]))


def test_results_of_old_are_read_but_not_paired_with_scenes_that_may_be_others(
    tmp_path: Path,
) -> None:
    new = evaluated(tmp_path / "new")
    content = json.loads((tmp_path / "new" / RESULTS).read_text())
    del content["fingerprint"]
    for cell in content["cells"]:
        for name in ("arm", "control", "task", "trained", "training_seed"):
            del cell[name]
    for facts in content["policies"]:
        known = ("task", "cameras", "image_size", "action_mode", "control_hz", "history")
        facts["env"] = {name: facts["env"][name] for name in known}
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / RESULTS).write_text(json.dumps(content))
    old = read_results(tmp_path / "old")
    assert old.cells == new.cells and not old.fingerprint
    assert len(matches(*read_contestants([tmp_path / "old", tmp_path / "old"]))) == 1
    with pytest.raises(UserError, match="cannot be compared: scenes unknown there, "):
        matches(*read_contestants([tmp_path / "old", tmp_path / "new"]))


def test_policies_with_other_eyes_share_a_world() -> None:
    seeing = {"task": "fetch", "cameras": ["front"], "image_size": 96, "history": 2}
    assert world(seeing) == world({"task": "fetch"}) != world({"task": "reach"})
    assert set(world({})) >= {"task", "control_hz", "shapes", "pairs", "variation"}
    assert world({})["shapes"] == EnvConfig().shapes


def test_rollout_plays_any_task_with_the_expert_and_a_part_with_a_trained_policy(
    tmp_path: Path,
) -> None:
    asked = RolloutConfig(policy="expert", task="place_beside", shapes=("mug", "ball"))
    policy, spec = cast_rollout(asked)
    assert (policy.env_config.task, policy.env_config.shapes) == ("place_beside", ("mug", "ball"))
    assert spec.task is None
    make_act().save_pretrained(tmp_path / "act")
    trained = str(tmp_path / "act")
    assert cast_rollout(RolloutConfig(policy=trained, task="fetch"))[1].task is None
    with pytest.raises(UserError, match=r"was made for task '?fetch'?, not '?reach'?"):
        run_rollout(RolloutConfig(policy=trained, task="reach"))
