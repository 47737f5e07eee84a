"""The scripted expert's phases: approach, descend, close, lift, carry, lower, release, leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fetchlab.policy.grasp import OPEN, Grip, palm_floor, plain_grip, plan_grip, release_opening
from fetchlab.policy.placing import Place, lies_there, place_for, plan_shift
from fetchlab.policy.situation import Situation
from fetchlab.sim.shapes import BLOCK_SIZE, SHAPES

CLOSED = 0.0  # gripper opening target [m]
# Heights of the tool above the tallest thing that can be on the table [m].
TOO_LOW = 0.01  # to move sideways without touching anything
ABOVE_ALL = 0.02  # higher than this, nothing can be knocked over
READY = 0.025  # to line up before the last descent
HOVER = 0.06  # on the way to the object
CARRY_LOW, CARRY = 0.06, 0.09  # lower, nothing is carried sideways; and on the way to a place
LIFT_HEIGHT = 0.18  # m
REACH_ABOVE = 0.055  # an object that is only reached for, over its top [m]
STRIDE = 0.10  # longest way of the tool in one control step [m]
# The arm is too heavy to stop or start quickly: it dips, and it sways to the side when it rises.
LOWER, LOWER_SHARE = 0.05, 0.5  # longest way down with an object [m], and share of what is left
RISE = 0.02  # longest way up with the object between open fingers [m]
TIPS = 0.007  # the fingers reach this far below the tool [m]
TURN = 0.25  # most that the gripper turns in one control step [rad]
ABOVE = 0.03  # the tool may come down to the ready height when this close sideways [m]
SQUARE = 0.15  # and descend around the object when turned this close to the grip [rad]
SWEEP = 0.06  # a radian of turn left counts as so far off [m]
# Down a funnel: a policy that learns "up again" from one side of a line, and "down" from the other,
# hovers on the line.
FUNNEL = 0.015  # from the object's side to the ready height [m]
# The close rule is loose on purpose: a tight one under noise teaches hovering (docs/decisions.md).
CLOSE_SIDEWAYS = SHAPES["block"].grip_slack  # m; others as their shape says
CLOSE_HEIGHT = 0.014  # above the grasp [m]
CLOSE_STEPS = 3  # control steps that the fingers close before the lift; two are often cut short
EMPTY = 0.03  # closed further than this around a block, the fingers have missed [m]
LOST = 0.06  # this far from the tool, the object is not between the fingers [m]
MOVED = 0.03  # an object that has moved this far is taken hold of in a new way [m]
OPEN_STEPS = 1  # control steps that the fingers open before they rise

Goal = NDArray[np.float64]  # (5,) next tool position [m], gripper opening [m] and yaw [rad]


@dataclass(kw_only=True)
class Memory:
    """What the expert remembers of an episode."""

    closing: int = 0  # control steps since the fingers began to close
    leaving: int = 0  # control steps since they began to let go
    release: float = OPEN  # how wide they open then [m]
    grip: Grip | None = None
    planned_for: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    shift: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))

    def forget(self) -> None:
        self.closing = self.leaving = 0
        self.grip = None


@dataclass(frozen=True, kw_only=True)
class Phases:
    """What to do next, whatever has happened so far."""

    top: float  # of the tallest thing that can be on the table [m]
    may_turn: bool  # whether the gripper can, and has to: blocks alone lie square to it

    def goal(self, situation: Situation, memory: Memory) -> Goal:
        """The next goal; updates the memory."""
        grip = self.plan(situation, memory)
        if situation.request.task == "reach":
            return self._reach(situation)
        place = place_for(situation, memory.shift)
        if memory.leaving or (place and not memory.closing and lies_there(situation)):
            return self._leave(situation, memory)
        if memory.closing and (_has_lost(situation) or _has_missed(situation, memory)):
            memory.forget()  # open and try again
            grip = self.plan(situation, memory)
        if memory.closing >= CLOSE_STEPS:
            memory.closing += 1
            return self._carry(situation, memory, place) if place else _lift(situation, grip)
        if memory.closing or _is_around(situation, grip):
            memory.closing += 1
            x, y, _ = situation.position
            return _stride(situation, (x, y, grip.height), CLOSED, grip.yaw)
        return self._approach(situation, grip)

    def plan(self, situation: Situation, memory: Memory) -> Grip:
        """How to take hold of the object, decided once unless it moves or is missed."""
        here = situation.position[:2]
        moved = np.hypot(*(here - memory.planned_for)) > MOVED
        if memory.grip is None or (moved and not memory.closing and not memory.leaving):
            memory.grip = plan_grip(situation) if self.may_turn else plain_grip(situation)
            memory.planned_for, memory.shift = here, plan_shift(situation)
        return memory.grip

    def _reach(self, situation: Situation) -> Goal:
        x, y, z = situation.position
        shape = SHAPES[situation.target.shape]
        return _stride(situation, (x, y, z - shape.base + shape.height + REACH_ABOVE), OPEN, 0.0)

    def _approach(self, situation: Situation, grip: Grip) -> Goal:
        tool, (x, y, _) = situation.tool, situation.position
        sideways, turn = _sideways(situation), abs(situation.yaw - grip.yaw)
        off = max(sideways - grip.within, (turn - SQUARE) * SWEEP)
        if off < 0:
            return _stride(situation, (x, y, grip.height), grip.opening, grip.yaw)
        if tool[2] < self.top + TOO_LOW and (sideways > ABOVE or not self.may_turn):
            return _stride(situation, (*tool[:2], self.top + READY), grip.opening, grip.yaw)
        height = self.top + (READY if sideways < ABOVE else HOVER)
        if self.may_turn and sideways < ABOVE:
            height = grip.height + min(off / FUNNEL, 1.0) * (height - grip.height)
        return _stride(situation, (x, y, height), grip.opening, grip.yaw)

    def _carry(self, situation: Situation, memory: Memory, place: Place) -> Goal:
        """Towards the place, well above everything; down there, and let go."""
        tool, held, grip = situation.tool, situation.position, memory.grip
        assert grip is not None
        over = place.middle + tool[:2] - held[:2]  # where the tool is when the object is there
        sideways = float(np.hypot(*(tool[:2] - over)))
        base = SHAPES[situation.target.shape].base
        stands = tool[2] - (held[2] - base - place.floor)  # and when it stands there
        stands = max(stands, palm_floor(situation, tool[:2], grip.yaw))
        if sideways < place.precision and tool[2] < stands + place.drop:
            memory.release = release_opening(situation)
            return self._leave(situation, memory)
        if sideways < ABOVE:
            lowest = stands + ABOVE * min(max(sideways - place.precision, 0) / FUNNEL, 1.0)
            down = min(LOWER, LOWER_SHARE * (tool[2] - lowest))
            return _stride(situation, (*over, tool[2] - down), CLOSED, grip.yaw)
        if tool[2] < self.top + CARRY_LOW:
            return _stride(situation, (*tool[:2], self.top + CARRY), CLOSED, grip.yaw)
        return _stride(situation, (*over, self.top + CARRY), CLOSED, grip.yaw)

    def _leave(self, situation: Situation, memory: Memory) -> Goal:
        """Let go, rise, and stay there; or begin again if the object is not where it should be."""
        tool, yaw = situation.tool, situation.yaw
        if tool[2] > self.top + READY:
            if not lies_there(situation):
                memory.forget()
                return self.goal(situation, memory)
            return _stride(situation, (*tool[:2], self.top + CARRY), OPEN, yaw)
        memory.leaving, memory.closing = memory.leaving + 1, 0
        rise = 0.0 if memory.leaving <= OPEN_STEPS else STRIDE
        if _has_object_between(situation):
            rise = min(rise, RISE)
        return _stride(situation, (*tool[:2], tool[2] + rise), memory.release, yaw)


def _lift(situation: Situation, grip: Grip) -> Goal:
    x, y, _ = situation.position
    return _stride(situation, (x, y, LIFT_HEIGHT), CLOSED, grip.yaw)


def _is_around(situation: Situation, grip: Grip) -> bool:
    """Whether the fingers stand on both sides of the object."""
    low = situation.tool[2] < grip.height + CLOSE_HEIGHT
    return bool(low and _sideways(situation) < SHAPES[situation.target.shape].grip_slack)


def _has_object_between(situation: Situation) -> bool:
    """Whether the fingertips are lower than the top of the object."""
    shape = SHAPES[situation.target.shape]
    return bool(situation.tool[2] - TIPS < situation.position[2] - shape.base + shape.height)


def _has_lost(situation: Situation) -> bool:
    return bool(np.linalg.norm(situation.tool - situation.position) > LOST)


def _has_missed(situation: Situation, memory: Memory) -> bool:
    narrowest = EMPTY * SHAPES[situation.target.shape].width / BLOCK_SIZE
    return memory.closing >= CLOSE_STEPS and situation.opening < narrowest


def _sideways(situation: Situation) -> float:
    return float(np.hypot(*(situation.tool[:2] - situation.position[:2])))


def _stride(situation: Situation, target: Sequence[float], opening: float, yaw: float) -> Goal:
    """As far towards the target as the tool gets and turns in one control step."""
    tool, turn = situation.tool, yaw - situation.yaw
    way = np.array(target) - tool
    length = float(np.linalg.norm(way))
    if abs(turn) > TURN:
        yaw = situation.yaw + np.copysign(TURN, turn)
    return np.array([*(tool + way * min(1.0, STRIDE / max(length, 1e-9))), opening, yaw])
