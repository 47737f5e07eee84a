"""The lesson's baseline: objects written one after another into fixed slots, and an MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.policy.actions import masked_mean
from fetchlab.policy.augmentation import (
    permute_colours,
    permute_slots,
    resample_distractors,
    take_rows,
)
from fetchlab.policy.base import Statistics, TrainingBatch
from fetchlab.policy.learned import ChunkedPolicy, PolicyConfig
from fetchlab.policy.references import Requests, are_meant
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import (
    COLOUR,
    IS_BOX,
    POSITION,
    PROPRIOCEPTION,
    TOOL,
    ObservationBatch,
)
from fetchlab.tokenizers.instruction import Vocabulary
from fetchlab.tokenizers.objects import (
    TABLE_UNIT,
    between,
    object_features,
    to_table_units,
    ways,
)
from fetchlab.tokenizers.proprio import ProprioceptionNormalizer

N_SLOTS = 6


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
    """rename the colours, in the objects and in the instruction alike; never to held-out pairs
    where the world keeps them out"""
    resample_distractors: bool = True
    """keep the named object, redraw the others and their number; without it the demonstrations'
    few thousand scenes are memorized"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for hidden in (self.lookup_hidden, self.control_hidden):
            if not hidden or min(hidden) < 1:
                raise UserError(f"hidden layers need at least one unit each, got {hidden}")


