"""Where on the table, or between the fingers, several cameras agree that a named object is.

Each camera has its own map of a name. Seen from above, a block is hard to tell from a ball, and the
arm hides what is below it; then that camera's map is bright in the wrong place, and the other one's
is not. So a spot counts by the sum of what all cameras say about it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fetchlab.policy.actions import masked_mean
from fetchlab.policy.pointing import Pointing

# Spots on the table: from, to, and how far apart; and the height of an object's middle [m].
ALONG, ACROSS, APART, HEIGHT = (0.15, 0.78), (-0.38, 0.38), 0.03, 0.025
NEAR = 2.5  # patches from a spot that belong to it
CLOSE = 0.04  # spots this close to an object are right [m]


class Spots(nn.Module):
    """Maps (B, J, S, P) -> how well each of C spots on the table, and the tool, fits (B, J, C + 1).

    The product of what the cameras say, trained as such: a camera that cannot see a spot has to
    learn to say nothing about it.
    """

    places: Tensor
    patches: Tensor
    near: Tensor

    def __init__(self, taught: Pointing, rows: int, columns: int) -> None:
        super().__init__()
        self.taught, self.rows, self.columns = taught, rows, columns
        x, y = (torch.arange(start, end, APART) for start, end in (ALONG, ACROSS))
        places = torch.cartesian_prod(x, y)  # (C, 2)
        places = torch.cat([places, torch.full_like(places[:, :1], HEIGHT)], dim=1)
        self.register_buffer("places", places[None], persistent=False)  # (1, C, 3)
        self.register_buffer("patches", self.patch_of(places[None])[0], persistent=False)
        cells = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))  # (P, 2)
        near = (cells[:, None] - cells).abs().amax(dim=-1) < NEAR
        self.register_buffer("near", near, persistent=False)  # (P, P)

    def forward(self, maps: Tensor, tool: Tensor | None) -> tuple[Tensor, Tensor]:
        """From logits of the maps, and x, y, z (B, 3) of the tool [m]; None: nothing can be held.

        How well each spot fits, as logits (B, J, C + 1), and which patches (B, J, S, P) are near
        the one that fits best.
        """
        patches = self.patches.expand(len(maps), -1, -1)  # (B, S, C)
        if tool is not None:
            held, _ = self.patch_of(tool[:, None])  # (B, S, 1)
            patches = torch.cat([patches, held], dim=-1)  # (B, S, C + 1)
        said = maps.log_softmax(dim=-1).transpose(1, 2)  # (B, S, J, P)
        fits = said.gather(-1, patches[:, :, None].expand(-1, -1, said.shape[2], -1)).sum(dim=1)
        best = fits.argmax(dim=-1)[:, None].expand(-1, patches.shape[1], -1)  # (B, S, J)
        return fits, self.near[patches.gather(-1, best)].transpose(1, 2)

    def loss(self, fits: Tensor, tool: Tensor, positions: Tensor, known: Tensor) -> Tensor:
        """Cross-entropy with the spots close to x, y, z (B, J, 3) [m], where they are known."""
        places = torch.cat([self.places.expand(len(tool), -1, -1), tool[:, None]], dim=1)
        right = torch.cdist(positions, places) < CLOSE  # (B, J, C + 1)
        right = right & fits.isfinite()  # and not on a patch that is to be ignored
        known = known & right.any(dim=-1)
        right = right | ~known[..., None]  # somewhere, so that gradients exist
        share = fits.masked_fill(~right, -torch.inf).logsumexp(-1) - fits.logsumexp(-1)  # (B, J)
        return -masked_mean(share[..., None], known)

    def patch_of(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """The patch (B, S, M) that shows each of these points (B, M, 3), and whether one does."""
        u, v = self.taught.project(points)  # (B, S, M)
        inside = (u > 0) & (u < 1) & (v > 0) & (v < 1)
        column = (u * self.columns).long().clamp(0, self.columns - 1)
        row = (v * self.rows).long().clamp(0, self.rows - 1)
        return row * self.columns + column, inside
