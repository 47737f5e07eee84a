"""What a rendering is made with, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

NEAR, FAR = 0.02, 4.0  # what cameras see lies between these distances [m]

Image = NDArray[np.uint8]  # (H, W, 3)
Depth = NDArray[np.float32]  # (H, W) distance along the optical axis [m]


@dataclass(frozen=True, kw_only=True)
class Light:
    """Where light comes from, and how strongly each kind of it shines."""

    direction: tuple[float, float, float] = (0.4, -0.8, 1.6)
    ambient: float = 0.6
    diffuse: float = 0.35
    specular: float = 0.05


@dataclass(frozen=True)
class Picture:
    """What a camera saw."""

    rgb: Image
    depth: Depth
    segmentation: NDArray[np.int32]  # (H, W) index into `names`; -1 is background
    names: tuple[str, ...]

    @classmethod
    def of(cls, rendered: tuple[Any, ...], bodies: Mapping[str, int]) -> Picture:
        """From what the engine gives, and its numbers of the bodies."""
        width, height, rgba, buffer, labels = rendered
        shown = np.array(labels, dtype=np.int32).reshape(height, width)
        segmentation = np.full_like(shown, -1)
        for index, body in enumerate(bodies.values()):
            segmentation[shown == body] = index
        return cls(
            rgb=colours(rgba, width, height),
            depth=distances(buffer, width, height),
            segmentation=segmentation,
            names=tuple(bodies),
        )


def colours(rgba: Any, width: int, height: int) -> Image:
    """The engine's pixels as an image."""
    # A PyBullet built without numpy returns tuples; the arrays are the same either way.
    pixels = np.asarray(rgba, dtype=np.uint8).reshape(height, width, 4)
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGBA2RGB), dtype=np.uint8)


def distances(buffer: Any, width: int, height: int) -> Depth:
    """The engine's depth buffer, from 0 at NEAR to 1 at FAR, in metres."""
    nearness = np.array(buffer, dtype=np.float32).reshape(height, width)
    result: Depth = FAR * NEAR / (FAR - (FAR - NEAR) * nearness)
    return result


def with_hue_shifted(image: Image, degrees: float) -> Image:
    """The same brightness and saturation in another hue."""
    hsv = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2HSV)  # hue in degrees
    hsv[..., 0] = (hsv[..., 0] + degrees) % 360
    rgb = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    return np.asarray(np.rint(rgb * 255), dtype=np.uint8)


def noisy(image: Image, deviation: float, generator: np.random.Generator) -> Image:
    """Every value off by Gaussian noise of this standard deviation, of 255."""
    disturbed = image + generator.normal(0, deviation, image.shape)
    return np.asarray(np.rint(disturbed.clip(0, 255)), dtype=np.uint8)
