"""Transformer blocks: attention and an MLP, each with a normalization and a residual around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError, unknown
from fetchlab.policy.attention import Attended, MultiHeadAttention, head_width
from fetchlab.policy.cache import KeyValueCache
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.positions import Rotary

NORMS = ("pre", "post", "none")
ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU}


@dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """Settings of a transformer block; parts can be left out, to see what each is for."""

    d_model: int
    """D: numbers a token"""
    n_heads: int
    d_feedforward: int
    """hidden units of the MLP"""
    dropout: float = 0.0
    norm: str = "pre"
    """LayerNorm `pre`: before each part, whose result is added as it is; `post`: after the sum
    (the original Transformer); `none`: left out"""
    residual: bool = True
    """add what a part makes to what it was given; else replace it"""
    mlp: bool = True
    """the part that works on each token alone"""
    activation: str = "gelu"
    """of the MLP: `gelu` or `relu`"""
    rotary_axes: int = 0
    """rotary positions in self-attention: 1 for sequences, 2 for image grids, 0 for none"""

    def __post_init__(self) -> None:
        d_head = head_width(self.d_model, self.n_heads)
        if self.rotary_axes and d_head % (2 * self.rotary_axes):
            raise UserError(
                f"rotary positions turn pairs: with {self.rotary_axes} axes a head needs "
                f"a multiple of {2 * self.rotary_axes}, got {d_head} (d_model {self.d_model} over "
                f"n_heads {self.n_heads})"
            )
        if self.norm not in NORMS:
            raise unknown("norm", self.norm, NORMS)
        if self.activation not in ACTIVATIONS:
            raise unknown("activation", self.activation, ACTIVATIONS)
        if self.d_feedforward < 1:
            raise UserError(f"d_feedforward must be at least 1, got {self.d_feedforward}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be 0 to 1, got {self.dropout}")


class Around(nn.Module):
    """What stands around a part of a block: normalization, residual, dropout."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.order, self.residual = config.norm, config.residual
        self.norm = nn.Identity() if config.norm == "none" else nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def before(self, tokens: Tensor) -> Tensor:
        """What the part is given."""
        return self.norm(tokens) if self.order == "pre" else tokens  # (B, N, D)

    def after(self, tokens: Tensor, made: Tensor) -> Tensor:
        """What becomes of the tokens with what the part made of them."""
        made = self.dropout(made)
        if self.residual:
            made = tokens + made
        return self.norm(made) if self.order == "post" else made  # (B, N, D)


def mlp(config: BlockConfig) -> nn.Sequential:
    """The part of a block that works on each token alone."""
    return nn.Sequential(
        nn.Linear(config.d_model, config.d_feedforward),
        ACTIVATIONS[config.activation](),
        nn.Linear(config.d_feedforward, config.d_model),
    )


class EncoderBlock(nn.Module):
    """Tokens read each other, then each is worked on alone.

    With a causal pattern and a cache it is a GPT block; with the defaults x + attention(norm(x)),
    then x + mlp(norm(x)).
    """

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.around_attention = Around(config)
        rotary = (
            Rotary(config.d_model // config.n_heads, axes=config.rotary_axes)
            if config.rotary_axes
            else None
        )
        self.attention = MultiHeadAttention(config.d_model, config.n_heads, rotary)
        self.around_mlp = Around(config) if config.mlp else None
        self.mlp = mlp(config) if config.mlp else None

    def forward(
        self,
        tokens: Tensor,  # (B, N, D)
        mask: Tensor | None = None,  # (B, N), True where the token is real
        *,
        pattern: Tensor | None = None,  # (N, N) bool, see `masks`
        positions: Tensor | None = None,  # (N,) or (N, 2) for rotary ones
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """(B, N, D) -> (B, N, D), and on request the weights (B, H, N, N)."""
        read, weights = self.attention(
            self.around_attention.before(tokens),
            mask=mask,
            pattern=pattern,
            positions=positions,
            cache=cache,
            need_weights=need_weights,
        )
        tokens = self.around_attention.after(tokens, read)
        if self.mlp is not None and self.around_mlp is not None:
            made = self.mlp(self.around_mlp.before(tokens))
            tokens = self.around_mlp.after(tokens, made)
        return Attended(tokens, weights)


class Encoder(nn.Module):
    """Blocks, one after another."""

    def __init__(self, config: BlockConfig, n_layers: int) -> None:
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(n_layers))

    def forward(
        self,
        tokens: Tensor,  # (B, N, D)
        mask: Tensor | None = None,
        *,
        pattern: Tensor | None = None,
        positions: Tensor | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """(B, N, D) -> (B, N, D); with caches (one a block) the tokens are the newest ones."""
        for layer, block in enumerate(self.blocks):
            tokens, _ = block(
                tokens,
                mask,
                pattern=pattern,
                positions=positions,
                cache=None if caches is None else caches[layer],
            )
        return tokens

    def empty_caches(self, n_rows: int, max_tokens: int) -> list[KeyValueCache]:
        """One cache a block, in the type and on the device of the weights."""
        like = next(self.parameters())
        width = self.config.d_model // self.config.n_heads
        sizes = (n_rows, self.config.n_heads, max_tokens, width)
        return [KeyValueCache(*sizes, like.dtype, like.device) for _ in self.blocks]


class DecoderAttention(NamedTuple):
    """Where the queries of one decoder block looked; None when not asked for."""

    among_queries: Tensor | None  # (B, H, K, K + L): the speaking queries, then the words
    to_context: Tensor | None  # (B, H, Q, N)


class DecoderBlock(nn.Module):
    """Queries read each other and the words, then the context.

    The last `n_silent` queries only read the context: nothing depends on them, and they depend on
    no other query, so that asking more questions cannot change an answer.
    """

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.around_self = Around(config)
        self.self_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.around_cross = Around(config)
        self.cross_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.around_mlp = Around(config)
        self.mlp = mlp(config)

    def forward(
        self,
        queries: Tensor,  # (B, Q, D)
        words: TokenGroup,  # (B, L, D)
        context: TokenGroup,  # (B, N, D), normalized already
        *,
        n_silent: int = 0,
        need_weights: bool = False,
    ) -> tuple[Tensor, DecoderAttention]:
        n_speaking = queries.shape[1] - n_silent
        speaking, silent = queries[:, :n_speaking], queries[:, n_speaking:]
        speaking, among = self._converse(speaking, words, need_weights)
        queries = torch.cat([speaking, silent], dim=1)  # (B, Q, D)
        seen, to_context = self.cross_attention(
            self.around_cross.before(queries),
            context.tokens,
            context.mask,
            need_weights=need_weights,
        )
        queries = self.around_cross.after(queries, seen)
        queries = self.around_mlp.after(queries, self.mlp(self.around_mlp.before(queries)))
        return queries, DecoderAttention(among, to_context)

    def _converse(
        self, speaking: Tensor, words: TokenGroup, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        everyone = torch.cat([speaking, words.tokens], dim=1)  # (B, K + L, D)
        everyone = self.around_self.before(everyone)
        real = torch.ones_like(speaking[..., 0], dtype=torch.bool)
        mask = torch.cat([real, words.mask], dim=1)  # (B, K + L)
        asking = everyone[:, : speaking.shape[1]]  # (B, K, D)
        told, weights = self.self_attention(asking, everyone, mask, need_weights=need_weights)
        return self.around_self.after(speaking, told), weights
