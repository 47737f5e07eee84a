"""Scaled dot-product attention: a fused fast path, and an explicit one that shows its weights."""

from __future__ import annotations

import math

from einops import rearrange
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from fetchlab.errors import UserError


def attend(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d) V through torch's fused kernel.

    query (B, H, Q, d), key (B, H, K, d), value (B, H, K, v); `allowed` is boolean and broadcasts
    to (B, H, Q, K). A query that may read nothing gets zeros, where the plain formula gives NaN.
    """
    if allowed is None:
        return scaled_dot_product_attention(query, key, value)  # (B, H, Q, v)
    readable = allowed.any(dim=-1, keepdim=True)
    # A row without any key reads all of them for the moment: finite, and its gradient too.
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=allowed | ~readable)
    return mixed * readable  # (B, H, Q, v)


def attend_with_weights(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The same, written out: also returns the weights (B, H, Q, K); equal to rounding."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, Q, K)
    if allowed is None:
        weights = scores.softmax(dim=-1)  # (B, H, Q, K)
    else:
        readable = allowed.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(~(allowed | ~readable), -math.inf)
        weights = scores.softmax(dim=-1) * readable  # (B, H, Q, K)
    return weights @ value, weights  # (B, H, Q, v)


def head_width(d_model: int, n_heads: int) -> int:
    """Numbers a head; raises UserError when the heads do not share d_model evenly."""
    if n_heads < 1 or d_model < 1 or d_model % n_heads:
        raise UserError(f"d_model {d_model} cannot be shared evenly by n_heads {n_heads}")
    return d_model // n_heads


class MultiHeadAttention(nn.Module):
    """Self-attention, or cross-attention when a context is given.

    Raises ValueError, naming the sizes, when widths or the mask do not fit.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        head_width(d_model, n_heads)
        self.d_model, self.n_heads = d_model, n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key_value = nn.Linear(d_model, 2 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        queries: Tensor,  # (B, Q, D)
        context: Tensor | None = None,  # (B, K, D); the queries themselves if None
        mask: Tensor | None = None,  # (B, K) bool, True where the context is real
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(B, Q, D), and on request the weights (B, H, Q, K).

        A row of the batch whose context is fully masked gives zeros.
        """
        context = queries if context is None else context
        self._check(queries, context, mask)
        query = self._heads(self.query(queries))  # (B, H, Q, d)
        key, value = (self._heads(x) for x in self.key_value(context).chunk(2, dim=-1))
        allowed = None if mask is None else mask[:, None, None]  # (B, 1, 1, K)
        weights = None
        if need_weights:
            mixed, weights = attend_with_weights(query, key, value, allowed)
        else:
            mixed = attend(query, key, value, allowed)
        output: Tensor = self.output(rearrange(mixed, "b h q d -> b q (h d)"))  # (B, Q, D)
        if mask is not None:  # the output's bias must not stand for a context that is not there
            output = output * mask.any(dim=1)[:, None, None]
        return output, weights

    def _heads(self, x: Tensor) -> Tensor:
        return rearrange(x, "b n (h d) -> b h n d", h=self.n_heads)

    def _check(self, queries: Tensor, context: Tensor, mask: Tensor | None) -> None:
        for name, tokens in (("queries", queries), ("context", context)):
            if tokens.ndim != 3 or tokens.shape[-1] != self.d_model:
                raise ValueError(
                    f"{name} must be (B, N, {self.d_model}), got {tuple(tokens.shape)}"
                )
        if mask is not None and mask.shape != context.shape[:2]:
            raise ValueError(
                f"mask {tuple(mask.shape)} does not fit a context of {tuple(context.shape[:2])}"
            )
