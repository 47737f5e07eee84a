"""The verdict of `fetch` on hand-made courses of events, and the expert that must pass it."""

from __future__ import annotations

import numpy as np
import pytest

from fetchlab.policy.expert import Expert, Noise
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation
from fetchlab.sim.tasks.base import TableState
from fetchlab.sim.tasks.fetch import FetchJudge

START = np.array([[0.5, 0.0, 0.02], [0.5, 0.2, 0.02], [0.4, -0.2, 0.02]])
AWAY = np.array([0.45, 0.0, 0.25])


def state(
    *, raise_object: int | None = None, by: float = 0.0, held: bool = True, tool: np.ndarray = AWAY
) -> TableState:
    positions = START.copy()
    if raise_object is not None:
        positions[raise_object, 2] += by
    return TableState(
        positions=positions, tool=tool, opening=0.08, holds=lambda i: held and i == raise_object
    )


def judge(*course: TableState) -> FetchJudge:
    verdict = FetchJudge(0, state())
    for moment in course:
        verdict.watch(moment)
    return verdict


def test_holding_the_named_block_high_for_three_steps_is_success() -> None:
    high = state(raise_object=0, by=0.11)
    assert not judge(high, high).success
    assert judge(high, high, high).success


@pytest.mark.parametrize(
    "course",
    [
        [state(raise_object=0, by=0.09)] * 5,  # not high enough
        [state(raise_object=0, by=0.12, held=False)] * 5,  # thrown, not held
        [state(raise_object=0, by=0.12), state(raise_object=0, by=0.12), state()] * 3,  # not stable
    ],
)
def test_less_than_that_is_not(course: list[TableState]) -> None:
    assert not judge(*course).success


def test_every_failure_has_its_reason() -> None:
    near = START[0] + (0.0, 0.0, 0.01)
    pushed = START.copy()
    pushed[1, 0] += 0.08
    moved = TableState(positions=pushed, tool=AWAY, opening=0.08, holds=lambda i: False)
    assert judge(state()).failure_reason() == "no_reach"
    assert judge(state(tool=near), state()).failure_reason() == "no_grasp"
    assert judge(state(raise_object=0, by=0.05), state()).failure_reason() == "dropped"
    assert judge(state(raise_object=0, by=0.05)).failure_reason() == "timeout"
    assert judge(moved).failure_reason() == "wrong_object"
    wrong = judge(state(raise_object=1, by=0.06))
    assert wrong.failed and wrong.failure_reason() == "wrong_object"


def test_lifting_a_wrong_block_spoils_the_right_one() -> None:
    high = state(raise_object=0, by=0.11)
    both = TableState(
        positions=high.positions + [[0, 0, 0], [0, 0, 0.06], [0, 0, 0]],
        tool=AWAY,
        opening=0.04,
        holds=lambda i: True,
    )
    assert not judge(high, high, both).success


@pytest.mark.parametrize("action_mode", ["joint", "ee"])
@pytest.mark.parametrize("n_objects", [2, 5, 10, 20])
def test_the_expert_fetches(action_mode: str, n_objects: int) -> None:
    config = EnvConfig(cameras=(), action_mode=action_mode)
    env, expert = Tabletop.from_config(config), Expert(config)
    for seed in range(5):
        moment, _ = env.reset(seed=seed, options={"n_objects": n_objects})
        expert.reset()
        finished, steps = False, 0
        while not finished:
            action = expert.act(Observation.from_gym(moment))
            moment, _, terminated, truncated, info = env.step(action)
            finished, steps = terminated or truncated, steps + 1
        assert info["is_success"] and steps < 20


def test_noise_changes_what_is_done_and_not_what_is_taught() -> None:
    config = EnvConfig(cameras=())
    env = Tabletop.from_config(config)
    observation = Observation.from_gym(env.reset(seed=0)[0])
    clean, executed = Expert(config).demonstrate(observation, Noise(), np.random.default_rng(0))
    np.testing.assert_array_equal(clean, Expert(config).act(observation))
    assert 1e-4 < np.abs(executed - clean)[:7].max() < 0.5
    quiet = Noise(position=0.0)
    same = Expert(config).demonstrate(observation, quiet, np.random.default_rng(0))
    np.testing.assert_array_equal(*same)
