"""Where a token comes from, as learned vectors that are added to it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError


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
    table depends on the column.
    """

    def __init__(self, rows: int, columns: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, columns, d_model))

    def forward(self) -> Tensor:
        return self.table.flatten(0, 1)  # (N, D)


class CameraIdentity(nn.Module):
    """One learned vector for each camera, the same on all of its tokens."""

    def __init__(self, n_cameras: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(n_cameras, d_model))

    def forward(self) -> Tensor:
        return self.table[:, None]  # (C, 1, D)
