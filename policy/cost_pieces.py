"""What the pieces of a policy cost, by formula: a layer, a block, a stem.

FLOPs are two for each multiply-add of a linear layer, a convolution, or a score and mixing of
attention. Those are what torch's counter counts; softmax, normalizations, additions and lookups
are left out, being small beside them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fetchlab.policy.blocks import BlockConfig
from fetchlab.tokenizers.patch import PatchConfig

BYTES = 4  # a number in float32


@dataclass(frozen=True)
class Part:
    """Parameters and FLOPs of a part of a policy; parts add up."""

    parameters: int = 0
    linear: int = 0
    """FLOPs of linear layers and convolutions: on each token or pixel alone"""
    attention: int = 0
    """FLOPs of scores and mixing: on every pair of a query and what it reads"""

    def __add__(self, other: Part) -> Part:
        return Part(
            self.parameters + other.parameters,
            self.linear + other.linear,
            self.attention + other.attention,
        )

    def __mul__(self, times: int) -> Part:
        return Part(self.parameters * times, self.linear * times, self.attention * times)

    @property
    def flops(self) -> int:
        return self.linear + self.attention


# Pieces ---------------------------------------------------------------------------------------


def linear(n_rows: int, n_in: int, n_out: int) -> Part:
    """A linear layer with bias, on so many rows."""
    return Part(parameters=(n_in + 1) * n_out, linear=2 * n_rows * n_in * n_out)


def norm(width: int) -> Part:
    """LayerNorm, of which only the parameters count."""
    return Part(parameters=2 * width)


def scores(n_queries: int, n_read: int, width: int) -> Part:
    """Q Kᵀ, and the weights times V, over all heads."""
    return Part(attention=4 * n_queries * n_read * width)


def attention(n_queries: int, n_read: int, width: int) -> Part:
    """Projections of queries, of what they read, and of the result, around the scores."""
    return (
        linear(n_queries, width, width)
        + linear(n_read, width, 2 * width)
        + scores(n_queries, n_read, width)
        + linear(n_queries, width, width)
    )


def mlp(n_tokens: int, block: BlockConfig) -> Part:
    """The MLP of a block."""
    width, hidden = block.d_model, block.d_feedforward
    return linear(n_tokens, width, hidden) + linear(n_tokens, hidden, width)


def encoder_block(block: BlockConfig, n_tokens: int) -> Part:
    """Tokens read each other: 8 n d² + 4 n² d, and with an MLP of 4 d another 16 n d²."""
    width = block.d_model
    around = Part() if block.norm == "none" else norm(width)
    part = attention(n_tokens, n_tokens, width) + around
    return part + mlp(n_tokens, block) + around if block.mlp else part


def decoder_block(block: BlockConfig, n_queries: int, n_words: int, n_context: int) -> Part:
    """Queries read each other and the words, then the context."""
    width = block.d_model
    around = Part() if block.norm == "none" else norm(width)
    return (
        attention(n_queries, n_queries + n_words, width)
        + attention(n_queries, n_context, width)
        + mlp(n_queries, block)
        + around * 3
    )


def stem(patch: PatchConfig, image_size: int, width: int) -> Part:
    """What makes the patches of one image."""
    if patch.stem == "linear":
        n_patches = (image_size // patch.patch_size) ** 2
        return linear(n_patches, 3 * patch.patch_size**2, width)
    n_halvings = patch.patch_size.bit_length() - 1
    n_layers = n_halvings + patch.refinement
    growing = [patch.first_channels * 2 ** min(i, n_halvings - 1) for i in range(n_layers - 1)]
    channels = [3, *growing, width]
    sides = [image_size // 2 ** min(layer, n_halvings) for layer in range(1, n_layers + 1)]
    layers = zip(sides, channels[:-1], channels[1:], strict=True)
    return sum((linear(side**2, 9 * before, after) for side, before, after in layers), Part())


def patch_tokenizer(patch: PatchConfig, n_views: int, image_size: int, width: int) -> Part:
    """One stem for all views, and for each a table of positions and its identity."""
    one = stem(patch, image_size, width)
    places = n_tokens(patch, image_size) if patch.positions == "learned" else 0
    codes = (places + 1) * width
    return Part(one.parameters + n_views * codes, one.linear * n_views)


def n_tokens(patch: PatchConfig, image_size: int) -> int:
    """Of one image."""
    return (image_size // (patch.patch_size * patch.pooling)) ** 2


def cache_bytes(n_layers: int, n_tokens: int, width: int) -> int:
    """2 · L · n · d numbers: a key and a value a token and layer."""
    return 2 * n_layers * n_tokens * width * BYTES
