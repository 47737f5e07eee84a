"""Actions as a network should predict them: relative to the arm, and of unit size."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fetchlab.errors import UserError
from fetchlab.policy.base import Array, Statistics
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import TOOL

ARM_PROPRIOCEPTION = {"joint": slice(0, 7), "ee": TOOL}
"""the readings that have the same meaning as the arm's part of an action"""
GRIPPER_STROKE = 0.08  # opening of the open gripper [m]
SCALE_FLOOR = {"joint": 0.05, "ee": 0.02}  # [rad], [m]


def relative_actions(actions: Array, proprioception: Array, action_mode: str) -> Array:
    """Actions (…, K, A) whose arm dimensions count from the readings (…, P); gripper unchanged."""
    arm = proprioception[..., None, ARM_PROPRIOCEPTION[action_mode]]
    return np.concatenate([actions[..., :-1] - arm, actions[..., -1:]], axis=-1)


def action_statistics(
    actions: Array,
    actions_mask: NDArray[np.bool_],
    proprioception: Array,
    *,
    action_mode: str,
    relative: bool,
) -> tuple[Array, Array]:
    """Mean and standard deviation (A,) of the unpadded actions as the policy predicts them."""
    predicted = relative_actions(actions, proprioception, action_mode) if relative else actions
    valid = predicted[actions_mask].astype(np.float64)
    return valid.mean(axis=0).astype(np.float32), valid.std(axis=0).astype(np.float32)


class ActionCodec(nn.Module):
    """Absolute environment actions <-> numbers of unit size; `decode` undoes `encode`.

    The whole chunk counts from the readings at the time of its observation. All arm dimensions
    share one scale: joints 3 and 5 hardly move, and a scale of their own would blow up their noise.
    The gripper's opening is absolute, 0 … 0.08 m as -1 … 1. Raises UserError for other widths.
    """

    arm_mean: Tensor
    arm_scale: Tensor

    def __init__(self, env_config: EnvConfig, statistics: Statistics, *, relative: bool) -> None:
        super().__init__()
        if statistics.action_mean.shape != (env_config.action_dim,):
            raise UserError(
                f"action statistics of shape {statistics.action_mean.shape} do not fit "
                f"{env_config.action_dim} action dimensions ({env_config.action_mode})"
            )
        self.arm_readings = ARM_PROPRIOCEPTION[env_config.action_mode]
        self.relative = relative
        scale = float(np.sqrt(np.mean(statistics.action_std[:-1] ** 2)))
        scale = max(scale, SCALE_FLOOR[env_config.action_mode])
        mean = torch.tensor(statistics.action_mean[:-1], dtype=torch.float32)
        self.register_buffer("arm_mean", mean)
        self.register_buffer("arm_scale", torch.tensor(scale, dtype=torch.float32))

    def encode(self, actions: Tensor, proprioception: Tensor) -> Tensor:
        """Absolute (B, K, A) and readings (B, P) -> unit size (B, K, A)."""
        arm = (actions[..., :-1] - self._origin(proprioception)) / self.arm_scale
        gripper = actions[..., -1:] * (2 / GRIPPER_STROKE) - 1
        return torch.cat([arm, gripper], dim=-1)  # (B, K, A)

    def decode(self, encoded: Tensor, proprioception: Tensor) -> Tensor:
        """Unit size (B, K, A) and readings (B, P) -> absolute (B, K, A)."""
        arm = encoded[..., :-1] * self.arm_scale + self._origin(proprioception)
        gripper = (encoded[..., -1:] + 1) * (GRIPPER_STROKE / 2)
        return torch.cat([arm, gripper], dim=-1)  # (B, K, A)

    def _origin(self, proprioception: Tensor) -> Tensor:
        if not self.relative:
            return self.arm_mean  # (A - 1,)
        return self.arm_mean + proprioception[:, None, self.arm_readings]  # (B, 1, A - 1)


def commit_gripper(prediction: Tensor) -> Tensor:
    """The gripper's logit (last dimension) as fully open (1) or fully closed (-1).

    A half-open gripper is never what a demonstration meant, only doubt between the two.
    """
    side = torch.where(prediction[..., -1:] > 0, 1.0, -1.0)
    return torch.cat([prediction[..., :-1], side], dim=-1)  # (B, K, A)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the entries where the mask (…), of the first dimensions, is True; 0 if none is."""
    mask = mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim)).expand_as(values)
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)


def imitation_loss(
    prediction: Tensor, target: Tensor, mask: Tensor, gripper_weight: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """L1 of the arm + weighted cross-entropy of the gripper's logit, over the unpadded steps.

    prediction and target (B, K, A), mask (B, K).
    """
    arm = masked_mean((prediction[..., :-1] - target[..., :-1]).abs(), mask)
    is_open = ((target[..., -1] + 1) / 2).clamp(0, 1)  # (B, K)
    doubt = binary_cross_entropy_with_logits(prediction[..., -1], is_open, reduction="none")
    gripper = masked_mean(doubt, mask)
    return arm + gripper_weight * gripper, {"arm_l1": arm.detach(), "gripper_bce": gripper.detach()}
