"""What a cache for keys and values saves, and that it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.generation import N_WORDS, Speaker, milliseconds
from fetchlab.eval.figures.visibility import PRECISIONS
from fetchlab.policy.cache import KeyValueCache
from fetchlab.policy.masks import causal

LENGTHS = (64, 128, 256, 512)  # tokens that are said
PROMPT, SAID = 4, 60  # of the sequences that are compared
N_ROWS = 20
"""sequences timed side by side: with a single small one, calling costs as much as computing"""
CACHES = ((4, 512, 64, 1), (4, 512, 256, 4), (8, 1024, 512, 32))
"""layers, tokens, width; MiB of float32"""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Score cells of one head in one layer, to say n tokens one after another."""

    n_tokens: int
    full: int
    """every token is compared with every other one, again at each step"""
    masked: int
    """of these, the ones that the causal mask leaves"""
    cached: int
    """only the newest token asks"""

    @property
    def ratio(self) -> float:
        return self.full / self.cached


def count(n_tokens: int) -> Work:
    """Count the cells of each step's pattern."""
    steps = range(1, n_tokens + 1)
    return Work(
        n_tokens=n_tokens,
        full=sum(causal(step).numel() for step in steps),
        masked=sum(int(causal(step).sum()) for step in steps),
        cached=sum(causal(step, 1).numel() for step in steps),
    )


def by_formula(n_tokens: int) -> Work:
    """Sum of t², of t (t + 1) / 2, and of t."""
    n = n_tokens
    return Work(
        n_tokens=n,
        full=n * (n + 1) * (2 * n + 1) // 6,
        masked=n * (n + 1) * (n + 2) // 6,
        cached=n * (n + 1) // 2,
    )


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Milliseconds of one thread to say n tokens, in some sequences side by side."""

    n_tokens: int
    n_rows: int
    full: float
    cached: float

    @property
    def ratio(self) -> float:
        return self.full / self.cached


def timings(lengths: Sequence[int], n_rows: int) -> list[Timing]:
    """One layer of width 64, with and without the cache."""
    speaker = Speaker(n_layers=1, width=64, seed=0)
    milliseconds(speaker, n_rows, 8, cached=True, repeats=1)  # the first call is slower
    return [
        Timing(
            n_tokens=n,
            n_rows=n_rows,
            full=milliseconds(speaker, n_rows, n, cached=False, repeats=1 if n > 128 else 2),
            cached=milliseconds(speaker, n_rows, n, cached=True, repeats=2),
        )
        for n in lengths
    ]


def equality_checks(n_seeds: int) -> Iterator[Check]:
    """Say the same words, with logits that are equal to rounding."""
    for (precision, dtype), high in zip(PRECISIONS.items(), (1e-5, 1e-14), strict=True):
        differences, alike = [], 0
        for seed in range(n_seeds):
            speaker = Speaker(n_layers=4, width=64, seed=seed, dtype=dtype)
            prompt = torch.randint(N_WORDS, (1, PROMPT))
            full, expected = speaker.continued(prompt, SAID, cached=False)
            words, logits = speaker.continued(prompt, SAID, cached=True)
            differences.append(float((logits - expected).abs().max()))
            alike += torch.equal(words, full)
        yield Check(
            quantity=f"cache against recomputing: largest difference of a logit ({precision})",
            value=max(differences),
            high=high,
        )
        yield Check(
            quantity=f"cache against recomputing: sequences of the same words ({precision})",
            value=alike,
            low=n_seeds,
            high=n_seeds,
        )


def count_checks() -> Iterator[Check]:
    """Counted cells are those of the formulas, exactly."""
    for n_tokens in LENGTHS:
        counted, expected = count(n_tokens), by_formula(n_tokens)
        for name in ("full", "masked", "cached"):
            value = getattr(expected, name)
            yield Check(
                quantity=f"score cells to say {n_tokens} tokens, {name}",
                value=getattr(counted, name),
                low=value,
                high=value,
            )


def time_checks(measured: Sequence[Timing]) -> Iterator[Check]:
    """The longer the sequence, the more the cache saves."""
    for shorter, longer in pairwise(measured):
        yield Check(
            quantity=f"time saved by the cache: ratio at {longer.n_tokens} tokens "
            f"over that at {shorter.n_tokens}",
            value=longer.ratio / shorter.ratio,
            low=1.0,
        )
    for timing in measured:
        if timing.n_tokens == 256:
            yield Check(
                quantity="time saved by the cache: ratio at 256 tokens",
                value=timing.ratio,
                low=8.0,
            )


def memory_checks() -> Iterator[Check]:
    """2 · L · n · d numbers, by the tensors that are allocated."""
    for n_layers, n_tokens, width, mebibytes in CACHES:
        caches = [KeyValueCache(1, width // 32, n_tokens, 32) for _ in range(n_layers)]
        n_bytes = sum(cache.n_bytes for cache in caches)
        numbers = 2 * n_layers * n_tokens * width
        name = f"cache of {n_layers} layers, {n_tokens} tokens, width {width}"
        yield Check(quantity=f"{name}: numbers", value=n_bytes / 4, low=numbers, high=numbers)
        yield Check(quantity=f"{name}: MiB", value=n_bytes / 2**20, low=mebibytes, high=mebibytes)
