"""How a scene is drawn from a generator: what is to be done in it, and where the objects lie.

Blocks alone lie nearly square to the robot, far enough apart for a gripper that never turns. Where
there are other shapes, everything is turned at random, and the gripper has to turn as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.sim.footprint import Pose, gap
from fetchlab.sim.looks import Look, LookRules, draw_looks
from fetchlab.sim.scene import (
    AREA_X,
    AREA_Y,
    DIRECTIONS,
    MAX_OBJECTS,
    Goal,
    Scene,
    SceneObject,
    is_reached,
    place_beside,
)
from fetchlab.sim.shapes import BOX_INSIDE, BOX_WALL, SHAPES

LOWER, UPPER = np.array([AREA_X, AREA_Y]).T
BLOCKS = ("block",)
BLOCK_YAW = 0.35  # blocks alone lie turned by up to this much [rad]
# Two blocks are apart along x or along y by at least this much [m]: the fingers open along y.
GAP_X, GAP_Y = 0.066, 0.094
SPACING, CLEARANCE = 0.08, 0.015  # of other shapes, between middles and between outlines [m]
LONGEST = 0.115  # two mugs, handle to handle, and what must be between them [m]
TOUCHING = 0.001  # between an object and a neighbour that touches it [m]
ASIDE = 0.3  # neighbours that touch leave a grip free if that is turned by up to this much [rad]
BOX_X, BOX_Y = (0.38, 0.60), (0.26, 0.29)  # the middle of the box; y to the left or right [m]
BOX_ROOM = BOX_INSIDE / 2 + BOX_WALL + 0.075  # from there to an object, and its fingers [m]
TRIES = 100  # before all is drawn anew

Point = NDArray[np.float64]  # (2,) [m]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a scene is for, and what lies in it."""

    task: str = "fetch"
    looks: LookRules = field(default_factory=lambda: LookRules(shapes=BLOCKS))
    crowding: str = "apart"
    with_box: bool = False
    with_other: bool = False
    """whether a second object is named, and has room beside it"""


def draw_scene(
    generator: np.random.Generator, n_objects: int, wanted: Wanted | None = None
) -> Scene:
    """Objects without overlap in random order; those that are named differ from all others.

    Raises UserError when `n_objects` is not 2 to 20.
    """
    if not 2 <= n_objects <= MAX_OBJECTS:
        raise UserError(f"a scene holds 2 to {MAX_OBJECTS} objects, got {n_objects}")
    while True:
        scene = _draw(generator, n_objects, wanted or Wanted())
        if scene is not None:
            return scene


def _draw(generator: np.random.Generator, n_objects: int, wanted: Wanted) -> Scene | None:
    """A scene; None if it has no room for all, or if nothing is left to do."""
    n_named = 2 if wanted.with_other else 1
    drawn = draw_looks(generator, n_objects, wanted.looks, n_named)
    order = generator.permutation(n_objects).tolist()
    looks = [drawn[i] for i in order]
    square = wanted.looks.shapes == BLOCKS
    table = _Table(generator, [shape for _, shape in looks], square=square)
    target, other, relation = order.index(0), None, None
    if wanted.with_box:
        table.put_box()
    if wanted.with_other:
        other, relation = order.index(1), list(DIRECTIONS)[int(generator.integers(4))]
        table.put_with_room(other, relation)
    if wanted.crowding == "touching":
        n_neighbours = min(int(generator.integers(1, 3)), n_objects - n_named)
        table.put_together(target, [order.index(n_named + i) for i in range(n_neighbours)])
    if not table.put_rest() or not table.turn_rest():
        return None
    goal = Goal(task=wanted.task, target=target, other=other, relation=relation)
    objects = table.objects(looks)
    return None if is_reached(objects, goal) else Scene(objects=objects, goal=goal, box=table.box)


