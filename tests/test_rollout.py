"""The one episode loop, with the real simulator and policies whose behaviour is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from fetchlab.errors import UserError
from fetchlab.eval.rollout import EpisodeSpec, Moment, make_worlds, rollout
from fetchlab.policy.base import Array
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import Observation, ObservationBatch

BLIND = EnvConfig(cameras=())


@pytest.fixture(scope="module")
def worlds() -> Iterator[SyncVectorEnv]:
    worlds = make_worlds(BLIND, 3)
    yield worlds
    worlds.close()


@dataclass
class Idle:
    """Stays where it is, and remembers what it was asked."""

    name: str = "idle"
    env_config: EnvConfig = BLIND
    max_objects: int = 20
    resets: list[int] = field(default_factory=list)
    asked: list[list[int]] = field(default_factory=list)

    def reset(self, slots: Sequence[int] | None = None) -> None:
        self.resets += slots or []

    def act(self, observation: Observation) -> Array:
        return observation.proprioception[:8]

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        self.asked.append(list(slots))
        return observations.proprioception[:, :8]


def specs(n: int, n_objects: int = 4) -> list[EpisodeSpec]:
    return [EpisodeSpec(seed=2 * row + 1, n_objects=n_objects) for row in range(n)]


def test_results_come_in_the_order_of_the_specs_whatever_ends_first(worlds: SyncVectorEnv) -> None:
    asked = specs(4, 3) + specs(4, 8)
    results = rollout(Expert(BLIND), asked, worlds)
    assert [(r.seed, r.n_objects) for r in results] == [(s.seed, s.n_objects) for s in asked]
    assert all(r.success and r.reason == "" and 5 < r.steps < 40 for r in results)


def test_an_episode_does_not_depend_on_its_neighbours(worlds: SyncVectorEnv) -> None:
    together = rollout(Expert(BLIND), specs(5), worlds)
    alone = [rollout(Expert(BLIND), [spec], worlds)[0] for spec in specs(5)]
    assert together == alone


def test_failures_carry_their_reason_and_run_to_the_time_limit(worlds: SyncVectorEnv) -> None:
    results = rollout(Idle(), specs(4), worlds)
    assert {(r.success, r.reason, r.steps) for r in results} == {(False, "no_reach", 40)}


def test_each_slot_is_reset_per_episode_and_only_running_ones_are_asked(
    worlds: SyncVectorEnv,
) -> None:
    policy = Idle()
    rollout(policy, specs(4), worlds)  # three slots: one of them plays a second episode alone
    assert policy.resets == [0, 1, 2, 0]
    assert policy.asked == [[0, 1, 2]] * 40 + [[0]] * 40


def test_the_instruction_can_be_changed_and_the_scene_stays(worlds: SyncVectorEnv) -> None:
    seen: list[Moment] = []
    plain = EpisodeSpec(seed=5, n_objects=6)
    other = EpisodeSpec(seed=5, n_objects=6, instruction="fetch the red block")
    results = rollout(Idle(), [plain, other], worlds, seen.append)
    first = seen[0].observations
    assert results[0].instruction != results[1].instruction == "fetch the red block"
    assert results[0].target != results[1].target
    np.testing.assert_array_equal(first.objects[0], first.objects[1])


def test_a_sentence_that_names_nothing_is_refused_with_what_can_be_said(
    worlds: SyncVectorEnv,
) -> None:
    wrong = EpisodeSpec(seed=5, n_objects=2, instruction="fetch the pink block")
    with pytest.raises(
        UserError, match="'pink block' names no kind of object: known are the colours red"
    ):
        rollout(Idle(), [wrong], worlds)


def test_no_specs_no_results(worlds: SyncVectorEnv) -> None:
    assert rollout(Idle(), [], worlds) == []
