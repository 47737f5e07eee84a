"""The tasks, a line each."""

from fetchlab.sim.tasks.base import Task
from fetchlab.sim.tasks.fetch import Fetch
from fetchlab.sim.tasks.mixed import Mixed
from fetchlab.sim.tasks.place_beside import PlaceBeside
from fetchlab.sim.tasks.place_in_box import PlaceInBox
from fetchlab.sim.tasks.reach import Reach
from fetchlab.sim.tasks.remember import Remember

TASKS: dict[str, Task] = {
    "fetch": Fetch(),
    "reach": Reach(),
    "place_in_box": PlaceInBox(),
    "place_beside": PlaceBeside(),
    "mixed": Mixed(),
    "remember": Remember(),
}
