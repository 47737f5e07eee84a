"""The scripted expert: approach, descend, close, lift — answering as any policy does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fetchlab.policy.base import Array
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.kinematics import WORKSPACE_LOWER, WORKSPACE_UPPER, joints_for
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.sim.scene import BLOCK_SIZE, COLOURS, MAX_OBJECTS

OPEN, CLOSED = 0.08, 0.0  # gripper opening targets [m]
GRASP_HEIGHT = BLOCK_SIZE / 2  # m
HOVER_HEIGHT = 0.10  # on the way to the block [m]
READY_HEIGHT = 0.065  # just above the block, to line up before the last descent [m]
LIFT_HEIGHT = 0.18  # m
STRIDE = 0.10  # longest way of the tool in one control step [m]
ABOVE = 0.03  # the tool may come down to the ready height when this close sideways [m]
ALIGNED = 0.018  # and may descend around the block when this close [m]
# The close rule is loose on purpose: a tight one under noise teaches hovering (docs/decisions.md).
CLOSE_SIDEWAYS, CLOSE_HEIGHT = 0.016, 0.014  # m
CLOSE_BY = 0.06  # this close to the grasp, noise is reduced [m]
TOO_LOW = 0.05  # to move sideways without touching a block [m]
ABOVE_BLOCKS = 0.06  # higher than this, nothing can be knocked over [m]
CLOSE_STEPS = 3  # control steps that the fingers close before the lift; two are often cut short
EMPTY = 0.03  # closed further than this, the fingers have missed [m]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Gaussian disturbance of the executed actions in demonstrations; the labels stay clean."""

    position: float = 0.015
    """standard deviation of the tool's target, each axis [m]"""
    near: float = 0.3
    """factor on it close to the grasp, where precision matters"""
    kick: float = 0.1
    """chance of a disturbance three times as large, well above the blocks"""
    slip: float = 0.05
    """chance that open fingers close for one step, on the way to the block"""


class Expert:
    """Fetches the named block from privileged state (`observation.objects`)."""

    name = "expert"
    max_objects = MAX_OBJECTS

    def __init__(self, env_config: EnvConfig) -> None:
        self.env_config = env_config
        self._closing: dict[int, int] = {}  # slot -> control steps since the fingers began to close

    def reset(self, slots: Sequence[int] | None = None) -> None:
        for slot in list(self._closing) if slots is None else slots:
            self._closing.pop(slot, None)

    def act(self, observation: Observation) -> Array:
        return self._action(self._goal(observation, 0))

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        return np.stack(
            [self._action(self._goal(observations[row], slot)) for row, slot in enumerate(slots)]
        )

    def demonstrate(
        self, observation: Observation, noise: Noise, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """The clean action (A,), which is the label, and the disturbed one (A,) to execute."""
        goal = self._goal(observation, 0)
        tool, block = observation.proprioception[8:11], _named_block(observation)
        direction, kicked, slipped = generator.normal(size=3), *generator.random(2)
        strength = 1.0
        if np.linalg.norm(tool - (*block, GRASP_HEIGHT)) < CLOSE_BY:
            strength = noise.near
        elif tool[2] > ABOVE_BLOCKS and kicked < noise.kick:
            strength = 3.0
        disturbed = goal.copy()
        disturbed[:3] += direction * noise.position * strength
        # Not above the block itself: from x and y alone that looks like holding it.
        aside = np.hypot(*(tool[:2] - block)) > ABOVE
        if aside and tool[2] > ABOVE_BLOCKS and slipped < noise.slip:
            disturbed[3] = CLOSED
        return self._action(goal), self._action(disturbed)

    def _goal(self, observation: Observation, slot: int) -> NDArray[np.float64]:
        """Next tool position [m] and gripper opening [m], (4,)."""
        tool = observation.proprioception[8:11].astype(np.float64)
        opening = float(observation.proprioception[7])
        block = _named_block(observation)
        sideways = float(np.hypot(*(tool[:2] - block)))
        closing = self._closing.get(slot, 0)
        if closing >= CLOSE_STEPS and opening < EMPTY:
            closing = 0  # missed: open and try again
        low = tool[2] < GRASP_HEIGHT + CLOSE_HEIGHT
        if closing or (low and sideways < CLOSE_SIDEWAYS):
            self._closing[slot] = closing + 1
            height = LIFT_HEIGHT if closing >= CLOSE_STEPS else GRASP_HEIGHT
            return _stride(tool, (*block, height), CLOSED)
        self._closing[slot] = 0
        if sideways < ALIGNED:
            return _stride(tool, (*block, GRASP_HEIGHT), OPEN)
        if tool[2] < TOO_LOW:
            return _stride(tool, (*tool[:2], READY_HEIGHT), OPEN)
        height = READY_HEIGHT if sideways < ABOVE else HOVER_HEIGHT
        return _stride(tool, (*block, height), OPEN)

    def _action(self, goal: NDArray[np.float64]) -> Array:
        position = np.clip(goal[:3], WORKSPACE_LOWER, WORKSPACE_UPPER)
        arm = joints_for(position) if self.env_config.action_mode == "joint" else position
        return np.array([*arm, goal[3]], dtype=np.float32)


def _named_block(observation: Observation) -> NDArray[np.float64]:
    """(2,) position [m] of the one block whose colour the instruction names."""
    words = observation.instruction.split()
    colour = next(index for index, name in enumerate(COLOURS) if name in words)
    named = observation.objects_mask & (observation.objects[:, 2 + colour] > 0.5)
    return observation.objects[int(np.flatnonzero(named)[0]), :2].astype(np.float64)


def _stride(
    tool: NDArray[np.float64], target: Sequence[float], opening: float
) -> NDArray[np.float64]:
    way = np.array(target) - tool
    length = float(np.linalg.norm(way))
    return np.array([*(tool + way * min(1.0, STRIDE / max(length, 1e-9))), opening])
