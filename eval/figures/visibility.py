"""What a mask keeps apart, exactly: who reads whom, and who notices a change."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.random_blocks import blocks, random_encoder, random_tokens
from fetchlab.policy.attention import attend_with_weights
from fetchlab.policy.blocks import BlockConfig, Encoder
from fetchlab.policy.masks import block, causal

N_TOKENS, N_PREFIX = 64, 48  # with the block mask the prefix is observation, the rest are actions
EDITED_FROM = 40
WIDTH, N_LAYERS = 64, 4
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def drawn(seed: int, dtype: torch.dtype = torch.float64) -> tuple[Encoder, Tensor]:
    """Four random blocks, and 64 tokens (1, N, D) for them."""
    config = BlockConfig(d_model=WIDTH, n_heads=2, d_feedforward=4 * WIDTH)
    encoder = random_encoder(config, N_LAYERS, seed, dtype)
    return encoder, random_tokens(N_TOKENS, WIDTH, seed=1_000 + seed).to(dtype)


def edited(tokens: Tensor, first: int) -> Tensor:
    """The tokens (1, N, D) with other ones from `first` on."""
    return torch.cat([tokens[:, :first], -3 * tokens[:, first:]], dim=1)


def forbidden_weights(pattern: Tensor, seed: int, dtype: torch.dtype) -> int:
    """How many weights are not exactly 0 although the pattern (N, N) forbids them."""
    encoder, tokens = drawn(seed, dtype)
    found = 0
    for one in blocks(encoder):
        tokens, weights = one(tokens, pattern=pattern, need_weights=True)
        found += int((weights[..., ~pattern] != 0).sum())
    return found


def change_before(first: int, pattern: Tensor, seed: int, dtype: torch.dtype) -> float:
    """The most that outputs before the token `first` change when all from it on are edited."""
    encoder, tokens = drawn(seed, dtype)
    before, after = (encoder(x, pattern=pattern) for x in (tokens, edited(tokens, first)))
    return float((after - before)[:, :first].abs().max())


def memory(encoder: Encoder, tokens: Tensor, pattern: Tensor | None) -> Tensor:
    """(L, 2, H, N, d) keys and values of each block."""
    found = []
    for one in blocks(encoder):
        keys_values = one.attention.project(one.around_attention.before(tokens))
        found.append(torch.cat(tuple(keys_values)))  # (2, H, N, d)
        tokens, _ = one(tokens, pattern=pattern)
    return torch.stack(found)


def change_by_appending(seed: int, *, masked: bool) -> Tensor:
    """(L,) the most that old tokens' keys and values change when one token is appended."""
    encoder, tokens = drawn(seed)
    shorter = tokens[:, :-1]
    before = memory(encoder, shorter, causal(N_TOKENS - 1) if masked else None)
    after = memory(encoder, tokens, causal(N_TOKENS) if masked else None)
    return (after[..., :-1, :] - before).abs().amax(dim=(1, 2, 3, 4))


def change_of_prefix(seed: int) -> float:
    """The most that the prefix' keys and values change when the actions are edited."""
    encoder, tokens = drawn(seed)
    pattern = block(N_PREFIX, N_TOKENS)
    before, after = (
        memory(encoder, x, pattern)[..., :N_PREFIX, :] for x in (tokens, edited(tokens, N_PREFIX))
    )
    return float((after - before).abs().max())


def fully_masked(dtype: torch.dtype) -> tuple[float, int]:
    """A query that may read nothing: our largest output, and the plain formula's share of NaN."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 1, 1, 5, 8, generator=generator, dtype=dtype)
    allowed = torch.ones(5, 5, dtype=torch.bool)
    allowed[2] = False
    ours, _ = attend_with_weights(query, key, value, allowed)
    scores = (query @ key.transpose(-2, -1) / math.sqrt(8)).masked_fill(~allowed, -math.inf)
    plain = scores.softmax(dim=-1) @ value
    return float(ours[..., 2, :].abs().max()), int(plain[..., 2, :].isnan().sum())


def visibility_checks(n_seeds: int) -> Iterator[Check]:
    """Masked is not small but zero."""
    patterns = {"causal mask": causal(N_TOKENS), "block mask": block(N_PREFIX, N_TOKENS)}
    seeds = range(n_seeds)
    for precision, dtype in PRECISIONS.items():
        for (name, pattern), first in zip(patterns.items(), (EDITED_FROM, N_PREFIX), strict=True):
            yield Check(
                quantity=f"{name}: forbidden weights that are not exactly 0 ({precision})",
                value=sum(forbidden_weights(pattern, seed, dtype) for seed in seeds),
                high=0,
            )
            yield Check(
                quantity=f"{name}: change before token {first}, edited from there ({precision})",
                value=max(change_before(first, pattern, seed, dtype) for seed in seeds),
                high=0,
            )
        ours, not_numbers = fully_masked(dtype)
        yield Check(
            quantity=f"nothing to read: largest output of ours ({precision})", value=ours, high=0
        )
        yield Check(
            quantity=f"nothing to read: NaN among 8 outputs of the plain formula ({precision})",
            value=not_numbers,
            low=8,
        )


def memory_checks(n_seeds: int) -> Iterator[Check]:
    """What can be cached: keys and values that later tokens do not change."""
    seeds = range(n_seeds)
    old = "keys and values of old tokens when one is appended"
    masked = torch.stack([change_by_appending(seed, masked=True) for seed in seeds])  # (S, L)
    free = torch.stack([change_by_appending(seed, masked=False) for seed in seeds])
    yield Check(
        quantity=f"causal mask, {old}: largest change", value=float(masked.max()), high=1e-14
    )
    yield Check(
        quantity=f"no mask, block 1, {old}: largest change",
        value=float(free[:, 0].max()),
        high=1e-14,
    )
    yield Check(
        quantity=f"no mask, blocks 2 to 4, {old}: least change of any seed",
        value=float(free[:, 1:].min()),
        low=0.09,
    )
    yield Check(
        quantity="block mask: change of the prefix' keys and values when actions are edited",
        value=max(change_of_prefix(seed) for seed in seeds),
        high=0,
    )
