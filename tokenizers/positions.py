"""Where a token is: learned vectors, fixed waves that are added, or rotations of query and key."""

from __future__ import annotations

import math

import torch
from einops import rearrange
from torch import Tensor, nn

from fetchlab.errors import UserError

INITIAL_SCALE = 0.3
"""of the codes: next to tokens of about 0.5, larger ones drown what the camera sees"""
BASE = 10_000.0
"""longest wavelength of fixed waves, over 2π (Vaswani et al. 2017; RoPE, Su et al. 2021)"""


def sinusoidal(positions: Tensor, d_model: int, base: float = BASE) -> Tensor:
    """Sine and cosine pairs of each position (N,): (N, D).

    Pair i has the frequency base^(-2i / D). The dot product of two codes depends only on how far
    apart they are, and equals Σ cos(frequency · offset). Raises ValueError for an odd width.
    """
    exact = positions.double()  # far along a sequence a float32 phase has lost its digits
    phase = exact[:, None] * frequencies(d_model, base, exact)  # (N, D / 2)
    codes = torch.stack([phase.sin(), phase.cos()], dim=-1).flatten(1)  # (N, D)
    return codes.to(positions.dtype if positions.is_floating_point() else torch.get_default_dtype())


def sinusoidal_2d(rows: int, columns: int, d_model: int, base: float = BASE) -> Tensor:
    """The row's waves in the first half of the width, the column's in the second: (R, C, D)."""
    if d_model % 4:
        raise ValueError(f"waves of rows and columns need a width of 4, 8, …, got {d_model}")
    half = d_model // 2
    table = torch.empty(rows, columns, d_model)
    table[..., :half] = sinusoidal(torch.arange(rows), half, base)[:, None]  # (R, 1, D / 2)
    table[..., half:] = sinusoidal(torch.arange(columns), half, base)  # (C, D / 2)
    return table


def frequencies(width: int, base: float, like: Tensor) -> Tensor:
    """(width / 2,) base^(-2i / width), in the precision and on the device of `like`."""
    if width < 2 or width % 2:
        raise ValueError(f"waves come in pairs, so the width must be even, got {width}")
    exponent = torch.arange(0, width, 2, dtype=like.dtype, device=like.device) / width
    return torch.pow(torch.full_like(exponent, base), -exponent)


class Rotary(nn.Module):
    """Turns queries and keys by their position, so that a score depends on the offset only.

    Pair i of the numbers of a head turns by position · base^(-2i / d). With two axes (image
    patches) the first half of the head turns with the row, the second with the column.
    Has no parameters. Raises ValueError when widths or positions do not fit.
    """

    def __init__(self, d_head: int, axes: int = 1, base: float = BASE) -> None:
        super().__init__()
        if axes not in (1, 2):
            raise ValueError(f"rotary positions have 1 or 2 axes, got {axes}")
        if d_head % (2 * axes):
            raise ValueError(
                f"rotary positions with {axes} axes turn pairs: the width of a head must be a "
                f"multiple of {2 * axes}, got {d_head}"
            )
        self.d_head, self.axes, self.base = d_head, axes, base

    def forward(self, x: Tensor, positions: Tensor | None) -> Tensor:
        """x (B, H, N, d) turned by positions (N,), or (N, 2) for two axes."""
        n_tokens, expected = x.shape[-2], (x.shape[-2],) if self.axes == 1 else (x.shape[-2], 2)
        if positions is None or positions.shape != expected or x.shape[-1] != self.d_head:
            got = None if positions is None else tuple(positions.shape)
            raise ValueError(
                f"{n_tokens} tokens of {self.d_head} need positions {expected}, got tokens "
                f"{tuple(x.shape)} and positions {got}"
            )
        # In double precision: far along a sequence a float32 angle has lost its digits.
        along = positions.reshape(n_tokens, self.axes).double()  # (N, axes)
        turn = frequencies(self.d_head // self.axes, self.base, along)
        angle = (along[..., None] * turn).flatten(1)  # (N, d / 2)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = rearrange(x, "... (pair two) -> two ... pair", two=2)
        turned = (
            first * cosine - second * sine,
            first * sine + second * cosine,
        )
        return torch.stack(turned, dim=-1).flatten(-2)  # (B, H, N, d)


def grid_positions(rows: int, columns: int) -> Tensor:
    """(N, 2) row and column of each patch, row by row."""
    return torch.cartesian_prod(torch.arange(rows), torch.arange(columns))


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


class SinusoidalPositions2d(nn.Module):
    """Fixed waves for each cell of a grid, row by row; nothing is learned."""

    table: Tensor

    def __init__(self, rows: int, columns: int, d_model: int) -> None:
        super().__init__()
        table = INITIAL_SCALE * sinusoidal_2d(rows, columns, d_model)
        self.register_buffer("table", table, persistent=False)

    def forward(self) -> Tensor:
        return self.table.flatten(0, 1)  # (N, D)


class ViewIdentity(nn.Module):
    """One learned vector for each view (a camera at a moment), the same on all of its tokens."""

    def __init__(self, n_views: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(INITIAL_SCALE * torch.randn(n_views, d_model))

    def forward(self) -> Tensor:
        return self.table[:, None]  # (V, 1, D)


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
