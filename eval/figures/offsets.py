"""Dot products between positions: they depend on how far two tokens are apart, not on where."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Check
from fetchlab.tokenizers.positions import BASE, Rotary, frequencies, sinusoidal

N_SEEDS = 12
WIDTHS = (16, 64, 512)
OFFSETS = (1, 2, 4, 8, 16, 64)
SIMILARITY_64 = (0.966, 0.885, 0.748, 0.700, 0.605, 0.435)
N_CODES, N_ROTATED, SHIFT = 512, 256, 37  # positions

# The most that pairs equally far apart may differ, for each of the widths: rounding alone.
CODES_ROUNDING = {torch.float64: (1e-13, 4e-13, 2e-12), torch.float32: (4e-6, 4e-5, 3e-4)}
ROTARY_ROUNDING = {torch.float64: (2e-13, 4e-13, 2e-12), torch.float32: (1e-4, 1e-4, 1e-4)}


def codes(n_positions: int, width: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """(N, D) sinusoidal codes of the positions 0, 1, …, rounded to the type."""
    return sinusoidal(torch.arange(n_positions, dtype=dtype), width)


def spread(scores: Tensor) -> Tensor:
    """(…) the most that scores (…, N, N) of pairs equally far apart differ, over all distances."""
    n_positions = scores.shape[-1]
    diagonals = (scores.diagonal(k, -2, -1) for k in range(1 - n_positions, n_positions))
    return torch.stack([d.amax(-1) - d.amin(-1) for d in diagonals]).amax(dim=0)


def rotary_scores(
    n_seeds: int, n_positions: int, width: int, dtype: torch.dtype = torch.float64
) -> Tensor:
    """(S, N, N) of one random query and key a seed, each put at every position and turned."""
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, n_seeds, 1, 1, width, generator=generator, dtype=torch.float64)
    turn, positions = Rotary(width), torch.arange(n_positions)
    everywhere = (n_seeds, 1, n_positions, width)
    turned = [turn(x.to(dtype).expand(everywhere), positions) for x in (query, key)]
    scores: Tensor = turned[0] @ turned[1].transpose(-2, -1)  # (S, 1, N, N)
    return scores[:, 0]


def cosine_error(n_positions: int, width: int) -> float:
    """How far the dot products of codes are from Σ cos(frequency · offset)."""
    places = torch.arange(n_positions, dtype=torch.float64)
    phase = places[:, None] * frequencies(width, BASE, places)  # (N, D / 2)
    apart = (places[:, None] - places).abs().long()  # (N, N)
    waves = codes(n_positions, width)
    return float((waves @ waves.T - phase.cos().sum(-1)[apart]).abs().max())


def shift_error(n_positions: int, width: int, shift: int) -> float:
    """How far a rotation of the codes is from the codes of positions that are `shift` later."""
    waves = codes(n_positions, width)
    turned = Rotary(width)(waves[None, None], torch.full((n_positions,), -shift))[0, 0]
    return float((turned[:-shift] - waves[shift:]).abs().max())


def similarity(width: int, offsets: tuple[int, ...]) -> list[float]:
    """Dot product of codes that are this far apart, as a share of that at offset 0."""
    waves = codes(max(offsets) + 1, width)
    return [float(waves[0] @ waves[k] / (width / 2)) for k in offsets]


def offset_checks() -> Iterator[Check]:
    """Dot products depend on the distance of two positions alone."""
    for dtype, name in ((torch.float64, "float64"), (torch.float32, "float32")):
        for row, width in enumerate(WIDTHS):
            waves = codes(N_CODES, width, dtype)
            yield Check(
                quantity=f"sinusoidal codes, d = {width}: spread at equal distance ({name})",
                value=float(spread(waves @ waves.T)),
                high=CODES_ROUNDING[dtype][row],
            )
            yield Check(
                quantity=f"rotary scores, d = {width}: spread at equal distance ({name})",
                value=float(spread(rotary_scores(N_SEEDS, N_ROTATED, width, dtype)).mean()),
                high=ROTARY_ROUNDING[dtype][row],
            )
    for width, low in zip(WIDTHS, (10, 20, 60), strict=True):
        scores = rotary_scores(N_SEEDS, N_ROTATED, width)
        yield Check(
            quantity=f"rotary scores, d = {width}: how much they vary with the distance",
            value=float((scores.amax((1, 2)) - scores.amin((1, 2))).mean()),
            low=low,
        )


def code_checks() -> Iterator[Check]:
    """What the dot products of sinusoidal codes are, and how they fall with the distance."""
    for width in WIDTHS:
        own = codes(N_CODES, width).square().sum(-1)
        for name, error, high in (
            ("error of Σ cos(ω · offset)", cosine_error(N_CODES, width), 6e-13),
            ("error of d / 2 with itself", float((own - width / 2).abs().max()), 6e-13),
            (
                f"error of shifting by {SHIFT} as a rotation",
                shift_error(N_CODES, width, SHIFT),
                6e-14,
            ),
        ):
            yield Check(quantity=f"sinusoidal codes, d = {width}: {name}", value=error, high=high)
    # Given to three digits.
    wanted = [(64, offset, value) for offset, value in zip(OFFSETS, SIMILARITY_64, strict=True)]
    for width, offset, value in [*wanted, (16, 16, 0.527), (16, 64, 0.613)]:
        yield Check(
            quantity=f"sinusoidal codes, d = {width}: likeness {offset} apart",
            value=similarity(width, (offset,))[0],
            low=value - 5.1e-4,
            high=value + 5.1e-4,
        )