class SlotMlpPolicy(ChunkedPolicy):
    """Slots (B, 6 · F) and what is asked for -> lookup; with proprioception (B, P) -> chunk."""

    config_class = SlotMlpConfig
    max_objects = N_SLOTS

    def __init__(self, config: SlotMlpConfig, statistics: Statistics) -> None:
        super().__init__(config, statistics)
        self._config = config
        self.vocabulary = Vocabulary((*config.sentences, *config.phrases))
        self.normalize = ProprioceptionNormalizer(
            statistics.proprioception_mean, statistics.proprioception_std
        )
        self.requests = Requests(config.env_config.task)
        found, n_positions = config.lookup_hidden[-1], 2 * self.requests.n_named
        self.slot_width = slot_width(config.env_config)
        self.lookup = mlp(n_lookup(config), config.lookup_hidden)
        self.position_head = nn.Linear(found, n_positions)
        self.control = mlp(n_control(config), config.control_hidden)
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
        return self._from_state(observations, objects, mask, self._looks(observations))[0]

    def loss(self, batch: TrainingBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Imitation, in training of an augmented scene."""
        observations = batch.observations
        self.check_count(observations)
        objects, mask = object_features(observations, self.device)  # (B, M, F), (B, M)
        looks = self._looks(observations)  # (B, R, L)
        if self.training:
            objects, mask, looks = self._augment(observations, objects, mask, looks)
        prediction, positions = self._from_state(observations, objects, mask, looks)
        loss, metrics = self.imitation_loss(prediction, batch)
        target = named_positions(objects, mask, looks)  # (B, R, 2)
        position_l1 = masked_mean((positions - target).abs(), looks.any(dim=2))
        metrics["position_l1"] = position_l1.detach()
        return loss + self._config.position_weight * position_l1, metrics

    def _augment(
        self, observations: ObservationBatch, objects: Tensor, mask: Tensor, looks: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if self._config.resample_distractors:
            readings = torch.tensor(observations.proprioception, device=self.device)
            gripper = to_table_units(readings[:, TOOL][:, POSITION])  # (B, 2)
            objects, mask = resample_distractors(objects, mask, looks, gripper)
        if self._config.permute_colours:
            objects, looks = permute_colours(objects, looks, self.env_config.pairs)
        if self._config.permute_slots:
            objects, mask = permute_slots(objects, mask)
        return objects, mask, looks

    def _from_state(
        self, observations: ObservationBatch, objects: Tensor, mask: Tensor, looks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Encoded actions (B, K, A), and where the named objects seem to be (B, R, 2)."""
        slots = fill_slots(objects, mask)[..., : self.slot_width]  # (B, 6, ≤ F)
        parts = [slots.flatten(1), looks.flatten(1)]
        parts.append(self.requests.kinds(observations.instructions, self.device))
        known = []
        if self.requests.has_box:
            parts.append(box_place(objects, mask))  # (B, 3)
            known.append(parts[-1][:, None, :2])
        found = self.lookup(torch.cat(parts, dim=1))  # (B, hidden)
        positions = self.position_head(found).unflatten(1, (-1, 2))  # (B, R, 2)
        places = torch.cat([positions, *known], dim=1)  # (B, R, 2), and the box's
        told = [found, positions.flatten(1), self._ways(observations, places)]
        state = [*told, self.normalize(observations)]
        encoded: Tensor = self.action_head(self.control(torch.cat(state, dim=1)))
        return encoded.reshape(-1, *self.chunk_shape), positions

    def _ways(self, observations: ObservationBatch, places: Tensor) -> Tensor:
        """From the tool to each place (B, R, 2), and, where the named object is to end elsewhere,
        to that goal, and from the object to all of them: (B, 2 R) or (B, 4 R + 4)."""
        tool = torch.tensor(observations.proprioception, device=self.device)[:, TOOL][:, POSITION]
        if self.requests.n_places == 1:
            return ways(places, tool).flatten(1)
        by, offset = self.requests.goals(observations.instructions, self.device)  # (B,), (B, 2)
        rows = torch.arange(len(by), device=self.device)
        goal = places[rows, by] + offset / TABLE_UNIT  # (B, 2)
        places = torch.cat([places, goal[:, None]], dim=1)  # (B, R + 1, 2)
        return torch.cat([ways(places, tool).flatten(1), between(places)[:, 0]], dim=1)

    def _looks(self, observations: ObservationBatch) -> Tensor:
        """(B, R, L) the colours and shapes that the instruction names."""
        for sentence in set(observations.instructions):
            self.vocabulary.numbers(sentence)
        return self.requests.looks(observations.instructions, self.device)


def n_lookup(config: SlotMlpConfig) -> int:
    """How many numbers the lookup reads: slots, what is asked for, and the box if there is one."""
    requests = Requests(config.env_config.task)
    slots = N_SLOTS * slot_width(config.env_config)
    return slots + requests.size + (3 if requests.has_box else 0)


def n_control(config: SlotMlpConfig) -> int:
    """How many numbers the control part reads: what was found, the ways there, and the readings."""
    requests = Requests(config.env_config.task)
    places = requests.n_places
    n_ways = places if places == 1 else 2 * (places + 1)  # a goal, too, and from the object to each
    return config.lookup_hidden[-1] + 2 * (requests.n_named + n_ways) + len(PROPRIOCEPTION)


def slot_width(env_config: EnvConfig) -> int:
    """How many features of an object fill its slot.

    A single shape is left out: it would be constant, and disturb the slots that training never
    fills.
    """
    return COLOUR.stop if len(env_config.shapes) == 1 else IS_BOX


def mlp(n_inputs: int, hidden: Sequence[int]) -> nn.Sequential:
    """Linear layers, each with a ReLU."""
    layers: list[nn.Module] = []
    for before, after in zip((n_inputs, *hidden), hidden, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


def named_positions(objects: Tensor, mask: Tensor, looks: Tensor) -> Tensor:
    """x, y (B, R, 2) of the objects (B, M, F) that are named (B, R, L), in table units."""
    is_named = are_meant(objects, looks) & mask[..., None]  # (B, M, R)
    return torch.einsum("bmr,bmx->brx", is_named.float(), objects[..., POSITION])


def box_place(objects: Tensor, mask: Tensor) -> Tensor:
    """(B, 3) x, y of the open box in table units, and whether there is one."""
    is_box = (mask & (objects[..., IS_BOX] > 0.5)).float()  # (B, M)
    place = torch.einsum("bm,bmx->bx", is_box, objects[..., POSITION])  # (B, 2)
    return torch.cat([place, is_box.sum(dim=1, keepdim=True)], dim=1)  # (B, 3)


def fill_slots(objects: Tensor, mask: Tensor) -> Tensor:
    """Objects (B, M, F) in the first of six slots, in their order: (B, 6, F).

    Empty slots are 0, and the box is in none.
    """
    filled = mask & (objects[..., IS_BOX] < 0.5)  # (B, M)
    order = (~filled).long().argsort(dim=1, stable=True)[:, :N_SLOTS]  # (B, ≤ 6)
    slots = take_rows(objects * filled[..., None], order)  # (B, ≤ 6, F)
    return nn.functional.pad(slots, (0, 0, 0, N_SLOTS - slots.shape[1]))  # (B, 6, F)
