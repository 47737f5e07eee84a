"""Evaluations: the same scenes for everyone, the same numbers every time, mistakes named."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fetchlab.errors import UserError
from fetchlab.eval import generalization
from fetchlab.eval.compare import CompareConfig, matches, read_contestants, run_compare
from fetchlab.eval.generalization import EvalConfig, run_eval
from fetchlab.eval.plan import (
    Plan,
    Scope,
    evaluate,
    evaluation_seeds,
    make_plan,
    plan_cells,
    swap_scenes,
)
from fetchlab.eval.results import RESULTS, Cell, CellKey, Results, read_results
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.statistics import wilson
from fetchlab.eval.suites import SUITES
from fetchlab.eval.swap import swap_pairs
from fetchlab.eval.tables import cell_table, percent, swap_sentence
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.registry import TASKS


def test_evaluation_scenes_are_odd_and_differ_between_counts_and_seeds() -> None:
    draws = [evaluation_seeds(seed, count, 50) for seed in (0, 1) for count in (2, 6, 10)]
    flat = [seed for draw in draws for seed in draw]
    assert all(seed % 2 == 1 for seed in flat)  # demonstrations use even ones
    assert len(set(flat)) == len(flat)


def test_a_shorter_evaluation_plays_the_first_scenes_of_a_longer_one() -> None:
    assert evaluation_seeds(3, 5, 200)[:20] == evaluation_seeds(3, 5, 20)


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    plans = [make_plan("expert", Scope(counts=(2, 7), episodes=30, seed=1), n_swaps=10)]
    assert evaluate(plans, workers=1) == evaluate(plans, workers=2)


def test_a_policy_without_room_gives_an_empty_cell_that_says_so() -> None:
    narrow = Expert(EnvConfig(cameras=()))
    narrow.max_objects = 6
    scope = Scope(counts=(2, 8), episodes=2, seed=0)
    planned = plan_cells("expert", narrow, SUITES["counts"], scope)
    plan = Plan(source="expert", policy=narrow, seed=0, cells=planned)
    cells, swap = evaluate([plan], workers=1)
    assert [cell.n_episodes for cell in cells] == [2, 0]
    assert cells[1].note == "cannot take 8 objects (6 slots)"
    assert (cells[1].success_rate, cells[1].ci95, swap) == (None, None, None)
    assert cell_table(cells).row_count == 2


def test_a_swapped_scene_names_another_block_of_the_same_scene() -> None:
    scenes = swap_scenes(6, seed=0, n_scenes=100)
    assert len(scenes) == 100 and {s.n_objects for s in scenes} == {2, 3, 4, 5, 6}
    pairs = swap_pairs(EnvConfig(cameras=()), scenes[::10])
    plan = Plan(source="expert", policy=Expert(EnvConfig(cameras=())), seed=0, swaps=pairs)
    _, swap = evaluate([plan], workers=1)
    assert swap is not None and swap.n == 10
    assert swap.n_followed == swap.n_both == 10  # which takes two different, nameable blocks
    assert "took the newly named one in 10 (100 %" in swap_sentence(swap)


def test_a_swap_changes_the_words_for_one_object_and_nothing_else() -> None:
    world = EnvConfig(
        task="mixed",
        cameras=(),
        shapes=tuple(SHAPES),
        languages=tuple(LANGUAGES),
        phrasings="training",
    )
    env, scenes = Tabletop.from_config(world), swap_scenes(6, seed=0, n_scenes=60)
    pairs = swap_pairs(world, scenes)
    assert 40 < len(pairs) < 60  # where there is but one object to name, nothing can be swapped
    for original, changed in pairs:
        env.reset(seed=original.seed, options={"n_objects": original.n_objects})
        scene, said = env.scene, env.task_description
        options = {"n_objects": changed.n_objects, "instruction": changed.instruction}
        env.reset(seed=changed.seed, options=options)
        assert env.scene.objects == scene.objects and env.scene.box == scene.box
        assert env.scene.goal == replace(scene.goal, target=env.scene.target)
        assert env.scene.target != scene.target
        before, after = (TASKS["mixed"].request(s) for s in (said, env.task_description))
        assert replace(before, target=after.target) == after != before


def test_cells_count_failures_by_reason() -> None:
    def episode(seed: int, reason: str) -> EpisodeResult:
        return EpisodeResult(
            seed=seed,
            n_objects=2,
            success=not reason,
            steps=10,
            reason=reason,
            instruction="fetch the red block",
            target=0,
        )

    reasons = ["", "timeout", "no_grasp", "timeout"]
    key = CellKey(policy="act", suite="counts", n_objects=2)
    cell = Cell.count(key, [episode(i, r) for i, r in enumerate(reasons)])
    assert cell.key == key
    assert cell.failures == {"no_grasp": 1, "timeout": 2}
    assert (cell.n_success, cell.success_rate, cell.ci95) == (1, 0.25, wilson(1, 4))


def expert_eval(out: Path, **settings: object) -> Results:
    defaults = {"counts": (2, 6), "episodes": 3, "workers": 1}
    run_eval(EvalConfig(policy="expert", out=out, **{**defaults, **settings}))  # type: ignore[arg-type]
    return read_results(out)


@pytest.fixture(autouse=True)
def few_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generalization, "SWAP_PAIRS", 5)


def test_eval_writes_what_the_design_promises_twice_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = expert_eval(tmp_path / "a"), expert_eval(tmp_path / "b")
    printed = capsys.readouterr().out
    assert "expert" in printed and "Only the words for the object changed" in printed
    assert replace(first, timings_s={}) == replace(second, timings_s={})
    content = json.loads((tmp_path / "a" / RESULTS).read_text())
    assert list(content["cells"][0]) == [
        *("policy", "suite", "n_objects", "arm", "control", "task", "trained", "training_seed"),
        *("n_episodes", "n_success", "success_rate", "ci95"),
        *("failures", "mean_steps", "note", "episodes"),
    ]
    episode = content["cells"][0]["episodes"][0]
    assert episode["seed"] % 2 == 1 and {"success", "steps", "reason"} <= set(episode)
    assert {"n", "n_followed", "rate", "ci95"} <= set(content["instruction_swap"])
    assert {"seed", "versions", "command", "timings_s", "policies"} <= set(content)


def test_an_earlier_evaluation_is_replaced_anything_else_is_left_alone(tmp_path: Path) -> None:
    expert_eval(tmp_path, episodes=1)
    (tmp_path / "results.json.partial").write_text("{")  # of one that was killed while writing
    assert expert_eval(tmp_path, episodes=2).cells[0].n_episodes == 2
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        expert_eval(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RESULTS, "thesis.txt"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "exprt"}, "did you mean expert"),
        ({"suite": "colours"}, "unknown suite"),
        ({"counts": (2, 21)}, "2 to 20, got 21"),
        ({"counts": (2, 2)}, "different"),
        ({"episodes": 0}, "--episodes"),
        ({"workers": -1}, "--workers"),
        ({"task": "sort"}, "'sort'"),
        ({"tasks": ("fetch", "fetch")}, "--tasks must name different tasks, got fetch fetch"),
        ({"suite": "memory", "task": "reach"}, "memory plays remember: leave out --task reach"),
        ({"suite": "distractors"}, "needs several shapes: give --shapes block mug"),
        ({"suite": "languages"}, "needs several languages: give --languages english chinese"),
    ],
)
def test_mistakes_are_named_and_leave_nothing_behind(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run_eval(EvalConfig(**{"policy": "expert", "out": tmp_path / "out", **settings}))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_what_the_only_policy_cannot_play_is_noted_and_all_of_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Expert, "max_objects", 6)
    some = expert_eval(tmp_path / "some", counts=(2, 8))
    assert [cell.note for cell in some.cells] == ["", "cannot take 8 objects (6 slots)"]
    with pytest.raises(UserError, match=r"expert cannot play counts: it cannot take 8 objects"):
        expert_eval(tmp_path / "none", counts=(8, 10))
    with pytest.raises(UserError, match="expert cannot play distractors: it needs several shapes"):
        expert_eval(tmp_path / "none", suite="distractors")
    assert not (tmp_path / "none").exists()


def test_compare_pairs_the_scenes_and_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        expert_eval(folder)
    run_compare(CompareConfig(folders=folders, json=tmp_path / "comparison.json"))
    assert "A minus B" in capsys.readouterr().out
    first, second = json.loads((tmp_path / "comparison.json").read_text())
    assert (first["n_objects"], second["n_objects"]) == (2, 6)
    assert (first["comparison"]["difference"], first["comparison"]["p_value"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 7}, "seed is 0 there and 7 here"),
        ({"versions": {}, "fingerprint": {}}, "scenes .* there, unknown here"),
        ({"cells": ()}, "no number of objects in common"),
        ({"fingerprint": {"renderer": "0123"}}, "there, .* here"),
    ],
)
def test_compare_refuses_other_scenes_and_names_the_difference(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    results = expert_eval(tmp_path / "a", counts=(2,), episodes=1)
    replace(results, **change).write(tmp_path / "b")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        matches(*read_contestants([tmp_path / "a", tmp_path / "b"]))


def test_compare_refuses_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no results"):
        read_contestants([tmp_path])
    (tmp_path / RESULTS).write_text('{"cells": [')
    with pytest.raises(UserError, match="run the evaluation again"):
        read_contestants([tmp_path])


def test_results_survive_the_file(tmp_path: Path) -> None:
    results = expert_eval(tmp_path / "a", counts=(3,), episodes=1)
    results.write(tmp_path / "b")
    assert asdict(read_results(tmp_path / "b")) == asdict(results)


def test_percent_is_exact_at_the_ends() -> None:
    assert [percent(rate) for rate in (0.0, 0.995, 1.0)] == ["0 %", "99.5 %", "100 %"]
