"""Teaches one attention head to point: the question about an object must look where it is seen.

Without it a policy may need hundreds of steps before any query looks at any object, since at first
all tokens get the same attention and nearly the same gradient. The targets are the simulator's
object positions, projected into the cameras that stand still; they are read in training only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from fetchlab.policy.actions import masked_mean
from fetchlab.sim.cameras import CAMERAS, projection

LEAST = 1e-6  # attention below this costs no more


class Pointing(nn.Module):
    """Cross-entropy between a head's attention and the patches where the objects are."""

    cameras: Tensor

    def __init__(self, cameras: Sequence[str]) -> None:
        super().__init__()
        self.n_cameras = len(cameras)
        self.still = [i for i, name in enumerate(cameras) if not CAMERAS[name].on_hand]
        matrices = [projection(CAMERAS[cameras[i]]) for i in self.still]
        matrix = torch.tensor(np.array(matrices), dtype=torch.float32).reshape(-1, 3, 4)
        self.register_buffer("cameras", matrix, persistent=False)  # (S, 3, 4)

    def loss(self, maps: Tensor, positions: Tensor, known: Tensor) -> Tensor:
        """maps (B, J, C, rows, columns) of attention; x, y, z (B, J, 3) [m] of what is asked for.

        `known` (B, J) tells which of them there are. A camera counts where it sees the object.
        """
        maps = maps[:, :, self.still].transpose(1, 2)  # (B, S, J, rows, columns)
        share = maps / maps.sum(dim=(-2, -1), keepdim=True).clamp(min=LEAST)
        return self.loss_of_shares(share, positions, known)

    def loss_of_shares(self, share: Tensor, positions: Tensor, known: Tensor) -> Tensor:
        """The same of the still cameras' maps alone (B, S, J, rows, columns), each of sum 1."""
        u, v = self.project(positions)  # (B, S, J)
        rows, columns = share.shape[-2:]
        target = near_cells(v, rows)[..., None] * near_cells(u, columns)[..., None, :]
        inside = (u > 0) & (u < 1) & (v > 0) & (v < 1) & known[:, None]  # (B, S, J)
        entropy = -(target * share.clamp(min=LEAST).log()).sum(dim=(-2, -1))  # (B, S, J)
        return masked_mean(entropy[..., None], inside)

    def cells(self, points: Tensor, rows: int, columns: int) -> Tensor:
        """(B, S, M, rows · columns) which cells of a grid are next to points (B, M, 3) [m]."""
        u, v = self.project(points)  # (B, S, M)
        near = near_cells(v, rows)[..., None] * near_cells(u, columns)[..., None, :]
        return near.flatten(-2) > 0

    def project(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """u and v (B, S, J), from 0 to 1 across each image, of points (B, J, 3) [m]."""
        points = nn.functional.pad(points, (0, 1), value=1.0)  # (B, J, 4) homogeneous
        seen = torch.einsum("sik,bjk->bsji", self.cameras, points)  # (B, S, J, 3)
        return seen[..., 0] / seen[..., 2], seen[..., 1] / seen[..., 2]


def near_cells(coordinate: Tensor, n_cells: int) -> Tensor:
    """Weights (…, n) of the one or two cells whose centres are next to a coordinate from 0 to 1."""
    centres = (torch.arange(n_cells, device=coordinate.device) + 0.5) / n_cells
    weights = (1 - (coordinate[..., None] - centres).abs() * n_cells).clamp(min=0)  # (…, n)
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=LEAST)
