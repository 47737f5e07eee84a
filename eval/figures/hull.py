"""Whether points lie between others: inside their convex hull."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def beyond_hull(
    points: Tensor, corners: Tensor, present: Tensor | None = None, n_directions: int = 720
) -> Tensor:
    """How far points (..., 2) stick out of the hull of corners (..., M, 2); inside is negative.

    Seen along evenly spread directions; `present` (..., M) says which corners count.
    """
    angle = torch.arange(n_directions, dtype=points.dtype) * (2 * math.pi / n_directions)
    towards = torch.stack([angle.cos(), angle.sin()])  # (2, D)
    reach = corners @ towards  # (..., M, D)
    if present is not None:
        reach = reach.masked_fill(~present[..., None], -math.inf)
    return (points @ towards - reach.amax(dim=-2)).amax(dim=-1)  # (...)
