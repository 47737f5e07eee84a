"""The action codec: exact inverses, relative to the arm, calm where the arm hardly moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import make_batch, make_statistics

from fetchlab.errors import UserError
from fetchlab.policy.actions import (
    ActionCodec,
    action_statistics,
    commit_gripper,
    imitation_loss,
    masked_mean,
)
from fetchlab.sim.config import EnvConfig

WIDTH = {"joint": 8, "ee": 4}


def make_codec(mode: str = "joint", *, relative: bool = True) -> ActionCodec:
    config = EnvConfig(cameras=(), action_mode=mode)
    return ActionCodec(config, make_statistics(WIDTH[mode]), relative=relative)


@given(st.sampled_from(["joint", "ee"]), st.booleans(), st.integers(0, 10_000))
def test_decode_undoes_encode(mode: str, relative: bool, seed: int) -> None:
    codec = make_codec(mode, relative=relative)
    batch = make_batch(action_dim=WIDTH[mode], seed=seed)
    readings = torch.tensor(batch.observations.proprioception)
    actions = torch.tensor(batch.actions)
    encoded = codec.encode(actions, readings)
    torch.testing.assert_close(codec.decode(encoded, readings), actions, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        codec.encode(codec.decode(encoded, readings), readings), encoded, atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize(("mode", "readings"), [("joint", slice(0, 7)), ("ee", slice(8, 11))])
def test_the_whole_chunk_counts_from_the_readings_of_its_observation(
    mode: str, readings: slice
) -> None:
    codec = make_codec(mode)
    batch = make_batch(action_dim=WIDTH[mode])
    proprioception = torch.tensor(batch.observations.proprioception)
    moved = proprioception.clone()
    moved[:, readings] += 0.1
    actions = torch.tensor(batch.actions)
    shifted = actions.clone()
    shifted[..., :-1] += 0.1
    torch.testing.assert_close(
        codec.encode(shifted, moved), codec.encode(actions, proprioception), atol=1e-5, rtol=1e-5
    )


def test_the_gripper_is_absolute_and_fills_minus_one_to_one() -> None:
    codec = make_codec()
    actions, readings = torch.zeros(1, 2, 8), torch.randn(1, 11)
    actions[0, 1, -1] = 0.08
    assert codec.encode(actions, readings)[0, :, -1].tolist() == pytest.approx([-1, 1])


def test_a_joint_that_hardly_moves_is_not_blown_up() -> None:
    statistics = make_statistics()
    still = replace(statistics, action_std=np.zeros(8, np.float32))
    codec = ActionCodec(EnvConfig(cameras=()), still, relative=True)
    assert codec.arm_scale.item() == pytest.approx(0.05)
    lively = make_codec()
    expected = np.sqrt(np.mean(statistics.action_std[:-1] ** 2))
    assert lively.arm_scale.item() == pytest.approx(expected)


def test_statistics_of_another_action_width_are_refused() -> None:
    with pytest.raises(UserError, match="do not fit 8 action dimensions"):
        ActionCodec(EnvConfig(cameras=()), make_statistics(4), relative=True)


def test_statistics_count_unpadded_steps_only() -> None:
    batch = make_batch(8)
    readings = batch.observations.proprioception
    spoiled = np.where(batch.actions_mask[..., None], batch.actions, 1e6).astype(np.float32)
    for relative in (False, True):
        plain, other = (
            action_statistics(
                actions, batch.actions_mask, readings, action_mode="joint", relative=relative
            )
            for actions in (batch.actions, spoiled)
        )
        np.testing.assert_array_equal(plain, other)
    mean, _ = plain
    arm = batch.actions[..., :7] - readings[:, None, :7]
    np.testing.assert_allclose(mean[:7], arm[batch.actions_mask].mean(axis=0), atol=1e-5)


def test_a_gripper_in_doubt_is_opened_or_closed() -> None:
    prediction = torch.tensor([[[0.3, 0.2], [0.3, -0.01]]])
    expected = torch.tensor([[[0.3, 1.0], [0.3, -1.0]]])
    torch.testing.assert_close(commit_gripper(prediction), expected)


def test_masked_mean_divides_by_the_valid_entries() -> None:
    values = torch.tensor([[[1.0, 3.0], [100.0, 100.0]]])
    mask = torch.tensor([[True, False]])
    assert masked_mean(values, mask).item() == 2.0
    assert masked_mean(values, torch.zeros_like(mask)).item() == 0.0


def test_loss_is_arm_l1_and_weighted_gripper_cross_entropy() -> None:
    prediction, target = torch.zeros(1, 2, 3), torch.ones(1, 2, 3)
    mask = torch.tensor([[True, False]])
    loss, parts = imitation_loss(prediction, target, mask, gripper_weight=0.1)
    assert parts["arm_l1"].item() == 1.0
    assert parts["gripper_bce"].item() == pytest.approx(np.log(2))
    assert loss.item() == pytest.approx(1 + 0.1 * np.log(2))
