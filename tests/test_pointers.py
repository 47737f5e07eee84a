"""Pointers: from the words that name an object to where the cameras see it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import make_act_pointers

from fetchlab.policy.blocks import BlockConfig
from fetchlab.policy.named_words import NamedWords, muffled, named_words
from fetchlab.policy.pointers import Frames, Pointed, Pointers, Robot, middles
from fetchlab.policy.references import look
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import LANGUAGES, Reference, every_reference
from fetchlab.sim.observation import LOOK, PROPRIOCEPTION, ObservationBatch
from fetchlab.sim.scene import COLOURS, DIRECTIONS
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.base import fill
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.instruction import MAX_WORDS, NOT_HEARD, split

REFERENCES = every_reference(tuple(COLOURS), tuple(SHAPES))
GRID = (12, 12)
CAMERAS = ("front", "overhead", "wrist")


# Words ----------------------------------------------------------------------------------------


@given(
    part=st.sampled_from(TASKS["mixed"].parts),
    language=st.sampled_from(sorted(LANGUAGES)),
    pair=st.lists(st.sampled_from(REFERENCES), min_size=2, max_size=2, unique=True),
    side=st.sampled_from(sorted(DIRECTIONS)),
    data=st.data(),
)
def test_the_named_words_spell_the_phrases(part, language, pair, side, data) -> None:  # type: ignore[no-untyped-def]
    templates = part.templates[language]
    template = data.draw(st.sampled_from((*templates.training, *templates.held_out)))
    sentence = fill(template, language, pair, side)
    words = split(sentence)
    spelled = [[words[place] for place in places] for places in named_words("mixed", sentence)]
    expected = [split(LANGUAGES[language].say(one)) for one in pair]
    assert spelled == expected[: len(spelled)] and len(spelled) == 1 + part.has_other


def test_a_name_inside_another_one_is_kept_apart() -> None:
    asked = named_words("mixed", "put the mug left of the red mug")
    assert asked == ((2,), (6, 7))


def test_it_does_not_matter_where_in_a_sentence_the_words_stand() -> None:
    block = BlockConfig(d_model=16, n_heads=2, d_feedforward=16)
    words, meanings = NamedWords("mixed", 2, block).eval(), torch.randn(1, 5, 16)
    early = TokenGroup(meanings, torch.ones(1, 5, dtype=torch.bool))
    padded = torch.cat([torch.randn(1, 3, 16), meanings], dim=1)
    late = TokenGroup(padded, torch.tensor([[False] * 3 + [True] * 5]))
    with torch.no_grad():
        (first, name), (second, same_name) = words(early), words(late)
    torch.testing.assert_close(second[..., 3:], first)
    torch.testing.assert_close(same_name, name)


def test_words_that_name_an_object_or_a_side_are_always_heard() -> None:
    sentence = "put the red mug left of the blue block"
    assert muffled("mixed", sentence, [True] * MAX_WORDS) == "… … red mug left of … blue block"
    assert muffled("mixed", sentence, [False] * MAX_WORDS) == sentence
    assert muffled("mixed", "把红色杯子放进盒子", [True] * MAX_WORDS) == "… 红 色 杯 子 … … … …"
    sentence = "put the red block left of the blue block"
    policy = make_act_pointers(task="mixed", word_dropout=0.5)
    assert policy.eval()._as_heard([sentence]) == (sentence,)
    torch.manual_seed(0)
    heard = policy.train()._as_heard([sentence] * 200)
    lost = np.array([[word == NOT_HEARD for word in split(one)] for one in heard])
    named = [2, 3, 4, 5, 7, 8]
    assert not lost[:, named].any() and abs(np.delete(lost, named, 1).mean() - 0.5) < 0.05
    tokens = policy.instruction([heard[0]])
    np.testing.assert_array_equal(~tokens.mask[0].numpy(), lost[0])


# Maps -----------------------------------------------------------------------------------------


@pytest.fixture
def pointers() -> Pointers:
    torch.manual_seed(0)
    return make_pointers()


def make_pointers(*, remembers: bool = False, **more: bool) -> Pointers:
    """With two names and the cameras in any order."""
    readings = len(PROPRIOCEPTION)
    return Pointers(
        CAMERAS, GRID, n_named=2, n_readings=readings, d_model=16, remembers=remembers, **more
    )


def robot(x: float = 0.5, y: float = 0.0, z: float = 0.25) -> Robot:
    return Robot(torch.tensor([[x, y, z]]), torch.zeros(1, len(PROPRIOCEPTION)))


def test_the_map_of_a_name_is_the_sum_of_its_words_maps(pointers: Pointers) -> None:
    red, mug, seen = torch.randn(16), torch.randn(16), torch.randn(2, 2, 144, 16)
    with torch.no_grad():
        both = Robot(*(one.expand(2, -1) for one in robot()))
        maps = pointers.point(torch.stack([red, mug, red + mug]), seen, both).maps
    torch.testing.assert_close(maps[:, 2], maps[:, 0] + maps[:, 1])


def test_only_cameras_that_stand_still_are_looked_through(pointers: Pointers) -> None:
    patches = torch.randn(1, 3, 144, 16)
    found = pointers(torch.randn(1, 2, 16), Frames(patches, None), robot())
    torch.testing.assert_close(found.seen, pointers.norm(patches[:, :2]))
    assert found.tokens.shape == (1, 2, 16)


def test_a_token_tells_how_far_the_tool_has_to_go(pointers: Pointers) -> None:
    names, patches = torch.randn(1, 2, 16), torch.randn(1, 3, 144, 16)
    here, there = (pointers(names, Frames(patches, None), robot(x=x)) for x in (0.4, 0.5))
    assert (here.tokens - there.tokens).abs().max() > 1e-3
    torch.testing.assert_close(here.pointed.places, there.pointed.places)


def test_one_camera_that_is_wrong_is_outvoted(pointers: Pointers) -> None:
    """The overhead camera takes something else for it, and the front camera is surer."""
    spot, other = torch.tensor([[[0.4, 0.15, 0.025]]]), torch.tensor([[[0.6, -0.1, 0.025]]])
    maps = projected(pointers, spot, sharpness=40.0)
    maps[:, :, 1] = projected(pointers, other, sharpness=20.0)[:, :, 1]
    _, around = pointers.spots(maps, robot().tool)
    for camera in range(2):
        patch, _ = pointers.spots.patch_of(spot)
        wrong, _ = pointers.spots.patch_of(other)
        assert around[0, 0, camera, patch[0, camera, 0]]
        assert not around[0, 0, camera, wrong[0, camera, 0]]


def test_what_is_held_up_is_found_at_the_tool(pointers: Pointers) -> None:
    held = torch.tensor([[[0.45, 0.1, 0.35]]])
    maps = projected(pointers, held, sharpness=60.0)
    patch, _ = pointers.spots.patch_of(held)
    for z, found in ((0.35, True), (0.05, False)):  # there; and elsewhere
        tool = robot(0.45, 0.1, z).tool
        _, around = pointers.spots(maps, tool)
        assert bool(around[0, 0, :, patch[0, :, 0]].diagonal().all()) == found


@pytest.fixture(scope="module")
def scene() -> ObservationBatch:
    env = Tabletop(cameras=("front",), image_size=16, shapes=tuple(SHAPES))
    observation, _ = env.reset(seed=5, options={"n_objects": 4})
    env.close()
    return ObservationBatch.from_gyms([observation])


def projected(pointers: Pointers, points: torch.Tensor, sharpness: float) -> torch.Tensor:
    """Maps (B, J, S, N) with their peaks where these points are seen."""
    u, v = pointers.taught.project(points)  # (B, S, J)
    target = torch.stack([2 * u - 1, 2 * v - 1], dim=-1).transpose(1, 2)  # (B, J, S, 2)
    return -sharpness * (target[..., None, :] - pointers.grid).square().sum(dim=-1)


def test_a_map_that_is_right_costs_least(pointers: Pointers, scene: ObservationBatch) -> None:
    objects = torch.tensor(scene.objects[:, :4])
    points = middles(objects)
    known = torch.ones(1, 4, dtype=torch.bool)

    def cost(shown: torch.Tensor) -> float:
        maps = projected(pointers, shown, sharpness=100.0)
        pointed = Pointed(maps, maps, maps, torch.zeros(1, 4, 6), torch.zeros(1, 4, 2))
        return float(pointers.map_loss(pointed, points, known))

    right = cost(points)
    assert right < cost(points + 0.05) < cost(points + 0.15)
    assert right < 2.5 < np.log(GRID[0] * GRID[1]) < cost(points.flip(1))


def test_naming_costs_least_where_the_right_name_is_brightest(
    pointers: Pointers, scene: ObservationBatch
) -> None:
    objects, present = torch.tensor(scene.objects), torch.tensor(scene.objects_mask)
    pairs = [Reference(colour=c, shape=s) for s in SHAPES for c in COLOURS]
    looks = torch.tensor([look(one) for one in pairs])
    patch, inside = pointers.spots.patch_of(middles(objects))
    assert inside[:, :, :4].all()
    maps = torch.zeros(1, len(pairs), 2, GRID[0] * GRID[1])
    none = torch.zeros(1, len(pairs), 6), torch.zeros(1, len(pairs), 2)
    guess = pointers.naming_loss(Pointed(maps, maps, maps, *none), looks, objects, present)
    assert float(guess) == pytest.approx(np.log(len(pairs)))
    for row in range(4):
        name = int((objects[0, row, LOOK] @ looks.T).argmax())
        for camera in range(2):
            maps[0, name, camera, patch[0, camera, row]] = 20.0
    sure = pointers.naming_loss(Pointed(maps, maps, maps, *none), looks, objects, present)
    assert float(sure) < 0.7 < float(guess)  # two objects may share a patch


def test_the_first_frame_changes_places_and_nothing_else_that_is_seen() -> None:
    torch.manual_seed(0)
    pointers, names = make_pointers(remembers=True), torch.randn(1, 2, 16)
    newest, *firsts = (torch.randn(1, 3, 144, 16) for _ in range(3))
    one, other = (pointers(names, Frames(newest, first), robot()).pointed for first in firsts)
    assert (one.places - other.places).norm(dim=-1).min() > 1e-3
    for field in ("maps", "fits", "shares", "evidence"):
        torch.testing.assert_close(getattr(one, field), getattr(other, field))


def test_where_colours_fade_names_are_looked_for_in_the_first_frame_alone() -> None:
    torch.manual_seed(0)
    pointers, names = make_pointers(looks_back=True), torch.randn(1, 2, 16)
    one, other, first = (torch.randn(1, 3, 144, 16) for _ in range(3))
    found, same = (pointers(names, Frames(newest, first), robot()) for newest in (one, other))
    for mine, theirs in zip(found.pointed, same.pointed, strict=True):
        torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(found.tokens, same.tokens)
    changed = pointers(names, Frames(one, other), robot())
    assert (found.pointed.maps - changed.pointed.maps).abs().max() > 0.1
