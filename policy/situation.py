"""What the scripted expert makes of an observation: where the tool is, what is meant, and so on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.language import Reference, Request
from fetchlab.sim.observation import (
    COLOUR,
    HEIGHT,
    IS_BOX,
    OBJECT_FEATURES,
    SHAPE,
    TOOL,
    Observation,
)
from fetchlab.sim.scene import COLOURS, SceneObject
from fetchlab.sim.shapes import SHAPES

COS, SIN = OBJECT_FEATURES.index("cos_yaw"), OBJECT_FEATURES.index("sin_yaw")


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One moment, by names; the privileged state is read from `observation.objects`."""

    observation: Observation
    request: Request

    @cached_property
    def tool(self) -> NDArray[np.float64]:
        """(3,) the point between the fingertips [m]."""
        return self.observation.proprioception[TOOL].astype(np.float64)

    @cached_property
    def opening(self) -> float:
        return float(self.observation.proprioception[7])

    @cached_property
    def yaw(self) -> float:
        """Of the gripper [rad]; the arm keeps joints 3 and 5 at zero."""
        return float(
            math.pi / 4 + self.observation.proprioception[0] - self.observation.proprioception[6]
        )

    @cached_property
    def row(self) -> int:
        """Of the object to act on."""
        return self._row(self.request.target)

    @cached_property
    def target(self) -> SceneObject:
        return self.thing(self.row)

    @cached_property
    def position(self) -> NDArray[np.float64]:
        """(3,) origin of the object to act on [m]."""
        return self.observation.objects[self.row, [0, 1, HEIGHT]].astype(np.float64)

    @cached_property
    def reference(self) -> SceneObject:
        """The object that the other one is put beside."""
        assert self.request.other is not None
        return self.thing(self._row(self.request.other))

    @cached_property
    def others(self) -> list[SceneObject]:
        """Every object but the one to act on."""
        present = self.observation.objects_mask & ~self._is_box
        return [self.thing(row) for row in np.flatnonzero(present).tolist() if row != self.row]

    @cached_property
    def box(self) -> NDArray[np.float64] | None:
        """(2,) centre of the open box [m], if there is one."""
        rows = np.flatnonzero(self._is_box)
        return self.observation.objects[rows[0], :2].astype(np.float64) if len(rows) else None

    def thing(self, row: int) -> SceneObject:
        features = self.observation.objects[row]
        return SceneObject(
            colour=list(COLOURS)[int(features[COLOUR].argmax())],
            shape=list(SHAPES)[int(features[SHAPE].argmax())],
            x=float(features[0]),
            y=float(features[1]),
            yaw=math.atan2(features[SIN], features[COS]),
        )

    @cached_property
    def _is_box(self) -> NDArray[np.bool_]:
        is_box: NDArray[np.bool_] = self.observation.objects[:, IS_BOX] > 0.5
        return self.observation.objects_mask & is_box

    def _row(self, reference: Reference) -> int:
        meant = self.observation.objects_mask & ~self._is_box
        for wanted, known, columns in (
            (reference.colour, COLOURS, COLOUR),
            (reference.shape, SHAPES, SHAPE),
        ):
            if wanted is not None:
                column = columns.start + list(known).index(wanted)
                meant = meant & (self.observation.objects[:, column] > 0.5)
        return int(np.flatnonzero(meant)[0])
