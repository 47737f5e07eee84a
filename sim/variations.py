"""What can be different about an episode: how its cameras see, how all looks, what happens in it.

A variation draws `Conditions` from a generator of its own, so that the scene of a seed and what is
said about it are the same with and without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.cameras import CAMERAS, Camera, Triple
from fetchlab.sim.pictures import Light
from fetchlab.sim.scene import TABLE_RGBA

MOST_SHIFTED, MOST_TURNED = 0.02, 2.0  # a camera that is jittered [m], [deg]
HUE_SHIFT = (5.0, 10.0)  # either way; red, orange and yellow are hardly further apart [deg]
NOISE = (6.0, 16.0)  # standard deviation of a pixel, of 255
MOVED_AT = (2, 5)  # control steps between which the named object is moved
PUSHED_AT = (0, 4)  # and between which a push begins
PUSH_STEPS = 3  # control steps that it lasts
PUSH_ASIDE, PUSH_BACK = (0.10, 0.20), (0.0, 0.12)  # of joint 1 and of joint 2 [rad]


@dataclass(frozen=True, kw_only=True)
class Push:
    """For PUSH_STEPS control steps the joints are led astray from where they are driven."""

    start: int
    """control steps before it begins; it waits, and pauses, while the fingers are low"""
    offset: NDArray[np.float64]
    """(7,) that is added to the joint targets [rad]"""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What is different about one episode; by default nothing is."""

    cameras: Mapping[str, Camera] = field(default_factory=dict)
    """those that stand elsewhere than in the registry"""
    dark: tuple[str, ...] = ()
    """cameras that see nothing: black, and at no distance"""
    screened: tuple[str, ...] = ()
    """cameras between which and the table a screen stands"""
    table_rgba: tuple[float, float, float, float] = TABLE_RGBA
    light: Light = field(default_factory=Light)
    hue_shift: float = 0.0
    """of every image [deg]"""
    noise: float = 0.0
    """standard deviation of every pixel, of 255"""
    moved_at: int | None = None
    """control steps before the named object is set elsewhere, or as soon after as no part of the
    robot touches it; never once it has left its place"""
    push: Push | None = None


Draw = Callable[[np.random.Generator], Conditions]


@dataclass(frozen=True, kw_only=True)
class Variation:
    """A name for a distribution of conditions."""

    description: str
    draw: Draw
    blinds: tuple[str, ...] = ()
    """cameras that it keeps from seeing the table: it means nothing to a world without them"""


def _without_sight(*, dark: tuple[str, ...] = (), screened: tuple[str, ...] = ()) -> Variation:
    done = [f"the {camera} camera is black" for camera in dark]
    done += [f"a screen hides the table from the {camera} camera" for camera in screened]
    conditions = Conditions(dark=dark, screened=screened)
    return Variation(
        description="; ".join(done), draw=lambda _: conditions, blinds=(*dark, *screened)
    )


def _screen_anywhere(generator: np.random.Generator) -> Conditions:
    return Conditions(screened=(("front", "overhead")[int(generator.integers(2))],))


def _jittered(generator: np.random.Generator) -> Conditions:
    still = {name: camera for name, camera in CAMERAS.items() if not camera.on_hand}
    return Conditions(cameras={name: _jitter(generator, c) for name, c in still.items()})


def _jitter(generator: np.random.Generator, camera: Camera) -> Camera:
    shift = _within_ball(generator) * MOST_SHIFTED
    turn, _ = cv2.Rodrigues(_within_ball(generator) * np.radians(MOST_TURNED))
    eye = camera.eye + shift
    target = eye + turn @ np.subtract(camera.target, camera.eye)
    return replace(camera, eye=_triple(eye), target=_triple(target), up=_triple(turn @ camera.up))


def _triple(vector: NDArray[np.float64]) -> Triple:
    x, y, z = vector.tolist()
    return x, y, z


