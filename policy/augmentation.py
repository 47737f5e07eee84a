"""Changes to a scene's object list that leave the right action as it was.

All draw from torch's global generator, which the training loop seeds and keeps.
"""

from __future__ import annotations

import torch
from torch import Tensor

FIRST_COLOUR = 2  # the features are x, y, then the colours' one-hot
CLEARANCE = 0.2  # of a redrawn distractor from the target and the gripper, in table units
N_CANDIDATES = 12  # places drawn for each distractor that is needed; enough to find free ones


def permute_slots(objects: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Objects (B, M, F) and mask (B, M) in a new random order for each scene."""
    order = torch.rand(mask.shape, device=mask.device).argsort(dim=1)  # (B, M)
    return take_rows(objects, order), mask.gather(1, order)


def permute_colours(objects: Tensor, named: Tensor) -> tuple[Tensor, Tensor]:
    """Rename the colours of each scene (B, M, F) and of its instruction (B, 6) consistently."""
    order = torch.rand(named.shape, device=named.device).argsort(dim=1)  # (B, 6)
    colours = objects[..., FIRST_COLOUR:]  # (B, M, 6)
    renamed = colours.gather(2, order[:, None].expand_as(colours))  # (B, M, 6)
    objects = torch.cat([objects[..., :FIRST_COLOUR], renamed], dim=-1)  # (B, M, F)
    return objects, named.gather(1, order)


def resample_distractors(
    objects: Tensor, mask: Tensor, named: Tensor, gripper: Tensor
) -> tuple[Tensor, Tensor]:
    """Keep the named object of each scene, redraw all others: places, colours and their number.

    objects (B, M, F), mask (B, M), named colour (B, 6), gripper (B, 2). Places and numbers come
    from the other scenes of the batch, so that they are as in the demonstrations; a scene without
    exactly one named object stays as it is.
    """
    is_target = mask & (objects[..., FIRST_COLOUR:] * named[:, None]).sum(dim=-1).gt(0.5)  # (B, M)
    has_target = is_target.sum(dim=1) == 1  # (B,)
    target = (objects * is_target[..., None]).sum(dim=1)  # (B, F)
    n_scenes, n_rows = mask.shape
    counts = mask.sum(dim=1)[torch.randperm(n_scenes, device=mask.device)]  # (B,)
    places = _free_places(objects[mask][:, :2], target[:, :2], gripper, n_rows - 1)
    colours = _other_colours(named, n_rows - 1)
    distractors = torch.cat([places, colours], dim=-1)  # (B, M - 1, F)
    redrawn = torch.cat([target[:, None], distractors], dim=1)  # (B, M, F)
    present = torch.arange(n_rows, device=mask.device) < counts[:, None]  # (B, M)
    return (
        torch.where(has_target[:, None, None], redrawn * present[..., None], objects),
        torch.where(has_target[:, None], present, mask),
    )


def take_rows(x: Tensor, order: Tensor) -> Tensor:
    """x (B, M, F) with its rows picked by `order` (B, R): (B, R, F)."""
    return x.gather(1, order[..., None].expand(-1, -1, x.shape[2]))


def _free_places(pool: Tensor, target: Tensor, gripper: Tensor, n: int) -> Tensor:
    """(B, n, 2) places out of the pool (P, 2), away from the target and the gripper (B, 2)."""
    drawn = torch.randint(len(pool), (len(target), max(1, n) * N_CANDIDATES), device=pool.device)
    candidates = pool[drawn]  # (B, n · 12, 2)
    near = torch.stack([target, gripper], dim=1)  # (B, 2, 2)
    free = torch.cdist(candidates, near).amin(dim=-1) > CLEARANCE  # (B, n · 12)
    order = (~free).long().argsort(dim=1, stable=True)[:, :n]  # the free ones first
    return take_rows(candidates, order)


def _other_colours(named: Tensor, n: int) -> Tensor:
    """(B, n, 6) one-hot colours that the instruction does not name; distinct as far as they go."""
    n_colours = named.shape[1]
    order = (torch.rand(named.shape, device=named.device) + named).argsort(dim=1)  # named last
    cycle = torch.arange(n, device=named.device) % (n_colours - 1)  # (n,)
    return torch.nn.functional.one_hot(order[:, cycle], n_colours).to(named.dtype)
