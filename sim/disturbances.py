"""What happens while an episode runs: the named object is set elsewhere, the arm is pushed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.arrangement import BLOCK_YAW, BLOCKS, has_room, is_clear
from fetchlab.sim.footprint import Pose
from fetchlab.sim.kinematics import JOINT_LOWER, JOINT_UPPER
from fetchlab.sim.robot import Panda, Reading
from fetchlab.sim.scene import AREA_X, AREA_Y, Goal, Scene, is_beside, place_beside
from fetchlab.sim.table import Table, object_name
from fetchlab.sim.variations import PUSH_STEPS, Conditions

ELSEWHERE = 0.10  # least way from the old place to the new one, and from the tool to it [m]
IN_PLACE = 0.01  # an object that has moved further than this is not moved again [m]
# Fingers that are pushed while they are lower would sweep objects off the table [m].
HIGH = 0.11
TRIES = 400  # poses that are tried in one control step

Numbers = NDArray[np.float64]


class Disturbances:
    """Brings about what an episode's conditions say."""

    def __init__(self, table: Table, robot: Panda, shapes: tuple[str, ...]) -> None:
        self._table, self._robot, self._square = table, robot, shapes == BLOCKS

    def begin(self, scene: Scene, conditions: Conditions, generator: np.random.Generator) -> None:
        self._scene, self._conditions, self._generator = scene, conditions, generator
        self._may_move = conditions.moved_at is not None
        self._push_steps = PUSH_STEPS if conditions.push else 0
        self._offset: Numbers | None = None

    def strike(self, step: int, reading: Reading, poses: Numbers) -> None:
        """What happens between two control steps, after so many.

        `poses` (n, 4) are those of all objects: x, y, z [m] and yaw [rad].
        """
        push, moved_at = self._conditions.push, self._conditions.moved_at
        self._offset = None
        if self._push_steps and push and step >= push.start and reading.tool[2] > HIGH:
            self._offset, self._push_steps = push.offset, self._push_steps - 1
        if self._may_move and moved_at is not None and step >= moved_at:
            self._may_move = not self._move(reading.tool, poses)

    def led_astray(self, joints: Numbers) -> Numbers:
        """(7,) where joints are driven that should go there [rad]."""
        if self._offset is None:
            return joints
        return np.clip(joints + self._offset, JOINT_LOWER, JOINT_UPPER)

    def _move(self, tool: Numbers, poses: Numbers) -> bool:
        """Set the named object elsewhere, if it can be; whether that is done with."""
        row, named = self._scene.target, self._scene.objects[self._scene.target]
        if math.dist(poses[row, :2], (named.x, named.y)) > IN_PLACE:
            return True
        if self._robot.touches(object_name(row)):
            return False
        pose = _elsewhere(self._generator, self._scene, poses, tool, self._square)
        if pose is not None:
            self._table.set_down(row, named.shape, pose)
        return pose is not None


def _elsewhere(
    generator: np.random.Generator, scene: Scene, poses: Numbers, tool: Numbers, square: bool
) -> Pose | None:
    """A free pose for the named object, away from where it lies and from the tool, if there is one.

    What is asked for is not reached by it, and stays possible.
    """
    goal, objects = scene.goal, scene.objects
    others = [
        (thing.shape, (x, y, yaw))
        for row, (thing, (x, y, _, yaw)) in enumerate(zip(objects, poses.tolist(), strict=False))
        if row != goal.target
    ]
    taken = np.array([pose[:2] for _, pose in others] + _kept_free(goal, poses))
    avoided = np.stack([poses[goal.target, :2], tool[:2]])
    most = BLOCK_YAW if square else math.pi
    lower, upper = zip(AREA_X, AREA_Y, (-most, most), strict=True)
    for x, y, yaw in generator.uniform(lower, upper, size=(TRIES, 3)):
        place, pose = np.array([x, y]), (float(x), float(y), float(yaw))
        if (
            (np.hypot(*(avoided - place).T) >= ELSEWHERE).all()
            and has_room(place, taken, scene.box, square=square)
            and (square or is_clear(objects[goal.target].shape, pose, others))
            and not _would_reach(goal, poses, place)
        ):
            return pose
    return None


def _kept_free(goal: Goal, poses: Numbers) -> list[list[float]]:
    """The place beside the other object, if the goal names one [m]."""
    if goal.other is None or goal.relation is None:
        return []
    return [list(place_beside(poses[goal.other, :2].tolist(), goal.relation))]


def _would_reach(goal: Goal, poses: Numbers, place: Numbers) -> bool:
    if goal.other is None or goal.relation is None:
        return False
    return is_beside((place - poses[goal.other, :2]).tolist(), goal.relation)
