"""Chunk queue and temporal ensembling, one memory a slot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchlab.errors import UserError
from fetchlab.policy.chunking import ChunkMemory, ChunkQueue, TemporalEnsembler


def chunk_of(time: int, chunk_size: int = 4, action_dim: int = 2) -> np.ndarray:
    """The chunk predicted at this time: numbers that tell when it was made, and for when."""
    generator = np.random.default_rng(time)
    return generator.normal(size=(chunk_size, action_dim)).astype(np.float32)


def test_queue_executes_the_first_actions_of_each_chunk() -> None:
    queue = ChunkQueue(n_action_steps=3)
    executed = []
    for time in range(7):
        assert queue.wants_chunk(0) == (time % 3 == 0)
        if queue.wants_chunk(0):
            queue.add(0, chunk_of(time))
        executed.append(queue.next_action(0))
    expected = [*chunk_of(0)[:3], *chunk_of(3)[:3], chunk_of(6)[0]]
    np.testing.assert_array_equal(executed, expected)


def plain_ensemble(time: int, decay: float, chunk_size: int) -> np.ndarray:
    """ACT's formula: all predictions for this moment, the oldest first, weights exp(-decay · i)."""
    made_at = range(max(0, time - chunk_size + 1), time + 1)
    predictions = np.array([chunk_of(t, chunk_size)[time - t] for t in made_at])
    weights = np.exp(-decay * np.arange(len(predictions)))
    return np.asarray((predictions * weights[:, None]).sum(axis=0) / weights.sum())


@given(st.integers(1, 6), st.floats(-1, 1), st.integers(1, 12))
def test_ensembler_equals_the_plain_formula(chunk_size: int, decay: float, steps: int) -> None:
    ensembler = TemporalEnsembler(decay)
    for time in range(steps):
        assert ensembler.wants_chunk(0)
        ensembler.add(0, chunk_of(time, chunk_size))
        action = ensembler.next_action(0)
        np.testing.assert_allclose(action, plain_ensemble(time, decay, chunk_size), rtol=2e-5)


def test_an_ensemble_without_a_finite_decay_is_refused() -> None:
    with pytest.raises(UserError, match="nan"):
        TemporalEnsembler(float("nan"))


@pytest.mark.parametrize(
    "memory", [ChunkQueue(2), TemporalEnsembler(0.1)], ids=["queue", "average"]
)
def test_slots_do_not_mix_and_reset_forgets(memory: ChunkMemory) -> None:
    memory.add(0, chunk_of(0))
    memory.add(1, chunk_of(1))
    np.testing.assert_allclose(memory.next_action(1), chunk_of(1)[0], rtol=1e-6)
    np.testing.assert_allclose(memory.next_action(0), chunk_of(0)[0], rtol=1e-6)
    memory.reset([0])
    memory.add(0, chunk_of(5))
    np.testing.assert_allclose(memory.next_action(0), chunk_of(5)[0], rtol=1e-6)
    memory.reset()
    assert memory.wants_chunk(0) and memory.wants_chunk(1)
    memory.add(1, chunk_of(7))
    np.testing.assert_allclose(memory.next_action(1), chunk_of(7)[0], rtol=1e-6)
