"""Rank collapse: attention alone makes tokens the same, doubly exponentially (Dong et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.deep_blocks import N_TOKENS, VARIANTS, WIDTH
from fetchlab.eval.figures.precise import log_residuals
from fetchlab.eval.figures.random_blocks import random_encoder, random_tokens

COLLAPSING = "attention alone, Pre-LN"
LAW_FROM = 5  # the layer from which on the law holds closely


def collapse(n_seeds: int, n_layers: int) -> NDArray[np.float64]:
    """(S, L + 1) log10 of what tells tokens apart when attention is alone, to 400 digits."""
    logs = []
    for seed in range(n_seeds):
        encoder = random_encoder(VARIANTS[COLLAPSING], n_layers, seed)
        logs.append(log_residuals(encoder, random_tokens(N_TOKENS, WIDTH, seed=1_000 + seed)[0]))
    return np.array(logs)


def law_checks(logs: NDArray[np.float64]) -> Iterator[Check]:
    """Each layer triples the digits that tokens have in common: doubly exponential collapse."""
    mean = logs.mean(axis=0)
    for layer in range(LAW_FROM, len(mean)):
        yield Check(
            quantity=f"{COLLAPSING}: log of what tells apart, layer {layer} over {layer - 1}",
            value=float(mean[layer] / mean[layer - 1]),
            low=2.99,
            high=3.10,
        )
