"""What objects look like: who is told apart by what, and which pairs are kept from training."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchlab.errors import UserError
from fetchlab.sim.looks import HELD_OUT_PAIRS, PAIRS, LookRules, draw_looks
from fetchlab.sim.scene import COLOURS, MAX_OBJECTS
from fetchlab.sim.shapes import SHAPES

EVERY_SHAPE = tuple(SHAPES)
ANY_LOOK = LookRules(shapes=EVERY_SHAPE)
seeds = st.integers(0, 2**32 - 1)
counts = st.integers(2, MAX_OBJECTS)
shape_sets = st.sampled_from([("block",), ("mug",), ("brick", "ball"), EVERY_SHAPE])


@given(shape_sets, counts, seeds)
def test_what_is_named_is_the_only_one_of_its_kind(
    shapes: tuple[str, ...], n_objects: int, seed: int
) -> None:
    looks = draw_looks(np.random.default_rng(seed), n_objects, LookRules(shapes=shapes), n_named=2)
    assert len(looks) == n_objects
    assert looks.count(looks[0]) == looks.count(looks[1]) == 1


def test_most_scenes_are_hard() -> None:
    """What is named shares its colour with one object and its shape with another."""
    hard = 0
    for seed in range(300):
        (colour, shape), *others = draw_looks(np.random.default_rng(seed), 5, ANY_LOOK)
        hard += {colour} <= {c for c, _ in others} and {shape} <= {s for _, s in others}
    assert 150 < hard < 240


def test_any_kind_may_be_named() -> None:
    named = Counter(draw_looks(np.random.default_rng(s), 4, ANY_LOOK)[0] for s in range(1500))
    assert len(named) == 30 and min(named.values()) > 25


def test_a_held_out_pair_of_each_shape_leaves_every_colour_and_shape_seen() -> None:
    colours, shapes = (Counter(part) for part in zip(*HELD_OUT_PAIRS, strict=True))
    assert shapes == Counter(EVERY_SHAPE) and set(colours) < set(COLOURS)
    assert set(colours.values()) == {1}


@given(st.sampled_from(PAIRS), shape_sets, counts, st.sampled_from((1, 2)), seeds)
def test_held_out_pairs_occur_and_are_named_as_the_setting_says(
    pairs: str, shapes: tuple[str, ...], n_objects: int, n_named: int, seed: int
) -> None:
    rules = LookRules(shapes=shapes, pairs=pairs)
    looks = draw_looks(np.random.default_rng(seed), n_objects, rules, n_named)
    assert len(looks) == n_objects and all(looks.count(look) == 1 for look in looks[:n_named])
    occur, named = HELD_OUT_PAIRS & set(looks), HELD_OUT_PAIRS & set(looks[:n_named])
    assert not (pairs == "seen" and occur)
    assert not (pairs in ("seen", "unnamed") and named)
    assert pairs != "held_out" or looks[0] in HELD_OUT_PAIRS


def test_each_setting_of_pairs_shows_and_names_all_that_it_may() -> None:
    def drawn_with(pairs: str) -> list[list[tuple[str, str]]]:
        rules = LookRules(shapes=EVERY_SHAPE, pairs=pairs)
        return [draw_looks(np.random.default_rng(seed), 6, rules) for seed in range(600)]

    kept = {(c, s) for c in COLOURS for s in SHAPES} - HELD_OUT_PAIRS
    seen, unnamed, held_out = (drawn_with(pairs) for pairs in ("seen", "unnamed", "held_out"))
    assert {looks[0] for looks in seen} == {looks[0] for looks in unnamed} == kept
    assert {look for looks in seen for look in looks} == kept
    assert {look for looks in unnamed for look in looks} == kept | HELD_OUT_PAIRS
    assert {looks[0] for looks in held_out} == HELD_OUT_PAIRS
    assert kept <= {look for looks in held_out for look in looks}


@given(st.sampled_from(PAIRS), counts, st.sampled_from((1, 2)), seeds)
def test_distractors_share_what_they_should(
    pairs: str, n_objects: int, n_named: int, seed: int
) -> None:
    shared = {}
    for distractors in ("colour", "shape", "both"):
        rules = LookRules(shapes=EVERY_SHAPE, pairs=pairs, distractors=distractors)
        looks = draw_looks(np.random.default_rng(seed), n_objects, rules, n_named)
        colour, shape = looks[0]
        assert len(looks) == n_objects and all(looks.count(look) == 1 for look in looks[:n_named])
        shared[distractors] = {(look[0] == colour, look[1] == shape) for look in looks[1:]}
    assert shared["colour"] == {(True, False)} and shared["shape"] == {(False, True)}
    assert len(shared["both"]) == min(2, n_objects - 1)
    assert shared["both"] <= {(True, False), (False, True)}


def test_looks_that_cannot_be_are_told() -> None:
    rules = LookRules(shapes=("brick", "ball"), distractors="colour")
    with pytest.raises(UserError, match=r"brick, ball make no scene of 4 objects .* colour: give"):
        draw_looks(np.random.default_rng(0), 4, rules, n_named=2)
