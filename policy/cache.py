"""Keys and values that are computed once and read many times."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class KeyValues(NamedTuple):
    """What a context offers to its readers."""

    key: Tensor  # (B, H, K, d)
    value: Tensor  # (B, H, K, d)


class KeyValueCache:
    """Keys and values of one self-attention layer, for a sequence that grows at its end.

    It is exact when no token reads later ones than itself (causal mask), or when those it reads
    came in the same piece (block mask). Memory is taken once: 2 · B · N · D numbers a layer.
    """

    def __init__(
        self,
        n_rows: int,
        n_heads: int,
        max_tokens: int,
        d_head: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        sizes = (n_rows, n_heads, max_tokens, d_head)
        self._keys = torch.empty(sizes, dtype=dtype, device=device)  # (B, H, N, d)
        self._values = torch.empty_like(self._keys)
        self._length = 0

    def __len__(self) -> int:
        """Tokens in it."""
        return self._length

    @property
    def n_bytes(self) -> int:
        """Memory that it holds, full or not."""
        return self._keys.nbytes + self._values.nbytes

    def extend(self, new: KeyValues) -> KeyValues:
        """Put new tokens at the end; all so far, as views. Raises ValueError when they do not fit.

        For inference: what was cached before carries no gradient.
        """
        n_rows, n_heads, n_new, d_head = new.key.shape
        capacity = self._keys.shape[2]
        if (n_rows, n_heads, d_head) != (*self._keys.shape[:2], self._keys.shape[3]):
            raise ValueError(
                f"keys {tuple(new.key.shape)} do not fit a cache of {tuple(self._keys.shape)}"
            )
        end = self._length + n_new
        if end > capacity:
            raise ValueError(f"{end} tokens do not fit a cache of {capacity}")
        self._keys[:, :, self._length : end] = new.key.detach()
        self._values[:, :, self._length : end] = new.value.detach()
        self._length = end
        return KeyValues(self._keys[:, :, :end], self._values[:, :, :end])
