"""What sentences and phrases refer to, as numbers that compare with the rows of the object list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fetchlab.sim.language import Reference, Request
from fetchlab.sim.looks import HELD_OUT_PAIRS
from fetchlab.sim.observation import LOOK, OBJECT_FEATURES
from fetchlab.sim.scene import DIRECTIONS, place_beside
from fetchlab.sim.tasks.place_in_box import PlaceInBox
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


def are_held_out(objects: Tensor) -> Tensor:
    """(B, M) which objects (B, M, F) are of a held-out pair of colour and shape."""
    pairs = [look(Reference(colour=c, shape=s)) for c, s in sorted(HELD_OUT_PAIRS)]
    return are_meant(objects, objects.new_tensor(pairs)[None]).any(dim=2)


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
    def n_places(self) -> int:
        """Places there are to be told: of all that is named, and of the box if there is one."""
        return self.n_named + self.has_box

    @property
    def size(self) -> int:
        """How many numbers tell what is asked for."""
        return self.n_named * len(LOOKS) + len(self._kinds)

    def looks(self, sentences: Sequence[str], device: torch.device) -> Tensor:
        """(B, R, L) what the sentence names: the object to act on, then the other one, if any."""

        def row(request: Request) -> list[list[float]]:
            return [look(request.target), look(request.other)][: self.n_named]

        return self._each(sentences, row, device)

    def kinds(self, sentences: Sequence[str], device: torch.device) -> Tensor:
        """(B, kinds) which task it is, if there are several, and which side is meant, if any."""

        def row(request: Request) -> list[float]:
            return [float(kind in (request.task, request.relation)) for kind in self._kinds]

        return self._each(sentences, row, device).reshape(len(sentences), len(self._kinds))

    def goals(self, sentences: Sequence[str], device: torch.device) -> tuple[Tensor, Tensor]:
        """By what the named object is to end, and how far from there: (B,) and (B, 2) [m].

        0: where it is itself, 1: the other one, -1: the box.
        """

        def row(request: Request) -> list[float]:
            if request.relation is not None:
                return [1, *place_beside((0.0, 0.0), request.relation)]
            return [-1 if request.task == PlaceInBox.name else 0, 0.0, 0.0]

        goals = self._each(sentences, row, device)  # (B, 3)
        return goals[:, 0].long(), goals[:, 1:]

    def _each(
        self, sentences: Sequence[str], row: Callable[[Request], object], device: torch.device
    ) -> Tensor:
        """A row a sentence; each of them is read once, however often it is said."""
        number = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}
        rows = torch.tensor([row(self._task.request(sentence)) for sentence in number])
        return rows[[number[sentence] for sentence in sentences]].to(device)
