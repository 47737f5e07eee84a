"""From chunks to one action at a time: a queue, or an average of overlapping chunks."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fetchlab.errors import UserError
from fetchlab.policy.base import Array


class ChunkMemory(Protocol):
    """What is still to be executed, for each slot (episode) apart."""

    def wants_chunk(self, slot: int) -> bool:
        """Whether the slot has to be given a chunk before its next action."""
        ...

    def add(self, slot: int, chunk: Array) -> None:
        """Take the chunk (K, A) predicted now."""
        ...

    def next_action(self, slot: int) -> Array:
        """(A,) the action to execute now; time moves on by one step."""
        ...

    def reset(self, slots: Sequence[int] | None = None) -> None:
        """Forget these slots; all of them if None."""
        ...


class ChunkQueue:
    """Executes the first `n_action_steps` actions of a chunk, then asks for the next one."""

    def __init__(self, n_action_steps: int) -> None:
        self.n_action_steps = n_action_steps
        self._queues: defaultdict[int, deque[Array]] = defaultdict(deque)

    def wants_chunk(self, slot: int) -> bool:
        return not self._queues[slot]

    def add(self, slot: int, chunk: Array) -> None:
        self._queues[slot].extend(chunk[: self.n_action_steps])

    def next_action(self, slot: int) -> Array:
        return self._queues[slot].popleft()

    def reset(self, slots: Sequence[int] | None = None) -> None:
        for slot in list(self._queues) if slots is None else slots:
            self._queues.pop(slot, None)


class _Overlap:
    """Weighted sums of the predictions for the next K moments of one episode."""

    def __init__(self, chunk_shape: tuple[int, ...]) -> None:
        self.total = np.zeros(chunk_shape)  # (K, A)
        self.weight = np.zeros((chunk_shape[0], 1))  # (K, 1)
        self.count = np.zeros((chunk_shape[0], 1))  # (K, 1) predictions so far

    def add(self, chunk: Array, decay: float) -> None:
        weight = np.exp(-decay * self.count)  # (K, 1)
        self.total += weight * chunk
        self.weight += weight
        self.count += 1

    def advance(self) -> Array:
        action: Array = (self.total[0] / self.weight[0]).astype(np.float32)  # (A,)
        for sums in (self.total, self.weight, self.count):
            sums[:-1] = sums[1:]
            sums[-1] = 0
        return action


class TemporalEnsembler:
    """Asks for a chunk at every step and averages all predictions made for the present moment.

    The i-th oldest prediction weighs exp(-decay · i), as in ACT (Zhao et al. 2023, algorithm 2):
    a larger decay trusts the older ones more. Kept as running sums, so nothing old is stored.
    """

    def __init__(self, decay: float) -> None:
        if not math.isfinite(decay):
            raise UserError(f"temporal_ensembling must be a finite decay, got {decay}")
        self.decay = decay
        self._overlaps: dict[int, _Overlap] = {}

    def wants_chunk(self, slot: int) -> bool:
        return True

    def add(self, slot: int, chunk: Array) -> None:
        self._overlaps.setdefault(slot, _Overlap(chunk.shape)).add(chunk, self.decay)

    def next_action(self, slot: int) -> Array:
        return self._overlaps[slot].advance()

    def reset(self, slots: Sequence[int] | None = None) -> None:
        for slot in list(self._overlaps) if slots is None else slots:
            self._overlaps.pop(slot, None)
