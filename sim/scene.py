"""A scene as a value: what lies where on the table, and what is to be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COLOURS: dict[str, tuple[float, float, float]] = {  # RGB, 0–1
    "red": (0.80, 0.06, 0.10),
    "green": (0.12, 0.62, 0.22),
    "blue": (0.08, 0.28, 0.85),
    "yellow": (0.98, 0.86, 0.12),
    "purple": (0.60, 0.15, 0.68),
    "orange": (1.00, 0.50, 0.02),
}
GREY = (0.55, 0.55, 0.55)
TABLE_RGBA = (0.83, 0.79, 0.72, 1.0)
MAX_OBJECTS = 20
# Objects lie in this part of the table, all of it in easy reach [m].
AREA_X, AREA_Y = (0.30, 0.70), (-0.26, 0.26)
# The sides of an object in x, y as the front camera sees them. It faces the robot across the
# table: its left is the robot's right, -y, and what lies in front is further from the robot.
DIRECTIONS = {
    "left": (0.0, -1.0),
    "right": (0.0, 1.0),
    "front": (1.0, 0.0),
    "behind": (-1.0, 0.0),
}
BESIDE = 0.10  # from the middle of an object to the place beside it [m]
NEAREST, FARTHEST = 0.05, 0.17  # what still counts as beside it [m]


@dataclass(frozen=True, kw_only=True)
class SceneObject:
    """One object: what it looks like and where it lies (m, m, rad)."""

    colour: str
    x: float
    y: float
    yaw: float
    shape: str = "block"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a sentence asks for, in terms of the scene's objects."""

    task: str
    target: int
    """row of the object to act on"""
    other: int | None = None
    """row of the object that it is put beside"""
    relation: str | None = None
    """on which side of it: a name of DIRECTIONS"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The objects on the table, in an order that means nothing, and what to do with them."""

    objects: tuple[SceneObject, ...]
    goal: Goal
    box: tuple[float, float] | None = None
    """centre of the open box, if there is one [m]"""

    @property
    def target(self) -> int:
        return self.goal.target


def place_beside(place: Sequence[float], relation: str) -> tuple[float, float]:
    """Where an object should stand that is put on this side of the one at x, y [m]."""
    along_x, along_y = DIRECTIONS[relation]
    return place[0] + BESIDE * along_x, place[1] + BESIDE * along_y


def is_beside(way: Sequence[float], relation: str) -> bool:
    """Whether the way x, y [m] from one object to another leads to this side, and not too far."""
    (x, y), (along_x, along_y) = way, DIRECTIONS[relation]
    along, across = x * along_x + y * along_y, x * along_y - y * along_x
    return NEAREST < along < FARTHEST and abs(across) < along / 2


def is_reached(objects: Sequence[SceneObject], goal: Goal) -> bool:
    """Whether the objects lie as the goal wants it; never so if it wants something lifted."""
    if goal.other is None or goal.relation is None:
        return False
    target, other = objects[goal.target], objects[goal.other]
    return is_beside((target.x - other.x, target.y - other.y), goal.relation)
