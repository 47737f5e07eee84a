"""The ground that things cover, seen from above, and how far apart they are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.shapes import SHAPES, Patch

CORNERS = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1), (0, 0)])  # of a rectangle, and its middle

Pose = tuple[float, float, float]  # x, y [m], yaw [rad]


def gap(shape: str, pose: Pose, other: str, other_pose: Pose) -> float:
    """Distance between the outlines of two things [m]; negative if they overlap."""
    return min(
        _between(one, pose, two, other_pose)
        for one in SHAPES[shape].outline
        for two in SHAPES[other].outline
    )


def _between(patch: Patch, pose: Pose, other: Patch, other_pose: Pose) -> float:
    # Two rectangles that do not cross are closest at a corner of one of them.
    distance = min(
        _to_rectangle(_corners(patch, pose), other, other_pose),
        _to_rectangle(_corners(other, other_pose), patch, pose),
    )
    return distance - patch.radius - other.radius


def _corners(patch: Patch, pose: Pose) -> NDArray[np.float64]:
    """Corners and middle (5, 2) of the rectangle within the rounded edge."""
    x, y, yaw = pose
    result: NDArray[np.float64] = (CORNERS * patch.half + (patch.x, 0.0)) @ _turn(yaw).T + (x, y)
    return result


def _to_rectangle(points: NDArray[np.float64], patch: Patch, pose: Pose) -> float:
    """Least distance of points (P, 2) to a rectangle; negative inside."""
    x, y, yaw = pose
    own = (points - (x, y)) @ _turn(yaw) - (patch.x, 0.0)  # (P, 2) in the patch's frame
    beyond = np.abs(own) - patch.half
    outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
    return float((outside + np.minimum(beyond.max(axis=1), 0.0)).min())


def _turn(yaw: float) -> NDArray[np.float64]:
    return np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
