"""The lesson's baseline: objects written one after another into fixed slots, and an MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.policy.augmentation import permute_colours, permute_slots, resample_distractors
from fetchlab.policy.base import Statistics, TrainingBatch
from fetchlab.policy.learned import ChunkedPolicy, PolicyConfig
from fetchlab.sim.observation import OBJECT_FEATURES, PROPRIOCEPTION, ObservationBatch
from fetchlab.sim.scene import COLOURS
from fetchlab.tokenizers.instruction import Vocabulary, split
from fetchlab.tokenizers.objects import object_features, to_table_units
from fetchlab.tokenizers.proprio import ProprioceptionNormalizer

N_SLOTS = 6
END_EFFECTOR_XY = slice(PROPRIOCEPTION.index("end_effector_x [m]"), -1)


@dataclass(frozen=True, kw_only=True)
class SlotMlpConfig(PolicyConfig):
    """Settings of the slot baseline; the augmentations act in training only."""

    name: str = "slot_mlp"
    lookup_hidden: tuple[int, ...] = (256, 256)
    """units of the layers that find the named object in the slots"""
    control_hidden: tuple[int, ...] = (256, 256)
    """units of the layers that turn what was found, and the robot's readings, into a chunk"""
    position_weight: float = 4.0
    """weight of the question where the named object is, asked in training as the transformer is"""
    permute_slots: bool = True
    """redraw the order of the objects"""
    permute_colours: bool = True
    """rename the colours, in the objects and in the instruction alike"""
    resample_distractors: bool = True
    """keep the named object, redraw the others and their number; without it the demonstrations'
    few thousand scenes are memorized"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for hidden in (self.lookup_hidden, self.control_hidden):
            if not hidden or min(hidden) < 1:
                raise UserError(f"hidden layers need at least one unit each, got {hidden}")


class SlotMlpPolicy(ChunkedPolicy):
    """Slots (B, 6 · 8) and named colour (B, 6) -> lookup; with proprioception (B, P) -> chunk."""

    config_class = SlotMlpConfig
    max_objects = N_SLOTS

    def __init__(self, config: SlotMlpConfig, statistics: Statistics) -> None:
        super().__init__(config, statistics)
        self._config = config
        self.vocabulary = Vocabulary((*config.sentences, *config.phrases))
        self.normalize = ProprioceptionNormalizer(
            statistics.proprioception_mean, statistics.proprioception_std
        )
        self.lookup = mlp(N_SLOTS * len(OBJECT_FEATURES) + len(COLOURS), config.lookup_hidden)
        found = config.lookup_hidden[-1]
        self.position_head = nn.Linear(found, 2)
        self.control = mlp(found + 2 + len(PROPRIOCEPTION), config.control_hidden)
        self.chunk_shape = (config.chunk_size, config.env_config.action_dim)
        n_outputs = config.chunk_size * config.env_config.action_dim
        self.action_head = nn.Linear(config.control_hidden[-1], n_outputs)

    @property
    def config(self) -> SlotMlpConfig:
        return self._config

    def predict(self, observations: ObservationBatch) -> Tensor:
        """(B, K, A) encoded actions. Raises UserError for more objects than slots."""
        self.check_count(observations)
        objects, mask = object_features(observations, self.device)
        return self._from_state(observations, objects, mask, self._named(observations))[0]

    def loss(self, batch: TrainingBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Imitation, in training of an augmented scene."""
        observations = batch.observations
        self.check_count(observations)
        objects, mask = object_features(observations, self.device)  # (B, M, F), (B, M)
        named = self._named(observations)  # (B, 6)
        if self.training:
            objects, mask, named = self._augment(observations, objects, mask, named)
        prediction, position = self._from_state(observations, objects, mask, named)
        loss, metrics = self.imitation_loss(prediction, batch)
        position_l1 = (position - named_position(objects, mask, named)).abs().mean()
        metrics["position_l1"] = position_l1.detach()
        return loss + self._config.position_weight * position_l1, metrics

    def _augment(
        self, observations: ObservationBatch, objects: Tensor, mask: Tensor, named: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if self._config.resample_distractors:
            readings = torch.tensor(observations.proprioception, device=self.device)
            gripper = to_table_units(readings[:, END_EFFECTOR_XY])  # (B, 2)
            objects, mask = resample_distractors(objects, mask, named, gripper)
        if self._config.permute_colours:
            objects, named = permute_colours(objects, named)
        if self._config.permute_slots:
            objects, mask = permute_slots(objects, mask)
        return objects, mask, named

    def _from_state(
        self, observations: ObservationBatch, objects: Tensor, mask: Tensor, named: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Encoded actions (B, K, A), and where the named object seems to be (B, 2)."""
        slots = fill_slots(objects, mask)  # (B, 6 · F)
        found = self.lookup(torch.cat([slots, named], dim=1))  # (B, hidden)
        position = self.position_head(found)  # (B, 2)
        state = torch.cat([found, position, self.normalize(observations)], dim=1)
        encoded: Tensor = self.action_head(self.control(state))
        return encoded.reshape(-1, *self.chunk_shape), position

    def _named(self, observations: ObservationBatch) -> Tensor:
        """(B, 6) which colours the instruction names."""
        for sentence in set(observations.instructions):
            self.vocabulary.numbers(sentence)
        rows = [
            [float(colour in split(sentence)) for colour in COLOURS]
            for sentence in observations.instructions
        ]
        return torch.tensor(rows, device=self.device)


def mlp(n_inputs: int, hidden: Sequence[int]) -> nn.Sequential:
    """Linear layers, each with a ReLU."""
    layers: list[nn.Module] = []
    for before, after in zip((n_inputs, *hidden), hidden, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


def named_position(objects: Tensor, mask: Tensor, named: Tensor) -> Tensor:
    """x, y (B, 2) of the object (B, M, F) whose colour is named (B, 6), in table units."""
    is_named = (objects[..., 2:] @ named[..., None])[..., 0] * mask  # (B, M)
    return torch.einsum("bm,bmx->bx", is_named, objects[..., :2])


def fill_slots(objects: Tensor, mask: Tensor) -> Tensor:
    """Objects (B, M, F) in the first of six slots, in their order; empty slots 0: (B, 6 · F)."""
    order = (~mask).long().argsort(dim=1, stable=True)[:, :N_SLOTS]  # (B, ≤ 6)
    slots = (objects * mask[..., None]).gather(1, order[..., None].expand(-1, -1, objects.shape[2]))
    slots = nn.functional.pad(slots, (0, 0, 0, N_SLOTS - slots.shape[1]))  # (B, 6, F)
    return slots.flatten(1)  # (B, 6 · F)
