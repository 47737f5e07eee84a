"""`remember`: fetch the named object, whose colour was only seen before the episode began."""

from __future__ import annotations

from fetchlab.sim.tasks.fetch import Fetch


class Remember(Fetch):
    """All objects turn grey after the frame that comes before the first observation.

    With a history of one frame no camera tells the colours. Where there are several shapes, they
    still tell something.
    """

    name = "remember"
    description = "fetch, but all objects turn grey before the first step"
    fades = True
