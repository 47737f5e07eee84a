"""What every learned policy shares: its configuration, acting in chunks, saving and loading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.policy.actions import ActionCodec, commit_gripper, imitation_loss
from fetchlab.policy.base import Array, Statistics, TrainingBatch
from fetchlab.policy.chunking import ChunkMemory, ChunkQueue, TemporalEnsembler
from fetchlab.policy.pretrained import (
    CONFIG_FILE,
    build_config,
    load_weights,
    read_config,
    read_weights,
    save_policy_folder,
)
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import IS_BOX, PROPRIOCEPTION, Observation, ObservationBatch


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """What the settings of all learned policies have in common."""

    name: str
    """the registry's name for this configuration"""
    env_config: EnvConfig
    """the world it is trained in and acts in"""
    sentences: tuple[str, ...]
    """all that can be said to it; they make the vocabulary"""
    phrases: tuple[str, ...] = ()
    """ways to name an object, as the sentences use them: "red block" """
    chunk_size: int = 8
    """K: actions predicted at once"""
    n_action_steps: int = 2
    """actions of a chunk that are executed before the next one is asked for"""
    temporal_ensembling: float | None = None
    """average overlapping chunks with this decay (ACT: 0.01) instead of queueing them"""
    relative_actions: bool = True
    """predict arm targets relative to the readings at the time of the observation"""
    gripper_weight: float = 0.1
    """weight of the gripper's cross-entropy beside the arm's L1"""

    def __post_init__(self) -> None:
        if not self.sentences:
            raise UserError("a policy needs the sentences of its task, got none")
        if not 1 <= self.n_action_steps <= self.chunk_size:
            raise UserError(
                f"n_action_steps must be 1 to chunk_size {self.chunk_size}, "
                f"got {self.n_action_steps}"
            )
        if self.gripper_weight < 0:
            raise UserError(f"gripper_weight must not be negative, got {self.gripper_weight}")


class ChunkedPolicy(nn.Module, ABC):
    """A policy that predicts chunks of actions and executes them one at a time."""

    config_class: ClassVar[type[PolicyConfig]]
    max_objects: int

    def __init__(self, config: PolicyConfig, statistics: Statistics) -> None:
        super().__init__()
        self.name, self.env_config = config.name, config.env_config
        self.chunk_size, self.gripper_weight = config.chunk_size, config.gripper_weight
        self.codec = ActionCodec(config.env_config, statistics, relative=config.relative_actions)
        self._memory: ChunkMemory = (
            ChunkQueue(config.n_action_steps)
            if config.temporal_ensembling is None
            else TemporalEnsembler(config.temporal_ensembling)
        )

    @property
    @abstractmethod
    def config(self) -> PolicyConfig:
        """The settings it was built with."""

    @abstractmethod
    def loss(self, batch: TrainingBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The scalar to minimize, and its parts for the log."""

    @abstractmethod
    def predict(self, observations: ObservationBatch) -> Tensor:
        """(B, K, A) actions as the codec encodes them, the gripper as a logit."""

    def forward(self, batch: TrainingBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss, so that a wrapper for several processes can stand around the policy."""
        return self.loss(batch)

    @property
    def device(self) -> torch.device:
        return self.codec.arm_mean.device

    def chunk(self, observations: ObservationBatch) -> Array:
        """(B, K, A) absolute action targets in the environment's units."""
        self.check_count(observations)
        with evaluating(self):
            prediction = commit_gripper(self.predict(observations))  # (B, K, A)
            readings = torch.tensor(observations.proprioception, device=self.device)
            actions: Array = self.codec.decode(prediction, readings).cpu().numpy()
        return actions  # (B, K, A)

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        """(B, A) the next action of the episodes in these slots."""
        rows = [row for row, slot in enumerate(slots) if self._memory.wants_chunk(slot)]
        if rows:
            chunks = self.chunk(observations.select(rows))  # (rows, K, A)
            for row, chunk in zip(rows, chunks, strict=True):
                self._memory.add(slots[row], chunk)
        return np.stack([self._memory.next_action(slot) for slot in slots])  # (B, A)

    def act(self, observation: Observation) -> Array:
        """(A,) the next action of a single episode, kept in slot 0."""
        action: Array = self.act_batch(ObservationBatch.stack([observation]), [0])[0]
        return action

    def reset(self, slots: Sequence[int] | None = None) -> None:
        """Forget these episodes; all of them if None."""
        self._memory.reset(slots)

    def imitation_loss(
        self, prediction: Tensor, batch: TrainingBatch
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Distance from what the expert wanted; what stands in padded steps cannot matter."""
        target, mask = self.encoded_target(batch)
        return imitation_loss(prediction, target, mask, self.gripper_weight)

    def encoded_target(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """The expert's actions as they should be predicted (B, K, A), and which count (B, K)."""
        mask = torch.tensor(batch.actions_mask, device=self.device)
        actions = torch.tensor(batch.actions, device=self.device)
        readings = torch.tensor(batch.observations.proprioception, device=self.device)
        return self.codec.encode(actions, readings).masked_fill(~mask[..., None], 0), mask

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, which are all that `from_pretrained` needs."""
        save_policy_folder(Path(folder), self.config, self.state_dict())

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> Self:
        """The policy in this folder. Raises UserError when a file is missing or does not fit."""
        folder = Path(folder)
        config = build_config(cls.config_class, read_config(folder), folder / CONFIG_FILE)
        policy = cls(config, placeholder_statistics(config.env_config.action_dim))
        load_weights(policy, read_weights(folder), folder)
        return policy.eval()

    def check_count(self, observations: ObservationBatch) -> None:
        """Raise UserError when a scene has more objects than the policy can take."""
        is_object = observations.objects_mask & (observations.objects[..., IS_BOX] < 0.5)  # (B, M)
        most = int(is_object.sum(axis=1).max(initial=0))
        if most > self.max_objects:
            raise UserError(
                f"policy {self.name} takes at most {self.max_objects} objects, "
                f"this scene has {most}"
            )


def placeholder_statistics(action_dim: int) -> Statistics:
    """Constants to build a policy with whose own ones are about to be loaded."""
    return Statistics(
        proprioception_mean=np.zeros(len(PROPRIOCEPTION), np.float32),
        proprioception_std=np.ones(len(PROPRIOCEPTION), np.float32),
        action_mean=np.zeros(action_dim, np.float32),
        action_std=np.ones(action_dim, np.float32),
    )


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Without gradients, dropout and other randomness of training; the mode is put back after."""
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        module.train(was_training)
