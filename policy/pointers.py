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
from fetchlab.policy.recall import Recall
from fetchlab.policy.spots import Spots
from fetchlab.sim.observation import HEIGHT, LOOK, POSITION
from fetchlab.tokenizers.objects import between, to_table_units, ways

HIDDEN = 96  # units that turn image coordinates into places
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


class Frames(NamedTuple):
    """Patches (B, C, P, D) of all cameras."""

    newest: Tensor
    first: Tensor | None  # of the episode, where it is remembered


class Pointers(nn.Module):
    """Names (B, R, D) and patches -> a token for each name, and how it came about.

    A token tells where the object is, how far it is from there to the tool and to whatever else is
    named, and what is seen there. Where the hand hides an object, or has it, the robot's readings
    and what is remembered tell more than the images.
    """

    grid: Tensor

    def __init__(
        self,
        cameras: Sequence[str],
        grid: tuple[int, int],
        *,
        n_named: int,
        n_readings: int,
        d_model: int,
        remembers: bool,
        looks_back: bool = False,
    ) -> None:
        super().__init__()
        self.looks_back = looks_back
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
        sizes = {"n_evidence": n_evidence, "n_readings": n_readings}
        self.recall = Recall(n_roles=n_named, **sizes) if remembers else None
        n_ways = 1 + n_named  # R: to the tool, and to all that is named
        self.coordinates = nn.Sequential(
            nn.Linear(n_evidence + 2 + 2 * n_ways, TOLD), nn.GELU(), nn.Linear(TOLD, d_model)
        )
        u = (torch.arange(self.columns) + 0.5) / self.columns * 2 - 1
        v = (torch.arange(self.rows) + 0.5) / self.rows * 2 - 1
        places = torch.stack([u.repeat(self.rows), v.repeat_interleave(self.columns)], dim=-1)
        self.register_buffer("grid", places, persistent=False)  # (P, 2)

    def forward(self, names: Tensor, frames: Frames, robot: Robot) -> Found:
        """The R named objects (B, R, D), in the images of the cameras that stand still."""
        back = frames.first if self.looks_back else None
        seen = self._still(frames.newest if back is None else back)
        pointed = self.point(names, seen, robot)
        if self.recall is not None and frames.first is not None:
            with torch.no_grad():  # it has its own lessons, wherever it is the newest
                *_, first = self._look(names, self._still(frames.first), tool=None)
            places = self.recall(pointed.places, pointed.evidence, first, robot.readings)
            pointed = pointed._replace(places=places)
        return Found(self._tokens(pointed, seen, robot), pointed, seen)

    def point(self, names: Tensor, seen: Tensor, robot: Robot) -> Pointed:
        """Names (B, J, D) or (J, D) in normalized patches (B, S, P, D)."""
        maps, fits, shares, evidence = self._look(names, seen, robot.tool)
        readings = robot.readings[:, None].expand(-1, evidence.shape[1], -1)
        places = self.place(torch.cat([evidence, readings], dim=-1))
        return Pointed(maps, fits, shares, evidence, places)

    def _still(self, patches: Tensor) -> Tensor:
        normalized: Tensor = self.norm(patches[:, self.taught.still])  # (B, S, P, D)
        return normalized

    def _look(
        self, names: Tensor, seen: Tensor, tool: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Maps, fits, shares and evidence, as in Pointed."""
        queries = self.query(names) / seen.shape[-1] ** 0.5
        queries = queries.expand(len(seen), -1, -1)[:, None]  # (B, 1, J, D)
        maps = (queries @ self.key(seen).transpose(-2, -1)).transpose(1, 2)  # (B, J, S, P)
        fits, around = self.spots(maps, tool)  # (B, J, C + 1), (B, J, S, P)
        sure = (maps.softmax(dim=-1) * around).sum(dim=-1)  # (B, J, S) 1: nowhere else
        shares = maps.masked_fill(~around, -torch.inf).softmax(dim=-1)
        where = shares @ self.grid  # (B, J, S, 2)
        return maps, fits, shares, torch.cat([where.flatten(2), sure], dim=-1)  # (B, J, 3 S)

    def _tokens(self, pointed: Pointed, seen: Tensor, robot: Robot) -> Tensor:
        """(B, R, D) where a name points, how far that is, and what is seen there."""
        shares = pointed.shares / seen.shape[1]
        shown = self.value(shares.flatten(2) @ seen.flatten(1, 2))  # (B, R, D)
        places = pointed.places
        way = ways(places, robot.tool[:, :2])  # (B, R, 2)
        told = [pointed.evidence, places, way, between(places)]
        tokens: Tensor = shown + self.coordinates(torch.cat(told, dim=-1))
        return tokens

    # Teaching -----------------------------------------------------------------------------

    def cells_of(self, objects: Tensor, present: Tensor) -> Tensor:
        """(B, S, M, P) which patches show the middle of an object (B, M, F), or are next to it."""
        cells = self.taught.cells(middles(objects), self.rows, self.columns)
        return cells & present[:, None, :, None]

    def without(self, pointed: Pointed, ignored: Tensor, robot: Robot) -> Pointed:
        """As if there were no patches that are to be ignored (B, J, S, P)."""
        maps = pointed.maps.masked_fill(ignored, -torch.inf)
        return pointed._replace(maps=maps, fits=self.spots(maps, robot.tool)[0])

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
        """Cross-entropy of the full names where objects (B, M, F) are: only one fits.

        `looks` (J, L) are those of the first J that are pointed at.
        """
        full = looks.sum(dim=-1) > 1.5  # colour and shape
        patch, inside = self.spots.patch_of(middles(objects))  # (B, S, M) each
        maps = pointed.maps[:, : len(looks)][:, full].permute(0, 2, 3, 1)  # (B, S, P, J)
        index = patch[..., None].expand(-1, -1, -1, maps.shape[-1])
        scores = maps.gather(2, index).log_softmax(dim=-1)  # (B, S, M, J)
        right = objects[..., LOOK] @ looks[full].T > 1.5  # (B, M, J)
        counted = inside & (present & right.any(dim=-1))[:, None]  # (B, S, M)
        allowed = right[:, None] | ~counted[..., None]  # somewhere, so that gradients exist
        share = scores.masked_fill(~allowed, -torch.inf).logsumexp(dim=-1)  # (B, S, M)
        return -masked_mean(share[..., None], counted)


def together(first: Pointed, second: Pointed) -> Pointed:
    """What the names of both point at, one after the other."""
    return Pointed(*(torch.cat(both, dim=1) for both in zip(first, second, strict=True)))


def middles(objects: Tensor) -> Tensor:
    """x, y, z (B, M, 3) [m] of objects (B, M, F)."""
    return torch.cat([objects[..., POSITION], objects[..., [HEIGHT]]], dim=-1)
