"""Pointers: where the cameras see what a few words name, as a map, a place and a token.

A name is the sum of its words, and a map is linear in it: "red mug" is bright where the map of
"red" and the map of "mug" both are. So pairs never named before can be found, too. The maps are
taught with the simulator's object positions, which are read in training only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fetchlab.policy.actions import masked_mean
from fetchlab.policy.pointing import Pointing
from fetchlab.policy.spots import Spots
from fetchlab.sim.observation import HEIGHT, LOOK, POSITION
from fetchlab.tokenizers.objects import to_table_units, ways

HIDDEN = 64  # units that turn image coordinates into places
TOLD = 192  # units that turn places into tokens


class Pointed(NamedTuple):
    """What J names point at, through S cameras that stand still."""

    maps: Tensor  # (B, J, S, P) logits over the patches
    fits: Tensor  # (B, J, C + 1) logits of the spots on the table, and of the tool
    shares: Tensor  # (B, J, S, P) of the patches around the spot on which the cameras agree
    evidence: Tensor  # (B, J, 3 S) its image coordinates -1 … 1, and how sure each camera is
    places: Tensor  # (B, J, 2) x, y in units of the table


class Robot(NamedTuple):
    """What the robot reads about itself."""

    tool: Tensor  # (B, 3) x, y, z [m]
    readings: Tensor  # (B, P) all of them, normalized


class Found(NamedTuple):
    """What the pointers make of J names."""

    tokens: Tensor  # (B, J, D)
    pointed: Pointed
    seen: Tensor  # (B, S, P, D) what they looked at


class Pointers(nn.Module):
    """Names (B, J, D) and patches (B, V, P, D) -> a token for each name, and how it came about.

    A token tells where the object is, how far the tool has to go there, and what is seen there.
    Where the hand hides an object, or has it, the robot's readings tell more than the images.
    """

    grid: Tensor

    def __init__(
        self, cameras: Sequence[str], grid: tuple[int, int], *, n_readings: int, d_model: int
    ) -> None:
        super().__init__()
        self.taught = Pointing(cameras)
        self.rows, self.columns = grid
        self.spots = Spots(self.taught, *grid)
        self.norm = nn.LayerNorm(d_model)
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        n_evidence = 3 * len(self.taught.still)
        self.place = nn.Sequential(
            nn.Linear(n_evidence + n_readings, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, 2),
        )
        self.coordinates = nn.Sequential(
            nn.Linear(n_evidence + 4, TOLD), nn.GELU(), nn.Linear(TOLD, d_model)
        )
        u = (torch.arange(self.columns) + 0.5) / self.columns * 2 - 1
        v = (torch.arange(self.rows) + 0.5) / self.rows * 2 - 1
        places = torch.stack([u.repeat(self.rows), v.repeat_interleave(self.columns)], dim=-1)
        self.register_buffer("grid", places, persistent=False)  # (P, 2)

    def forward(self, names: Tensor, patches: Tensor, robot: Robot) -> Found:
        """In the newest images of the cameras that stand still."""
        newest = patches[:, -self.taught.n_cameras :]  # (B, C, P, D)
        seen: Tensor = self.norm(newest[:, self.taught.still])  # (B, S, P, D)
        pointed = self.point(names, seen, robot)
        return Found(self._tokens(pointed, seen, robot), pointed, seen)

    def point(self, names: Tensor, seen: Tensor, robot: Robot) -> Pointed:
        """Names (B, J, D) or (J, D) in normalized patches (B, S, P, D)."""
        queries = self.query(names) / seen.shape[-1] ** 0.5
        queries = queries.expand(len(seen), -1, -1)[:, None]  # (B, 1, J, D)
        maps = (queries @ self.key(seen).transpose(-2, -1)).transpose(1, 2)  # (B, J, S, P)
        fits, around = self.spots(maps, robot.tool)  # (B, J, C + 1), (B, J, S, P)
        sure = (maps.softmax(dim=-1) * around).sum(dim=-1)  # (B, J, S) 1: nowhere else
        shares = maps.masked_fill(~around, -torch.inf).softmax(dim=-1)
        where = shares @ self.grid  # (B, J, S, 2)
        evidence = torch.cat([where.flatten(2), sure], dim=-1)  # (B, J, 3 S)
        readings = robot.readings[:, None].expand(-1, evidence.shape[1], -1)
        places = self.place(torch.cat([evidence, readings], dim=-1))
        return Pointed(maps, fits, shares, evidence, places)

    def _tokens(self, pointed: Pointed, seen: Tensor, robot: Robot) -> Tensor:
        """(B, J, D) where a name points, how far that is, and what is seen there."""
        shares = pointed.shares / seen.shape[1]
        shown = self.value(shares.flatten(2) @ seen.flatten(1, 2))  # (B, J, D)
        way = ways(pointed.places, robot.tool[:, :2])  # (B, J, 2)
        told = self.coordinates(torch.cat([pointed.evidence, pointed.places, way], dim=-1))
        tokens: Tensor = shown + told
        return tokens

    # Teaching -----------------------------------------------------------------------------

    def place_loss(self, pointed: Pointed, positions: Tensor, known: Tensor) -> Tensor:
        """Mean distance along an axis, in units of the table, from x, y, z (B, J, 3) [m]."""
        target = to_table_units(positions[..., POSITION])  # (B, J, 2)
        return masked_mean((pointed.places - target).abs(), known)

    def map_loss(self, pointed: Pointed, positions: Tensor, known: Tensor) -> Tensor:
        """Cross-entropy between the maps and the patches where the objects are."""
        shares = pointed.maps.softmax(dim=-1)  # (B, J, S, P)
        shares = shares.reshape(*shares.shape[:-1], self.rows, self.columns)
        return self.taught.loss_of_shares(shares.transpose(1, 2), positions, known)

    def naming_loss(
        self, pointed: Pointed, looks: Tensor, objects: Tensor, present: Tensor
    ) -> Tensor:
        """Cross-entropy of the full names (J, L) where objects (B, M, F) are: only one fits."""
        full = looks.sum(dim=-1) > 1.5  # colour and shape
        points = torch.cat([objects[..., POSITION], objects[..., [HEIGHT]]], dim=-1)  # (B, M, 3)
        patch, inside = self.spots.patch_of(points)  # (B, S, M) each
        maps = pointed.maps[:, full].permute(0, 2, 3, 1)  # (B, S, P, J)
        index = patch[..., None].expand(-1, -1, -1, maps.shape[-1])
        scores = maps.gather(2, index).log_softmax(dim=-1)  # (B, S, M, J)
        right = objects[..., LOOK] @ looks[full].T > 1.5  # (B, M, J)
        counted = inside & (present & right.any(dim=-1))[:, None]  # (B, S, M)
        allowed = right[:, None] | ~counted[..., None]  # somewhere, so that gradients exist
        share = scores.masked_fill(~allowed, -torch.inf).logsumexp(dim=-1)  # (B, S, M)
        return -masked_mean(share[..., None], counted)
