"""The tasks, a line each."""

from fetchlab.sim.tasks.base import Task
from fetchlab.sim.tasks.fetch import Fetch

TASKS: dict[str, Task] = {
    "fetch": Fetch(),
}
