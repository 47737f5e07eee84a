"""Scaled dot-product attention: a fused fast path, and an explicit one that shows its weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from fetchlab.errors import UserError
from fetchlab.policy.cache import KeyValueCache, KeyValues
from fetchlab.tokenizers.positions import Rotary


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """softmax(Q Kᵀ / √d) V through torch's fused kernel.

    query (B, H, Q, d), key (B, H, K, d), value (B, H, K, v); `allowed` is boolean and broadcasts
    to (B, H, Q, K). A query that may read nothing gets zeros, where the plain formula gives NaN.
    `scale` replaces 1/√d. Raises ValueError, naming the sizes, when they do not fit.
    """
    check_fit(query, key, value, allowed)
    if allowed is None:
        return scaled_dot_product_attention(query, key, value, scale=scale)  # (B, H, Q, v)
    readable = allowed.any(dim=-1, keepdim=True)
    # A row without any key reads all of them for the moment: finite, and its gradient too.
    mixed = scaled_dot_product_attention(
        query, key, value, attn_mask=allowed | ~readable, scale=scale
    )
    return mixed * readable  # (B, H, Q, v)


def attend_with_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The same, written out: also returns the weights (B, H, Q, K); equal to rounding."""
    check_fit(query, key, value, allowed)
    divisor = math.sqrt(query.shape[-1]) if scale is None else 1 / scale
    scores = query @ key.transpose(-2, -1) / divisor  # (B, H, Q, K)
    if allowed is None:
        weights = scores.softmax(dim=-1)  # (B, H, Q, K)
    else:
        readable = allowed.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(~(allowed | ~readable), -math.inf)
        weights = scores.softmax(dim=-1) * readable  # (B, H, Q, K)
    return weights @ value, weights  # (B, H, Q, v)


def check_fit(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> None:
    """Raise ValueError, naming the sizes, unless these can be attended with."""
    sizes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must be equally wide, got {sizes}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"every key needs one value, got {sizes}")
    if allowed is not None:
        scores = (*query.shape[:-1], key.shape[-2])
        pairs = zip(reversed(allowed.shape), reversed(scores), strict=False)
        if allowed.ndim > len(scores) or any(have not in (1, want) for have, want in pairs):
            raise ValueError(f"mask {tuple(allowed.shape)} does not fit scores {scores}")


def head_width(d_model: int, n_heads: int) -> int:
    """Numbers a head; raises UserError when the heads do not share d_model evenly."""
    if n_heads < 1 or d_model < 1 or d_model % n_heads:
        raise UserError(f"d_model {d_model} cannot be shared evenly by n_heads {n_heads}")
    return d_model // n_heads


class Attended(NamedTuple):
    """What the queries read, and on request how they weighed it."""

    output: Tensor  # (B, Q, D)
    weights: Tensor | None  # (B, H, Q, K)


class MultiHeadAttention(nn.Module):
    """Self-attention, or cross-attention when a context is given.

    `project` and `read` are its two halves: what is projected once (the context of a chunk, or
    with a cache all earlier tokens) can be read many times.
    Raises ValueError, naming the sizes, when widths or masks do not fit.
    """

    def __init__(self, d_model: int, n_heads: int, rotary: Rotary | None = None) -> None:
        super().__init__()
        head_width(d_model, n_heads)
        self.d_model, self.n_heads, self.rotary = d_model, n_heads, rotary
        self.query = nn.Linear(d_model, d_model)
        self.key_value = nn.Linear(d_model, 2 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        queries: Tensor,  # (B, Q, D)
        context: Tensor | None = None,  # (B, K, D); the queries themselves if None
        mask: Tensor | None = None,  # (B, K) bool, True where the context is real
        *,
        pattern: Tensor | None = None,  # (Q, K) bool, see `masks`
        positions: Tensor | None = None,  # (Q,) or (Q, 2) for rotary ones; 0, 1, … if None
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """(B, Q, D), and on request the weights (B, H, Q, K); where nothing may be read, zeros.

        With a cache the queries are new tokens at the end of a sequence: their keys and values
        are put into it, and K counts all tokens so far.
        """
        self._check("queries", queries)
        if positions is None and self.rotary is not None:
            start = 0 if cache is None else len(cache)
            positions = torch.arange(start, start + queries.shape[1], device=queries.device)
        memory = self.project(queries if context is None else context, positions)
        if cache is not None:
            memory = cache.extend(memory)
        return self.read(queries, memory, mask, pattern, positions, need_weights=need_weights)

    def project(self, context: Tensor, positions: Tensor | None = None) -> KeyValues:
        """Keys and values (B, H, K, d) of a context (B, K, D)."""
        self._check("context", context)
        key, value = (self._heads(x) for x in self.key_value(context).chunk(2, dim=-1))
        return KeyValues(self._rotated(key, positions), value)  # (B, H, K, d)

    def read(
        self,
        queries: Tensor,
        memory: KeyValues,
        mask: Tensor | None = None,
        pattern: Tensor | None = None,
        positions: Tensor | None = None,
        *,
        need_weights: bool = False,
    ) -> Attended:
        """The queries (B, Q, D) look at keys and values that were projected before."""
        self._check("queries", queries)
        n_read = memory.key.shape[2]
        allowed = combined(mask, pattern, (*queries.shape[:2], n_read))
        query = self._rotated(self._heads(self.query(queries)), positions)  # (B, H, Q, d)
        weights = None
        if need_weights:
            mixed, weights = attend_with_weights(query, *memory, allowed)
        else:
            mixed = attend(query, *memory, allowed)
        output: Tensor = self.output(rearrange(mixed, "b h q d -> b q (h d)"))  # (B, Q, D)
        if allowed is not None:  # the output's bias must not stand for what is not there
            output = output * allowed[:, 0].any(dim=-1)[..., None]
        return Attended(output, weights)

    def _heads(self, x: Tensor) -> Tensor:
        return rearrange(x, "b n (h d) -> b h n d", h=self.n_heads)

    def _rotated(self, x: Tensor, positions: Tensor | None) -> Tensor:
        return x if self.rotary is None else self.rotary(x, positions)

    def _check(self, name: str, tokens: Tensor) -> None:
        if tokens.ndim != 3 or tokens.shape[-1] != self.d_model:
            raise ValueError(f"{name} must be (B, N, {self.d_model}), got {tuple(tokens.shape)}")


def combined(
    mask: Tensor | None, pattern: Tensor | None, sizes: tuple[int, int, int]
) -> Tensor | None:
    """Padding (B, K) and pattern (Q, K) as one boolean (B, 1, Q or 1, K); None if all may be read.

    `sizes` are (B, Q, K). Raises ValueError when a mask does not fit them.
    """
    n_rows, n_queries, n_read = sizes
    if mask is not None and mask.shape != (n_rows, n_read):
        raise ValueError(f"mask {tuple(mask.shape)} does not fit a context of {(n_rows, n_read)}")
    if pattern is not None and pattern.shape != (n_queries, n_read):
        raise ValueError(
            f"pattern {tuple(pattern.shape)} does not fit {n_queries} queries and {n_read} keys"
        )
    if pattern is None:
        return None if mask is None else mask[:, None, None]  # (B, 1, 1, K)
    return pattern[None, None] if mask is None else pattern & mask[:, None, None]
