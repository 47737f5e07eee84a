"""Transformer blocks with the normalization before each part (pre-LN)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from fetchlab.policy.attention import MultiHeadAttention
from fetchlab.tokenizers.base import TokenGroup


def mlp(d_model: int, d_feedforward: int) -> nn.Sequential:
    """The part of a block that works on each token alone."""
    return nn.Sequential(
        nn.Linear(d_model, d_feedforward), nn.GELU(), nn.Linear(d_feedforward, d_model)
    )


class EncoderBlock(nn.Module):
    """Tokens read each other: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, d_model: int, n_heads: int, d_feedforward: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.mlp_norm = nn.LayerNorm(d_model)
        self.mlp = mlp(d_model, d_feedforward)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """(B, N, D) -> (B, N, D), and on request the weights (B, H, N, N)."""
        read, weights = self.attention(
            self.attention_norm(tokens), mask=mask, need_weights=need_weights
        )
        tokens = tokens + self.dropout(read)
        return tokens + self.dropout(self.mlp(self.mlp_norm(tokens))), weights


class DecoderAttention(NamedTuple):
    """Where the queries of one decoder block looked; None when not asked for."""

    among_queries: Tensor | None  # (B, H, K, K + L): the speaking queries, then the words
    to_context: Tensor | None  # (B, H, Q, N)


class DecoderBlock(nn.Module):
    """Queries read each other and the words, then the context.

    The last `n_silent` queries only read the context: nothing depends on them, and they depend on
    no other query, so that asking more questions cannot change an answer.
    """

    def __init__(self, d_model: int, n_heads: int, d_feedforward: int, dropout: float) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.mlp_norm = nn.LayerNorm(d_model)
        self.mlp = mlp(d_model, d_feedforward)
        self.dropout = nn.Dropout(dropout)

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
        told, among = self._converse(speaking, words, need_weights)
        queries = torch.cat([speaking + self.dropout(told), silent], dim=1)  # (B, Q, D)
        seen, to_context = self.cross_attention(
            self.cross_norm(queries), context.tokens, context.mask, need_weights=need_weights
        )
        queries = queries + self.dropout(seen)
        queries = queries + self.dropout(self.mlp(self.mlp_norm(queries)))
        return queries, DecoderAttention(among, to_context)

    def _converse(
        self, speaking: Tensor, words: TokenGroup, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        everyone = self.self_norm(torch.cat([speaking, words.tokens], dim=1))  # (B, K + L, D)
        real = torch.ones_like(speaking[..., 0], dtype=torch.bool)
        mask = torch.cat([real, words.mask], dim=1)  # (B, K + L)
        speaking = everyone[:, : speaking.shape[1]]  # (B, K, D)
        told, weights = self.self_attention(speaking, everyone, mask, need_weights=need_weights)
        return told, weights
