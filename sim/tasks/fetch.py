"""`fetch`: grasp the named object, lift it and hold it there."""

from __future__ import annotations

from fetchlab.sim.language import Templates
from fetchlab.sim.scene import Scene
from fetchlab.sim.tasks.base import Judge, TableState, Task
from fetchlab.sim.tasks.course import Course

LIFT_HEIGHT = 0.10  # the named object must be held at least this far above where it lay [m]
HOLD_STEPS = 3  # for this many control steps in a row


class Fetch(Task):
    name = "fetch"
    description = "grasp the named object, lift it 10 cm and hold it there"
    time_limit = 4.0
    templates = {  # noqa: RUF012
        "english": Templates(
            training=(
                "fetch the {a}",
                "pick up the {a}",
                "lift the {a}",
                "take the {a} and lift it up",
            ),
            held_out=("take the {a}", "pick the {a} up and lift it"),
        ),
        "chinese": Templates(
            training=("取{a}", "拿起{a}", "把{a}拿起来", "请取{a}"),
            held_out=("请拿起{a}", "请把{a}拿起来"),
        ),
    }

    def judge(self, scene: Scene, start: TableState) -> Judge:
        return FetchJudge(scene.target, start)


class FetchJudge:
    def __init__(self, target: int, start: TableState) -> None:
        self._target, self._course = target, Course(target, start)
        self._steps_held = 0
        self.success = self.failed = False

    def watch(self, state: TableState) -> None:
        course = self._course
        course.watch(state)
        self.failed = course.wrong_lifted
        high = course.lifted and course.moved[self._target, 2] >= LIFT_HEIGHT
        self._steps_held = self._steps_held + 1 if high else 0
        self.success = self._steps_held >= HOLD_STEPS and not self.failed

    def failure_reason(self) -> str:
        return self._course.shortcoming()
