"""The settings an environment is built with; datasets and policies carry them along."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fetchlab.errors import UserError, unknown

ACTION_MODES = ("joint", "ee")
CROWDING = ("apart", "touching")
MAX_HISTORY = 4


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What a policy's world looks like; a policy only runs in the world it was trained in."""

    task: str = "fetch"
    cameras: tuple[str, ...] = ("front", "wrist")
    """names from the camera registry (`fetchlab list cameras`); () renders nothing"""
    image_size: int = 64
    """pixels a side of every camera image"""
    action_mode: str = "joint"
    """`joint`: 7 joint-position targets [rad] + gripper opening target [m];
    `ee`: end-effector position target [m] + gripper opening target [m]"""
    control_hz: int = 10
    """actions a second; must divide the physics rate of 240 Hz"""
    history: int = 1
    """frames that every camera shows, the newest last; before the first step all show the start"""
    shapes: tuple[str, ...] = ("block",)
    """what lies on the table: block, brick, cylinder, ball, mug"""
    languages: tuple[str, ...] = ("english",)
    """in which sentences are said: english, chinese"""
    phrasings: str = "plain"
    """`plain`: always the same sentence; `training`: several; `held_out`: others, for tests"""
    crowding: str = "apart"
    """`apart`: with room for the fingers; `touching`: neighbours touch the named object"""

    def __post_init__(self) -> None:
        from fetchlab.sim.cameras import CAMERAS
        from fetchlab.sim.language import LANGUAGES, PHRASINGS
        from fetchlab.sim.shapes import SHAPES
        from fetchlab.sim.tasks.registry import TASKS

        _check_name("task", self.task, TASKS)
        _check_names("cameras", self.cameras, CAMERAS)
        _check_names("shapes", self.shapes, SHAPES, least=1)
        _check_names("languages", self.languages, LANGUAGES, least=1)
        _check_name("phrasings", self.phrasings, PHRASINGS)
        _check_name("crowding", self.crowding, CROWDING)
        _check_name("action mode", self.action_mode, ACTION_MODES)
        if not 8 <= self.image_size <= 1024:
            raise UserError(f"image_size must be 8 to 1024 pixels, got {self.image_size}")
        if self.control_hz < 1 or 240 % self.control_hz:
            raise UserError(f"control_hz must divide 240 (physics), got {self.control_hz}")
        if not 1 <= self.history <= MAX_HISTORY:
            raise UserError(f"history must be 1 to {MAX_HISTORY} frames, got {self.history}")

    @property
    def n_views(self) -> int:
        """V: images in an observation."""
        return self.history * len(self.cameras)

    @property
    def action_dim(self) -> int:
        return 8 if self.action_mode == "joint" else 4


def _check_name(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise unknown(kind, name, known)


def _check_names(
    plural: str, names: tuple[str, ...], known: Collection[str], least: int = 0
) -> None:
    for name in names:
        _check_name(plural.removesuffix("s"), name, known)
    if len(set(names)) != len(names):
        raise UserError(f"{plural} name one twice: {', '.join(names)}")
    if len(names) < least:
        raise UserError(f"{plural} name none: known are {', '.join(known)}")
