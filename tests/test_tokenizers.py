"""Tokenizers: shapes, masks, and that nothing but the codes tells where a token comes from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import PHRASES, SENTENCES, make_observations

from fetchlab.errors import UserError
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.instruction import MAX_WORDS, InstructionTokenizer, Vocabulary
from fetchlab.tokenizers.objects import ObjectTokenizer, from_table_units, to_table_units
from fetchlab.tokenizers.patch import PatchConfig, PatchTokenizer
from fetchlab.tokenizers.positions import LearnedPositions1d, waves_2d
from fetchlab.tokenizers.proprio import ProprioceptionTokenizer


def patch_tokenizer(
    image_size: int = 16, n_views: int = 2, d_model: int = 12, **settings: object
) -> PatchTokenizer:
    config = PatchConfig(**settings)  # type: ignore[arg-type]
    return PatchTokenizer(config, n_views=n_views, image_size=image_size, d_model=d_model)


def test_linear_patches_of_a_224_pixel_image_are_196_tokens_of_768_numbers() -> None:
    tokenizer = patch_tokenizer(224, n_views=1, stem="linear", patch_size=16)
    group = tokenizer(make_observations(1, cameras=1, image_size=224))
    assert group.tokens.shape == (1, 196, 12)
    assert tokenizer.grid == (14, 14)
    weights = {tuple(p.shape) for p in tokenizer.stem.parameters()}
    assert (12, 768) in weights


def test_conv_stem_gives_an_8_by_8_grid_at_64_pixels() -> None:
    tokenizer = patch_tokenizer(64)
    assert tokenizer.grid == (8, 8)
    group = tokenizer(make_observations(2, image_size=64))
    assert group.tokens.shape == (2, 2 * 64, 12)
    assert group.mask.all()


@pytest.mark.parametrize("stem", ["conv", "linear"])
def test_a_patch_reads_its_own_place(stem: str) -> None:
    """Painting the lower right corner changes the last token of that camera, not the first."""
    tokenizer = patch_tokenizer(32, stem=stem)
    before = make_observations(1, image_size=32)
    images = before.images.copy()
    images[:, 0, -4:, -4:] = 255 - images[:, 0, -4:, -4:]
    after = replace(before, images=images)
    moved = (tokenizer(after).tokens - tokenizer(before).tokens).abs().amax(dim=-1)[0]  # (N,)
    changed = moved.nonzero().flatten().tolist()
    assert changed == [15]  # of 16 tokens a camera, row by row


@pytest.mark.parametrize("stem", ["conv", "linear"])
def test_order_of_cameras_matters_only_through_their_codes(stem: str) -> None:
    tokenizer = patch_tokenizer(stem=stem)
    observations = make_observations()
    swapped = replace(observations, images=observations.images[:, [1, 0]])
    codes = tokenizer.codes()  # (C, N, D)

    def bare(group: TokenGroup) -> torch.Tensor:
        return group.tokens.unflatten(1, (2, -1)) - codes  # type: ignore[no-untyped-call, no-any-return]

    one, other = bare(tokenizer(observations)), bare(tokenizer(swapped))
    torch.testing.assert_close(one.flip(1), other)
    assert not torch.allclose(codes[0], codes[1])


def test_attention_over_the_sequence_splits_into_camera_grids() -> None:
    tokenizer = patch_tokenizer(32)
    weights = torch.arange(2 * 16 + 1).float()
    maps = tokenizer.split_views(weights)
    assert maps.shape == (2, 4, 4)
    assert maps[1, 0, 0] == 16 and maps[0, 3, 3] == 15


@pytest.mark.parametrize(
    ("cameras", "image_size"), [(1, 16), (3, 16), (2, 24)], ids=["too few", "too many", "size"]
)
def test_images_that_do_not_fit_are_refused(cameras: int, image_size: int) -> None:
    with pytest.raises(UserError, match=r"expected 2 images \(cameras times frames\) of 16 by 16"):
        patch_tokenizer()(make_observations(cameras=cameras, image_size=image_size))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_size": 60}, "60 is not a multiple of patch_size 8"),
        ({"n_views": 0}, "at least one camera"),
        ({"stem": "fft"}, "unknown stem 'fft'"),
        ({"patch_size": 12}, "power of two"),
        ({"patch_size": 0, "stem": "linear"}, "at least 1"),
    ],
)
def test_patch_settings_that_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        patch_tokenizer(**settings)  # type: ignore[arg-type]


def test_neighbouring_cells_start_alike_and_all_cells_differ() -> None:
    table = waves_2d(8, 8, 96).flatten(0, 1)  # (64, D)
    distance = torch.cdist(table, table)
    assert distance[0, 1] < distance[0, 3] < distance[0, 7]
    assert (distance + 99 * torch.eye(64)).min() > 0.5
    assert waves_2d(2, 3, 7).shape == (2, 3, 7)


def test_proprioception_is_normalized_and_a_constant_dimension_stays_calm() -> None:
    mean, std = np.full(11, 0.5, np.float32), np.full(11, 0.1, np.float32)
    std[2] = 0.0
    tokenizer = ProprioceptionTokenizer(mean, std, d_model=8)
    observations = make_observations()
    readings = np.tile(mean + std, (3, 1))
    readings[:, 2] += 1e-4
    normalized = tokenizer.normalize(replace(observations, proprioception=readings))
    expected = torch.ones(3, 11)
    expected[:, 2] = 0.01
    torch.testing.assert_close(normalized, expected, atol=1e-4, rtol=1e-4)
    assert tokenizer(observations).tokens.shape == (3, 1, 8)
    assert {"normalize.mean", "normalize.std"} <= tokenizer.state_dict().keys()


def test_proprioception_of_another_robot_is_refused() -> None:
    tokenizer = ProprioceptionTokenizer(np.zeros(7, np.float32), np.ones(7, np.float32), d_model=8)
    with pytest.raises(UserError, match=r"expected 7 proprioception values .* got \(3, 11\)"):
        tokenizer(make_observations())


def test_an_unknown_word_names_the_nearest_known_ones() -> None:
    tokenizer = InstructionTokenizer(SENTENCES, d_model=8)
    with pytest.raises(UserError, match="unknown word 'gren': did you mean green"):
        tokenizer(["fetch the gren block"])
    with pytest.raises(UserError, match="the instruction is empty"):
        tokenizer(["  "])


def test_sentences_are_read_whatever_their_capitals() -> None:
    vocabulary = Vocabulary(SENTENCES)
    assert vocabulary.numbers("Fetch the RED block.") == vocabulary.numbers("fetch the red block")
    assert len(vocabulary) == 1 + 3 + 6


def test_a_sentence_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(UserError, match=f"of a table of {MAX_WORDS}"):
        InstructionTokenizer(SENTENCES, d_model=8)(["block " * (MAX_WORDS + 1)])
    assert LearnedPositions1d(3, 5)(2).shape == (2, 5)


def test_padding_of_sentences_is_masked_and_leaves_the_mean_alone() -> None:
    tokenizer = InstructionTokenizer((*SENTENCES, *PHRASES), d_model=8)
    together = tokenizer(["red block", "fetch the red block"])
    assert together.mask.tolist() == [[True, True, False, False], [True] * 4]
    alone = tokenizer(["red block"])
    torch.testing.assert_close(together.tokens[:1, :2], alone.tokens)
    mean = tokenizer.mean(["red block", "fetch the red block"])
    torch.testing.assert_close(mean[:1], tokenizer.mean(["red block"]))
    torch.testing.assert_close(mean[:1], tokenizer.mean(["block red"]))


def test_word_order_shows_in_the_tokens() -> None:
    tokenizer = InstructionTokenizer(PHRASES, d_model=8)
    one, other = tokenizer(["red block"]).tokens, tokenizer(["block red"]).tokens
    assert not torch.allclose(one, other) and not torch.allclose(one.flip(1), other)


@given(st.permutations(range(4)), st.integers(0, 5))
def test_object_tokens_move_with_their_objects(order: list[int], seed: int) -> None:
    torch.manual_seed(0)
    tokenizer = ObjectTokenizer(d_model=8)
    observations = make_observations(seed=seed)
    objects = observations.objects.copy()
    objects[:, :4] = objects[:, order]
    shuffled = tokenizer(replace(observations, objects=objects))
    tokens = tokenizer(observations)
    torch.testing.assert_close(shuffled.tokens, tokens.tokens[:, order])
    assert tokens.mask.sum() == 3 * 4


def test_objects_of_other_features_are_refused() -> None:
    observations = make_observations()
    with pytest.raises(UserError, match=r"expected objects \(B, M, 17\)"):
        ObjectTokenizer(d_model=8)(replace(observations, objects=observations.objects[..., :7]))


def test_table_units_and_back() -> None:
    xy = torch.tensor([[0.5, 0.0], [0.9, -0.4]])
    torch.testing.assert_close(to_table_units(xy), torch.tensor([[0.0, 0.0], [1.0, -1.0]]))
    torch.testing.assert_close(from_table_units(to_table_units(xy)), xy)


def test_token_groups_concatenate_and_refuse_misfits() -> None:
    group = TokenGroup(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool))
    joined = TokenGroup.concatenate([group, group])
    assert joined.tokens.shape == (2, 6, 4) and joined.mask.shape == (2, 6)
    with pytest.raises(ValueError, match="does not fit"):
        TokenGroup(torch.zeros(2, 3, 4), torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match="boolean mask"):
        TokenGroup(torch.zeros(2, 3, 4), torch.ones(2, 3))
