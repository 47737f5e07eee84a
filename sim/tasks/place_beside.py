"""`place_beside`: put the named object on one side of another one, which stays where it is.

Left, right, in front and behind are meant as the front camera sees them. It faces the robot from
across the table: left is -y, right is +y, in front is +x, away from the robot, behind is -x.
"""

from __future__ import annotations

import numpy as np

from fetchlab.sim.language import Templates
from fetchlab.sim.scene import DIRECTIONS, Scene, is_beside
from fetchlab.sim.tasks.base import Judge, TableState, Task
from fetchlab.sim.tasks.course import Course

REST_STEPS = 3  # control steps in a row that the object rests there, released
MOST_MOVED = 0.03  # the other object must not be moved further than this [m]
NEAR = 0.25  # an object dropped this close to the other one is beside it, but not as asked [m]


class PlaceBeside(Task):
    name = "place_beside"
    description = "put the named object on a side of another one, as the front camera sees it"
    time_limit = 6.0
    has_other = True
    templates = {  # noqa: RUF012
        "english": Templates(
            training=(
                "put the {a} {side} the {b}",
                "place the {a} {side} the {b}",
                "take the {a} and place it {side} the {b}",
                "pick up the {a} and put it {side} the {b}",
            ),
            held_out=(
                "take the {a} and put it {side} the {b}",
                "pick up the {a} and place it {side} the {b}",
            ),
        ),
        "chinese": Templates(
            training=(
                "把{a}放到{b}{side}",
                "将{a}放到{b}{side}",
                "请把{a}放在{b}的{side}",
                "拿起{a}放到{b}{side}",
            ),
            held_out=("请将{a}放到{b}{side}", "拿起{a}放在{b}的{side}"),
        ),
    }

    def judge(self, scene: Scene, start: TableState) -> Judge:
        return PlaceBesideJudge(scene, start)


class PlaceBesideJudge:
    def __init__(self, scene: Scene, start: TableState) -> None:
        goal = scene.goal
        if goal.other is None or goal.relation is None:
            raise ValueError("the goal names no object to put something beside")
        self._target, self._other, self._relation = goal.target, goal.other, goal.relation
        self._course = Course(goal.target, start)
        self._steps_at_rest = 0
        self._way = np.full(2, np.inf)  # from the other object to the named one [m]
        self.success = self.failed = self._placed = self._other_moved = False

    def watch(self, state: TableState) -> None:
        course = self._course
        course.watch(state)
        self._way = (state.positions[self._target] - state.positions[self._other])[:2]
        self._other_moved = bool(np.hypot(*course.moved[self._other, :2]) > MOST_MOVED)
        self.failed = course.wrong_lifted or self._other_moved
        self._placed = self._is_at(self._relation) and self._course.on_table
        rests = self._placed and course.put_down
        self._steps_at_rest = self._steps_at_rest + 1 if rests else 0
        self.success = self._steps_at_rest >= REST_STEPS and not self.failed

    def _is_at(self, relation: str) -> bool:
        return is_beside(self._way.tolist(), relation)

    def failure_reason(self) -> str:
        if self._other_moved and not self._course.wrong_lifted:
            return "moved_reference"
        if self._placed and not self.failed:
            return "not_released" if self._course.held else "timeout"
        reason = self._course.shortcoming()
        if reason != "dropped":
            return reason
        if any(self._is_at(relation) for relation in DIRECTIONS):
            return "wrong_side"
        return "misplaced" if np.hypot(*self._way) < NEAR else "dropped"
