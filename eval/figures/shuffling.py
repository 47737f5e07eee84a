"""Shuffle the tokens: without positions each token gets the same answer as before."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.random_blocks import WIDTH, random_encoder, random_tokens, small_block
from fetchlab.policy.masks import causal
from fetchlab.tokenizers.positions import sinusoidal

N_TOKENS, N_SEEDS = 12, 12


def changes(order: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What shuffling 12 tokens changes in what two blocks make of them, a number a seed.

    The largest change of any token, (S,), and of the mean over tokens, (S,).
    """
    config = small_block(rotary=order == "rotary")
    pattern = causal(N_TOKENS) if order == "causal mask" else None
    places = sinusoidal(torch.arange(N_TOKENS, dtype=dtype), WIDTH) * (order == "sinusoidal")
    found = []
    for seed in range(N_SEEDS):
        encoder = random_encoder(config, 2, seed, dtype)
        tokens = random_tokens(N_TOKENS, WIDTH, N_SEEDS + seed).to(dtype)
        mixed = torch.randperm(N_TOKENS, generator=torch.Generator().manual_seed(seed))
        before = encoder(tokens + places, pattern=pattern)
        after = encoder(tokens[:, mixed] + places, pattern=pattern)
        token, mean = after - before[:, mixed], after.mean(1) - before.mean(1)
        found.append(torch.stack([token.abs().max(), mean.abs().max()]))
    each, pooled = torch.stack(found).T
    return each, pooled


def shuffle_checks() -> Iterator[Check]:
    """Without positions nothing but rounding changes; with any of them much does."""
    for dtype, high in ((torch.float32, 1e-5), (torch.float64, 1e-14)):
        precision = str(dtype).removeprefix("torch.")
        for name, change in zip(("a token", "the mean"), changes("none", dtype), strict=True):
            yield Check(
                quantity=f"no positions, shuffled: largest change of {name} ({precision})",
                value=float(change.max()),
                high=high,
            )
    for order, low in (("sinusoidal", 2.3), ("rotary", 0.19), ("causal mask", 1.9)):
        yield Check(
            quantity=f"{order}, shuffled: largest change of a token, mean of {N_SEEDS} seeds",
            value=float(changes(order, torch.float64)[0].mean()),
            low=low,
        )
