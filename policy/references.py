"""What sentences and phrases refer to, as numbers that compare with the rows of the object list."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fetchlab.sim.language import Reference
from fetchlab.sim.observation import LOOK, OBJECT_FEATURES
from fetchlab.sim.scene import DIRECTIONS
from fetchlab.sim.tasks.registry import TASKS

LOOKS = OBJECT_FEATURES[LOOK]


def look(reference: Reference | None) -> list[float]:
    """(L,) 1 for the colour and the shape that are named; all 0 where nothing is."""
    named = (reference.colour, reference.shape) if reference else ()
    return [float(feature in [f"is_{name}" for name in named]) for feature in LOOKS]


def are_meant(objects: Tensor, looks: Tensor) -> Tensor:
    """(B, M, R) which objects (B, M, F) have all that each of the looks (B, R, L) names."""
    shared = objects[..., LOOK] @ looks.transpose(-2, -1)  # (B, M, R)
    named = looks.sum(dim=-1)[:, None]  # (B, 1, R)
    return (shared > named - 0.5) & (named > 0.5)


class Requests:
    """Turns the sentences of a task into what they ask for: R objects, and what to do with them."""

    def __init__(self, task: str) -> None:
        self._task = TASKS[task]
        names = [part.name for part in self._task.parts]
        two = any(part.has_other for part in self._task.parts)
        self.has_box = any(part.has_box for part in self._task.parts)
        self.n_named = 2 if two else 1  # R
        self._kinds = [*(names if len(names) > 1 else ()), *(DIRECTIONS if two else ())]

    @property
    def size(self) -> int:
        """How many numbers tell what is asked for."""
        return self.n_named * len(LOOKS) + len(self._kinds)

    def looks(self, sentences: Sequence[str], device: torch.device) -> Tensor:
        """(B, R, L) what the sentence names: the object to act on, then the other one, if any."""
        asked = [self._task.request(sentence) for sentence in sentences]
        rows = [[look(one.target), look(one.other)][: self.n_named] for one in asked]
        return torch.tensor(rows, device=device)

    def kinds(self, sentences: Sequence[str], device: torch.device) -> Tensor:
        """(B, kinds) which task it is, if there are several, and which side is meant, if any."""
        asked = [self._task.request(sentence) for sentence in sentences]
        rows = [[float(kind in (one.task, one.relation)) for kind in self._kinds] for one in asked]
        return torch.tensor(rows, device=device).reshape(len(sentences), len(self._kinds))
