"""Objects that a name is not taught to be dark on, since nothing tells whether it could be theirs.

If no green object is ever called a block, "block" learns to be dark on whatever is green, and
"green" on whatever is a block: then the two together point nowhere. What was never seen to go
together is no evidence that it cannot.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fetchlab.policy.references import are_meant
from fetchlab.sim.observation import LOOK
from fetchlab.sim.scene import COLOURS


def unsaid_pairs(looks: Tensor) -> Tensor:
    """(L, L) bool: a colour and a shape, in any order, which names (J, L) say, but never both."""
    said = looks.any(dim=0)  # (L,)
    together = looks.T @ looks > 0.5  # (L, L)
    is_colour = torch.arange(len(said), device=looks.device) < len(COLOURS)
    return ~together & (is_colour[:, None] != is_colour) & said[:, None] & said


def undecided(objects: Tensor, names: Tensor, unsaid: Tensor, cells: Tensor) -> Tensor:
    """(B, J, S, P) which patches say nothing about a name: they show nothing that it means.

    They show objects (B, M, F) at cells (B, S, M, P) with a colour that is never said with the
    shape of the name (B, J, L), or with a shape that is never said with its colour. An object that
    is itself of such a pair is not one of them: no lesson may ask where it is.
    """
    looks = objects[..., LOOK].transpose(-2, -1)  # (B, L, M)
    clash = names @ unsaid.to(names) @ looks > 0.5  # (B, J, M)
    itself = torch.einsum("blm,lk,bkm->bm", looks, unsaid.to(looks), looks) > 0.5
    clash = clash & ~itself[:, None]
    meant = are_meant(objects, names).transpose(-2, -1)  # (B, J, M)
    shown = cells.to(names)
    dark, bright = (
        torch.einsum("bjm,bsmp->bjsp", one.to(names), shown) > 0.5 for one in (clash, meant)
    )
    return dark & ~bright
