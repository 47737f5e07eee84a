"""The slot baseline: slots, their limit, and augmentations that keep the right answer right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from fetchlab.policy.references import Requests, are_meant
from fetchlab.policy.slot_mlp import box_place, fill_slots, named_positions
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import (
    COLOUR,
    IS_BOX,
    MAX_ROWS,
    POSITION,
    SHAPE,
    TOOL,
    Observation,
    ObservationBatch,
)
from fetchlab.sim.scene import place_beside
from fetchlab.tokenizers.objects import (
    N_FEATURES,
    TABLE_UNIT,
    WAY_GAIN,
    object_features,
    to_table_units,
)

CPU = torch.device("cpu")


def scenes(
    batch: int = 64, n_objects: int = 4, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """objects, mask and what is named (B, 1, L) of scenes with 2 to n_objects objects."""
    torch.manual_seed(seed)
    observations = make_observations(batch, n_objects=n_objects, seed=seed)
    counts = np.random.default_rng(seed).integers(2, n_objects + 1, batch)
    mask = np.arange(MAX_ROWS) < counts[:, None]
    objects = observations.objects * mask[..., None]
    observations = replace(observations, objects=objects, objects_mask=mask)
    features, real = object_features(observations, CPU)
    return features, real, make_slot_mlp()._looks(observations)


def test_objects_fill_the_first_slots_and_the_rest_is_zero() -> None:
    objects = torch.zeros(1, 4, N_FEATURES)
    objects[0, :, 0] = torch.arange(1.0, 5.0)
    objects[0, 3, IS_BOX] = 1
    slots = fill_slots(objects, torch.tensor([[True, False, True, True]]))[0]
    assert slots[:, 0].tolist() == [1, 3, 0, 0, 0, 0] and not slots[:, 1:].any()
    assert box_place(objects, torch.ones(1, 4, dtype=torch.bool)).tolist() == [[4, 0, 1]]


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
    objects, mask, looks = scenes(seed=seed)
    renamed, renamed_words = permute_colours(objects, looks)
    assert not torch.equal(renamed_words, looks)
    torch.testing.assert_close(renamed[..., :2], objects[..., :2])
    torch.testing.assert_close(renamed[..., SHAPE], objects[..., SHAPE])
    assert torch.equal(
        are_meant(renamed, renamed_words) & mask[..., None],
        are_meant(objects, looks) & mask[..., None],
    )


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_resampling_keeps_the_named_object_and_redraws_the_rest(seed: int) -> None:
    objects, mask, looks = scenes(seed=seed)
    gripper = torch.zeros(len(objects), 2)
    redrawn, present = resample_distractors(objects, mask, looks, gripper)
    is_named = are_meant(redrawn, looks)[..., 0] & present
    assert (is_named.sum(dim=1) == 1).all()
    before = (objects * (are_meant(objects, looks) & mask[..., None])).sum(dim=1)
    after = (redrawn * is_named[..., None]).sum(dim=1)
    torch.testing.assert_close(before, after)
    assert torch.equal(present.sum(dim=1).sort().values, mask.sum(dim=1).sort().values)
    assert (redrawn[~present] == 0).all()
    assert (redrawn[..., COLOUR].sum(dim=1) <= 1).all()
    others = present & ~is_named
    distance = (redrawn[..., :2] - after[:, None, :2]).norm(dim=-1)
    assert (distance[others] > CLEARANCE).float().mean() > 0.99
    assert (redrawn[..., :2].norm(dim=-1)[others] > CLEARANCE).float().mean() > 0.99


def test_resampling_keeps_both_named_objects_and_the_box() -> None:
    config = EnvConfig(task="mixed", cameras=(), shapes=("block", "mug"))
    env, seen = Tabletop.from_config(config, n_objects=(2, 6)), []
    for seed in range(60):
        seen.append(Observation.from_gym(env.reset(seed=seed)[0]))
    observations = ObservationBatch.stack(seen)
    objects, mask = object_features(observations, CPU)
    looks = Requests("mixed").looks(observations.instructions, CPU)  # (B, 2, L)
    redrawn, present = resample_distractors(objects, mask, looks, torch.zeros(60, 2))
    assert not torch.equal(redrawn, objects)
    named = named_positions(objects, mask, looks)
    torch.testing.assert_close(named_positions(redrawn, present, looks), named)
    assert (are_meant(redrawn, looks) & present[..., None]).sum(dim=1).max() == 1
    torch.testing.assert_close(box_place(redrawn, present), box_place(objects, mask))
    assert box_place(objects, mask)[:, 2].sum() > 10 and looks[:, 1].any(dim=1).sum() > 10


def test_a_scene_without_its_named_object_is_left_alone() -> None:
    objects, mask, looks = scenes(8)
    redrawn, present = resample_distractors(
        objects, mask, torch.zeros_like(looks), objects[:, 0, :2]
    )
    assert torch.equal(redrawn, objects) and torch.equal(present, mask)


def test_augmentation_acts_in_training_only_and_can_be_switched_off() -> None:
    batch = make_batch(8)
    policy = make_slot_mlp()
    assert policy.loss(batch)[0] != policy.loss(batch)[0]
    assert policy.eval().loss(batch)[0] == policy.loss(batch)[0]
    off: dict[str, Any] = {
        "permute_slots": False,
        "permute_colours": False,
        "resample_distractors": False,
    }
    plain = make_slot_mlp(**off)
    assert plain.loss(batch)[0] == plain.loss(batch)[0]


@pytest.mark.parametrize(
    ("sentence", "goal"),
    [
        ("fetch the red block", [0.5, -0.1]),
        ("put the red block in the box", [0.4, 0.2]),
        ("put the red block left of the blue block", [0.6, place_beside([0.6, 0.1], "left")[1]]),
    ],
)
def test_the_way_from_the_named_object_to_its_goal_is_told(
    sentence: str, goal: list[float]
) -> None:
    policy = make_slot_mlp("mixed")
    observations = replace(make_observations(1), instructions=(sentence,))
    places = torch.tensor([[[0.5, -0.1], [0.6, 0.1], [0.4, 0.2]]])  # named, beside what, box
    told = policy._ways(observations, to_table_units(places)) / WAY_GAIN * TABLE_UNIT  # (1, 16) [m]
    tool = torch.tensor(observations.proprioception[0, TOOL][POSITION])
    torch.testing.assert_close(told[0, 6:8], torch.tensor(goal) - tool)
    torch.testing.assert_close(told[0, -2:], torch.tensor(goal) - places[0, 0])


def test_hidden_layers_need_units() -> None:
    with pytest.raises(UserError, match="at least one unit"):
        make_slot_mlp(lookup_hidden=())
