"""The settings an environment is built with; datasets and policies carry them along."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from fetchlab.errors import UserError, unknown

ACTION_MODES = ("joint", "ee")
CROWDING = ("apart", "touching")
MEMORIES = ("recent", "first")
MAX_HISTORY = 4
KINDS = {str: "a name", int: "a whole number", bool: "True or False", tuple: "a tuple of names"}


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What a policy's world looks like; a policy only runs in the world it was trained in."""

    task: str = "fetch"
    """what sentences ask for (`fetchlab list tasks`)"""
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
    """what lies on the table: block, brick, cylinder, ball, mug (`fetchlab list shapes`)"""
    languages: tuple[str, ...] = ("english",)
    """in which sentences are said: english, chinese"""
    phrasings: str = "plain"
    """`plain`: always the same sentence; `training`: several; `held_out`: others, for tests"""
    crowding: str = "apart"
    """`apart`: with room for the fingers; `touching`: neighbours touch the named object"""
    pairs: str = "all"
    """pairs of colour and shape: `all`; `seen`: the held-out ones never occur; `unnamed`: they
    occur, but no sentence speaks of them; `held_out`: they alone are the object to act on"""
    distractors: str = "mixed"
    """what the other objects share with the one to act on: `colour`, `shape`, `both` (each of them
    one of the two), or `mixed`: as it comes"""
    variation: str = "none"
    """what is different in every episode: a camera, a light, a push (`fetchlab list variations`).
    One that blinds a camera needs it among the cameras, unless there are none: then it does nothing
    """
    memory: str = "recent"
    """frames of the history: the `recent` ones, or the `first` of the episode before the rest"""
    depth: bool = False
    """whether every camera also tells how far away things are [m]"""

    def __post_init__(self) -> None:
        from fetchlab.sim.cameras import CAMERAS
        from fetchlab.sim.language import LANGUAGES, PHRASINGS
        from fetchlab.sim.looks import DISTRACTORS, PAIRS
        from fetchlab.sim.shapes import SHAPES
        from fetchlab.sim.tasks.registry import TASKS
        from fetchlab.sim.variations import VARIATIONS

        for field in fields(self):
            _check_kind(field.name, getattr(self, field.name), field.default)
        _check_name("task", self.task, TASKS)
        _check_names("cameras", self.cameras, CAMERAS)
        _check_names("shapes", self.shapes, SHAPES, least=1)
        _check_names("languages", self.languages, LANGUAGES, least=1)
        _check_name("phrasings", self.phrasings, PHRASINGS)
        _check_name("crowding", self.crowding, CROWDING)
        _check_name("pairs", self.pairs, PAIRS)
        _check_name("distractors", self.distractors, DISTRACTORS)
        _check_name("variation", self.variation, VARIATIONS)
        _check_name("memory", self.memory, MEMORIES)
        _check_name("action mode", self.action_mode, ACTION_MODES)
        if not 8 <= self.image_size <= 1024:
            raise UserError(f"image_size must be 8 to 1024 pixels, got {self.image_size}")
        if self.control_hz < 1 or 240 % self.control_hz:
            raise UserError(f"control_hz must divide 240 (physics), got {self.control_hz}")
        if not 1 <= self.history <= MAX_HISTORY:
            raise UserError(f"history must be 1 to {MAX_HISTORY} frames, got {self.history}")
        self._check_together(VARIATIONS[self.variation].blinds)

    def _check_together(self, blinded: tuple[str, ...]) -> None:
        """UserError for settings that contradict each other; `blinded` by the variation."""
        if self.memory == "first" and self.history == 1:
            raise UserError("memory of the first frame needs a history of 2 frames or more")
        if self.distractors in ("colour", "both") and len(self.shapes) == 1:
            raise UserError(
                f"distractors {self.distractors} need several shapes, got {self.shapes[0]} alone"
            )
        missing = [camera for camera in blinded if camera not in self.cameras]
        if self.cameras and missing:
            raise UserError(
                f"variation {self.variation} is about the {' and '.join(missing)} camera, but the "
                f"cameras are {', '.join(self.cameras)}: add {' '.join(missing)}"
            )

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> EnvConfig:
        """From fields by name, in which lists may stand for tuples, as in JSON.

        Raises UserError for a name that is none of them.
        """
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise unknown("setting of the environment", name, known)
        lists = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
        return cls(**{**settings, **lists})

    @property
    def n_views(self) -> int:
        """V: images in an observation."""
        return self.history * len(self.cameras)

    @property
    def action_dim(self) -> int:
        return 8 if self.action_mode == "joint" else 4


def _check_kind(setting: str, value: object, default: object) -> None:
    """UserError unless the value is of the kind that the default is."""
    kind = type(default)
    fits = isinstance(value, Integral if kind is int else kind)
    if kind is not bool and isinstance(value, bool):  # which Python counts among the numbers
        fits = False
    if isinstance(value, tuple):
        fits = fits and all(isinstance(name, str) for name in value)
    if not fits:
        wrapped = kind is tuple and isinstance(value, str)
        hint = f": give {(value,)!r}" if wrapped else f" (default {default!r})"
        raise UserError(f"{setting} must be {KINDS[kind]}, got {value!r}{hint}")


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
