"""`mixed`: one of several tasks in each episode, so that one policy learns them all."""

from __future__ import annotations

from fetchlab.sim.scene import Scene
from fetchlab.sim.tasks.base import Judge, TableState, Task
from fetchlab.sim.tasks.fetch import Fetch
from fetchlab.sim.tasks.place_beside import PlaceBeside
from fetchlab.sim.tasks.place_in_box import PlaceInBox


class Mixed(Task):
    name = "mixed"
    description = "fetch, place_in_box or place_beside, as the sentence says"
    parts = (Fetch(), PlaceInBox(), PlaceBeside())
    time_limit = max(part.time_limit for part in parts)

    def judge(self, scene: Scene, start: TableState) -> Judge:
        return self.part(scene.goal.task).judge(scene, start)
