"""How much room there is around fingers: rectangles on the table, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.scene import SceneObject
from fetchlab.sim.shapes import BOX_INSIDE, BOX_WALL, SHAPES

Numbers = NDArray[np.float64]

FINGER_WIDTH, FINGER_DEPTH = 0.021, 0.020  # across and along the way that a finger closes [m]
# The open box's walls from above: the middle of each from the box's, and half its size [m].
MIDDLE, LENGTH = (BOX_INSIDE + BOX_WALL) / 2, BOX_INSIDE / 2 + BOX_WALL
WALLS = tuple(
    (side * MIDDLE * np.array(way), half)
    for way, half in (((1, 0), (BOX_WALL / 2, LENGTH)), ((0, 1), (LENGTH, BOX_WALL / 2)))
    for side in (-1, 1)
)


@dataclass(frozen=True, kw_only=True)
class Rectangles:
    """n rectangles with rounded corners, seen from above."""

    centres: Numbers  # (n, 2) [m]
    halves: Numbers  # (n, 2) along its own axes [m]
    yaws: Numbers  # (n,) [rad]
    radii: Numbers  # (n,) that the edges are rounded by, on top of the rectangle [m]

    @property
    def axes(self) -> Numbers:
        """(n, 2, 2) the x and the y axis of each."""
        cos, sin = np.cos(self.yaws), np.sin(self.yaws)
        return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)


def outlines(things: Sequence[SceneObject], box: Numbers | None) -> Rectangles:
    """What objects, and the open box with its middle here, cover."""
    parts = [(thing, patch) for thing in things for patch in SHAPES[thing.shape].outline]
    rows = [
        (
            thing.x + patch.x * np.cos(thing.yaw),
            thing.y + patch.x * np.sin(thing.yaw),
            *patch.half,
            thing.yaw,
            patch.radius,
        )
        for thing, patch in parts
    ]
    if box is not None:
        rows += [(*(box + way), *half, 0.0, 0.0) for way, half in WALLS]
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    return Rectangles(
        centres=table[:, :2], halves=table[:, 2:4], yaws=table[:, 4], radii=table[:, 5]
    )


def fingers(middle: Numbers, yaws: Numbers, closed: Numbers, opened: Numbers) -> Rectangles:
    """What the fingers of K grippers at `middle` (2,) sweep between two openings (K,) [m].

    2K rectangles, first those of the left fingers, then those of the right ones.
    """
    depth = (opened - closed) / 2 + FINGER_DEPTH
    way = np.stack([-np.sin(yaws), np.cos(yaws)], -1) * ((closed + depth) / 2)[:, None]
    halves = np.stack([np.full(len(yaws), FINGER_WIDTH / 2), depth / 2], -1)
    return Rectangles(
        centres=np.concatenate([middle + way, middle - way]),
        halves=np.tile(halves, (2, 1)),
        yaws=np.tile(yaws, 2),
        radii=np.zeros(2 * len(yaws)),
    )


def separations(one: Rectangles, other: Rectangles) -> Numbers:
    """(n, m) distances from each of n to each of m [m], negative where they overlap.

    Along the best of the four axes: corner to corner this is a little less than the distance.
    """
    way = other.centres[None] - one.centres[:, None]  # (n, m, 2)
    turned = np.abs(np.einsum("nia,mja->nmij", one.axes, other.axes))  # (n, m, 2, 2)
    along_one = np.abs(np.einsum("nma,nia->nmi", way, one.axes)) - one.halves[:, None]
    along_one = along_one - np.einsum("nmij,mj->nmi", turned, other.halves)
    along_other = np.abs(np.einsum("nma,mja->nmj", way, other.axes)) - other.halves[None]
    along_other = along_other - np.einsum("nmij,ni->nmj", turned, one.halves)
    best: Numbers = np.concatenate([along_one, along_other], -1).max(-1)
    return best - one.radii[:, None] - other.radii[None]
