"""The Panda's kinematics in closed form, for a gripper that points straight down.

Holding joints 3 and 5 at zero keeps the arm in the vertical plane through its base axis, so that
every tool position has one solution: smooth, instantaneous, the same in every process. (An
iterative solver depends on where it starts, and misses by millimetres.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError

# Denavit-Hartenberg constants of the Panda [m] (Franka Emika, FCI documentation).
BASE_TO_SHOULDER = 0.333
SHOULDER_TO_ELBOW = 0.316
ELBOW_OFFSET = 0.0825
ELBOW_TO_WRIST = 0.384
WRIST_OFFSET = 0.088
FLANGE_TO_TOOL = 0.107 + 0.105  # flange, then the point between the fingertips

_UPPER_ARM = math.hypot(SHOULDER_TO_ELBOW, ELBOW_OFFSET)
_FOREARM = math.hypot(ELBOW_TO_WRIST, ELBOW_OFFSET)
_UPPER_ANGLE = math.atan2(ELBOW_OFFSET, SHOULDER_TO_ELBOW)
_FOREARM_ANGLE = math.atan2(ELBOW_OFFSET, ELBOW_TO_WRIST)

JOINT_LOWER = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973])  # rad
JOINT_UPPER = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973])  # rad
# The box that end-effector targets are clipped to [m]; every corner is in reach.
WORKSPACE_LOWER = np.array([0.29, -0.29, 0.012])
WORKSPACE_UPPER = np.array([0.71, 0.29, 0.33])


def joints_for(position: NDArray[np.floating], yaw: float = 0.0) -> NDArray[np.float64]:
    """(7,) joint angles [rad] that bring the tool to `position` (3,) [m], pointing down.

    `yaw` [rad] turns the gripper about the vertical; at 0 the fingers close along the y axis.
    The base stands at the origin. Raises UserError when the position is out of reach.
    """
    x, y, z = (float(value) for value in position)
    azimuth = math.atan2(y, x)
    radius = math.hypot(x, y) - WRIST_OFFSET
    height = z + FLANGE_TO_TOOL - BASE_TO_SHOULDER
    reach = math.hypot(radius, height)
    if not abs(_UPPER_ARM - _FOREARM) < reach < _UPPER_ARM + _FOREARM:
        raise UserError(f"position ({x:.3f}, {y:.3f}, {z:.3f}) m is out of the arm's reach")
    elbow = math.acos(_cosine_rule(_UPPER_ARM, _FOREARM, reach))
    shoulder = math.acos(_cosine_rule(_UPPER_ARM, reach, _FOREARM))
    joint2 = math.atan2(radius, height) - shoulder - _UPPER_ANGLE
    joint4 = elbow - _UPPER_ANGLE - _FOREARM_ANGLE - math.pi
    joint7 = math.pi / 4 + azimuth - yaw
    return np.array([azimuth, joint2, 0.0, joint4, 0.0, joint2 - joint4, joint7])


def _cosine_rule(side: float, other: float, opposite: float) -> float:
    return (side**2 + other**2 - opposite**2) / (2 * side * other)
