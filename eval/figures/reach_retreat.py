"""Reach or retreat? The arm's paths and the same ones backwards, told apart by order alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fetchlab.eval.figures.paths import WAYPOINTS, reaches
from fetchlab.eval.figures.random_blocks import WIDTH, small_block
from fetchlab.eval.figures.seeds import Seeds
from fetchlab.policy.blocks import Encoder
from fetchlab.policy.masks import causal
from fetchlab.tokenizers.positions import sinusoidal

ORDERS = ("none", "sinusoidal", "rotary", "causal mask")
"""where a model could learn the order of its tokens from"""
NOISE = 0.01  # of every waypoint, in half tables: 4 mm


@dataclass(frozen=True, kw_only=True)
class ReachConfig:
    """How much is recorded, and for how long how many models learn."""

    n_seen: int = 200
    """approaches to learn from"""
    n_tested: int = 500
    """approaches of other episodes, tested in both directions"""
    n_seeds: int = 10
    steps: int = 300
    learning_rate: float = 3e-3
    batch: int = 64


class ReachOrRetreat(nn.Module):
    """One block over the waypoints, then their mean: a logit above 0 says reach."""

    def __init__(self, order: str) -> None:
        super().__init__()
        self.order = order
        config = small_block(rotary=order == "rotary")
        self.embedding = nn.Linear(4, WIDTH)
        self.encoder = Encoder(config, n_layers=1)
        self.answer = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1))

    def forward(self, waypoints: Tensor) -> Tensor:
        """(B, 12, 4) -> (B,)."""
        tokens = self.embedding(waypoints)  # (B, 12, D)
        if self.order == "sinusoidal":
            tokens = tokens + sinusoidal(torch.arange(WAYPOINTS, dtype=tokens.dtype), WIDTH)
        pattern = causal(WAYPOINTS) if self.order == "causal mask" else None
        read = self.encoder(tokens, pattern=pattern).mean(dim=1)  # (B, D)
        logit: Tensor = self.answer(read)[:, 0]
        return logit


@dataclass(frozen=True)
class Recordings:
    """Approaches from other episodes to learn from and to test with, (n, 12, 4) each."""

    seen: Tensor
    tested: Tensor


def record(config: ReachConfig) -> Recordings:
    """Let the expert play them in the simulator."""
    return Recordings(reaches(config.n_seen, seen=True), reaches(config.n_tested, seen=False))


def accuracy(order: str, paths: Recordings, config: ReachConfig) -> Tensor:
    """(S,) share of the tested paths that each seed's model tells right after training.

    Each path is asked about in both directions: a model that answers both alike is right once.
    """
    torch.manual_seed(0)
    models = Seeds([ReachOrRetreat(order) for _ in range(config.n_seeds)])
    generator = torch.Generator().manual_seed(1)

    def losses(step: int) -> Tensor:
        chosen = torch.randint(len(paths.seen), (config.n_seeds, config.batch), generator=generator)
        shown = noisy(paths.seen[chosen], generator)  # (S, B, 12, 4)
        retreat = torch.rand(config.n_seeds, config.batch, generator=generator) < 0.5
        shown = torch.where(retreat[..., None, None], shown.flip(2), shown)
        wanted = (~retreat).float()
        return binary_cross_entropy_with_logits(
            models(shown.float()), wanted, reduction="none"
        ).mean(1)

    models.train(config.steps, losses, lambda _: config.learning_rate)
    models.double()  # so that rounding, which the order of a sum does change, tips no answer
    shown = noisy(paths.tested, generator).expand(config.n_seeds, -1, -1, -1)  # (S, n, 12, 4)
    with torch.no_grad():
        right = torch.stack([models(shown) > 0, models(shown.flip(2)) <= 0])  # (2, S, n)
    return right.double().mean(dim=(0, 2))


def noisy(paths: Tensor, generator: torch.Generator) -> Tensor:
    """The paths (…, 12, 4) with waypoints a little off; the block stays where it is."""
    error = NOISE * torch.randn(paths.shape, generator=generator, dtype=paths.dtype)
    error[..., 2:] = 0
    return paths + error
