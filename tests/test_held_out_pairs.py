"""Held-out pairs of colour and shape are taught to no policy by their name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import make_batch, make_statistics

from fetchlab.policy.augmentation import permute_colours
from fetchlab.policy.base import TrainingBatch
from fetchlab.policy.references import are_held_out, are_meant, look
from fetchlab.policy.registry import build_policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import LANGUAGES, Reference, phrasebook
from fetchlab.sim.looks import HELD_OUT_PAIRS, PAIRS, Look
from fetchlab.sim.observation import HEIGHT, LOOK, MAX_ROWS, OBJECT_FEATURES, POSITION
from fetchlab.sim.scene import COLOURS
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.instruction import Vocabulary

WORLD = EnvConfig(
    cameras=("front",), image_size=16, shapes=tuple(SHAPES), languages=tuple(LANGUAGES)
)
HELD_OUT = ("green", "block")
# Neither "green object" nor "block" means one of these alone: only its full name does.
SCENE = (HELD_OUT, ("green", "mug"), ("red", "block"))
LESSONS = {
    "act": ("position_l1", "pointing"),
    "act_pointers": ("place_l1", "map", "naming"),
}


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("task", ["fetch", "mixed"])
def test_phrases_leave_out_full_names_and_no_word_is_missing(task: str, pairs: str) -> None:
    config = replace(WORLD, pairs=pairs)
    named = [
        phrasebook(language)[phrase]
        for language in LANGUAGES
        for phrase in TASKS[task].phrases(config)
        if phrase in phrasebook(language)
    ]
    looks = {(one.colour, one.shape) for one in named}
    kept_out = pairs in ("seen", "unnamed")
    assert (HELD_OUT_PAIRS & looks) == (set() if kept_out else HELD_OUT_PAIRS)
    assert len(looks) == 30 + 6 + 5 - len(HELD_OUT_PAIRS) * kept_out
    plain = TASKS[task].sentences(replace(config, pairs="all"))
    assert TASKS[task].sentences(config) == plain
    known = Vocabulary(plain).words
    assert set(known) >= set(Vocabulary(TASKS[task].phrases(replace(config, pairs="all"))).words)


def batch_with(looks: tuple[Look, ...], moved: float = 0.0) -> TrainingBatch:
    """Scenes of these objects; the first of them stands `moved` metres further on."""
    batch = make_batch(2, cameras=1, image_size=16)
    objects = np.zeros((2, MAX_ROWS, len(OBJECT_FEATURES)), np.float32)
    for row, (colour, shape) in enumerate(looks):
        objects[:, row, LOOK] = look(Reference(colour=colour, shape=shape))
        objects[:, row, POSITION] = 0.45, 0.1 * row
        objects[:, row, HEIGHT] = 0.02
    objects[:, 0, POSITION] += moved
    observations = replace(
        batch.observations,
        objects=objects,
        objects_mask=np.tile(np.arange(MAX_ROWS) < len(looks), (2, 1)),
        instructions=("fetch the red block",) * 2,
    )
    return replace(batch, observations=observations)


@pytest.mark.parametrize("pairs", ["all", "seen", "unnamed"])
@pytest.mark.parametrize("name", LESSONS)
def test_no_lesson_asks_where_a_held_out_pair_is(name: str, pairs: str) -> None:
    torch.manual_seed(0)
    small = {"d_model": 16, "d_feedforward": 32}
    config = replace(WORLD, pairs=pairs)
    policy = build_policy(name, config, make_statistics(), **small).eval()
    here, there = (policy.loss(batch_with(SCENE, moved))[1] for moved in (0.0, -0.13))
    for lesson in LESSONS[name]:
        depends = not torch.equal(here[lesson], there[lesson])
        assert depends == (pairs == "all"), lesson


@pytest.mark.parametrize("pairs", ["all", "unnamed"])
def test_objects_without_a_full_name_are_not_in_the_lesson_of_names(pairs: str) -> None:
    policy = build_policy("act_pointers", replace(WORLD, pairs=pairs), make_statistics())
    alone = policy.loss(batch_with((HELD_OUT,)))[1]
    assert (float(alone["naming"]) > 0) == (pairs == "all")


@given(st.integers(0, 2**32 - 1), st.sampled_from(["all", "seen", "unnamed"]))
def test_renamed_colours_make_and_name_no_held_out_pair(seed: int, pairs: str) -> None:
    torch.manual_seed(seed)
    batch = batch_with((("red", "block"), ("red", "mug"), ("yellow", "ball"))).observations
    objects = torch.tensor(batch.objects).repeat(30, 1, 1)
    looks = torch.tensor([[look(Reference(colour="red", shape="block"))]]).expand(60, -1, -1)
    renamed, said = permute_colours(objects, looks, pairs)
    meant = are_meant(renamed, said).any(dim=2)
    assert torch.equal(meant, are_meant(objects, looks).any(dim=2))
    occur, named = are_held_out(renamed), are_held_out(renamed) & meant
    assert bool(occur.any()) == (pairs != "seen")
    assert bool(named.any()) == (pairs == "all")
    changed = (renamed != objects).any(dim=2).any(dim=1)
    assert 10 < int(changed.sum())


def test_held_out_objects_are_told_from_others() -> None:
    looks = [(colour, shape) for colour in COLOURS for shape in SHAPES]
    rows = torch.zeros(1, len(looks), len(OBJECT_FEATURES))
    for row, (colour, shape) in enumerate(looks):
        rows[0, row, LOOK] = torch.tensor(look(Reference(colour=colour, shape=shape)))
    found = are_held_out(rows)[0]
    assert {pair for pair, one in zip(looks, found, strict=True) if one} == HELD_OUT_PAIRS
