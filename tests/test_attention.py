"""Attention and blocks: the two paths agree, masks hold, wrong sizes are named."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.policy.attention import MultiHeadAttention, attend, attend_with_weights
from fetchlab.policy.blocks import BlockConfig, DecoderBlock, EncoderBlock
from fetchlab.tokenizers.base import TokenGroup

sizes = st.tuples(
    st.integers(1, 3), st.sampled_from([1, 2, 4]), st.integers(1, 6), st.integers(1, 7)
)

SMALL = BlockConfig(d_model=8, n_heads=2, d_feedforward=16)


def random_heads(
    size: tuple[int, int, int, int], seed: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    b, h, q, k = size
    generator = torch.Generator().manual_seed(seed)
    shapes = [(b, h, q, 5), (b, h, k, 5), (b, h, k, 5)]
    query, key, value = (torch.randn(s, generator=generator, dtype=dtype) for s in shapes)
    allowed = torch.rand(b, 1, q, k, generator=generator) > 0.4
    return query, key, value, allowed


@settings(deadline=None)
@given(sizes, st.integers(0, 10_000), st.sampled_from([torch.float32, torch.float64]))
def test_fast_and_explicit_path_agree(
    size: tuple[int, int, int, int], seed: int, dtype: torch.dtype
) -> None:
    query, key, value, allowed = random_heads(size, seed, dtype)
    for mask in (None, allowed):
        explicit, weights = attend_with_weights(query, key, value, mask)
        tolerance = 1e-5 if dtype == torch.float32 else 1e-12
        torch.testing.assert_close(
            attend(query, key, value, mask), explicit, atol=tolerance, rtol=tolerance
        )
        readable = torch.ones(1) if mask is None else mask.any(-1).to(dtype)
        torch.testing.assert_close(weights.sum(-1), readable.expand_as(weights[..., 0]).to(dtype))
        if mask is not None:
            assert (weights.masked_select(~mask.expand_as(weights)) == 0).all()


@settings(deadline=None)
@given(sizes, st.integers(0, 10_000))
def test_masked_content_cannot_change_the_output(
    size: tuple[int, int, int, int], seed: int
) -> None:
    torch.manual_seed(seed)
    (b, h, q, k), width = size, 8
    attention = MultiHeadAttention(width, h)
    queries, context = torch.randn(b, q, width), torch.randn(b, k, width)
    mask = torch.rand(b, k) > 0.5
    other = torch.where(mask[..., None], context, 100 * torch.randn_like(context))
    for need_weights in (False, True):
        before, _ = attention(queries, context, mask, need_weights=need_weights)
        after, _ = attention(queries, other, mask, need_weights=need_weights)
        torch.testing.assert_close(before, after, atol=0, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_fully_masked_row_gives_zeros_and_finite_gradients(need_weights: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    context = torch.randn(2, 3, 8, requires_grad=True)
    mask = torch.tensor([[False, False, False], [True, True, False]])
    output, weights = attention(torch.randn(2, 4, 8), context, mask, need_weights=need_weights)
    assert (output[0] == 0).all() and (output[1] != 0).any()
    output.sum().backward()
    assert context.grad is not None and context.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())
    if weights is not None:
        assert (weights[0] == 0).all()


def test_weights_come_on_request_only() -> None:
    attention = MultiHeadAttention(12, 3)
    queries, context = torch.randn(2, 4, 12), torch.randn(2, 7, 12)
    output, nothing = attention(queries, context)
    same, weights = attention(queries, context, need_weights=True)
    assert nothing is None and weights.shape == (2, 3, 4, 7)
    torch.testing.assert_close(output, same)


@pytest.mark.parametrize("n_heads", [1, 2, 4])
@pytest.mark.parametrize("cross", [False, True])
def test_with_copied_weights_it_is_torchs_attention(n_heads: int, cross: bool) -> None:
    torch.manual_seed(0)
    ours, theirs = (
        MultiHeadAttention(8, n_heads),
        nn.MultiheadAttention(8, n_heads, batch_first=True),
    )
    projections = torch.cat([ours.query.weight, ours.key_value.weight])
    biases = torch.cat([ours.query.bias, ours.key_value.bias])
    with torch.no_grad():
        theirs.in_proj_weight.copy_(projections)
        theirs.in_proj_bias.copy_(biases)
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    queries = torch.randn(2, 5, 8)
    context = torch.randn(2, 6, 8) if cross else queries
    mask = torch.arange(context.shape[1]) < torch.tensor([[3], [5]])
    output, weights = ours(queries, context if cross else None, mask, need_weights=True)
    expected, expected_weights = theirs(
        queries, context, context, key_padding_mask=~mask, average_attn_weights=False
    )
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=1e-5)


def test_one_score_by_hand() -> None:
    query, key = torch.tensor([[[[2.0, 0.0]]]]), torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    value = torch.tensor([[[[1.0], [0.0]]]])
    share = math.exp(2 / math.sqrt(2)) / (math.exp(2 / math.sqrt(2)) + 1)
    output, weights = attend_with_weights(query, key, value)
    assert output.item() == pytest.approx(share)
    assert weights.flatten().tolist() == pytest.approx([share, 1 - share])


def test_sizes_that_do_not_fit_are_named() -> None:
    with pytest.raises(UserError, match="d_model 10 cannot be shared evenly by n_heads 4"):
        MultiHeadAttention(10, 4)
    attention = MultiHeadAttention(8, 2)
    queries = torch.randn(2, 3, 8)
    with pytest.raises(ValueError, match=r"mask \(2, 4\) does not fit a context of \(2, 3\)"):
        attention(queries, mask=torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"context must be \(B, N, 8\), got \(2, 3, 6\)"):
        attention(queries, torch.randn(2, 3, 6))
    with pytest.raises(ValueError, match=r"queries must be \(B, N, 8\), got \(3, 8\)"):
        attention(queries[0])


@settings(deadline=None)
@given(st.permutations(range(5)))
def test_an_encoder_block_is_equivariant(order: list[int]) -> None:
    torch.manual_seed(0)
    block = EncoderBlock(SMALL)
    tokens = torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True, True, True, False, True]])
    output, _ = block(tokens, mask)
    permuted, weights = block(tokens[:, order], mask[:, order], need_weights=True)
    torch.testing.assert_close(permuted, output[:, order])
    assert weights.shape == (2, 2, 5, 5)


def test_silent_queries_neither_speak_nor_hear() -> None:
    torch.manual_seed(0)
    block = DecoderBlock(SMALL)
    words = TokenGroup(torch.randn(2, 3, 8), torch.ones(2, 3, dtype=torch.bool))
    context = TokenGroup(torch.randn(2, 6, 8), torch.ones(2, 6, dtype=torch.bool))
    speaking, silent = torch.randn(2, 4, 8), torch.randn(2, 2, 8)
    everyone = torch.cat([speaking, silent], dim=1)
    both, looked = block(everyone, words, context, n_silent=2, need_weights=True)
    alone, _ = block(speaking, words, context)
    torch.testing.assert_close(both[:, :4], alone)
    first, _ = block(silent[:, :1], words, context, n_silent=1)
    torch.testing.assert_close(both[:, 4:5], first)
    assert looked.among_queries.shape == (2, 2, 4, 4 + 3)
    assert looked.to_context.shape == (2, 2, 6, 6)


def test_padded_words_are_not_heard() -> None:
    torch.manual_seed(0)
    block = DecoderBlock(SMALL)
    context = TokenGroup(torch.randn(1, 6, 8), torch.ones(1, 6, dtype=torch.bool))
    queries, words = torch.randn(1, 4, 8), torch.randn(1, 3, 8)
    mask = torch.tensor([[True, True, False]])
    padded, _ = block(queries, TokenGroup(words, mask), context)
    plain, _ = block(queries, TokenGroup(words[:, :2], mask[:, :2]), context)
    torch.testing.assert_close(padded, plain)
