"""How the scripted expert takes hold of an object: turned by how much, how wide open, how high."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fetchlab.policy.clearance import Numbers, Rectangles, fingers, outlines, separations
from fetchlab.policy.situation import Situation
from fetchlab.sim.shapes import BOX_HEIGHT, SHAPES, Shape

OPEN = 0.08  # gripper opening target [m]
OPENINGS = np.linspace(OPEN, 0.05, 7)  # m
LOWEST_YAW = -1.1  # of a half turn; joint 7 comes near its limit beyond it [rad]
ROUND_STEP = math.pi / 12  # between the grips tried on what is round [rad]
SKEWS = np.linspace(-0.9, 0.9, 7)  # off square that are tried, in parts of what is tolerated
CLEAR = 0.008  # fingers want this much room to the neighbours [m]
ALIGNED = 0.002  # further off than a gripper that never turns may close, it may come down [m]
SPARE, LEAST_WITHIN, MOST_WITHIN = 0.004, 0.005, 0.018  # kept of the room; the descent's bounds [m]
ROOM = 0.006  # and this much to the object on either side, for the descent [m]
# The costs of a grip, in radians that the gripper has to turn.
COST_OF_SKEW = 0.2  # a radian off square
COST_OF_NARROWNESS = 20.0  # a metre less open
COST_OF_TIGHTNESS = 400.0  # a metre of room too little
PALM = (0.025, 0.105)  # half the size of the hand's underside [m]
PALM_HEIGHT = 0.036  # of it above the tool, with 3 mm to spare [m]
RELEASE_ROOM, LEAST_RELEASE = 0.01, 0.015  # left beside the fingers; and opened at least [m]
HIGHER = 0.006  # that a grip may be above the usual height, for the palm's sake [m]


@dataclass(frozen=True, kw_only=True)
class Grip:
    """How the gripper takes hold of something."""

    yaw: float  # of the gripper [rad]
    opening: float  # on the way down [m]
    height: float  # of the tool [m]
    within: float  # so far to the side, the fingers may come down around the object [m]


def plain_grip(situation: Situation) -> Grip:
    """That of a gripper which never turns."""
    shape = SHAPES[situation.target.shape]
    within = shape.grip_slack + ALIGNED
    return Grip(yaw=0.0, opening=OPEN, height=shape.grasp_height, within=within)


def plan_grip(situation: Situation) -> Grip:
    """The least turned grip whose fingers have room, or else the one with the most room."""
    target = situation.target
    shape, middle = SHAPES[target.shape], np.array([target.x, target.y])
    yaws, skews = _yaws(shape, target.yaw)
    yaws, openings = (grid.ravel() for grid in np.meshgrid(yaws, OPENINGS, indexing="ij"))
    around = outlines(situation.others, situation.box)
    widths = _width(shape, yaws - target.yaw)
    room = clearances(fingers(middle, yaws, widths, openings), around)
    cost = (
        np.abs(yaws)
        + COST_OF_SKEW * np.repeat(skews, len(OPENINGS))
        + COST_OF_NARROWNESS * (OPEN - openings)
        + COST_OF_TIGHTNESS * np.maximum(ROOM - (openings - widths) / 2, 0)
        + COST_OF_TIGHTNESS * np.maximum(CLEAR - room, 0)
    )
    best = int(cost.argmin())
    yaw, least = float(yaws[best]), shape.grasp_height
    height = min(max(least, palm_floor(situation, middle, yaw)), least + HIGHER)
    spare = float(openings[best] - widths[best]) / 2 - SPARE
    within = min(max(spare, LEAST_WITHIN), MOST_WITHIN)
    return Grip(yaw=yaw, opening=float(openings[best]), height=height, within=within)


def clearances(swept: Rectangles, around: Rectangles) -> Numbers:
    """(K,) room between the fingers of K grippers (2K rectangles) and what stands around [m]."""
    if not len(around.yaws):
        return np.full(len(swept.yaws) // 2, np.inf)
    nearest = separations(swept, around).min(axis=1)  # (2K,)
    room: Numbers = nearest.reshape(2, -1).min(axis=0)
    return room


def _yaws(shape: Shape, yaw: float) -> tuple[Numbers, Numbers]:
    """Gripper yaws to try (n,) and how far from square to the object each is (n,) [rad]."""
    period = shape.grip_period or ROUND_STEP
    square = yaw if shape.grip_period else 0.0
    squares = square + period * np.arange(round(math.pi / period))
    skews = np.unique(shape.grip_tolerance * SKEWS)
    turned = (squares[:, None] + skews).ravel()
    yaws = LOWEST_YAW + (turned - LOWEST_YAW) % math.pi  # half a turn on, fingers change places
    skews = np.tile(np.abs(skews), len(squares))
    skew = abs((square + period / 2) % period - period / 2)  # of a gripper that does not turn
    if skew <= shape.grip_tolerance:
        return np.append(0.0, yaws), np.append(skew, skews)
    return yaws, skews


def _width(shape: Shape, turned: Numbers) -> Numbers:
    """(n,) of the object between fingers turned by this much against it (n,) [m]."""
    patch = shape.outline[0]
    across = patch.half[0] * np.abs(np.sin(turned)) + patch.half[1] * np.abs(np.cos(turned))
    width: Numbers = 2 * (across + patch.radius)
    return width


def palm_floor(situation: Situation, middle: Numbers, yaw: float) -> float:
    """Tool height [m] below which the hand, turned like this, comes down on something tall."""
    palm = Rectangles(
        centres=middle[None], halves=np.array([PALM]), yaws=np.array([yaw]), radii=np.zeros(1)
    )
    tall = [(outlines([one], None), SHAPES[one.shape].height) for one in situation.others]
    if situation.box is not None:
        tall.append((outlines([], situation.box), BOX_HEIGHT))
    below = [height for what, height in tall if separations(palm, what).min() < 0]
    return max(below, default=0.0) - PALM_HEIGHT


def release_opening(situation: Situation) -> float:
    """How far the fingers can open around what they hold without touching what stands around."""
    openings = np.linspace(OPEN, min(OPEN, situation.opening + LEAST_RELEASE), 6)
    yaws, now = np.full_like(openings, situation.yaw), np.full_like(openings, situation.opening)
    swept = fingers(situation.tool[:2], yaws, now, openings)
    room = clearances(swept, outlines(situation.others, situation.box))
    free = openings[room > RELEASE_ROOM]
    return float(free[0] if len(free) else openings[-1])
