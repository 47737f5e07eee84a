"""The scripted expert: grasps, carries and puts down — answering as any policy does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fetchlab.policy.base import Array
from fetchlab.policy.phases import ABOVE, ABOVE_ALL, CLOSED, Goal, Memory, Phases
from fetchlab.policy.placing import place_for
from fetchlab.policy.situation import Situation
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.kinematics import WORKSPACE_LOWER, WORKSPACE_UPPER, joints_for
from fetchlab.sim.language import Request
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.sim.shapes import BLOCK_SIZE, BOX_HEIGHT, SHAPES
from fetchlab.sim.tasks.registry import TASKS

CLOSE_BY = 0.06  # this close to where precision matters, noise is reduced; for blocks alone [m]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Gaussian disturbance of the executed actions in demonstrations; the labels stay clean."""

    position: float = 0.015
    """standard deviation of the tool's target, each axis [m]"""
    near: float = 0.3
    """factor on it close to the grasp, where precision matters"""
    kick: float = 0.1
    """chance of a disturbance three times as large, well above the objects"""
    slip: float = 0.05
    """chance that open fingers close for one step, on the way to the object"""


class Expert:
    """Does what the sentence asks for, from privileged state (`observation.objects`)."""

    name = "expert"
    max_objects = MAX_OBJECTS

    def __init__(self, env_config: EnvConfig) -> None:
        self.env_config = env_config
        self._task = TASKS[env_config.task]
        heights = [SHAPES[shape].height for shape in env_config.shapes]
        if any(part.has_box for part in self._task.parts):
            heights.append(BOX_HEIGHT)
        alone = env_config.shapes == ("block",) and env_config.crowding == "apart"
        may_turn = env_config.action_mode == "joint" and not alone
        self._phases = Phases(top=max(heights), may_turn=may_turn)
        self._memories: dict[int, Memory] = {}  # by slot

    def reset(self, slots: Sequence[int] | None = None) -> None:
        for slot in list(self._memories) if slots is None else slots:
            self._memories.pop(slot, None)

    def act(self, observation: Observation) -> Array:
        return self._action(self._goal(self._situation(observation, 0), 0))

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        return np.stack(
            [
                self._action(self._goal(self._situation(observations[row], slot), slot))
                for row, slot in enumerate(slots)
            ]
        )

    def demonstrate(
        self, observation: Observation, noise: Noise, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """The clean action (A,), which is the label, and the disturbed one (A,) to execute."""
        situation = self._situation(observation, 0)
        goal = self._goal(situation, 0)
        tool, above = situation.tool, self._phases.top + ABOVE_ALL
        direction, kicked, slipped = generator.normal(size=3), *generator.random(2)
        strength = 1.0
        if self._is_close(situation):
            strength = noise.near
        elif tool[2] > above and kicked < noise.kick and not self._carries(situation):
            strength = 3.0
        disturbed = goal.copy()
        disturbed[:3] += direction * noise.position * strength
        # Not above the object itself: from x and y alone that looks like holding it.
        aside = np.hypot(*(tool[:2] - situation.position[:2])) > ABOVE
        if aside and tool[2] > above and slipped < noise.slip:
            disturbed[3] = CLOSED
        return self._action(goal), self._action(disturbed)

    def _situation(self, observation: Observation, slot: int) -> Situation:
        return Situation(observation=observation, request=self._request(observation, slot))

    def _request(self, observation: Observation, slot: int) -> Request:
        """What to do in the episode of this slot."""
        return self._task.request(observation.instruction)

    def _goal(self, situation: Situation, slot: int) -> Goal:
        return self._phases.goal(situation, self._memories.setdefault(slot, Memory()))

    def _carries(self, situation: Situation) -> bool:
        """Whether something that hangs below the tool is on its way to a place."""
        memory = self._memories[0]
        return bool(memory.closing and place_for(situation, memory.shift))

    def _is_close(self, situation: Situation) -> bool:
        """Whether precision matters: at the grasp, and where the object is put down."""
        memory, tool, (x, y, _) = self._memories[0], situation.tool, situation.position
        grip = self._phases.plan(situation, memory)
        close_by = CLOSE_BY + self._phases.top - BLOCK_SIZE
        if np.linalg.norm(tool - (x, y, grip.height)) < close_by:
            return True
        place = place_for(situation, memory.shift)
        return place is not None and bool(np.hypot(*(tool[:2] - place.middle)) < CLOSE_BY)

    def _action(self, goal: Goal) -> Array:
        position = np.clip(goal[:3], WORKSPACE_LOWER, WORKSPACE_UPPER)
        joint = self.env_config.action_mode == "joint"
        arm = joints_for(position, goal[4]) if joint else position
        return np.array([*arm, goal[3]], dtype=np.float32)
