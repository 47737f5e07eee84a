"""What must hold of the attention core for any sizes and seeds, in single and double precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fetchlab.eval.parallel import one_thread
from fetchlab.policy.blocks import BlockConfig, Encoder
from fetchlab.policy.masks import block, causal
from fetchlab.tokenizers.positions import Rotary

TOLERANCE = {torch.float32: 2e-5, torch.float64: 2e-13}


@pytest.fixture(autouse=True, scope="module")
def single_thread() -> Iterator[None]:
    """Tensors this small are slower to share than to compute."""
    with one_thread():
        yield


@dataclass(frozen=True, kw_only=True)
class Case:
    """An encoder and tokens for it."""

    n_rows: int
    n_tokens: int
    n_heads: int
    d_head: int
    n_layers: int
    norm: str
    dtype: torch.dtype
    seed: int

    def encoder(self, rotary_axes: int = 0) -> Encoder:
        torch.manual_seed(self.seed)
        width = self.n_heads * self.d_head
        config = BlockConfig(
            d_model=width,
            n_heads=self.n_heads,
            d_feedforward=2 * width,
            norm=self.norm,
            rotary_axes=rotary_axes,
        )
        encoder = Encoder(config, self.n_layers).to(self.dtype)
        return encoder.eval().requires_grad_(False)

    def tokens(self) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.n_rows, self.n_tokens, self.n_heads * self.d_head)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(self.dtype)

    def mixed(self) -> Tensor:
        return torch.randperm(self.n_tokens, generator=torch.Generator().manual_seed(self.seed))


cases = st.builds(
    Case,
    n_rows=st.integers(1, 3),
    n_tokens=st.integers(2, 17),
    n_heads=st.sampled_from([1, 2, 3]),
    d_head=st.sampled_from([4, 8]),
    n_layers=st.integers(1, 3),
    norm=st.sampled_from(["pre", "post"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10_000),
)


def close(one: Tensor, other: Tensor) -> None:
    tolerance = TOLERANCE[one.dtype]
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@settings(deadline=None)
@given(cases)
def test_without_positions_a_shuffle_only_shuffles(case: Case) -> None:
    encoder, tokens, mixed = case.encoder(), case.tokens(), case.mixed()
    mask = torch.arange(case.n_tokens) < case.n_tokens // 2 + 1
    mask = mask.expand(case.n_rows, -1)
    close(encoder(tokens[:, mixed]), encoder(tokens)[:, mixed])
    close(encoder(tokens[:, mixed], mask[:, mixed]), encoder(tokens, mask)[:, mixed])


@settings(deadline=None)
@given(cases, st.integers(1, 16))
def test_padding_cannot_change_what_is_real(case: Case, n_real: int) -> None:
    encoder, tokens = case.encoder(), case.tokens()
    n_real = min(n_real, case.n_tokens)
    mask = (torch.arange(case.n_tokens) < n_real).expand(case.n_rows, -1)
    other = torch.where(mask[..., None], tokens, 100 * tokens.flip(0, 1) + 1)
    padded = encoder(tokens, mask)[:, :n_real]
    assert torch.equal(encoder(other, mask)[:, :n_real], padded)
    close(encoder(tokens[:, :n_real]), padded)


@settings(deadline=None)
@given(cases, st.integers(1, 16), st.booleans(), st.sampled_from([0, 1]))
def test_the_past_cannot_change(case: Case, first: int, blockwise: bool, rotary: int) -> None:
    encoder, tokens = case.encoder(rotary), case.tokens()
    first = min(first, case.n_tokens - 1)
    pattern = block(first, case.n_tokens) if blockwise else causal(case.n_tokens)
    edited = torch.cat([tokens[:, :first], -5 * tokens[:, first:]], dim=1)
    before, after = encoder(tokens, pattern=pattern), encoder(edited, pattern=pattern)
    assert torch.equal(after[:, :first], before[:, :first])
    assert not torch.equal(after[:, first:], before[:, first:])


@settings(deadline=None)
@given(cases, st.data(), st.booleans(), st.sampled_from([0, 1]))
def test_cached_equals_full(case: Case, data: st.DataObject, blockwise: bool, rotary: int) -> None:
    encoder, tokens = case.encoder(rotary), case.tokens()
    n_prefix = data.draw(st.integers(1, case.n_tokens)) if blockwise else 0
    pattern = block(n_prefix, case.n_tokens)  # without a prefix it is the causal one
    if not blockwise:
        assert torch.equal(pattern, causal(case.n_tokens))
    # The prefix comes in one piece, later tokens one by one or several at once.
    later = range(n_prefix + 1, case.n_tokens + 1)
    ends = {
        max(n_prefix, 1),
        *data.draw(st.sets(st.sampled_from(later)) if later else st.just(set())),
    }
    caches, pieces, start = encoder.empty_caches(case.n_rows, case.n_tokens), [], 0
    for end in sorted(ends | {case.n_tokens}):
        rows = block(n_prefix, end, end - start)
        pieces.append(encoder(tokens[:, start:end], pattern=rows, caches=caches))
        start = end
    close(torch.cat(pieces, dim=1), encoder(tokens, pattern=pattern))


@settings(deadline=None)
@given(
    st.sampled_from([1, 2]),
    st.integers(1, 8),
    st.integers(0, 10_000),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_rotary_scores_depend_on_the_offset_only(
    axes: int, n_pairs: int, seed: int, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(seed)
    width = 2 * axes * n_pairs
    query, key = torch.randn(2, 1, 1, 1, width, generator=generator, dtype=torch.float64).to(dtype)
    offset = torch.randint(-20, 20, (1, axes), generator=generator)
    places = torch.randint(0, 60, (9, axes), generator=generator)
    turn = Rotary(width, axes=axes)

    def at(x: Tensor, positions: Tensor) -> Tensor:
        turned: Tensor = turn(x.expand(1, 1, 9, width), positions.squeeze(-1))
        return turned

    scores = (at(query, places) * at(key, places + offset)).sum(-1)
    close(scores, scores[..., :1].expand_as(scores))
    unmoved = (query * at(key, offset.expand(9, axes))).sum(-1)
    close(scores, unmoved.expand_as(scores))


@pytest.mark.parametrize("rotary_axes", [0, 1])
@settings(deadline=None)
@given(case=cases)
def test_rotary_positions_may_start_anywhere(rotary_axes: int, case: Case) -> None:
    encoder, tokens = case.encoder(rotary_axes), case.tokens()
    positions = torch.arange(case.n_tokens)
    close(encoder(tokens, positions=positions + 37), encoder(tokens, positions=positions))


@settings(deadline=None)
@given(cases)
def test_rotary_positions_tell_the_order(case: Case) -> None:
    encoder, tokens = case.encoder(1), case.tokens()
    mixed = torch.arange(case.n_tokens).flip(0)
    assert not torch.allclose(encoder(tokens[:, mixed]), encoder(tokens)[:, mixed], atol=1e-6)
