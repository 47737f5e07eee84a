"""Random queries and keys with and without 1/√d_k: what the softmax lets through (figure 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from fetchlab.eval.figures.lookup_scenes import HALF_TABLE_CM
from fetchlab.policy.attention import attend_with_weights

RETRIEVAL_WIDTH, RETRIEVAL_KEYS, RETRIEVAL_BATCH = 64, 16, 32
RETRIEVAL_RATE, RETRIEVAL_NOISE = 1e-3, 0.5


class Lookups(NamedTuple):
    """Independent lookups, everything N(0, 1): N queries, each with keys of its own."""

    query: Tensor  # (N, 1, 1, d)
    key: Tensor  # (N, 1, K, d)
    value: Tensor  # (N, 1, K, 2)
    upstream: Tensor  # (N, 1, 1, 2): the gradient that arrives at the output


class Softness(NamedTuple):
    """One number for each of N lookups, and the variance of all scores."""

    variance: Tensor  # ()
    largest: Tensor  # (N,) largest weight
    jacobian: Tensor  # (N,) Frobenius norm of the softmax's Jacobian
    score_gradient: Tensor  # (N,) norm
    query_gradient: Tensor  # (N,) norm


def random_lookups(d_key: int, n_keys: int, n_queries: int, generator: Generator) -> Lookups:
    """Fresh numbers."""
    shapes = ((1, d_key), (n_keys, d_key), (n_keys, 2), (1, 2))
    return Lookups(*(torch.randn(n_queries, 1, *shape, generator=generator) for shape in shapes))


def softness(lookups: Lookups, scale: float) -> Softness:
    """What the softmax of scale · q · k does."""
    query, key, value, upstream = lookups
    output, weights = attend_with_weights(query, key, value, scale=scale)  # (N, 1, 1, 2 and K)
    gains = ((value - output) @ upstream.transpose(-2, -1)).transpose(-2, -1)  # (N, 1, 1, K)
    to_scores = weights * gains
    return Softness(
        variance=(scale * query @ key.transpose(-2, -1)).var(),
        largest=weights.amax(-1).flatten(),
        jacobian=jacobian_norm(weights).flatten(),
        score_gradient=to_scores.norm(dim=-1).flatten(),
        query_gradient=(scale * to_scores @ key).norm(dim=-1).flatten(),
    )


def jacobian_norm(weights: Tensor) -> Tensor:
    """Frobenius norm of diag(w) - w wᵀ, the derivative of a softmax, for weights (..., K)."""
    weights = weights.double()  # differences of near equal numbers where the softmax is hard
    squares, cubes = weights.square().sum(-1), weights.pow(3).sum(-1)
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()


def summary(each: Sequence[Softness]) -> Mapping[str, float]:
    """The numbers of the table: the mean over seeds of each seed's mean, median or share."""
    found = {
        "variance of the scores": [one.variance for one in each],
        "mean largest weight": [one.largest.mean() for one in each],
        "share of weights above 0.99": [(one.largest > 0.99).float().mean() for one in each],
        "median Jacobian": [one.jacobian.median() for one in each],
        "mean Jacobian": [one.jacobian.mean() for one in each],
        "median score gradient": [one.score_gradient.median() for one in each],
        "mean score gradient": [one.score_gradient.mean() for one in each],
        "median query gradient": [one.query_gradient.median() for one in each],
        "mean query gradient": [one.query_gradient.mean() for one in each],
    }
    return {name: float(torch.stack(values).mean()) for name, values in found.items()}


def saturation(
    d_key: int, n_keys: int, n_queries: int, n_seeds: int
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Raw and scaled, for the same random numbers."""
    generator = Generator().manual_seed(0)
    raw, scaled = [], []
    for _ in range(n_seeds):
        lookups = random_lookups(d_key, n_keys, n_queries, generator)
        raw.append(softness(lookups, 1.0))
        scaled.append(softness(lookups, 1 / math.sqrt(d_key)))
    return summary(raw), summary(scaled)


def retrieval(scale: float, n_seeds: int, test_at: Sequence[int]) -> list[float]:
    """Error in cm while W_Q and W_K learn to find a noisy key among 16 fresh ones.

    Adam on the mean squared distance; a table of 80 × 80 cm, error on 200 lookups a seed.
    """
    generator = Generator().manual_seed(0)
    sizes = (n_seeds, RETRIEVAL_WIDTH, RETRIEVAL_WIDTH)
    maps = [torch.randn(sizes, generator=generator) / math.sqrt(sizes[-1]) for _ in range(2)]
    for one in maps:
        one.requires_grad_()
    optimizer = torch.optim.Adam(maps, lr=RETRIEVAL_RATE, fused=True)
    found = []
    for step in range(test_at[-1] + 1):
        if step in test_at:
            with torch.no_grad():
                distance = retrieve(maps, scale, 200, generator).square().sum(-1).sqrt()
            found.append(HALF_TABLE_CM * float(distance.mean()))
        if step < test_at[-1]:
            optimizer.zero_grad()
            wrong = retrieve(maps, scale, RETRIEVAL_BATCH, generator).square().sum(-1)
            wrong.mean(-1).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return found


def retrieve(maps: Sequence[Tensor], scale: float, n_scenes: int, generator: Generator) -> Tensor:
    """How far the answers lie from the right ones, (S, N, 2), in half tables."""
    n_seeds, width, _ = maps[0].shape
    sizes = (n_seeds, n_scenes, RETRIEVAL_KEYS)
    keys = torch.randn(*sizes, width, generator=generator)  # (S, N, K, d)
    values = 2 * torch.rand(*sizes, 2, generator=generator) - 1  # (S, N, K, 2)
    noise = torch.randn(n_seeds, n_scenes, width, generator=generator)
    query = (keys[:, :, 0] + RETRIEVAL_NOISE * noise) @ maps[0]  # (S, N, d)
    key = keys @ maps[1][:, None]  # (S, N, K, d)
    output, _ = attend_with_weights(query[:, :, None], key, values, scale=scale)
    return output[:, :, 0] - values[:, :, 0]
