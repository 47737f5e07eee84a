"""The slot baseline: slots, their limit, and augmentations that keep the right answer right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factories import make_batch, make_observations, make_slot_mlp

from fetchlab.errors import UserError
from fetchlab.policy.augmentation import (
    CLEARANCE,
    permute_colours,
    permute_slots,
    resample_distractors,
)
from fetchlab.policy.slot_mlp import fill_slots
from fetchlab.tokenizers.objects import object_features

CPU = torch.device("cpu")


def scenes(
    batch: int = 64, n_objects: int = 4, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """objects, mask, named colour of scenes with 2 to n_objects objects."""
    torch.manual_seed(seed)
    observations = make_observations(batch, n_objects=n_objects, seed=seed)
    counts = np.random.default_rng(seed).integers(2, n_objects + 1, batch)
    mask = np.arange(20) < counts[:, None]
    objects = observations.objects * mask[..., None]
    observations = replace(observations, objects=objects, objects_mask=mask)
    features, real = object_features(observations, CPU)
    return features, real, make_slot_mlp()._named(observations)


def test_objects_fill_the_first_slots_and_the_rest_is_zero() -> None:
    objects = torch.arange(1.0, 9.0).reshape(1, 4, 2)
    slots = fill_slots(objects, torch.tensor([[True, False, True, True]]))
    assert slots.tolist() == [[1, 2, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0]]


def test_seven_objects_are_refused_by_name() -> None:
    policy = make_slot_mlp()
    assert policy.max_objects == 6
    policy.chunk(make_observations(n_objects=6))
    message = "policy slot_mlp takes at most 6 objects, this scene has 7"
    with pytest.raises(UserError, match=message):
        policy.act(make_observations(n_objects=7)[0])
    with pytest.raises(UserError, match=message):
        policy.loss(make_batch(n_objects=7))


def test_an_unknown_word_is_refused() -> None:
    observations = replace(make_observations(1), instructions=("fetch the pink block",))
    with pytest.raises(UserError, match="unknown word 'pink'"):
        make_slot_mlp().chunk(observations)


def test_padding_cannot_change_the_actions_but_the_order_can() -> None:
    policy, observations = make_slot_mlp(), make_observations()
    chunk = policy.chunk(observations)
    spoiled = np.where(observations.objects_mask[..., None], observations.objects, 7.0)
    padded = replace(observations, objects=spoiled.astype(np.float32))
    np.testing.assert_array_equal(policy.chunk(padded), chunk)
    turned = observations.objects.copy()
    turned[:, :4] = turned[:, :4][:, ::-1]
    assert np.abs(policy.chunk(replace(observations, objects=turned)) - chunk).max() > 1e-3


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_permuted_slots_hold_the_same_objects(seed: int) -> None:
    objects, mask, _ = scenes(seed=seed)
    permuted, permuted_mask = permute_slots(objects, mask)
    assert not torch.equal(permuted, objects)
    before, after = (
        (o * m[..., None]).sum(dim=1) for o, m in ((objects, mask), (permuted, permuted_mask))
    )
    torch.testing.assert_close(before, after)
    torch.testing.assert_close(permuted_mask.sum(dim=1), mask.sum(dim=1))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_renamed_colours_point_at_the_same_object(seed: int) -> None:
    objects, mask, named = scenes(seed=seed)
    renamed, renamed_word = permute_colours(objects, named)
    assert not torch.equal(renamed_word, named)
    torch.testing.assert_close(renamed[..., :2], objects[..., :2])

    def target(objects: torch.Tensor, named: torch.Tensor) -> torch.Tensor:
        return ((objects[..., 2:] * named[:, None]).sum(-1) > 0.5) & mask

    assert torch.equal(target(renamed, renamed_word), target(objects, named))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_resampling_keeps_the_named_object_and_redraws_the_rest(seed: int) -> None:
    objects, mask, named = scenes(seed=seed)
    gripper = torch.zeros(len(objects), 2)
    redrawn, present = resample_distractors(objects, mask, named, gripper)
    is_named = (redrawn[..., 2:] * named[:, None]).sum(-1) > 0.5
    assert ((is_named & present).sum(dim=1) == 1).all()
    before = (objects * ((objects[..., 2:] * named[:, None]).sum(-1) > 0.5)[..., None]).sum(dim=1)
    after = (redrawn * is_named[..., None]).sum(dim=1)
    torch.testing.assert_close(before, after)
    assert torch.equal(present.sum(dim=1).sort().values, mask.sum(dim=1).sort().values)
    assert (redrawn[~present] == 0).all()
    colours = redrawn[..., 2:].sum(dim=1)  # (B, 6)
    assert (colours <= 1).all()
    others = present & ~is_named
    distance = (redrawn[..., :2] - after[:, None, :2]).norm(dim=-1)
    assert (distance[others] > CLEARANCE).float().mean() > 0.99
    assert (redrawn[..., :2].norm(dim=-1)[others] > CLEARANCE).float().mean() > 0.99


def test_a_scene_without_its_named_object_is_left_alone() -> None:
    objects, mask, named = scenes(8)
    redrawn, present = resample_distractors(
        objects, mask, torch.zeros_like(named), objects[:, 0, :2]
    )
    assert torch.equal(redrawn, objects) and torch.equal(present, mask)


def test_augmentation_acts_in_training_only_and_can_be_switched_off() -> None:
    batch = make_batch(8)
    policy = make_slot_mlp()
    assert policy.loss(batch)[0] != policy.loss(batch)[0]
    assert policy.eval().loss(batch)[0] == policy.loss(batch)[0]
    off = {"permute_slots": False, "permute_colours": False, "resample_distractors": False}
    plain = make_slot_mlp(**off)
    assert plain.loss(batch)[0] == plain.loss(batch)[0]


def test_hidden_layers_need_units() -> None:
    with pytest.raises(UserError, match="at least one unit"):
        make_slot_mlp(lookup_hidden=())
