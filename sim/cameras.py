"""The camera registry: where each camera is, what it looks at, and what it sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class View:
    """A viewpoint in the world: eye and target [m], the direction that is up, field of view."""

    eye: NDArray[np.float64]  # (3,)
    target: NDArray[np.float64]  # (3,)
    up: NDArray[np.float64]  # (3,)
    fov: float  # vertical [deg]

    def axes(self) -> NDArray[np.float64]:
        """(3, 3) right, down and forward, as unit vectors in the world."""
        forward = self.target - self.eye
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(forward, right), forward])

    def pose(self) -> NDArray[np.float64]:
        """(4, 4) from the camera to the world [m]: x to the right, y down, z forwards."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.axes().T, self.eye
        return pose

    def intrinsics(self, size: int) -> NDArray[np.float64]:
        """(3, 3) of a square image [pixels]; its upper left corner is (0, 0)."""
        focal = size / 2 / np.tan(np.radians(self.fov) / 2)
        return np.array([[focal, 0, size / 2], [0, focal, size / 2], [0, 0, 1]])


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera with square pixels.

    Coordinates are metres in the world's frame, or with `on_hand` in the hand's: x forwards,
    z from the flange to the fingertips, the tool at z = 0.212.
    """

    description: str
    eye: Triple
    target: Triple
    up: Triple
    fov: float  # vertical field of view [deg]
    on_hand: bool = False

    def view(self, hand_position: NDArray[np.float64], hand_rotation: NDArray[np.float64]) -> View:
        """What it looks at, with the hand here: (3,) [m] and (3, 3)."""
        eye, target, up = np.array(self.eye), np.array(self.target), np.array(self.up)
        if self.on_hand:
            eye = hand_position + hand_rotation @ eye
            target = hand_position + hand_rotation @ target
            up = hand_rotation @ up
        return View(eye, target, up, self.fov)


CAMERAS: dict[str, Camera] = {
    "front": Camera(
        description="across the table, facing the robot",
        eye=(1.20, 0.0, 0.78),
        target=(0.47, 0.0, 0.04),
        up=(0, 0, 1),
        fov=36,
    ),
    "overhead": Camera(
        description="straight down on the table",
        eye=(0.50, 0.0, 1.15),
        target=(0.50, 0.0, 0.0),
        up=(1, 0, 0),
        fov=38,
    ),
    "wrist": Camera(
        description="on the hand, looking past the fingertips",
        eye=(0.085, 0.0, 0.115),
        target=(0.04, 0.0, 0.25),
        up=(1, 0, 0),
        fov=80,
        on_hand=True,
    ),
}

STUDIO = Camera(
    description="the larger view of render() and videos",
    eye=(1.45, 0.75, 0.95),
    target=(0.35, 0.0, 0.17),
    up=(0, 0, 1),
    fov=47,
)


def projection(camera: Camera) -> NDArray[np.float64]:
    """(3, 4) matrix that takes a point (x, y, z, 1) [m] to image coordinates (u·w, v·w, w).

    u runs to the right and v down, each from 0 to 1 across the image. For cameras that stand still.
    """
    view = camera.view(np.zeros(3), np.eye(3))
    axes = view.axes()
    extrinsics = np.hstack([axes, -axes @ view.eye[:, None]])  # (3, 4)
    result: NDArray[np.float64] = view.intrinsics(1) @ extrinsics
    return result
