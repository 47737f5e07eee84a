"""The seam between modalities: every tokenizer turns a batch into a TokenGroup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TokenGroup:
    """Tokens and which of them are real; ranks are checked on construction.

    Raises ValueError when the shapes do not fit each other.
    """

    tokens: Tensor  # (B, N, D) float
    mask: Tensor  # (B, N) bool, True where the token is real

    def __post_init__(self) -> None:
        if self.tokens.ndim != 3 or self.mask.dtype != torch.bool:
            raise ValueError(
                f"a TokenGroup takes tokens (B, N, D) and a boolean mask (B, N), got tokens "
                f"{tuple(self.tokens.shape)} and mask {tuple(self.mask.shape)} {self.mask.dtype}"
            )
        if self.mask.shape != self.tokens.shape[:2]:
            raise ValueError(
                f"mask {tuple(self.mask.shape)} does not fit tokens {tuple(self.tokens.shape)}"
            )

    @staticmethod
    def concatenate(groups: Sequence[TokenGroup]) -> TokenGroup:
        """One sequence out of several groups, in the order given."""
        return TokenGroup(
            torch.cat([group.tokens for group in groups], dim=1),  # (B, ΣN, D)
            torch.cat([group.mask for group in groups], dim=1),  # (B, ΣN)
        )
