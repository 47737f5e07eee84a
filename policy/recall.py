"""Recalls where named objects were seen at the episode's start, before the hand hid them.

What is to be put down hides the object beside which it belongs, and then a camera that looks for
the one takes it for the other. The first images show both; what the hand has moved since is known
from the newest ones. Which of them to believe is learned, for each role in the sentence apart.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

HIDDEN = 96


class Recall(nn.Module):
    """Places (B, R, 2) seen now -> the places after one has thought back."""

    def __init__(self, *, n_roles: int, n_evidence: int, n_readings: int) -> None:
        super().__init__()
        self.seen = nn.Linear(2 + 2 * n_evidence + n_readings, HIDDEN)
        self.roles = nn.Parameter(torch.zeros(n_roles, HIDDEN))
        self.change = nn.Sequential(
            nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, 2)
        )

    def forward(self, places: Tensor, now: Tensor, first: Tensor, readings: Tensor) -> Tensor:
        """From what the cameras say now and said first (B, R, E), and the robot's readings."""
        readings = readings[:, None].expand(-1, places.shape[1], -1)  # (B, R, P)
        hidden = self.seen(torch.cat([places, now, first, readings], dim=-1)) + self.roles
        recalled: Tensor = places + self.change(hidden)
        return recalled
