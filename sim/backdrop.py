"""The bare table as a camera sees it: drawn once, and put behind everything else.

Filling the table is more than half of what an image costs, and for a camera that stands still it
looks the same in every step. The pixels are those of an image drawn whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.cameras import View
from fetchlab.sim.pictures import Depth, Image, Light, colours, distances

MOST_KEPT = 64  # backdrops: cameras that moved come with every episode, and do not return

Rendered = tuple[Any, ...]  # width, height, colours, depth buffer, …, as the engine gives them


@dataclass(frozen=True)
class Shot:
    """Colours of a square image, and the engine's depth buffer, 0 near to 1 far."""

    image: Image
    buffer: NDArray[np.float32]

    @classmethod
    def of(cls, rendered: Rendered) -> Shot:
        width, height, rgba, buffer = rendered[:4]
        # A PyBullet built without numpy returns tuples.
        depth = np.asarray(buffer, dtype=np.float32).reshape(height, width)
        return cls(colours(rgba, width, height), depth)

    def before(self, backdrop: Shot) -> Shot:
        """What is nearer to the camera hides what is further away."""
        near = self.buffer < backdrop.buffer
        image = np.where(near[..., None], self.image, backdrop.image)
        return Shot(image, np.minimum(self.buffer, backdrop.buffer))

    @property
    def depth(self) -> Depth:
        height, width = self.buffer.shape
        return distances(self.buffer, width, height)


Draw = Callable[[View, int, Light, tuple[float, ...]], Shot]
"""draws the bare table in this colour"""


class Backdrops:
    """The newest few backdrops, by camera, size, light and colour of the table."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._kept: dict[tuple[object, ...], Shot] = {}

    def behind(self, view: View, size: int, light: Light, rgba: tuple[float, ...]) -> Shot:
        """The bare table of this colour."""
        place = (view.eye.tobytes(), view.target.tobytes(), view.up.tobytes(), view.fov)
        key = (*place, size, light, rgba)
        if key not in self._kept:
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
            self._kept[key] = self._draw(view, size, light, rgba)
        return self._kept[key]


class EmptyTable(Protocol):
    """A world before anything is put there."""

    def empty_shot(self, view: View, size: int, light: Light, rgba: tuple[float, ...]) -> Shot: ...


@functools.cache
def backdrops_of(process: int, lay: Callable[[], EmptyTable], table_size: float) -> Backdrops:
    """Those of all worlds of a process with such a table: an engine of their own takes 36 MB.

    After a fork another one is needed.
    """
    return Backdrops(lay().empty_shot)
