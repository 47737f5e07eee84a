"""Further questions to the decoder: "where is the red block?", for every phrase, in every frame.

Imitation alone lets a policy guess the named object from where the gripper is heading already.
These answers cannot be guessed, and they are free in simulation. Their targets are the
simulator's object positions: they are read in training only, never when acting.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.policy.actions import masked_mean
from fetchlab.sim.observation import ObservationBatch
from fetchlab.sim.scene import COLOURS
from fetchlab.tokenizers.instruction import InstructionTokenizer, split
from fetchlab.tokenizers.objects import from_table_units, to_table_units


class PositionQueries(nn.Module):
    """One query for each phrase, and the head that reads positions from the answers."""

    def __init__(self, phrases: Sequence[str], *, d_model: int) -> None:
        super().__init__()
        self.phrases = tuple(phrases)
        self.colours = [named_colour(phrase) for phrase in phrases]
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
        return masked_mean((self.head(answers) - to_table_units(positions)).abs(), known)

    def targets(
        self, observations: ObservationBatch, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """Positions (B, J, 2) [m], and which phrases mean exactly one object (B, J)."""
        objects = torch.tensor(observations.objects, device=device)
        present = torch.tensor(observations.objects_mask, device=device)
        is_meant = objects[..., [2 + colour for colour in self.colours]] > 0.5  # (B, M, J)
        is_meant = is_meant & present[..., None]  # (B, M, J)
        known = is_meant.sum(dim=1) == 1  # (B, J)
        xy = torch.einsum("bmj,bmx->bjx", is_meant.float(), objects[..., :2])  # (B, J, 2)
        return xy, known


def named_colour(phrase: str) -> int:
    """Number of the one colour that the phrase names. Raises UserError for none or several."""
    named = [i for i, colour in enumerate(COLOURS) if colour in split(phrase)]
    if len(named) != 1:
        raise UserError(
            f"the phrase {phrase!r} must name exactly one of the colours {', '.join(COLOURS)}"
        )
    return named[0]
