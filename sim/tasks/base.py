"""What a task is: sentences, the object a sentence names, and a verdict on the physical state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.scene import Scene


@dataclass(frozen=True, kw_only=True)
class TableState:
    """The physical state a verdict is made on."""

    positions: NDArray[np.float64]  # (n, 3) centres of the scene's objects [m]
    tool: NDArray[np.float64]  # (3,) point between the fingertips [m]
    holds: Callable[[int], bool]  # whether both fingers touch object i


class Judge(Protocol):
    """Watches one episode, one control step after another."""

    success: bool
    failed: bool  # something happened that cannot be made good

    def watch(self, state: TableState) -> None: ...

    def failure_reason(self) -> str:
        """Why the episode failed, asked when it has ended without success."""
        ...


class Task(Protocol):
    """A task knows language and success, and nothing about policies."""

    description: str
    time_limit: float  # s

    def sentences(self) -> tuple[str, ...]:
        """Every sentence the task can say."""
        ...

    def phrases(self) -> dict[str, str]:
        """How each colour's object is referred to, by colour."""
        ...

    def instruction(self, scene: Scene) -> str: ...

    def target_named(self, instruction: str, scene: Scene) -> int:
        """Index of the object that the sentence names; UserError unless it is exactly one."""
        ...

    def judge(self, scene: Scene, start: TableState) -> Judge: ...
