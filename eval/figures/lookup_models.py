"""One cross-attention layer against an MLP with slots, many copies trained side by side."""

from __future__ import annotations

import itertools
import math

import torch
from einops import rearrange
from torch import Generator, Tensor, nn

from fetchlab.eval.figures.lookup_scenes import (
    INSTRUCTION_WIDTH,
    N_SLOTS,
    OBJECT_WIDTH,
    Batch,
)
from fetchlab.policy.attention import attend_with_weights

D_KEY, D_VALUE = 8, 2  # numbers a head, as in the lesson
HIDDEN = 64


def normal(shape: tuple[int, ...], gain: float, generator: Generator) -> nn.Parameter:
    """Weights N(0, gain / fan_in), for inputs along the last axis but one."""
    return nn.Parameter(math.sqrt(gain / shape[-2]) * torch.randn(shape, generator=generator))


class AttentionLookup(nn.Module):
    """The instruction asks, the objects answer: one cross-attention layer, in R copies.

    A copy has 180 · heads + 2 parameters with the lesson's 8 and 2 numbers a head.
    """

    def __init__(
        self,
        n_copies: int,
        n_heads: int,
        generator: Generator,
        d_key: int = D_KEY,
        d_value: int = D_VALUE,
    ) -> None:
        super().__init__()
        heads = (n_copies, n_heads)
        self.query = normal((*heads, INSTRUCTION_WIDTH, d_key), 1, generator)
        self.key = normal((*heads, OBJECT_WIDTH, d_key), 1, generator)
        self.value = normal((*heads, OBJECT_WIDTH, d_value), 1, generator)
        # Answers add up over heads, so all of them together are the fan-in.
        self.output = normal((*heads, d_value, 2), 1 / n_heads, generator)
        self.bias = nn.Parameter(torch.zeros(n_copies, 1, 2))

    def forward(self, batch: Batch) -> Tensor:
        """Answers (R, B, 2)."""
        return self.read(batch)[0]

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Answers (R, B, 2) and the weights (R, H, B, M) with which the objects were read."""
        query = batch.instruction[:, None] @ self.query  # (R, H, B, 8)
        objects = rearrange(batch.objects, "r b m d -> r 1 (b m) d")
        key, value = (
            rearrange(objects @ into, "r h (b m) d -> r h b m d", m=batch.objects.shape[2])
            for into in (self.key, self.value)
        )  # (R, H, B, M, 8), (R, H, B, M, 2)
        allowed = batch.present[:, None, :, None]  # (R, 1, B, 1, M)
        mixed, weights = attend_with_weights(query[..., None, :], key, value, allowed)
        answer = (mixed[..., 0, :] @ self.output).sum(1) + self.bias  # (R, B, 2)
        return answer, weights[..., 0, :]


class SlotMlp(nn.Module):
    """60 -> 64 -> 64 -> 2 with ReLU, on six slots and the instruction: 8,194 parameters a copy."""

    def __init__(self, n_copies: int, generator: Generator) -> None:
        super().__init__()
        widths = (N_SLOTS * OBJECT_WIDTH + INSTRUCTION_WIDTH, HIDDEN, HIDDEN, 2)
        pairs = list(itertools.pairwise(widths))
        self.weights = nn.ParameterList(normal((n_copies, *pair), 2, generator) for pair in pairs)
        self.biases = nn.ParameterList(torch.zeros(n_copies, 1, wide) for _, wide in pairs)

    def forward(self, batch: Batch) -> Tensor:
        """Answers (R, B, 2). Raises ValueError for more objects than slots."""
        if batch.objects.shape[2] != N_SLOTS:
            raise ValueError(f"{batch.objects.shape[2]} objects do not fit {N_SLOTS} slots")
        x = torch.cat([batch.objects.flatten(2), batch.instruction], dim=-1)  # (R, B, 60)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x.relu() if layer else x, weight)
        return x
