"""Where on the table, or between the fingers, several cameras agree that a named object is.

Each camera has its own map of a name. Seen from above, a block is hard to tell from a ball, and the
arm hides what is below it; then that camera's map is bright in the wrong place, and the other one's
is not. So a spot counts by the sum of what all cameras say about it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fetchlab.policy.pointing import Pointing

# Spots on the table: from, to, and how far apart; and the height of an object's middle [m].
ALONG, ACROSS, APART, HEIGHT = (0.15, 0.78), (-0.38, 0.38), 0.03, 0.025
NEAR = 2.5  # patches from the spot that belong to it


class Spots(nn.Module):
    """Maps (B, J, S, P) -> the patches (B, J, S, P) around the spot on which the cameras agree."""

    patches: Tensor
    near: Tensor

    def __init__(self, taught: Pointing, rows: int, columns: int) -> None:
        super().__init__()
        self.taught, self.rows, self.columns = taught, rows, columns
        x, y = (torch.arange(start, end, APART) for start, end in (ALONG, ACROSS))
        spots = torch.cartesian_prod(x, y)  # (C, 2)
        spots = torch.cat([spots, torch.full_like(spots[:, :1], HEIGHT)], dim=1)
        patches, _ = self.patch_of(spots[None])
        self.register_buffer("patches", patches, persistent=False)  # (1, S, C)
        cells = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))  # (P, 2)
        near = (cells[:, None] - cells).abs().amax(dim=-1) < NEAR
        self.register_buffer("near", near, persistent=False)  # (P, P)

    @torch.no_grad()
    def forward(self, maps: Tensor, tool: Tensor) -> Tensor:
        """Logits of the maps, and x, y, z (B, 3) of the tool [m]; True where a patch is near."""
        held, _ = self.patch_of(tool[:, None])  # (B, S, 1)
        patches = torch.cat([self.patches.expand(len(held), -1, -1), held], dim=-1)  # (B, S, C + 1)
        said = maps.log_softmax(dim=-1).transpose(1, 2)  # (B, S, J, P)
        index = patches[:, :, None].expand(-1, -1, said.shape[2], -1)
        agreed = said.gather(-1, index).sum(dim=1)  # (B, J, C + 1)
        best = agreed.argmax(dim=-1)[:, None].expand(-1, patches.shape[1], -1)  # (B, S, J)
        around: Tensor = self.near[patches.gather(-1, best)].transpose(1, 2)
        return around  # (B, J, S, P)

    def patch_of(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """The patch (B, S, M) that shows each of these points (B, M, 3), and whether one does."""
        u, v = self.taught.project(points)  # (B, S, M)
        inside = (u > 0) & (u < 1) & (v > 0) & (v < 1)
        column = (u * self.columns).long().clamp(0, self.columns - 1)
        row = (v * self.rows).long().clamp(0, self.rows - 1)
        return row * self.columns + column, inside
