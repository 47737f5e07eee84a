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
    forward = np.subtract(camera.target, camera.eye)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, camera.up)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(forward, right), forward])  # right, down, into the image
    extrinsics = np.hstack([axes, -axes @ np.array(camera.eye)[:, None]])  # (3, 4)
    focal = 0.5 / np.tan(np.radians(camera.fov) / 2)  # in image heights
    intrinsics = np.array([[focal, 0, 0.5], [0, focal, 0.5], [0, 0, 1]])
    result: NDArray[np.float64] = intrinsics @ extrinsics
    return result
