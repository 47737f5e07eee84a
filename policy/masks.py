"""Who may read whom: boolean patterns (Q, K), True where the query may read the key."""

from __future__ import annotations

import torch
from torch import Tensor


def causal(n_tokens: int, n_queries: int | None = None) -> Tensor:
    """(Q, K) each token reads itself and earlier ones (GPT).

    `n_queries` asks for the last rows only: those of new tokens when the others are cached.
    """
    _check(n_tokens, n_queries)
    full = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    return full if n_queries is None else full[n_tokens - n_queries :]


def block(n_prefix: int, n_tokens: int, n_queries: int | None = None) -> Tensor:
    """(Q, K) the prefix reads itself in both directions, later tokens it and earlier ones.

    The pattern of vision-language-action models: observation first, then action tokens. The
    prefix never reads an action, so its keys and values can be cached.
    """
    if not 0 <= n_prefix <= n_tokens:
        raise ValueError(f"a prefix of {n_prefix} does not fit {n_tokens} tokens")
    _check(n_tokens, n_queries)
    full = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    full[:n_prefix, :n_prefix] = True
    return full if n_queries is None else full[n_tokens - n_queries :]


def _check(n_tokens: int, n_queries: int | None) -> None:
    if n_queries is not None and not 0 <= n_queries <= n_tokens:
        raise ValueError(f"{n_queries} queries cannot be the last of {n_tokens} tokens")
