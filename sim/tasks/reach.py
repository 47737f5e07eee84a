"""`reach`: hover over the named object with an open gripper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.language import Templates
from fetchlab.sim.scene import Scene
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.base import Judge, TableState, Task
from fetchlab.sim.tasks.course import Course

HOVER_STEPS = 3  # control steps in a row that the tool is above the object
SIDEWAYS = 0.03  # the tool is above an object when it is this close to its middle [m]
LOWEST, HIGHEST = 0.03, 0.08  # and this far above its top [m]
OPEN = 0.06  # an open gripper is wider than this [m]


class Reach(Task):
    name = "reach"
    description = "hover over the named object, the gripper open"
    time_limit = 3.0
    templates = {  # noqa: RUF012
        "english": Templates(
            training=(
                "reach the {a}",
                "hover above the {a}",
                "go to the {a}",
                "go above the {a} and wait",
            ),
            held_out=("hover above the {a} and wait", "go to the {a} and wait"),
        ),
        "chinese": Templates(
            training=("指向{a}", "到{a}上方", "请指向{a}", "移到{a}上方"),
            held_out=("请到{a}上方", "请移到{a}上方"),
        ),
    }

    def judge(self, scene: Scene, start: TableState) -> Judge:
        return ReachJudge(scene, start)


class ReachJudge:
    def __init__(self, scene: Scene, start: TableState) -> None:
        shapes = [SHAPES[thing.shape] for thing in scene.objects]
        self._tops = np.array([shape.height - shape.base for shape in shapes])  # (n,) above origins
        self._target, self._course = scene.target, Course(scene.target, start)
        self._steps_above = np.zeros(len(shapes), np.int64)  # (n,) control steps in a row
        self._above = self._hovered_wrong = False
        self.success = self.failed = False

    def watch(self, state: TableState) -> None:
        self._course.watch(state)
        self.failed = self._course.wrong_lifted
        above = self._is_above(state)  # (n,)
        self._above = bool(above[self._target])
        hovers = above & (state.opening > OPEN)
        self._steps_above = np.where(hovers, self._steps_above + 1, 0)
        hovered = self._steps_above >= HOVER_STEPS
        self.success = bool(hovered[self._target]) and not self.failed
        self._hovered_wrong |= bool(np.delete(hovered, self._target).any())

    def _is_above(self, state: TableState) -> NDArray[np.bool_]:
        """(n,) whether the tool hovers over each object."""
        way = state.tool - state.positions  # (n, 3)
        height = way[:, 2] - self._tops
        near = np.hypot(way[:, 0], way[:, 1]) < SIDEWAYS
        result: NDArray[np.bool_] = near & (height > LOWEST) & (height < HIGHEST)
        return result

    def failure_reason(self) -> str:
        if self._course.wrong_lifted or self._hovered_wrong:
            return "wrong_object"
        return "not_steady" if self._above else self._course.shortcoming()
