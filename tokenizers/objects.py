"""The simulator's object list as tokens: privileged state, for policies that may know it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.sim.observation import OBJECT_FEATURES, POLICY_FEATURES, ObservationBatch
from fetchlab.sim.scene import AREA_X, AREA_Y
from fetchlab.tokenizers.base import TokenGroup

AREA_CENTRE = (sum(AREA_X) / 2, sum(AREA_Y) / 2)  # of the part of the table with objects [m]
TABLE_UNIT = 0.4  # half an edge of the table [m]
WAY_GAIN = 4.0
N_FEATURES = len(OBJECT_FEATURES[POLICY_FEATURES])  # F: of an object, as policies know it


def to_table_units(xy: Tensor) -> Tensor:
    """Metres in the robot's frame -> half edges of the table, from the middle of the area."""
    return (xy - xy.new_tensor(AREA_CENTRE)) / TABLE_UNIT  # (…, 2)


def from_table_units(xy: Tensor) -> Tensor:
    """The way back, to metres in the robot's frame."""
    return xy * TABLE_UNIT + xy.new_tensor(AREA_CENTRE)  # (…, 2)


def ways(places: Tensor, tool: Tensor) -> Tensor:
    """From the tool, x, y (B, 2) [m], to places (B, J, 2) in units of the table; larger than they
    are, since they are short and matter to the millimetre."""
    return WAY_GAIN * (places - to_table_units(tool)[:, None])  # (B, J, 2)


def between(places: Tensor) -> Tensor:
    """From each of R places (B, R, 2) to every one (B, R, 2 R), enlarged as `ways` are."""
    return WAY_GAIN * (places[:, None] - places[:, :, None]).flatten(2)


class ObjectTokenizer(nn.Module):
    """objects (B, M, F) -> one token each (B, M, D); no position code, so order cannot matter."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        self.projection = nn.Linear(N_FEATURES, d_model)

    def forward(self, observations: ObservationBatch) -> TokenGroup:
        objects, mask = object_features(observations, self.projection.weight.device)
        return TokenGroup(self.projection(objects), mask)  # (B, M, D)


def object_features(observations: ObservationBatch, device: torch.device) -> tuple[Tensor, Tensor]:
    """Features with positions in table units (B, M, F), and which rows are objects (B, M).

    Height and yaw are left out: they are for the scripted expert. Rows past the last object of the
    fullest scene are cut off: they would cost time.
    """
    objects = torch.tensor(observations.objects, device=device)
    mask = torch.tensor(observations.objects_mask, device=device)
    if objects.ndim != 3 or objects.shape[2] != len(OBJECT_FEATURES):
        raise UserError(
            f"expected objects (B, M, {len(OBJECT_FEATURES)}) with the features "
            f"{', '.join(OBJECT_FEATURES)}, got {tuple(objects.shape)}"
        )
    used = mask.any(dim=0).nonzero()
    n_rows = 1 + int(used.max()) if len(used) else 1
    objects, mask = objects[:, :n_rows], mask[:, :n_rows]
    xy = to_table_units(objects[..., :2])
    return torch.cat([xy, objects[..., 2 : POLICY_FEATURES.stop]], dim=-1), mask  # (B, M, F)
