"""Where a token comes from, as learned vectors that are added to it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError

INITIAL_SCALE = 0.3
"""of the codes: next to tokens of about 0.5, larger ones drown what the camera sees"""


class LearnedPositions1d(nn.Module):
    """One learned vector for each place in a sequence.

    Raises UserError for a sequence longer than the table.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model))

    def forward(self, length: int) -> Tensor:
        if length > len(self.table):
            raise UserError(f"{length} positions asked of a table of {len(self.table)}")
        return self.table[:length]  # (N, D)


class LearnedPositions2d(nn.Module):
    """One learned vector for each cell of a grid, row by row.

    A full table rather than row + column: cameras look from aslant, so what a row means on the
    table depends on the column. It starts from waves, in which neighbours are alike: what is
    learned about one cell helps the next ones, and positions are found sooner.
    """

    def __init__(self, rows: int, columns: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(INITIAL_SCALE * waves_2d(rows, columns, d_model))

    def forward(self) -> Tensor:
        return self.table.flatten(0, 1)  # (N, D)


class CameraIdentity(nn.Module):
    """One learned vector for each camera, the same on all of its tokens."""

    def __init__(self, n_cameras: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(INITIAL_SCALE * torch.randn(n_cameras, d_model))

    def forward(self) -> Tensor:
        return self.table[:, None]  # (C, 1, D)


def waves_2d(rows: int, columns: int, d_model: int) -> Tensor:
    """Sines and cosines of the row, then of the column: (rows, columns, D).

    Wavelengths go from four times the grid down to two cells. A width that is not a multiple of
    4 ends in zeros.
    """
    n_waves = d_model // 4
    table = torch.zeros(rows, columns, d_model)
    table[..., : 2 * n_waves] = waves(rows, n_waves)[:, None]  # (rows, 1, D / 2)
    table[..., 2 * n_waves : 4 * n_waves] = waves(columns, n_waves)  # (columns, D / 2)
    return table


def waves(length: int, n_waves: int) -> Tensor:
    """Sine and cosine of each place in n wavelengths: (N, 2 · n)."""
    slowest, fastest = math.pi / (2 * length), math.pi
    frequency = torch.logspace(math.log10(slowest), math.log10(fastest), n_waves)
    phase = torch.arange(length)[:, None] * frequency  # (N, n)
    return torch.cat([phase.sin(), phase.cos()], dim=-1)  # (N, 2 · n)
