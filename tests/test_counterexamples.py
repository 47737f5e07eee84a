"""What was never seen to go together is no evidence that it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.test_held_out_pairs import WORLD, batch_with
from tests.test_pointers import make_pointers, robot
from torch import Tensor

from fetchlab.policy.counterexamples import undecided, unsaid_pairs
from fetchlab.policy.pointers import Pointed, middles
from fetchlab.policy.references import LOOKS, look
from fetchlab.sim.language import Reference, read_phrase
from fetchlab.sim.looks import HELD_OUT_PAIRS, PAIRS
from fetchlab.sim.tasks.registry import TASKS

SCENE = (("red", "block"), ("green", "mug"), ("purple", "brick"))
NAMES = (
    Reference(shape="block"),
    Reference(colour="green"),
    Reference(colour="red", shape="block"),
)


def unsaid_in(pairs: str) -> Tensor:
    phrases = TASKS["mixed"].phrases(replace(WORLD, pairs=pairs))
    return unsaid_pairs(torch.tensor([look(read_phrase(phrase)) for phrase in phrases]))


@pytest.mark.parametrize("pairs", PAIRS)
def test_unsaid_are_the_pairs_that_training_keeps_out(pairs: str) -> None:
    unsaid = unsaid_in(pairs)
    found = {
        frozenset(LOOKS[place].removeprefix("is_") for place in both)
        for both in unsaid.nonzero().tolist()
    }
    kept_out = {frozenset(pair) for pair in HELD_OUT_PAIRS}
    assert found == (kept_out if pairs in ("seen", "unnamed") else set())


def test_a_shape_that_is_not_in_the_world_is_not_kept_out() -> None:
    blocks = replace(WORLD, shapes=("block",))
    phrases = TASKS["mixed"].phrases(blocks)
    assert not unsaid_pairs(torch.tensor([look(read_phrase(phrase)) for phrase in phrases])).any()


def scene() -> tuple[Tensor, Tensor, Tensor]:
    """Objects (1, M, F), names (1, J, L), and one patch of the map for each object (1, 1, M, M)."""
    objects = torch.tensor(batch_with(SCENE).observations.objects[:1, : len(SCENE)])
    names = torch.tensor([[look(name) for name in NAMES]])
    return objects, names, torch.eye(len(SCENE), dtype=torch.bool)[None, None]


def test_what_has_a_colour_or_shape_never_said_with_the_names_is_not_its_counterexample() -> None:
    objects, names, cells = scene()
    ignored = undecided(objects, names, unsaid_in("seen"), cells)[0, :, 0]  # (J, patch)
    assert ignored.tolist() == [
        [False, True, False],  # block: a green one is never seen, a purple one is
        [True, False, False],  # green object: it is never a block
        [False, True, False],  # red block: as for block
    ]
    assert not undecided(objects, names, unsaid_in("all"), cells).any()


def test_where_both_are_next_to_a_patch_it_is_taught() -> None:
    objects, names, cells = scene()
    both = cells | torch.tensor([True, False, False])  # all stand next to the red block's patch
    assert undecided(objects, names, unsaid_in("seen"), both)[0, 0, 0].tolist() == [
        False,
        True,
        False,
    ]


def test_an_object_of_such_a_pair_is_a_counterexample_like_any_other() -> None:
    objects = torch.tensor(batch_with((("green", "block"),)).observations.objects[:1, :1])
    cells = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    names = torch.tensor([[look(Reference(colour="red", shape="block"))]])
    assert not undecided(objects, names, unsaid_in("unnamed"), cells).any()


def test_the_lessons_do_not_reach_what_is_ignored() -> None:
    pointers = make_pointers()
    objects = torch.tensor(batch_with(SCENE).observations.objects[:1, : len(SCENE)])
    names = torch.tensor([[look(name) for name in NAMES]])
    cells = pointers.cells_of(objects, torch.ones(1, len(SCENE), dtype=torch.bool))
    ignored = undecided(objects, names, unsaid_in("seen"), cells)
    maps = torch.randn(ignored.shape, requires_grad=True)
    empty = torch.zeros(())
    pointed = Pointed(maps, empty, empty, empty, empty)
    taught = pointers.without(pointed, ignored, robot())
    places, known = middles(objects)[:, [0, 1, 0]], torch.ones(1, len(NAMES), dtype=torch.bool)
    loss = pointers.map_loss(taught, places, known)
    loss = loss + pointers.spots.loss(taught.fits, robot().tool, places, known)
    loss = loss + pointers.naming_loss(taught, names[0], objects, known)
    (slope,) = torch.autograd.grad(loss, maps)
    assert torch.isfinite(loss) and torch.isfinite(slope).all()
    assert ignored.any() and not slope[ignored].any()
    assert (slope[~ignored] != 0).float().mean() > 0.9
