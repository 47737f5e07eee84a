"""The second lesson's worked examples, shapes and padding, on the attention that policies use."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fetchlab.policy.attention import MultiHeadAttention, attend, attend_with_weights

QUERY = torch.tensor([[1.0, 0.0]])
KEYS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])


def example() -> tuple[Tensor, Tensor, Tensor]:
    return QUERY[None, None], KEYS[None, None], VALUES[None, None]  # (1, 1, N, d)


def test_the_worked_example() -> None:
    output, weights = attend_with_weights(*example())
    assert (QUERY @ KEYS.T / 2**0.5).tolist()[0] == pytest.approx([0.70711, 0, 0.70711], abs=5e-6)
    assert weights.flatten().tolist() == pytest.approx([0.40111, 0.19778, 0.40111], abs=5e-6)
    assert output.flatten().tolist() == pytest.approx([1.60445, 0.79666], abs=5e-6)
    fast = attend(*example())
    assert fast.flatten().tolist() == pytest.approx([1.60445, 0.79666], abs=5e-6)


def test_the_worked_example_without_the_scale_is_another() -> None:
    output, weights = attend_with_weights(*example(), scale=1.0)
    assert weights.flatten().tolist() == pytest.approx([0.4223, 0.1554, 0.4223], abs=5e-5)
    assert output.flatten().tolist() == pytest.approx([1.689, 0.733], abs=5e-4)


def test_the_softmax_that_the_lesson_rounds_wrongly() -> None:
    shares = torch.tensor([2.1, -0.5, 3.0, 0.2]).softmax(-1).tolist()
    assert shares == pytest.approx([0.2715, 0.0202, 0.6677, 0.0406], abs=5e-5)
    assert 52 / 17 == pytest.approx(3.06, abs=5e-3)


def test_an_id_beyond_the_table_has_no_embedding() -> None:
    with pytest.raises(IndexError):
        nn.Embedding(100, 64)(torch.tensor([100]))
    table = nn.Embedding(1_000, 64)
    assert table(torch.zeros(32, 20, dtype=torch.long)).shape == (32, 20, 64)
    assert table.weight.numel() == 64_000


def test_shapes_on_the_way() -> None:
    tokens = nn.Linear(10, 64)(torch.zeros(32, 4, 10))
    assert tokens.shape == (32, 4, 64)
    assert (224 // 16) ** 2 == 196
    assert tokens.transpose(-2, -1).shape == (32, 64, 4)
    with pytest.raises(RuntimeError):
        tokens[:, :3] @ tokens.transpose(0, 1)
    one = tokens[:, None]  # a single head
    output, weights = attend_with_weights(one, one, one)
    assert weights.shape == (32, 1, 4, 4) and output.shape == (32, 1, 4, 64)
    attention = MultiHeadAttention(64, 8)
    output, weights = attention(tokens, need_weights=True)
    assert output.shape == (32, 4, 64)
    assert weights.shape == (32, 8, 4, 4)
    assert attention.project(tokens).key.shape == (32, 8, 4, 8)
    _, weights = attention(torch.zeros(32, 10, 64), need_weights=True)
    assert weights.shape == (32, 8, 10, 10)


def test_shapes_of_cross_attention() -> None:
    actions, features = torch.randn(32, 10, 64), torch.randn(32, 49, 64)
    output, weights = MultiHeadAttention(64, 1)(actions, features, need_weights=True)
    assert weights is not None and weights[:, 0].shape == (32, 10, 49)
    assert output.shape == (32, 10, 64)
    torch.testing.assert_close(weights.sum(-1), torch.ones(32, 1, 10), atol=1e-6, rtol=0)


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8])
def test_heads_share_the_parameters(n_heads: int) -> None:
    matrices = [p for p in MultiHeadAttention(64, n_heads).parameters() if p.ndim == 2]
    assert sum(p.numel() for p in matrices) == 16_384


def test_parameters_of_query_key_and_value() -> None:
    attention = MultiHeadAttention(64, 1)
    parts = (attention.query, attention.key_value)
    assert sum(p.numel() for part in parts for p in part.parameters()) == 12_480
    assert sum(part.weight.numel() for part in parts) == 12_288


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 4))
def test_padding_is_as_if_it_were_not_there(seed: int, n_real: int, n_padded: int) -> None:
    torch.manual_seed(seed)
    attention = MultiHeadAttention(16, 2).double()
    tokens = torch.randn(3, n_real + n_padded, 16, dtype=torch.float64)
    mask = (torch.arange(n_real + n_padded) < n_real).expand(3, -1)
    output, weights = attention(tokens, mask=mask, need_weights=True)
    assert weights is not None and (weights[..., n_real:] == 0).all()
    noisy = torch.where(mask[..., None], tokens, 100 * torch.randn_like(tokens))
    other, _ = attention(noisy, mask=mask, need_weights=True)
    torch.testing.assert_close(other[:, :n_real], output[:, :n_real], atol=0, rtol=0)
    alone, _ = attention(tokens[:, :n_real], need_weights=True)
    torch.testing.assert_close(alone, output[:, :n_real], atol=1e-14, rtol=0)


def test_masking_after_the_softmax_would_be_wrong() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 50, 8, generator=generator)
    _, weights = attend_with_weights(query, key, key)
    mask = torch.arange(50) < 5
    _, right = attend_with_weights(query, key, key, mask)
    assert (1 - (weights * mask).sum(-1)).max() > 0.8
    torch.testing.assert_close(right.sum(-1), torch.ones(1, 1, 50))
