"""24 random blocks, one after another: how large the tokens grow, and whether they stay apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.random_blocks import blocks, random_encoder, random_tokens
from fetchlab.policy.blocks import BlockConfig

N_LAYERS, N_TOKENS, WIDTH = 24, 8, 16


def with_parts(norm: str, *, residual: bool = True, mlp: bool = True) -> BlockConfig:
    """A block of the figure with these parts."""
    return BlockConfig(
        d_model=WIDTH,
        n_heads=2,
        d_feedforward=4 * WIDTH,
        norm=norm,
        residual=residual,
        mlp=mlp,
        activation="relu",
    )


VARIANTS: Mapping[str, BlockConfig] = {
    "Pre-LN": with_parts("pre"),
    "Post-LN": with_parts("post"),
    "no LN": with_parts("none"),
    "no residual, Pre-LN": with_parts("pre", residual=False),
    "no residual, no LN": with_parts("none", residual=False),
    "attention alone": with_parts("none", residual=False, mlp=False),
    "attention alone, Pre-LN": with_parts("pre", residual=False, mlp=False),
}


# |X - mean| / |X| with residuals, after these layers.
RESIDUALS = {
    "Pre-LN": {1: 0.80, 2: 0.75, 3: 0.72, 4: 0.67, 5: 0.66, 24: 0.52},
    "Post-LN": {1: 0.79, 2: 0.66, 3: 0.54, 4: 0.38, 5: 0.28},
    "no LN": {1: 0.80, 2: 0.68, 3: 0.59, 4: 0.46, 5: 0.37},
}


@dataclass(frozen=True)
class Trace:
    """What becomes of the tokens, before the first block and after each: (S, L + 1) each."""

    size: Tensor
    """root mean square of their numbers"""
    residual: Tensor
    """|X - mean token| / |X|: what tells the tokens apart; 0 when all are the same"""
    cosine: Tensor
    """mean cosine between two tokens"""

    def growth(self) -> tuple[Tensor, Tensor]:
        """Factor a layer of an exponential fit to the size, and R² of its logarithm, (S,) each."""
        layers = torch.arange(self.size.shape[1], dtype=self.size.dtype)
        slope, fit = _line(layers, self.size.log())
        return slope.exp(), fit

    def power(self, first_layer: int = 6) -> Tensor:
        """(S,) exponent of a power law of the layer fitted to the size."""
        layers = torch.arange(first_layer, self.size.shape[1], dtype=self.size.dtype)
        return _line(layers.log(), self.size[:, first_layer:].log())[0]


def trace(config: BlockConfig, n_seeds: int) -> Trace:
    """Send random tokens through random blocks, once for each seed."""
    traces = []
    for seed in range(n_seeds):
        tokens = random_tokens(N_TOKENS, WIDTH, seed=1_000 + seed)
        states = [tokens]
        for block in blocks(random_encoder(config, N_LAYERS, seed)):
            tokens, _ = block(tokens)
            states.append(tokens)
        traces.append(torch.cat(states))  # (L + 1, N, D)
    x = torch.stack(traces)  # (S, L + 1, N, D)
    length = x.norm(dim=(-2, -1))
    unit = x / x.norm(dim=-1, keepdim=True)
    pairs = N_TOKENS * (N_TOKENS - 1)
    return Trace(
        size=x.square().mean(dim=(-2, -1)).sqrt(),
        residual=(x - x.mean(dim=-2, keepdim=True)).norm(dim=(-2, -1)) / length,
        cosine=((unit.sum(dim=-2).square().sum(-1)) - N_TOKENS) / pairs,
    )


def _line(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and R² of straight lines through y (S, L) over x (L,)."""
    x, y = x - x.mean(), y - y.mean(dim=1, keepdim=True)
    slope = (y @ x) / x.square().sum()  # (S,)
    left = y - slope[:, None] * x
    return slope, 1 - left.square().sum(1) / y.square().sum(1)


def block_checks(traces: Mapping[str, Trace]) -> Iterator[Check]:
    """Size and sameness of tokens with residuals: only Pre-LN keeps both in bounds."""
    pre, post, none = (traces[name] for name in ("Pre-LN", "Post-LN", "no LN"))
    last = "after 24 blocks"
    yield Check(
        quantity=f"Pre-LN: size of tokens {last}, mean of the seeds",
        value=float(pre.size[:, -1].mean()),
        low=5.5,
        high=9.3,
    )
    yield Check(
        quantity="Pre-LN: exponent of the growth with depth (square root: 0.5)",
        value=float(pre.power().mean()),
        low=0.37,
        high=0.57,
    )
    yield Check(
        quantity=f"Pre-LN: likeness of tokens (cosine) {last}, mean",
        value=float(pre.cosine[:, -1].mean()),
        low=0.41,
        high=0.89,
    )
    yield Check(
        quantity=f"Post-LN: size of tokens {last}, furthest from 1",
        value=float((post.size[:, -1] - 1).abs().max()),
        high=0.005,
    )
    growth, fit = none.growth()
    yield Check(
        quantity=f"no LN: size of tokens {last}, median",
        value=float(none.size[:, -1].median()),
        low=6e7,
        high=2e9,
    )
    yield Check(
        quantity="no LN: growth a block, mean", value=float(growth.mean()), low=2.17, high=2.37
    )
    yield Check(
        quantity="no LN: R² of exponential growth, least", value=float(fit.min()), low=0.987
    )
    for name, low in (("Post-LN", 0.9995), ("no LN", 0.995)):
        yield Check(
            quantity=f"{name}: likeness of tokens (cosine) {last}, mean",
            value=float(traces[name].cosine[:, -1].mean()),
            low=low,
            high=1 + 1e-9,
        )


def residual_checks(traces: Mapping[str, Trace]) -> Iterator[Check]:
    """What tells tokens apart, layer by layer: as measured before, or nothing but rounding."""
    for name, expected in RESIDUALS.items():
        for layer, value in expected.items():
            yield Check(
                quantity=f"{name}: what tells tokens apart after {layer}, mean",
                value=float(traces[name].residual[:, layer].mean()),
                low=value - 0.1,
                high=value + 0.1,
            )
    yield Check(
        quantity="Post-LN: what tells tokens apart after 24, median",
        value=float(traces["Post-LN"].residual[:, -1].median()),
        high=1e-3,
    )
    for name in VARIANTS:
        if name not in RESIDUALS:
            yield Check(
                quantity=f"{name}: what tells tokens apart after 24, any seed",
                value=float(traces[name].residual[:, -1].max()),
                high=1e-14,
            )
