"""The block against torch's, its switches, its cache, and what it says to sizes that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.factories import make_act, make_batch
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.policy import masks
from fetchlab.policy.attention import MultiHeadAttention, attend, attend_with_weights
from fetchlab.policy.blocks import BlockConfig, Encoder, EncoderBlock
from fetchlab.policy.cache import KeyValueCache, KeyValues
from fetchlab.tokenizers.patch import PatchConfig
from fetchlab.tokenizers.positions import Rotary, grid_positions, sinusoidal, sinusoidal_2d

SMALL = BlockConfig(d_model=8, n_heads=2, d_feedforward=16)


def with_weights_of(ours: EncoderBlock, theirs: nn.TransformerEncoderLayer) -> EncoderBlock:
    """Our block, computing what torch's layer computes."""
    query, key, value = theirs.self_attn.in_proj_weight.chunk(3)
    query_bias, key_bias, value_bias = theirs.self_attn.in_proj_bias.chunk(3)
    with torch.no_grad():
        ours.attention.query.weight.copy_(query)
        ours.attention.query.bias.copy_(query_bias)
        ours.attention.key_value.weight.copy_(torch.cat([key, value]))
        ours.attention.key_value.bias.copy_(torch.cat([key_bias, value_bias]))
    pairs = (
        (ours.attention.output, theirs.self_attn.out_proj),
        (ours.around_attention.norm, theirs.norm1),
        (ours.around_mlp.norm, theirs.norm2),  # type: ignore[union-attr]
        (ours.mlp[0], theirs.linear1),  # type: ignore[index]
        (ours.mlp[2], theirs.linear2),  # type: ignore[index]
    )
    for mine, other in pairs:
        mine.load_state_dict(other.state_dict())
    return ours


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_with_copied_weights_it_is_torchs_layer(norm: str, activation: str) -> None:
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(
        16, 4, 32, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    )
    for one in (theirs.norm1, theirs.norm2):  # as if trained: scales and shifts count
        nn.init.normal_(one.weight)
        nn.init.normal_(one.bias)
    config = BlockConfig(d_model=16, n_heads=4, d_feedforward=32, norm=norm, activation=activation)
    ours = with_weights_of(EncoderBlock(config), theirs)
    tokens = torch.randn(3, 7, 16)
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    pattern = masks.causal(7)
    cases: tuple[dict[str, Any], ...] = ({}, {"mask": mask}, {"pattern": pattern})
    for case in cases:
        expected = theirs(
            tokens,
            src_mask=None if "pattern" not in case else ~pattern,
            src_key_padding_mask=None if "mask" not in case else ~mask,
        )
        torch.testing.assert_close(ours(tokens, **case).output, expected, atol=1e-5, rtol=1e-5)


def test_parts_can_be_left_out() -> None:
    torch.manual_seed(0)
    tokens = torch.randn(2, 5, 8)

    def block(**changes: Any) -> tuple[EncoderBlock, Tensor]:
        made = EncoderBlock(BlockConfig(d_model=8, n_heads=2, d_feedforward=16, **changes))
        return made, made(tokens).output

    bare, output = block(norm="none", residual=False, mlp=False)
    torch.testing.assert_close(output, bare.attention(tokens).output)
    assert len(list(bare.parameters())) == 6  # query, key and value, output
    added, output = block(norm="none", mlp=False)
    torch.testing.assert_close(output, tokens + added.attention(tokens).output)
    _, output = block(norm="post")
    torch.testing.assert_close(output.mean(-1), torch.zeros(2, 5), atol=1e-5, rtol=0)
    torch.testing.assert_close(output.var(-1, unbiased=False), torch.ones(2, 5), atol=1e-3, rtol=0)


def test_a_context_projected_once_is_read_as_often_as_wanted() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    context, queries = torch.randn(2, 6, 8), torch.randn(2, 4, 8)
    mask = torch.arange(6) < torch.tensor([[6], [3]])
    memory = attention.project(context)
    at_once = attention(queries, context, mask).output
    one_by_one = [attention.read(queries[:, i : i + 1], memory, mask).output for i in range(4)]
    torch.testing.assert_close(torch.cat(one_by_one, dim=1), at_once)


