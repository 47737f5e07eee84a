"""Attention tile by tile, as FlashAttention does it: never all scores at once, the same result."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Check
from fetchlab.policy.attention import attend_with_weights

TILE, N_TOKENS, WIDTH = 64, 500, 64


def attend_in_tiles(query: Tensor, key: Tensor, value: Tensor, tile: int = TILE) -> Tensor:
    """softmax(Q Kᵀ / √d) V for query (N, d), key (K, d), value (K, v), with N · tile scores kept.

    The softmax needs the largest score and the sum over all keys. Both are kept up to date while
    the tiles go by, and what was summed before is rescaled when a larger score turns up
    (Dao et al. 2022).
    """
    largest = query.new_full((len(query), 1), -math.inf)
    total = torch.zeros_like(largest)
    mixed = query.new_zeros(len(query), value.shape[-1])
    for some_keys, some_values in zip(
        torch.split(key, tile), torch.split(value, tile), strict=True
    ):
        scores = query @ some_keys.T / math.sqrt(query.shape[-1])  # (N, tile)
        higher = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))  # (N, 1)
        powers, rescaled = (scores - higher).exp(), (largest - higher).exp()
        total = total * rescaled + powers.sum(dim=-1, keepdim=True)
        mixed = mixed * rescaled + powers @ some_values  # (N, v)
        largest = higher
    return mixed / total


def difference(seed: int, dtype: torch.dtype) -> float:
    """Largest difference from attention with all scores at once."""
    generator = torch.Generator().manual_seed(seed)
    query, key, value = torch.randn(3, N_TOKENS, WIDTH, generator=generator, dtype=dtype)
    whole, _ = attend_with_weights(*(x[None, None] for x in (query, key, value)))
    return float((attend_in_tiles(query, key, value) - whole[0, 0]).abs().max())


def tile_checks(n_seeds: int) -> Iterator[Check]:
    """The same up to rounding."""
    for precision, dtype, high in (
        ("float32", torch.float32, 1e-6),
        ("float64", torch.float64, 2e-15),
    ):
        yield Check(
            quantity=f"{N_TOKENS} tokens in tiles of {TILE}: largest difference ({precision})",
            value=max(difference(seed, dtype) for seed in range(n_seeds)),
            high=high,
        )