class _Table:
    """A table that is being laid: each row of the scene gets its place, then its yaw."""

    def __init__(
        self, generator: np.random.Generator, shapes: Sequence[str], *, square: bool
    ) -> None:
        self._generator, self._shapes, self._square = generator, shapes, square
        self._taken: Point = np.empty((0, 2))  # places, and what must stay free
        self._box: Point | None = None
        self.places: dict[int, Point] = {}
        self.yaws: dict[int, float] = {}

    def objects(self, looks: Sequence[Look]) -> tuple[SceneObject, ...]:
        """All that lies on the table."""
        poses = map(self._pose, range(len(looks)))
        return tuple(
            SceneObject(colour=colour, shape=shape, x=x, y=y, yaw=yaw)
            for (colour, shape), (x, y, yaw) in zip(looks, poses, strict=True)
        )

    @property
    def box(self) -> tuple[float, float] | None:
        """Its middle, if there is one [m]."""
        return None if self._box is None else (float(self._box[0]), float(self._box[1]))

    def _pose(self, row: int) -> Pose:
        x, y = self.places[row].tolist()
        return x, y, self.yaws[row]

    def put_box(self) -> None:
        """On the left or the right edge."""
        side = 2 * int(self._generator.integers(2)) - 1
        place = self._generator.uniform(*BOX_X), side * self._generator.uniform(*BOX_Y)
        self._box = np.array(place)

    def put_with_room(self, row: int, relation: str) -> None:
        """An object, so that another one can stand beside it."""
        while row not in self.places:
            place = self._generator.uniform(LOWER, UPPER)
            beside = np.array(place_beside(place.tolist(), relation))
            if _is_inside(beside):
                self._put(row, place)
                self._taken = np.vstack([self._taken, beside])

    def put_together(self, row: int, neighbours: Sequence[int]) -> None:
        """An object and neighbours that touch it, all beside the same of its grips."""
        while row not in self.places:
            poses = self._draw_together(row, neighbours)
            places = [np.array(pose[:2]) for pose in poses]
            if all(_is_inside(place) and self._has_room(place) for place in places):
                for each, place, pose in zip((row, *neighbours), places, poses, strict=True):
                    self._put(each, place)
                    self.yaws[each] = pose[2]

    def _draw_together(self, row: int, neighbours: Sequence[int]) -> list[Pose]:
        pose = (*self._generator.uniform(LOWER, UPPER).tolist(), self._draw_yaw())
        period = SHAPES[self._shapes[row]].grip_period
        turns = period * int(self._generator.integers(4)) if period else self._draw_yaw()
        poses = [pose]
        for i, neighbour in enumerate(neighbours):
            aside = self._generator.uniform(-ASIDE, ASIDE)
            poses.append(
                self._at_touch(row, pose, neighbour, pose[2] + turns + math.pi * i + aside)
            )
        return poses

    def _at_touch(self, row: int, pose: Pose, neighbour: int, direction: float) -> Pose:
        """Where a neighbour comes to rest that approaches an object from this direction [rad]."""
        x, y, yaw = *pose[:2], self._draw_yaw()
        near, far = 0.0, 0.15
        while far - near > 1e-5:
            middle = (near + far) / 2
            x, y = pose[0] + middle * math.cos(direction), pose[1] + middle * math.sin(direction)
            apart = gap(self._shapes[row], pose, self._shapes[neighbour], (x, y, yaw))
            near, far = (near, middle) if apart > TOUCHING else (middle, far)
        return x, y, yaw

    def put_rest(self) -> bool:
        """All that has no place yet, by rejection; False if there is no room for it."""
        rest = [row for row in range(len(self._shapes)) if row not in self.places]
        laid, taken = self.places, self._taken
        for _ in range(TRIES):  # starting over when a draw has painted itself into a corner
            self.places, self._taken, waiting = dict(laid), taken, list(rest)
            for candidate in self._generator.uniform(LOWER, UPPER, size=(400, 2)):
                if waiting and self._has_room(candidate):
                    self._put(waiting.pop(0), candidate)
            if not waiting:
                return True
        return False

    def turn_rest(self) -> bool:
        """All that has no yaw yet; False if something touches its neighbours however it lies."""
        rest = [row for row in range(len(self._shapes)) if row not in self.yaws]
        for row in rest:
            for _ in range(TRIES):
                self.yaws[row] = self._draw_yaw()
                if self._square or self._is_clear(row):
                    break
            else:
                return False
        return True

    def _is_clear(self, row: int) -> bool:
        """Whether an object comes close to none of those that have a yaw already."""
        others = [(self._shapes[other], self._pose(other)) for other in self.yaws if other != row]
        return is_clear(self._shapes[row], self._pose(row), others)

    def _put(self, row: int, place: Point) -> None:
        self.places[row] = place
        self._taken = np.vstack([self._taken, place])

    def _has_room(self, place: Point) -> bool:
        return has_room(place, self._taken, self.box, square=self._square)

    def _draw_yaw(self) -> float:
        most = BLOCK_YAW if self._square else math.pi
        return float(self._generator.uniform(-most, most))


def has_room(place: Point, taken: Point, box: tuple[float, float] | None, *, square: bool) -> bool:
    """Whether an object at this place (2,) is far enough from all that is taken (n, 2) [m].

    `square`: it is one of blocks that lie square to the robot.
    """
    if box is not None and (np.abs(place - box) < BOX_ROOM).all():
        return False
    ways = np.abs(taken - place)  # (n, 2)
    if square:
        return bool((ways >= (GAP_X, GAP_Y)).any(axis=1).all())
    return bool((np.hypot(*ways.T) >= SPACING).all())


def is_clear(shape: str, pose: Pose, others: Iterable[tuple[str, Pose]]) -> bool:
    """Whether an object comes close to none of the others."""
    near = [(other, at) for other, at in others if math.dist(pose[:2], at[:2]) < LONGEST]
    return all(gap(shape, pose, other, at) >= CLEARANCE for other, at in near)


def _is_inside(place: Point) -> bool:
    return bool((place >= LOWER).all() and (place <= UPPER).all())