def test_patterns_by_hand() -> None:
    assert masks.causal(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert masks.causal(3, 1).tolist() == [[True, True, True]]
    assert masks.block(2, 4).tolist() == [
        [True, True, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]
    torch.testing.assert_close(masks.block(0, 5), masks.causal(5))
    assert masks.block(5, 5).all()
    torch.testing.assert_close(masks.block(2, 5, 2), masks.block(2, 5)[3:])


def test_codes_of_a_grid_are_those_of_its_row_and_its_column() -> None:
    table = sinusoidal_2d(3, 5, 16)
    rows, columns = sinusoidal(torch.arange(3), 8), sinusoidal(torch.arange(5), 8)
    for row in range(3):
        for column in range(5):
            torch.testing.assert_close(table[row, column], torch.cat([rows[row], columns[column]]))
    assert grid_positions(2, 3).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none"])
def test_policies_can_be_built_with_other_positions(positions: str) -> None:
    policy = make_act(patch=PatchConfig(positions=positions))
    loss, _ = policy.loss(make_batch())
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in policy.parameters())
    tables = [name for name, _ in policy.eyes.named_parameters() if name.startswith("positions")]
    assert len(tables) == (2 if positions == "learned" else 0)


def test_an_encoder_can_turn_patches_by_their_place() -> None:
    torch.manual_seed(0)
    flat: dict[str, Any] = {
        "patch": PatchConfig(positions="none"),
        "n_encoder_layers": 1,
        "d_model": 16,
    }
    observations = make_batch().observations
    plain, turned = make_act(**flat), make_act(**flat, rotary=True)
    turned.load_state_dict(plain.state_dict())  # rotary positions have no parameters
    assert not torch.allclose(plain.predict(observations), turned.predict(observations))
    with pytest.raises(UserError, match="rotary positions are the encoder's"):
        make_act(rotary=True)
    with pytest.raises(UserError, match="a multiple of 4, got 2"):
        make_act(**{**flat, "d_model": 8}, rotary=True)


def heads(*shape: int) -> Tensor:
    return torch.zeros(shape)


@pytest.mark.parametrize("path", [attend, attend_with_weights])
def test_scores_that_cannot_be_are_told_with_their_sizes(path: Any) -> None:
    with pytest.raises(
        ValueError, match=r"equally wide, got query \(1, 2, 3, 4\), key \(1, 2, 5, 6"
    ):
        path(heads(1, 2, 3, 4), heads(1, 2, 5, 6), heads(1, 2, 5, 6))
    with pytest.raises(ValueError, match=r"one value, got .*key \(1, 2, 5, 4\), value \(1, 2, 6"):
        path(heads(1, 2, 3, 4), heads(1, 2, 5, 4), heads(1, 2, 6, 4))
    same = heads(1, 2, 3, 4)
    for wrong in ((3, 4), (4, 1, 3, 3), (1, 1, 1, 3, 3)):
        with pytest.raises(ValueError, match=r"mask .* does not fit scores \(1, 2, 3, 3\)"):
            path(same, same, same, torch.ones(wrong, dtype=torch.bool))
    path(same, same, same, torch.ones(2, 3, 3, dtype=torch.bool))  # one for each head


def test_patterns_caches_and_positions_that_do_not_fit_are_told_with_their_sizes() -> None:
    attention, tokens = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with pytest.raises(ValueError, match=r"pattern \(3, 4\) does not fit 3 queries and 3 keys"):
        attention(tokens, pattern=torch.ones(3, 4, dtype=torch.bool))
    cache = KeyValueCache(1, 2, 4, 4)
    attention(tokens, cache=cache)
    with pytest.raises(ValueError, match="6 tokens do not fit a cache of 4"):
        attention(tokens, cache=cache)
    assert len(cache) == 3  # nothing was put into it
    with pytest.raises(ValueError, match=r"keys \(2, 2, 1, 4\) do not fit a cache of \(1, 2, 4, 4"):
        cache.extend(KeyValues(heads(2, 2, 1, 4), heads(2, 2, 1, 4)))
    with pytest.raises(ValueError, match=r"3 tokens of 4 need positions \(3,\), .*\(2,\)"):
        Rotary(4)(heads(1, 2, 3, 4), torch.arange(2))
    with pytest.raises(ValueError, match="multiple of 4, got 6"):
        Rotary(6, axes=2)
    with pytest.raises(ValueError, match="1 or 2 axes, got 3"):
        Rotary(12, axes=3)
    with pytest.raises(ValueError, match="must be even, got 5"):
        sinusoidal(torch.arange(3), 5)
    with pytest.raises(ValueError, match="a width of 4, 8, …, got 6"):
        sinusoidal_2d(2, 2, 6)
    with pytest.raises(ValueError, match="a prefix of 4 does not fit 3 tokens"):
        masks.block(4, 3)
    with pytest.raises(ValueError, match="4 queries cannot be the last of 3 tokens"):
        masks.causal(3, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": 3}, "d_model 8 cannot be shared evenly by n_heads 3"),
        ({"norm": "batch"}, "norm"),
        ({"activation": "tanh"}, "activation"),
        ({"d_feedforward": 0}, "d_feedforward must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be 0 to 1, got 1.0"),
        ({"n_heads": 8, "rotary_axes": 1}, "a multiple of 2, got 1"),
    ],
)
def test_settings_that_cannot_be_are_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        BlockConfig(**{"d_model": 8, "n_heads": 2, "d_feedforward": 16, **changes})


def test_an_encoder_offers_a_cache_for_each_block() -> None:
    encoder = Encoder(SMALL, 3).double()
    caches = encoder.empty_caches(2, 10)
    assert [cache.n_bytes for cache in caches] == [2 * 2 * 10 * 8 * 8] * 3  # K and V of D numbers
    encoder(torch.randn(2, 4, 8, dtype=torch.float64), pattern=masks.causal(4), caches=caches)
    assert [len(cache) for cache in caches] == [4, 4, 4]
