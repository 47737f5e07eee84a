"""What can lie on the table: colours, sizes, and how a scene is drawn from a generator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError

COLOURS: dict[str, tuple[float, float, float]] = {  # RGB, 0–1
    "red": (0.80, 0.06, 0.10),
    "green": (0.12, 0.62, 0.22),
    "blue": (0.08, 0.28, 0.85),
    "yellow": (0.98, 0.86, 0.12),
    "purple": (0.60, 0.15, 0.68),
    "orange": (1.00, 0.50, 0.02),
}
MAX_OBJECTS = 20
BLOCK_SIZE = 0.04  # edge of a block [m]
BLOCK_MASS = 0.05  # kg
MAX_YAW = 0.35  # blocks lie turned by up to this much [rad]
# Blocks lie in this part of the table, all of it in easy reach [m].
AREA_X, AREA_Y = (0.30, 0.70), (-0.26, 0.26)
LOWER, UPPER = np.array([AREA_X, AREA_Y]).T
# Two blocks are apart along x or along y by at least this much [m]: the fingers open along y.
GAP_X, GAP_Y = 0.066, 0.094


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block: its colour and where it lies (m, m, rad)."""

    colour: str
    x: float
    y: float
    yaw: float


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The blocks on the table, in an order that means nothing, and the one to act on."""

    blocks: tuple[Block, ...]
    target: int


def draw_scene(generator: np.random.Generator, n_objects: int) -> Scene:
    """Blocks without overlap in random order; the target's colour is unique in the scene.

    Up to six blocks all differ in colour; with more, distractors repeat colours.
    Raises UserError when `n_objects` is not 2 to 20.
    """
    if not 2 <= n_objects <= MAX_OBJECTS:
        raise UserError(f"a scene holds 2 to {MAX_OBJECTS} objects, got {n_objects}")
    shuffled = generator.permutation(list(COLOURS)).tolist()
    target_colour, others = shuffled[0], shuffled[1:]
    repeats = generator.choice(others, size=max(0, n_objects - len(COLOURS))).tolist()
    colours = [target_colour, *others[: n_objects - 1], *repeats]
    order = generator.permutation(n_objects)
    places = _draw_places(generator, n_objects)
    yaws = generator.uniform(-MAX_YAW, MAX_YAW, size=n_objects)
    blocks = tuple(
        Block(colour=colours[i], x=float(x), y=float(y), yaw=float(yaw))
        for i, (x, y), yaw in zip(order, places, yaws, strict=True)
    )
    return Scene(blocks=blocks, target=int(np.flatnonzero(order == 0)[0]))


def _draw_places(generator: np.random.Generator, n_objects: int) -> NDArray[np.float64]:
    # Rejection sampling, starting over when a draw has painted itself into a corner.
    while True:
        places = np.empty((0, 2))
        for candidate in generator.uniform(LOWER, UPPER, size=(400, 2)):
            apart = np.abs(places - candidate) >= (GAP_X, GAP_Y)
            if apart.any(axis=1).all():
                places = np.vstack([places, candidate])
            if len(places) == n_objects:
                return places
