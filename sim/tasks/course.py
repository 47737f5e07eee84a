"""What has happened on the table since an episode began, as far as any task asks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.tasks.base import TableState

LIFTED = 0.02  # an object is in the air from this height on [m]
WRONG_LIFT = 0.05  # lifting another object this far ends the episode [m]
WRONG_PUSH = 0.05  # pushing another object this far is reported if nothing else was reached [m]
REACH = 0.04  # the tool has reached an object when it comes this close to its middle [m]
AT_REST = 0.002  # an object that moves less than this in one control step lies still [m]


class Course:
    """Follows the named object, and watches that no other is taken."""

    def __init__(self, target: int, start: TableState) -> None:
        self._target = target
        self._start = self._before = start.positions
        self._others = np.arange(len(start.positions)) != target
        self._reached = self._pushed_other = False
        self.moved: NDArray[np.float64] = np.zeros_like(start.positions)  # (n, 3) since the start
        self.held = self.lifted = self.ever_lifted = self.still = self.wrong_lifted = False

    def watch(self, state: TableState) -> None:
        """Take note of one more control step."""
        target = self._target
        self.moved = state.positions - self._start
        others = self.moved[self._others]
        self.wrong_lifted = bool((others[:, 2] > WRONG_LIFT).any())
        pushed = np.hypot(others[:, 0], others[:, 1])
        self._pushed_other |= bool((pushed > WRONG_PUSH).any())
        distance = np.linalg.norm(state.tool - state.positions[target])
        self._reached |= bool(distance < REACH)
        self.held = state.holds(target)
        self.lifted = self.held and bool(self.moved[target, 2] > LIFTED)
        self.ever_lifted |= self.lifted
        way = np.linalg.norm(state.positions[target] - self._before[target])
        self.still, self._before = bool(way < AT_REST), state.positions

    @property
    def on_table(self) -> bool:
        """Whether the named object is as high as it was at the start, more or less."""
        return bool(abs(self.moved[self._target, 2]) < LIFTED)

    @property
    def put_down(self) -> bool:
        """Whether the named object lies still and is let go of."""
        return self.still and not self.held

    def shortcoming(self) -> str:
        """How far it came with the named object, if not to the end."""
        if self.wrong_lifted:
            return "wrong_object"
        if self.lifted:
            return "timeout"
        if self.ever_lifted:
            return "dropped"
        if self._reached:
            return "no_grasp"
        return "wrong_object" if self._pushed_other else "no_reach"
