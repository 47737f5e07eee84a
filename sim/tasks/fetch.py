"""`fetch`: grasp the named block, lift it and hold it there."""

from __future__ import annotations

import numpy as np

from fetchlab.errors import UserError
from fetchlab.sim.scene import COLOURS, Scene
from fetchlab.sim.tasks.base import TableState

LIFT_HEIGHT = 0.10  # the named block must be held at least this far above where it lay [m]
HOLD_STEPS = 3  # for this many control steps in a row
WRONG_LIFT = 0.05  # lifting another block this far ends the episode [m]
WRONG_PUSH = 0.05  # pushing another block this far is reported if nothing else was reached [m]
REACH = 0.04  # the tool has reached the block when it comes this close to its centre [m]


class Fetch:
    description = "grasp the named block, lift it 10 cm and hold it there"
    time_limit = 4.0

    def sentences(self) -> tuple[str, ...]:
        return tuple(f"fetch the {phrase}" for phrase in self.phrases().values())

    def phrases(self) -> dict[str, str]:
        return {colour: f"{colour} block" for colour in COLOURS}

    def instruction(self, scene: Scene) -> str:
        return f"fetch the {self.phrases()[scene.blocks[scene.target].colour]}"

    def target_named(self, instruction: str, scene: Scene) -> int:
        colours = [block.colour for block in scene.blocks]
        possible = {
            f"fetch the {self.phrases()[colour]}": colours.index(colour)
            for colour in COLOURS
            if colours.count(colour) == 1
        }
        if instruction not in possible:
            raise UserError(
                f"{instruction!r} names no single object of this scene; "
                f"it can be told: {'; '.join(possible)}"
            )
        return possible[instruction]

    def judge(self, scene: Scene, start: TableState) -> FetchJudge:
        return FetchJudge(scene.target, start)


class FetchJudge:
    def __init__(self, target: int, start: TableState) -> None:
        self._target = target
        self._start = start.positions
        self._steps_held = 0
        self._reached = self._lifted = self._lifted_before = self._pushed_other = False
        self.success = self.failed = False

    def watch(self, state: TableState) -> None:
        moved = state.positions - self._start  # (n, 3)
        raised = moved[:, 2]
        others = np.arange(len(moved)) != self._target
        self.failed = bool((raised[others] > WRONG_LIFT).any())
        pushed = np.linalg.norm(moved[others, :2], axis=1)
        self._pushed_other |= bool((pushed > WRONG_PUSH).any())
        distance = np.linalg.norm(state.tool - state.positions[self._target])
        self._reached |= bool(distance < REACH)
        self._lifted = bool(raised[self._target] > 0.02) and state.holds(self._target)
        self._lifted_before |= self._lifted
        high = self._lifted and raised[self._target] >= LIFT_HEIGHT
        self._steps_held = self._steps_held + 1 if high else 0
        self.success = self._steps_held >= HOLD_STEPS and not self.failed

    def failure_reason(self) -> str:
        if self.failed:
            return "wrong_object"
        if self._lifted:
            return "timeout"
        if self._lifted_before:
            return "dropped"
        if self._reached:
            return "no_grasp"
        return "wrong_object" if self._pushed_other else "no_reach"
