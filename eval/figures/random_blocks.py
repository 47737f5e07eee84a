"""Blocks of the attention core with random weights of known size, as the figures start from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fetchlab.policy.blocks import BlockConfig, Encoder, EncoderBlock

WIDTH = 16  # of the small blocks


def small_block(*, rotary: bool) -> BlockConfig:
    """The lesson's block of width 16 with two heads, with rotary positions or without."""
    return BlockConfig(
        d_model=WIDTH,
        n_heads=2,
        d_feedforward=4 * WIDTH,
        activation="relu",
        rotary_axes=int(rotary),
    )


def random_encoder(
    config: BlockConfig, n_layers: int, seed: int, dtype: torch.dtype = torch.float64
) -> Encoder:
    """Attention matrices from N(0, 1 / fan_in), those of the MLP from N(0, 2 / fan_in), no biases.

    Twice the variance makes up for the half that the ReLU cuts off (He et al. 2015).
    """
    generator = torch.Generator().manual_seed(seed)
    encoder = Encoder(config, n_layers).to(dtype).eval()
    for name, module in encoder.named_modules():
        if isinstance(module, nn.Linear):
            gain = 2.0 if ".mlp." in name else 1.0
            draw_(module, gain, generator)
    return encoder.requires_grad_(False)


def blocks(encoder: Encoder) -> list[EncoderBlock]:
    """Its blocks in their order."""
    return list(encoder.blocks)  # type: ignore[arg-type]


def draw_(linear: nn.Linear, gain: float, generator: torch.Generator) -> None:
    """Set the matrix to N(0, gain / fan_in) and the bias to 0, in place."""
    spread = (gain / linear.in_features) ** 0.5
    with torch.no_grad():
        # Drawn in double precision: the same numbers, whatever the precision of the module.
        drawn = torch.randn(linear.weight.shape, generator=generator, dtype=torch.float64)
        linear.weight.copy_(spread * drawn)
        linear.bias.zero_()


def random_tokens(n_tokens: int, width: int, seed: int) -> Tensor:
    """(1, N, D) from N(0, 1)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, n_tokens, width, generator=generator, dtype=torch.float64)
