"""The yardstick that ignores whom the sentence names succeeds by chance, and by chance alone."""

from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from fetchlab.eval.rollout import EpisodeSpec, make_worlds, rollout
from fetchlab.policy.blind import BlindExpert, any_request, things
from fetchlab.policy.registry import is_scripted, load_policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation
from fetchlab.sim.tasks.registry import TASKS

WORLD = EnvConfig(cameras=())
RICH = EnvConfig(task="mixed", cameras=(), shapes=("block", "mug", "ball"))
N_OBJECTS = 4


def first_observations(world: EnvConfig, n: int) -> list[Observation]:
    with contextlib.closing(Tabletop.from_config(world)) as env:
        options = {"n_objects": N_OBJECTS}
        return [
            Observation.from_gym(env.reset(seed=2 * i + 1, options=options)[0]) for i in range(n)
        ]


def test_every_object_is_drawn_as_often_whatever_is_said() -> None:
    drawn: Counter[int] = Counter()
    task = TASKS["fetch"]
    for one in first_observations(WORLD, 400):
        said = task.request(one.instruction)
        request = any_request(said, one)
        kinds = [(thing.colour, thing.shape) for thing in things(one, said)]
        drawn[kinds.index((request.target.colour, request.target.shape))] += 1  # type: ignore[arg-type]
        other = task.request("fetch the red block")
        assert any_request(other, one).target == request.target
    assert chisquare([drawn[row] for row in range(N_OBJECTS)]).pvalue > 0.01


def test_the_task_stays_and_where_two_objects_are_named_two_are_drawn() -> None:
    relations = set()
    for one in first_observations(RICH, 60):
        said = TASKS["mixed"].request(one.instruction)
        request = any_request(said, one)
        assert (request.task, request.language) == (said.task, said.language)
        assert (request.other is None) == (said.other is None)
        assert request.target != request.other
        relations.add(request.relation)
    assert relations == {None, "left", "right", "front", "behind"}


def test_it_succeeds_where_it_happens_to_draw_the_named_object() -> None:
    specs = [EpisodeSpec(seed=2 * i + 1, n_objects=N_OBJECTS) for i in range(20)]
    with contextlib.closing(make_worlds(WORLD, 5)) as worlds:
        results = rollout(BlindExpert(WORLD), specs, worlds)
        swapped = rollout(BlindExpert(WORLD), specs[::-1], worlds)[::-1]
    assert results == swapped  # whatever it played before
    lucky = []
    for one in first_observations(WORLD, 20):
        said = TASKS["fetch"].request(one.instruction)
        lucky.append(any_request(said, one).target == said.target)
    assert [result.success for result in results] == lucky
    assert {result.reason for result in results} == {"", "wrong_object"}


@pytest.mark.parametrize("name", ["expert", "expert_blind"])
def test_scripted_policies_come_by_name_in_any_world(name: str) -> None:
    policy = load_policy(name, RICH)
    assert is_scripted(name) and (policy.name, policy.env_config) == (name, RICH)
    observation = first_observations(RICH, 1)[0]
    assert np.isfinite(policy.act(observation)).all()


def test_a_learned_policy_is_not_scripted() -> None:
    assert not is_scripted("act") and not is_scripted("runs/act")
