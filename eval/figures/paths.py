"""Paths of the arm's tool to the named block, recorded from the simulator's expert."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation
from fetchlab.sim.world import TABLE_CENTRE, TABLE_SIZE

WAYPOINTS = 12
# Without cameras, and with more moments than a policy is given: an approach takes half a second.
RECORDER = EnvConfig(cameras=(), action_mode="ee", control_hz=60)
ARRIVED = 0.018  # the tool is above the block when this close sideways [m]
SHORTEST = 0.05  # a block that lies nearly under the waiting tool is not reached for [m]


def reaches(n_paths: int, *, seen: bool) -> Tensor:
    """(n, 12, 4) approaches: x, y of a waypoint and x, y of the block, in half tables.

    Waypoints are evenly spaced in time, from where the tool waits until it is above the block.
    Demonstrations are seeded evenly and evaluations oddly; `seen` chooses between them.
    """
    environment = Tabletop.from_config(RECORDER, n_objects=2)
    expert = Expert(RECORDER)
    found: list[NDArray[np.float64]] = []
    seed = 0 if seen else 1
    while len(found) < n_paths:
        path, block = approach(environment, expert, seed)
        if np.linalg.norm(path[-1] - path[0]) >= SHORTEST:
            waypoints = resampled(path)  # (12, 2)
            found.append(np.hstack([waypoints, np.broadcast_to(block, waypoints.shape)]))
        seed += 2
    environment.close()
    centred = (np.stack(found) - np.tile(TABLE_CENTRE, 2)) / (TABLE_SIZE / 2)
    return torch.from_numpy(centred)  # (n, 12, 4)


def approach(
    environment: Tabletop, expert: Expert, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The tool's way (T, 2) to the named block (2,) [m]."""
    moment, _ = environment.reset(seed=seed)
    expert.reset()
    named = environment.scene.objects[environment.scene.target]
    block = np.array([named.x, named.y])
    path = [_tool(moment)]
    while np.linalg.norm(path[-1] - block) > ARRIVED:
        moment, *_ = environment.step(expert.act(Observation.from_gym(moment)))
        path.append(_tool(moment))
    return np.stack(path), block


def resampled(path: NDArray[np.float64]) -> NDArray[np.float64]:
    """The path (T, 2) at 12 moments, evenly spaced in time."""
    moments = np.linspace(0, len(path) - 1, WAYPOINTS)
    along = [np.interp(moments, np.arange(len(path)), path[:, axis]) for axis in (0, 1)]
    return np.stack(along, axis=1)  # (12, 2)


def _tool(moment: dict[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    return moment["agent_pos"][8:10].astype(np.float64)
