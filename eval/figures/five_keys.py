"""Five keys on a circle, five values on a table: the lookup of figure 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fetchlab.policy.attention import attend_with_weights

N_OBJECTS = 5
STEP = 2 * math.pi / N_OBJECTS  # between keys on the unit circle
HALF_TABLE_CM = 40.0
N_SEEDS = 12
NORMS = (0, 0.5, 1, 2, 5, 10, 20, 50)
# The example of the page and of the drawing: where the objects lie, in cm from the table's middle.
PLACES_CM = ((-24.0, 17.0), (9.0, 31.0), (29.0, -4.0), (4.0, -30.0), (-33.0, -15.0))


def unit(angle: Tensor) -> Tensor:
    """Unit vectors (..., 2) in these directions."""
    return torch.stack([angle.cos(), angle.sin()], dim=-1)


KEYS = unit(torch.arange(N_OBJECTS, dtype=torch.float64) * STEP)  # (5, 2)


def look_up(query: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Queries (S, Q, 2) against the keys and values (S, 5, 2): (S, Q, 2) and weights (S, Q, 5)."""
    output, weights = attend_with_weights(query[:, None], KEYS[None, None], values[:, None])
    return output[:, 0], weights[:, 0]


def entropy(weights: Tensor) -> Tensor:
    """How widely the weights (..., 5) are spread, as a share of the most possible, ln 5."""
    spread: Tensor = torch.special.entr(weights).sum(-1)
    return spread / math.log(N_OBJECTS)


def sharpness(angles: Tensor, lengths: Sequence[float]) -> Tensor:
    """Mean largest weight and entropy of queries in these directions: (lengths, 2)."""
    length = torch.tensor(lengths, dtype=torch.float64)[:, None, None]
    _, weights = look_up(length * unit(angles), KEYS.expand(len(lengths), -1, -1))
    return torch.stack([weights.amax(-1), entropy(weights)], dim=-1).mean(1)  # over (L, Q, 2)


def random_values() -> Tensor:
    """Places of the objects (S, 5, 2) in cm from the table's middle."""
    each = [
        np.random.default_rng(seed).uniform(-HALF_TABLE_CM, HALF_TABLE_CM, (N_OBJECTS, 2))
        for seed in range(N_SEEDS)
    ]
    return torch.from_numpy(np.stack(each))


def least_fall_of_entropy() -> float:
    """The entropy's largest step over 501 lengths from 0 to 50, in 12 random directions."""
    angles = torch.from_numpy(np.random.default_rng(0).uniform(0, 2 * math.pi, N_SEEDS))
    lengths = torch.linspace(0, 50, 501, dtype=torch.float64)
    queries = unit(angles)[:, None] * lengths[:, None]  # (S, 501, 2)
    _, weights = look_up(queries, KEYS.expand(N_SEEDS, -1, -1))
    return math.log(N_OBJECTS) * float(entropy(weights).diff(dim=-1).max())
