"""Further questions to the decoder: "where is the red mug?", for every phrase, in every frame.

Imitation alone lets a policy guess the named object from where the gripper is heading already.
These answers cannot be guessed, and they are free in simulation. Their targets are the
simulator's object positions: they are read in training only, never when acting.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fetchlab.policy.actions import masked_mean
from fetchlab.policy.references import are_meant, look
from fetchlab.sim.language import read_phrase
from fetchlab.sim.observation import HEIGHT, POSITION, ObservationBatch
from fetchlab.tokenizers.instruction import InstructionTokenizer
from fetchlab.tokenizers.objects import from_table_units, to_table_units


class PositionQueries(nn.Module):
    """One query for each phrase, and the head that reads positions from the answers.

    Raises UserError for a phrase that names no kind of object.
    """

    looks: Tensor

    def __init__(self, phrases: Sequence[str], *, d_model: int) -> None:
        super().__init__()
        self.phrases = tuple(phrases)
        looks = torch.tensor([look(read_phrase(phrase)) for phrase in phrases])
        self.register_buffer("looks", looks, persistent=False)  # (J, L)
        self.question = nn.Parameter(torch.randn(d_model))
        self.head = nn.Linear(d_model, 2)

    def queries(self, instruction: InstructionTokenizer, gain: float) -> Tensor:
        """(J, D) the question "where is …?" about each phrase."""
        return self.question + gain * instruction.mean(self.phrases)

    def positions(self, answers: Tensor) -> Tensor:
        """Answers (B, J, D) -> x, y (B, J, 2) in metres."""
        return from_table_units(self.head(answers))

    def loss(self, answers: Tensor, observations: ObservationBatch) -> Tensor:
        """Mean distance along an axis, in units of the table, over phrases with one object."""
        positions, known = self.targets(observations, answers.device)
        target = to_table_units(positions[..., POSITION])  # (B, J, 2)
        return masked_mean((self.head(answers) - target).abs(), known)

    def targets(
        self, observations: ObservationBatch, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """x, y, z (B, J, 3) [m], and which phrases mean exactly one object (B, J)."""
        objects = torch.tensor(observations.objects, device=device)
        present = torch.tensor(observations.objects_mask, device=device)
        is_meant = are_meant(objects, self.looks[None]) & present[..., None]  # (B, M, J)
        known = is_meant.sum(dim=1) == 1  # (B, J)
        places = torch.cat([objects[..., POSITION], objects[..., [HEIGHT]]], dim=-1)  # (B, M, 3)
        return torch.einsum("bmj,bmx->bjx", is_meant.float(), places), known
