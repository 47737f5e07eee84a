"""Solids as plain descriptions: what the engine is asked to make, in its words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

Triple = tuple[float, float, float]
Words = dict[str, Any]


@dataclass(frozen=True)
class Box:
    """A box about its centre."""

    half_extents: Triple  # m
    kind: ClassVar[str] = "GEOM_BOX"

    def words(self) -> tuple[Words, Words]:
        """For its collision shape, and for its visual one."""
        box = {"halfExtents": self.half_extents}
        return box, box


@dataclass(frozen=True)
class Ball:
    """A ball about its centre."""

    radius: float  # m
    kind: ClassVar[str] = "GEOM_SPHERE"

    def words(self) -> tuple[Words, Words]:
        ball = {"radius": self.radius}
        return ball, ball


@dataclass(frozen=True)
class Cylinder:
    """An upright cylinder about its centre."""

    radius: float  # m
    height: float  # m
    kind: ClassVar[str] = "GEOM_CYLINDER"

    def words(self) -> tuple[Words, Words]:
        round_ = {"radius": self.radius}
        return round_ | {"height": self.height}, round_ | {"length": self.height}


@dataclass(frozen=True)
class Mesh:
    """One of pybullet_data's meshes, turned about the vertical, scaled and lowered."""

    name: str
    scale: float
    turn: float = 0.0  # rad
    # How far its own origin lies below the body's, about which the engine balances it [m]. Held
    # above its centre of mass, a body swings and the fingers sink into it.
    below: float = 0.0
    kind: ClassVar[str] = "GEOM_MESH"

    def words(self) -> tuple[Words, Words]:
        from fetchlab.sim.assets import object_meshes

        solid, drawn = object_meshes(self.name)
        size, position = (self.scale,) * 3, (0, 0, -self.below)
        orientation = (0, 0, math.sin(self.turn / 2), math.cos(self.turn / 2))
        return (
            {
                "fileName": str(solid),
                "meshScale": size,
                "collisionFramePosition": position,
                "collisionFrameOrientation": orientation,
            },
            {
                "fileName": str(drawn),
                "meshScale": size,
                "visualFramePosition": position,
                "visualFrameOrientation": orientation,
            },
        )


Solid = Box | Ball | Cylinder | Mesh


@dataclass(frozen=True)
class Plates:
    """Boxes that hold together: half extents and centre of each [m]."""

    plates: tuple[tuple[Triple, Triple], ...]

    def words(self) -> tuple[Words, Words]:
        """For its collision shapes, and for its visual ones."""
        # Lists: the engine crashes on tuples here.
        boxes = {"halfExtents": [list(half) for half, _ in self.plates]}
        centres = [list(centre) for _, centre in self.plates]
        solid, drawn = {"collisionFramePositions": centres}, {"visualFramePositions": centres}
        return boxes | solid, boxes | drawn


Geometry = Solid | Plates


@dataclass(frozen=True)
class Surface:
    """How a body slides, turns and rolls on others."""

    friction: float
    spinning: float = 0.0
    rolling: float = 0.0
    angular_damping: float = 0.0  # as PyBullet has it

    def words(self) -> Words:
        """For the dynamics of a body."""
        return {
            "lateralFriction": self.friction,
            "spinningFriction": self.spinning,
            "rollingFriction": self.rolling,
            "angularDamping": self.angular_damping,
        }


def upright(yaw: float) -> tuple[float, float, float, float]:
    """The quaternion of a turn about the vertical [rad]."""
    return 0.0, 0.0, float(np.sin(yaw / 2)), float(np.cos(yaw / 2))
