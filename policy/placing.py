"""Where the scripted expert puts an object down, and whether it lies there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fetchlab.policy.clearance import Numbers, Rectangles, outlines, separations
from fetchlab.policy.situation import Situation
from fetchlab.sim.kinematics import WORKSPACE_LOWER, WORKSPACE_UPPER
from fetchlab.sim.scene import BESIDE, DIRECTIONS, SceneObject
from fetchlab.sim.shapes import BOX_HEIGHT, BOX_INSIDE, BOX_WALL, SHAPES

SPACE = 0.015  # wanted between an object that is put down and what stands there [m]
LOW = 0.015  # higher above where it should rest, an object does not lie there [m]
NEAREST, FURTHEST, ASIDE = 0.06, 0.15, 0.4  # m, m, and a share of the way: lies beside
WALL_ROOM = 0.01  # to the box's walls from the middle of an object that lies inside [m]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an object is to stand."""

    middle: Numbers  # (2,) [m]
    floor: float  # height of what it will stand on [m]
    precision: float  # it may be let go this close to the middle [m]
    drop: float  # and this far above the floor [m]


def place_for(situation: Situation, shift: Numbers) -> Place | None:
    """The place that the sentence means, moved by `shift` (2,) [m]; None if it means none."""
    task = situation.request.task
    if task == "place_in_box" and situation.box is not None:
        return Place(middle=situation.box, floor=BOX_WALL, precision=0.02, drop=0.015)
    if task == "place_beside":
        middle = _beside(situation) + shift
        return Place(middle=middle, floor=0.0, precision=0.015, drop=0.008)
    return None


def plan_shift(situation: Situation) -> Numbers:
    """(2,) how far from the usual place beside another object there is more room [m]."""
    if situation.request.task != "place_beside":
        return np.zeros(2)
    assert situation.request.relation is not None
    along = np.array(DIRECTIONS[situation.request.relation])
    steps = [(0.01 * a, 0.01 * b) for a in range(-2, 5) for b in range(-3, 4)]
    shifts = np.array([a * along + b * along[::-1] for a, b in steps])
    places = _beside(situation) + shifts
    reachable = ((places > WORKSPACE_LOWER[:2]) & (places < WORKSPACE_UPPER[:2])).all(axis=1)
    lacking = np.maximum(SPACE - _spaces(situation.target, places, situation), 0)
    cost = lacking * 10 + np.abs(shifts).sum(axis=1) + 10 * ~reachable
    best: Numbers = shifts[int(cost.argmin())]
    return best


def lies_there(situation: Situation) -> bool:
    """Whether the object has been put where the sentence wants it."""
    x, y, z = situation.position
    above = z - SHAPES[situation.target.shape].base
    if situation.request.task == "place_in_box" and situation.box is not None:
        beyond = np.abs(situation.box - (x, y)).max() - BOX_INSIDE / 2
        return bool(beyond < -WALL_ROOM and above < BOX_HEIGHT / 2)
    assert situation.request.relation is not None
    along = np.array(DIRECTIONS[situation.request.relation])
    way = np.array([x, y]) - (situation.reference.x, situation.reference.y)
    far, aside = way @ along, abs(way @ along[::-1])
    return bool(NEAREST < far < FURTHEST and aside < ASIDE * far and above < LOW)


def _beside(situation: Situation) -> Numbers:
    other, relation = situation.reference, situation.request.relation
    assert relation is not None
    result: Numbers = np.array([other.x, other.y]) + BESIDE * np.array(DIRECTIONS[relation])
    return result


def _spaces(target: SceneObject, places: Numbers, situation: Situation) -> Numbers:
    """(n,) room around the object at each of n places (n, 2) [m]."""
    n = len(places)
    radius = max(abs(p.x) + np.hypot(*p.half) + p.radius for p in SHAPES[target.shape].outline)
    there = Rectangles(
        centres=places, halves=np.zeros((n, 2)), yaws=np.zeros(n), radii=np.full(n, radius)
    )
    spaces: Numbers = separations(there, outlines(situation.others, situation.box)).min(axis=1)
    return spaces
