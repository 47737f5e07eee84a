"""The shapes that lie on the table: size, surface, and how the gripper holds them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fetchlab.sim.geometry import Ball, Box, Cylinder, Geometry, Mesh, Plates, Surface

BLOCK_SIZE = 0.04  # edge of a block [m]
MUG_SCALE = 0.6  # of pybullet_data's mug; at full size it does not fit between the fingers
# What is round, or lies on its side, soon stops rolling.
ROUND = Surface(friction=1.0, spinning=0.005, rolling=0.003, angular_damping=0.5)


@dataclass(frozen=True)
class Patch:
    """A rectangle with rounded corners, as seen from above, in the body's own frame [m]."""

    half: tuple[float, float]
    radius: float = 0.0  # that its edges are rounded by, on top of the rectangle
    x: float = 0.0  # of its centre


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What makes one shape: metres, radians, kilograms."""

    description: str
    geometry: Geometry
    base: float
    """height of the body's origin above what it stands on"""
    height: float
    outline: tuple[Patch, ...]
    """what it covers, seen from above; its main part first, which the fingers hold"""
    grasp_height: float
    """of the point between the fingertips when they close"""
    grip_period: float
    """a grip is as good turned by this much; 0: by any angle"""
    grip_tolerance: float
    """how far from square the fingers may close"""
    grip_slack: float
    """how far from its middle the fingers may close: a round one is squeezed out of the side"""
    surface: Surface
    mass: float = 0.06

    @property
    def width(self) -> float:
        """Between the fingers that hold it."""
        held = self.outline[0]
        return 2 * (min(held.half) + held.radius)


SHAPES: dict[str, Shape] = {
    "block": Shape(
        description="a cube of 4 cm",
        geometry=Box((BLOCK_SIZE / 2,) * 3),
        base=BLOCK_SIZE / 2,
        height=BLOCK_SIZE,
        outline=(Patch((BLOCK_SIZE / 2, BLOCK_SIZE / 2)),),
        grasp_height=BLOCK_SIZE / 2,
        grip_period=math.pi / 2,
        grip_tolerance=0.8,
        grip_slack=0.016,
        surface=Surface(friction=1.0),
        mass=0.05,
    ),
    "brick": Shape(
        description="6 × 3 × 3 cm, held across its short side",
        geometry=Box((0.03, 0.015, 0.015)),
        base=0.015,
        height=0.03,
        outline=(Patch((0.03, 0.015)),),
        grasp_height=0.018,
        grip_period=math.pi,
        grip_tolerance=1.6,
        grip_slack=0.016,
        surface=Surface(friction=1.0),
    ),
    "cylinder": Shape(
        description="upright, 4 cm wide and 5 cm high",
        geometry=Cylinder(0.02, 0.05),
        base=0.025,
        height=0.05,
        outline=(Patch((0.0, 0.0), radius=0.02),),
        grasp_height=0.029,
        grip_period=0.0,
        grip_tolerance=0.0,
        grip_slack=0.01,
        surface=ROUND,
    ),
    "ball": Shape(
        description="4.4 cm wide",
        geometry=Ball(0.022),
        base=0.022,
        height=0.044,
        outline=(Patch((0.0, 0.0), radius=0.022),),
        grasp_height=0.022,
        grip_period=0.0,
        grip_tolerance=0.0,
        grip_slack=0.01,
        surface=ROUND,
    ),
    "mug": Shape(
        description="4.9 cm wide and 6 cm high, its handle along x",
        geometry=Mesh("mug", MUG_SCALE, turn=-math.pi / 2, below=0.03),
        base=0.03,
        height=0.06,
        outline=(Patch((0.0, 0.0), radius=0.0246), Patch((0.0125, 0.0036), x=0.036)),
        grasp_height=0.034,
        grip_period=math.pi,
        grip_tolerance=1.1,
        grip_slack=0.01,
        surface=ROUND,
    ),
}

BOX_INSIDE, BOX_HEIGHT, BOX_WALL = 0.14, 0.06, 0.006  # of the open box [m]
BOX_RGBA = (0.55, 0.40, 0.26, 1.0)


def open_box() -> Plates:
    """A floor and four walls about the middle of the floor's underside."""
    inside, wall, high = BOX_INSIDE / 2, BOX_WALL / 2, BOX_HEIGHT / 2
    edge = inside + wall
    floor = ((inside + 2 * wall, inside + 2 * wall, wall), (0.0, 0.0, wall))
    ends = tuple(((wall, inside + 2 * wall, high), (x, 0.0, high)) for x in (-edge, edge))
    sides = tuple(((inside, wall, high), (0.0, y, high)) for y in (-edge, edge))
    return Plates((floor, *ends, *sides))
