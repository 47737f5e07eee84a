"""A yardstick that ignores whom the sentence names: how often that succeeds is the chance level."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fetchlab.policy.expert import Expert
from fetchlab.policy.situation import Situation
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import Reference, Request
from fetchlab.sim.observation import IS_BOX, Observation
from fetchlab.sim.scene import DIRECTIONS, SceneObject


class BlindExpert(Expert):
    """Does the right task as the expert does, with an object that is drawn by the scene.

    Beside which object, and on which side of it, is drawn as well.
    """

    name = "expert_blind"

    def __init__(self, env_config: EnvConfig) -> None:
        super().__init__(env_config)
        self._drawn: dict[int, Request] = {}  # by slot

    def reset(self, slots: Sequence[int] | None = None) -> None:
        super().reset(slots)
        for slot in list(self._drawn) if slots is None else slots:
            self._drawn.pop(slot, None)

    def _request(self, observation: Observation, slot: int) -> Request:
        if slot not in self._drawn:
            said = super()._request(observation, slot)
            self._drawn[slot] = any_request(said, observation)
        return self._drawn[slot]


def any_request(said: Request, observation: Observation) -> Request:
    """The request with everything drawn but the task; where two objects are named, two of them."""
    generator = scene_generator(observation)
    kinds = [Reference(colour=one.colour, shape=one.shape) for one in things(observation, said)]
    target = kinds[int(generator.integers(len(kinds)))]
    if said.other is None:
        return replace(said, target=target)
    others = [kind for kind in kinds if kind != target]
    other = others[int(generator.integers(len(others)))]
    relation = list(DIRECTIONS)[int(generator.integers(len(DIRECTIONS)))]
    return replace(said, target=target, other=other, relation=relation)


def scene_generator(observation: Observation) -> np.random.Generator:
    """A generator that follows from where the objects lie: in each scene the same draws."""
    return np.random.default_rng(zlib.crc32(observation.objects.tobytes()))


def things(observation: Observation, request: Request) -> list[SceneObject]:
    """The objects on the table, without the box, in the order of their rows."""
    situation = Situation(observation=observation, request=request)
    rows = observation.objects_mask & (observation.objects[:, IS_BOX] < 0.5)
    return [situation.thing(row) for row in np.flatnonzero(rows).tolist()]
