"""What a benchmark has to do: which trainings, on what, and which cells are played once."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmark_cells import make_cells

from fetchlab.eval.benchmark.command import command
from fetchlab.eval.benchmark.config import (
    BenchmarkConfig,
    collections,
    conditions_of,
    most_episodes,
    trainings,
)
from fetchlab.eval.benchmark.films import choose_failures
from fetchlab.eval.benchmark.play import plan_all, works
from fetchlab.eval.benchmark.recipe import WORLD
from fetchlab.eval.benchmark.screen import announce
from fetchlab.eval.benchmark.store import Store
from fetchlab.eval.benchmark.training import (
    command_for,
    first_episodes,
)
from fetchlab.eval.parallel import Role
from fetchlab.eval.plan import CellPlan
from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.eval.suites import SUITES
from fetchlab.sim.config import EnvConfig
from fetchlab.train.collection import collect
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.demonstrate import CollectConfig


def full(**changes: Any) -> BenchmarkConfig:
    return BenchmarkConfig(out=Path("runs"), **changes)


def test_each_condition_is_trained_once_and_only_where_it_can_matter() -> None:
    config = full(policies=("act", "slot_mlp", "expert"), seeds=(0, 7))
    conditions = {name: [c.name for c in conditions_of(name, config)] for name in config.policies}
    assert conditions["act"][:4] == ["nominal", "pairs_seen", "pairs_unnamed", "screens"]
    assert set(conditions["act"]) - set(conditions["slot_mlp"]) == {
        "screens",  # it sees no images
        "remember",
        "remember_history",
    }
    assert conditions["expert"] == []
    planned = trainings(config)
    assert len(planned) == 2 * (len(conditions["act"]) + len(conditions["slot_mlp"]))
    assert planned[1].name == "act/nominal/seed-7"


def test_conditions_share_demonstrations_where_only_their_number_differs() -> None:
    found = collections(full(demonstrations=200))
    assert found["nominal"] == (WORLD, 1000)  # the suite data takes up to 1000
    assert found["pairs-seen"] == (replace(WORLD, pairs="seen"), 200)
    assert found["task-remember"] == (
        replace(WORLD, task="remember"),
        200,
    )  # one for two conditions
    assert len(found) == 5


def test_the_folder_of_a_collection_is_a_plain_name() -> None:
    assert all(re.fullmatch(r"[\w-]+", name) for name in collections(full()))
    assert "cameras-front-overhead_variation-screen_anywhere" in collections(full())


def test_a_condition_may_take_more_steps(tmp_path: Path) -> None:
    config = BenchmarkConfig(out=tmp_path / "run", quick=True, policies=("slot_mlp",))
    [usual, *_] = trainings(config)
    conditions = [replace(usual.condition, least_steps=n) for n in (0, 4000, 8000)]
    planned = [replace(usual, condition=condition) for condition in conditions]
    steps = [command_for(one, config, Store(config)).steps for one in planned]
    assert steps == [3000, 3000, 4800]  # six tenths with --quick


def test_the_episodes_are_counted_before_anything_is_trained(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {
        "policies": ("expert", "expert_blind"),
        "suites": ("counts", "crowding"),
    }
    config = BenchmarkConfig(out=tmp_path / "run", task="mixed", **chosen)
    plans, _ = plan_all(config, Store(config))
    assert most_episodes(config) == sum(len(plan.specs) for plan in plans)
    taught = full(policies=("act",), suites=("data", "counts"), seeds=(0, 1), episodes=10)
    assert most_episodes(taught) == 2 * 3 * 10 * (5 * 6 + 9)


def test_what_is_to_come_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = BenchmarkConfig(out=tmp_path / "run", seeds=(0,), policies=("act",))
    announce(config, Store(config))
    said = capsys.readouterr().err
    assert "11 trainings" in said and "0 done" in said and "at most" in said
    assert "many hours" in said and "--task fetch" in said
    announce(replace(config, quick=True), Store(replace(config, out=tmp_path / "q", quick=True)))
    assert "many hours" not in capsys.readouterr().err


def test_the_first_demonstrations_are_those_of_a_smaller_collection(tmp_path: Path) -> None:
    env = EnvConfig(cameras=())
    for n in (3, 5):
        collect(CollectConfig(out=tmp_path / str(n), episodes=n, workers=1, env=env))
    few, many = (Demonstrations.load(tmp_path / str(n)) for n in (3, 5))
    first = first_episodes(many, 3)
    for name in ("objects", "actions", "proprioception", "scene_seeds", "lengths"):
        np.testing.assert_array_equal(getattr(first, name), getattr(few, name))
    said = [[d.instructions[i] for i in d.task_index] for d in (first, few)]
    assert said[0] == said[1]
    assert first.fingerprint != many.fingerprint and first_episodes(many, 5) is many


def test_a_control_that_suites_share_is_played_once(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"policies": ("expert",), "suites": ("cameras", "disturbance")}
    config = BenchmarkConfig(out=tmp_path / "run", quick=True, **chosen)
    plans, _ = plan_all(config, Store(config))
    together = [work.cells for work in works(plans) if len(work.cells) > 1]
    controls = [plan.key.suite for plan in max(together, key=len) if plan.key.arm == "control"]
    assert controls == ["cameras", "disturbance"]


def test_what_to_type_again_says_what_differs_and_no_folder() -> None:
    assert command(full()) == "fetchlab benchmark"
    config = full(policies=("act", "expert"), seeds=(3,), quick=True, episodes=7, workers=5)
    assert command(config) == (
        "fetchlab benchmark --policies act expert --seeds 3 --episodes 7 --quick"
    )


def test_each_reason_is_filmed_once_where_nothing_was_changed_if_it_can_be() -> None:
    world = EnvConfig(cameras=())
    plans, cells = [], []
    for cell in make_cells(n=6):
        if cell.suite in ("counts", "disturbance", "ablations") and cell.task == "fetch":
            role = Role(source=cell.policy, world=world, ablation=None) if cell.n_episodes else None
            specs = tuple(EpisodeSpec(seed=e.seed, n_objects=5) for e in cell.episodes)
            plans.append(CellPlan(key=cell.key, role=role, specs=specs, note=cell.note))
            cells.append(cell)
    chosen = choose_failures(plans, cells)
    reasons = [(failure.policy, failure.reason) for failure in chosen]
    assert len(set(reasons)) == len(reasons) and len(reasons) <= 8
    assert {policy for policy, _ in reasons} == {"act", "slot_mlp"}  # what learned
    assert reasons[0][0] == "act" and reasons[1][0] == "slot_mlp"  # turn by turn
    assert all(failure.title.startswith("counts, ") for failure in chosen)
    assert all(failure.specs for failure in chosen)


def test_quick_leaves_out_what_takes_further_trainings_or_another_world() -> None:
    config = BenchmarkConfig(out=Path("runs"), quick=True)
    assert config.left_out["memory"] == "needs trainings of its own, which --quick leaves out"
    assert config.left_out["distractors"] == "needs several shapes"
    assert [c.name for c in conditions_of("act", config)] == ["nominal"]
    assert full().left_out == {} and len(full().chosen) == len(SUITES)
    assert set(BenchmarkConfig(out=Path("runs"), task="fetch").left_out) == {
        "compositions",
        "distractors",
        "languages",
    }
