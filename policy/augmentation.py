"""Changes to a scene's object list that leave the right action as it was.

All draw from torch's global generator, which the training loop seeds and keeps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fetchlab.policy.references import are_held_out, are_meant
from fetchlab.sim.observation import COLOUR, IS_BOX, LOOK, POSITION

N_COLOURS = COLOUR.stop - COLOUR.start
CLEARANCE = 0.2  # of a redrawn distractor from what is named and the gripper, in table units
N_CANDIDATES = 12  # places drawn for each distractor that is needed; enough to find free ones
FAR = 1e3  # from everything on the table, in table units


def permute_slots(objects: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Objects (B, M, F) and mask (B, M) in a new random order for each scene."""
    order = torch.rand(mask.shape, device=mask.device).argsort(dim=1)  # (B, M)
    return take_rows(objects, order), mask.gather(1, order)


def permute_colours(objects: Tensor, looks: Tensor, pairs: str = "all") -> tuple[Tensor, Tensor]:
    """Rename the colours of each scene (B, M, F) and of what is named (B, R, L) consistently.

    A scene keeps its colours where a held-out pair would occur that must not (`pairs` "seen"), or
    would be named ("unnamed").
    """
    order = torch.rand(len(objects), N_COLOURS, device=objects.device).argsort(dim=1)  # (B, 6)
    renamed, said = _renamed(objects, COLOUR, order), _renamed(looks, slice(0, N_COLOURS), order)
    if pairs not in ("seen", "unnamed"):
        return renamed, said
    secret = are_held_out(renamed)  # (B, M)
    if pairs == "unnamed":
        secret &= are_meant(renamed, said).any(dim=2)
    kept = secret.any(dim=1)[:, None, None]  # (B, 1, 1)
    return torch.where(kept, objects, renamed), torch.where(kept, looks, said)


def _renamed(rows: Tensor, colours: slice, order: Tensor) -> Tensor:
    """rows (B, M, …) with these columns in a new order (B, 6)."""
    known = rows[..., colours]  # (B, M, 6)
    renamed = known.gather(2, order[:, None].expand_as(known))  # (B, M, 6)
    return torch.cat([rows[..., : colours.start], renamed, rows[..., colours.stop :]], dim=-1)


def resample_distractors(
    objects: Tensor, mask: Tensor, looks: Tensor, gripper: Tensor
) -> tuple[Tensor, Tensor]:
    """Keep the named objects of each scene and the box, redraw all others and their number.

    objects (B, M, F), mask (B, M), what is named (B, R, L), gripper (B, 2). Places, looks and
    numbers come from the other scenes of the batch, so that they are as in the demonstrations; a
    scene in which something named is not exactly one object stays as it is.
    """
    meant = are_meant(objects, looks) & mask[..., None]  # (B, M, R)
    unclear = (meant.sum(dim=1) != 1) & looks.any(dim=2)  # (B, R)
    redrawable = meant.any(dim=2).any(dim=1) & ~unclear.any(dim=1)  # (B,)
    is_box = mask & (objects[..., IS_BOX] > 0.5)  # (B, M)
    kept = meant.any(dim=2) | is_box  # (B, M)
    n_kept = kept.sum(dim=1, keepdim=True)  # (B, 1)
    distractors = _distractors(objects, mask & ~is_box, kept, looks, gripper)  # (B, M, F)
    # "put the block left of the mug": where there are no other shapes, nothing else can be there.
    redrawable &= ~are_meant(distractors, looks).any(dim=2).any(dim=1)
    first = take_rows(objects, (~kept).long().argsort(dim=1, stable=True))  # (B, M, F)
    rows = torch.arange(mask.shape[1], device=mask.device)  # (M,)
    redrawn = torch.where((rows < n_kept)[..., None], first, distractors)  # (B, M, F)
    counts = (mask & ~is_box).sum(dim=1, keepdim=True)  # (B, 1)
    counts = counts[torch.randperm(len(mask), device=mask.device)]
    counts = (counts + is_box.sum(dim=1, keepdim=True)).maximum(n_kept)  # (B, 1)
    present = rows < counts  # (B, M)
    return (
        torch.where(redrawable[:, None, None], redrawn * present[..., None], objects),
        torch.where(redrawable[:, None], present, mask),
    )


def _distractors(
    objects: Tensor, is_object: Tensor, kept: Tensor, looks: Tensor, gripper: Tensor
) -> Tensor:
    """(B, M, F) objects that nothing named could mean, away from all that is kept (B, M)."""
    pool, n_rows = objects[is_object], objects.shape[1]  # (P, F)
    taken = objects[..., POSITION].masked_fill(~kept[..., None], FAR)  # (B, M, 2)
    taken = torch.cat([taken, gripper[:, None]], dim=1)  # (B, M + 1, 2)
    places = _free_places(pool[:, POSITION], taken, n_rows)  # (B, M, 2)
    other = _other_looks(torch.unique(pool[:, LOOK], dim=0), looks, n_rows)  # (B, M, L)
    return torch.cat([places, other, torch.zeros_like(places[..., :1])], dim=-1)


def take_rows(x: Tensor, order: Tensor) -> Tensor:
    """x (B, M, F) with its rows picked by `order` (B, R): (B, R, F)."""
    return x.gather(1, order[..., None].expand(-1, -1, x.shape[2]))


def _free_places(pool: Tensor, taken: Tensor, n: int) -> Tensor:
    """(B, n, 2) places out of the pool (P, 2), away from those that are taken (B, T, 2)."""
    drawn = torch.randint(len(pool), (len(taken), n * N_CANDIDATES), device=pool.device)
    candidates = pool[drawn]  # (B, n · 12, 2)
    free = torch.cdist(candidates, taken).amin(dim=-1) > CLEARANCE  # (B, n · 12)
    order = (~free).long().argsort(dim=1, stable=True)[:, :n]  # the free ones first
    return take_rows(candidates, order)


def _other_looks(known: Tensor, looks: Tensor, n: int) -> Tensor:
    """(B, n, L) of the known looks (U, L), those not named; distinct as far as they go.

    Where all are named, a named one.
    """
    rows = torch.cat([known.new_zeros(len(known), POSITION.stop), known], dim=1)  # (U, 2 + L)
    named = are_meant(rows[None], looks).any(dim=2).float()  # (B, U)
    order = (torch.rand(named.shape, device=named.device) + named).argsort(dim=1)  # named last
    n_free = (len(known) - named.sum(dim=1, keepdim=True)).long().clamp(min=1)  # (B, 1)
    cycle = torch.arange(n, device=named.device) % n_free  # (B, n)
    return known[order.gather(1, cycle)]
