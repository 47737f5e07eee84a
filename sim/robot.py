"""The Franka Panda: joint targets in, proprioception out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.assets import panda_urdf
from fetchlab.sim.kinematics import joints_for
from fetchlab.sim.world import World

NAME = "panda"
ARM_JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))
FINGER_JOINTS = ("panda_finger_joint1", "panda_finger_joint2")
FINGERS = ("panda_leftfinger", "panda_rightfinger")
HAND = "panda_link7"
HAND_TURN = np.array([[1, 1, 0], [-1, 1, 0], [0, 0, 2**0.5]]) / 2**0.5  # mounted at -45 degrees
TOOL_IN_HAND = 0.107 + 0.105  # from the hand's frame to the point between the fingertips [m]
MAX_OPENING = 0.08  # m
JOINT_SPEED = (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)  # rad/s
JOINT_TORQUE = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)  # N m
STRAIGHT_ABOVE = 0.08  # ways that take longer than this at full speed are synchronized [s]
LEAST_SPEED = 0.1  # of a joint that only has to hold [rad/s]
FINGER_SPEED, FINGER_FORCE = 0.2, 30.0  # m/s, N
HOME = (0.45, 0.0, 0.25)  # where the tool waits [m]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the robot senses at one moment."""

    joints: NDArray[np.float64]  # (7,) [rad]
    gripper_opening: float  # distance between the fingers [m]
    hand_position: NDArray[np.float64]  # (3,) [m]
    hand_rotation: NDArray[np.float64]  # (3, 3)
    tool: NDArray[np.float64]  # (3,) point between the fingertips [m]

    def proprioception(self) -> NDArray[np.float32]:
        """(P,) as named in observation.PROPRIOCEPTION."""
        return np.array([*self.joints, self.gripper_opening, *self.tool], dtype=np.float32)


class Panda:
    """The robot on a World's table, its base at the origin."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._home = joints_for(np.array(HOME))
        world.load_robot(NAME, panda_urdf())
        world.couple_joints(NAME, *FINGER_JOINTS)
        for finger in FINGERS:
            world.set_link_friction(NAME, finger, 1.5)

    def reset(self) -> None:
        """Stand still at home with the gripper open; every joint and motor is set."""
        arm = dict(zip(ARM_JOINTS, self._home.tolist(), strict=True))
        self._world.reset_joints(NAME, arm | dict.fromkeys(FINGER_JOINTS, MAX_OPENING / 2))
        self.drive(self._home, MAX_OPENING)

    def drive(self, joints: NDArray[np.floating], opening: float) -> None:
        """Servo towards joint angles (7,) [rad] and a gripper opening [m]."""
        ways = np.abs(joints - self.joints())
        # Joints far from their targets arrive together, or the tool would leave its straight path
        # where the arm is nearly stretched; close to them each is as quick as it can be.
        slowest = max((ways / JOINT_SPEED).max(), 1e-9)
        speeds = ways / slowest if slowest > STRAIGHT_ABOVE else np.array(JOINT_SPEED)
        for joint, target, torque, speed in zip(
            ARM_JOINTS, joints.tolist(), JOINT_TORQUE, speeds.tolist(), strict=True
        ):
            self._world.drive_joint(NAME, joint, target, torque, max(speed, LEAST_SPEED))
        for finger in FINGER_JOINTS:
            self._world.drive_joint(NAME, finger, opening / 2, FINGER_FORCE, FINGER_SPEED)

    def joints(self) -> NDArray[np.float64]:
        """(7,) joint angles [rad]."""
        return self._world.joint_positions(NAME, ARM_JOINTS)

    def read(self) -> Reading:
        """Every sensor, once."""
        positions = self._world.joint_positions(NAME, (*ARM_JOINTS, *FINGER_JOINTS))
        origin, rotation = self._world.link_pose(NAME, HAND)
        rotation = rotation @ HAND_TURN
        return Reading(
            joints=positions[:7],
            gripper_opening=float(positions[7:].sum()),
            hand_position=origin,
            hand_rotation=rotation,
            tool=origin + rotation[:, 2] * TOOL_IN_HAND,
        )

    def holds(self, body: str) -> bool:
        """Whether both fingers touch the body."""
        return all(self._world.touching(body, NAME, finger) for finger in FINGERS)

    def touches(self, body: str) -> bool:
        """Whether any part of the robot touches the body."""
        return self._world.touching(body, NAME)