def _within_ball(generator: np.random.Generator) -> NDArray[np.float64]:
    """(3,) in any direction, no longer than 1."""
    direction = generator.normal(size=3)
    result: NDArray[np.float64] = direction / np.linalg.norm(direction) * generator.random()
    return result


def _table_colour(generator: np.random.Generator) -> Conditions:
    """Pale or dark, but never as colourful as an object."""
    hue, saturation, value = generator.uniform((0, 0.0, 0.35), (360, 0.35, 0.95))
    hsv = np.array([[[hue, saturation, value]]], np.float32)
    red, green, blue = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0, 0].tolist()
    return Conditions(table_rgba=(red, green, blue, 1.0))


def _lighting(generator: np.random.Generator) -> Conditions:
    azimuth, height = generator.uniform(0, 2 * np.pi), generator.uniform(0.6, 2.0)
    ambient, diffuse = generator.uniform((0.35, 0.2), (0.7, 0.6))
    direction = (float(np.cos(azimuth)), float(np.sin(azimuth)), float(height))
    return Conditions(light=Light(direction=direction, ambient=ambient, diffuse=diffuse))


def _hue_shift(generator: np.random.Generator) -> Conditions:
    return Conditions(hue_shift=float(_sign(generator) * generator.uniform(*HUE_SHIFT)))


def _sensor_noise(generator: np.random.Generator) -> Conditions:
    return Conditions(noise=float(generator.uniform(*NOISE)))


def _object_moved(generator: np.random.Generator) -> Conditions:
    return Conditions(moved_at=int(generator.integers(MOVED_AT[0], MOVED_AT[1] + 1)))


def _arm_pushed(generator: np.random.Generator) -> Conditions:
    """Aside and back, so that nothing is pressed against the table."""
    offset = np.zeros(7)
    offset[0] = _sign(generator) * generator.uniform(*PUSH_ASIDE)
    offset[1] = -generator.uniform(*PUSH_BACK)
    start = int(generator.integers(PUSHED_AT[0], PUSHED_AT[1] + 1))
    return Conditions(push=Push(start=start, offset=offset))


def _sign(generator: np.random.Generator) -> int:
    return 2 * int(generator.integers(2)) - 1


VARIATIONS: dict[str, Variation] = {
    "none": Variation(description="nothing is different", draw=lambda _: Conditions()),
    "camera_jitter": Variation(
        description="cameras that stand still are up to 2 cm and 2 degrees off", draw=_jittered
    ),
    "front_dark": _without_sight(dark=("front",)),
    "overhead_dark": _without_sight(dark=("overhead",)),
    "wrist_dark": _without_sight(dark=("wrist",)),
    "front_screened": _without_sight(screened=("front",)),
    "overhead_screened": _without_sight(screened=("overhead",)),
    "front_screened_overhead_dark": _without_sight(dark=("overhead",), screened=("front",)),
    "overhead_screened_front_dark": _without_sight(dark=("front",), screened=("overhead",)),
    "screen_anywhere": Variation(
        description="a screen hides the table from the front or from the overhead camera",
        draw=_screen_anywhere,
        blinds=("front", "overhead"),
    ),
    "table_colour": Variation(
        description="the table has another colour, paler than any object", draw=_table_colour
    ),
    "lighting": Variation(
        description="light comes from elsewhere, stronger or weaker", draw=_lighting
    ),
    "hue_shift": Variation(description="every hue is shifted by 5 to 10 degrees", draw=_hue_shift),
    "sensor_noise": Variation(
        description="every pixel is off by 6 to 16 of 255, each time anew", draw=_sensor_noise
    ),
    "object_moved": Variation(
        description="the named object is set elsewhere before the hand has it", draw=_object_moved
    ),
    "arm_pushed": Variation(
        description="the arm is pushed aside by about 5 to 10 cm for three control steps",
        draw=_arm_pushed,
    ),
}
