"""Attention in 400-digit decimal arithmetic: tokens that differ by 1e-200 are still told apart.

Double precision sees nothing below 1e-16, where rank collapse is after five layers.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import torch
from numpy.typing import NDArray

from fetchlab.eval.figures.random_blocks import blocks
from fetchlab.policy.attention import MultiHeadAttention
from fetchlab.policy.blocks import Encoder, EncoderBlock

DIGITS = 400
Exact = NDArray[np.object_]  # of Decimals

_square_root = np.frompyfunc(Decimal.sqrt, 1, 1)
_exponential = np.frompyfunc(Decimal.exp, 1, 1)
_decimal = np.frompyfunc(Decimal, 1, 1)


def log_residuals(encoder: Encoder, tokens: torch.Tensor) -> list[float]:
    """log10 of |X - mean| / |X| before the first block and after each one.

    Tokens (N, D); the blocks are attention alone after a LayerNorm, without residual.
    """
    with localcontext(Context(prec=DIGITS)):
        x = exact(tokens)  # (N, D)
        logs = [_log_residual(x)]
        for block in blocks(encoder):
            x = attention_only(block, x)
            logs.append(_log_residual(x))
    return logs


def attention_only(block: EncoderBlock, x: Exact) -> Exact:
    """The block's attention on normalized tokens (N, D); its output replaces them."""
    norm = block.around_attention.norm
    return attention(block.attention, layer_norm(x, norm.eps))  # type: ignore[arg-type]


def layer_norm(x: Exact, epsilon: float) -> Exact:
    """(N, D) each token with mean 0 and variance 1."""
    away = x - x.mean(axis=1, keepdims=True)
    variance = (away * away).mean(axis=1, keepdims=True)
    normal: Exact = away / _square_root(variance + Decimal(epsilon))
    return normal


def attention(module: MultiHeadAttention, x: Exact) -> Exact:
    """The module's self-attention on (N, D), with its weights; their biases are 0."""
    key_weight, value_weight = module.key_value.weight.chunk(2)
    query, key, value = (
        _heads(x @ exact(weight).T, module.n_heads)  # (H, N, d)
        for weight in (module.query.weight, key_weight, value_weight)
    )
    root = Decimal(query.shape[-1]).sqrt()
    powers = _exponential(query @ key.transpose(0, 2, 1) / root)  # (H, N, N)
    read = powers / powers.sum(axis=-1, keepdims=True) @ value  # (H, N, d)
    together = read.transpose(1, 0, 2).reshape(x.shape)  # (N, D)
    result: Exact = together @ exact(module.output.weight).T
    return result


def exact(tensor: torch.Tensor) -> Exact:
    """The same numbers, digit by digit."""
    result: Exact = _decimal(tensor.detach().double().numpy().astype(object))
    return result


def _heads(x: Exact, n_heads: int) -> Exact:
    return x.reshape(len(x), n_heads, -1).transpose(1, 0, 2)


def _log_residual(x: Exact) -> float:
    away = x - x.mean(axis=0)
    share: Decimal = ((away * away).sum() / (x * x).sum()).sqrt()
    return float(share.log10()) if share else -math.inf
