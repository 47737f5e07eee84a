"""`place_in_box`: put the named object into the open box and let go of it."""

from __future__ import annotations

import numpy as np

from fetchlab.sim.language import Templates
from fetchlab.sim.scene import Scene
from fetchlab.sim.shapes import BOX_HEIGHT, BOX_INSIDE
from fetchlab.sim.tasks.base import Judge, TableState, Task
from fetchlab.sim.tasks.course import Course

REST_STEPS = 3  # control steps in a row that the object rests in the box, released
BESIDE_BOX = 0.20  # an object dropped this close to the box's middle has missed it [m]


class PlaceInBox(Task):
    name = "place_in_box"
    description = "put the named object in the box and let go of it"
    time_limit = 6.0
    has_box = True
    templates = {  # noqa: RUF012
        "english": Templates(
            training=(
                "put the {a} in the box",
                "place the {a} in the box",
                "take the {a} and place it in the box",
                "pick up the {a} and put it in the box",
            ),
            held_out=(
                "take the {a} and put it in the box",
                "pick up the {a} and place it in the box",
            ),
        ),
        "chinese": Templates(
            training=(
                "把{a}放进盒子",
                "将{a}放进盒子",
                "请把{a}放到盒子里",
                "拿起{a}放进盒子",
            ),
            held_out=("请将{a}放进盒子", "拿起{a}放到盒子里"),
        ),
    }

    def judge(self, scene: Scene, start: TableState) -> Judge:
        return PlaceInBoxJudge(scene, start)


class PlaceInBoxJudge:
    def __init__(self, scene: Scene, start: TableState) -> None:
        if scene.box is None:
            raise ValueError("no box stands in this scene")
        self._box, self._target = np.array(scene.box), scene.target
        self._course = Course(scene.target, start)
        self._steps_at_rest = 0
        self._inside, self._distance = False, np.inf
        self.success = self.failed = False

    def watch(self, state: TableState) -> None:
        course = self._course
        course.watch(state)
        self.failed = course.wrong_lifted
        place = state.positions[self._target]
        way = np.abs(place[:2] - self._box)
        self._distance = float(np.hypot(*way))
        self._inside = bool((way < BOX_INSIDE / 2).all() and place[2] < BOX_HEIGHT)
        rests = self._inside and course.put_down
        self._steps_at_rest = self._steps_at_rest + 1 if rests else 0
        self.success = self._steps_at_rest >= REST_STEPS and not self.failed

    def failure_reason(self) -> str:
        if self._inside and not self.failed:
            return "not_released" if self._course.held else "timeout"
        reason = self._course.shortcoming()
        return "missed_box" if reason == "dropped" and self._distance < BESIDE_BOX else reason
