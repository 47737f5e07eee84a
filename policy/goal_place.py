"""Where the sentence wants the named object: a blend of the places that are named, and an offset.

"Left of the blue ball" is the ball's place and ten centimetres, "in the box" the box's place. The
words choose, and what they chose is told in the same terms as the places: how far the tool has to
go, and how far the object still is from there. Taught with the simulator's positions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from fetchlab.policy.actions import masked_mean
from fetchlab.tokenizers.objects import WAY_GAIN, ways

HIDDEN = 64  # units that turn words into a blend and an offset
TOLD = 96  # units that turn a goal into a token


class Aim(NamedTuple):
    """Where an object should go."""

    token: Tensor  # (B, 1, D)
    place: Tensor  # (B, 2) x, y in units of the table


class GoalPlace(nn.Module):
    """Words (B, D) and the places of R names (B, R, 2), the object to act on first -> an Aim."""

    def __init__(self, *, n_named: int, d_model: int) -> None:
        super().__init__()
        self.meant = nn.Sequential(
            nn.Linear(d_model, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, n_named + 2)
        )
        self.told = nn.Sequential(nn.Linear(6, TOLD), nn.GELU(), nn.Linear(TOLD, d_model))

    def forward(self, words: Tensor, places: Tensor, tool: Tensor) -> Aim:
        """The tool is x, y (B, 2) [m]."""
        meant = self.meant(words)  # (B, R + 2)
        shares, offset = meant[:, :-2].softmax(dim=-1), meant[:, -2:]
        place = (shares[..., None] * places).sum(dim=1) + offset  # (B, 2)
        way, left = ways(place[:, None], tool)[:, 0], WAY_GAIN * (place - places[:, 0])
        return Aim(self.told(torch.cat([place, way, left], dim=-1))[:, None], place)

    def loss(self, aim: Aim, target: Tensor, known: Tensor) -> Tensor:
        """Mean distance along an axis, in units of the table, from (B, 2), where it is known."""
        return masked_mean((aim.place - target).abs(), known)
