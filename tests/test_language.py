"""Sentences name what they mean with no word too many, and what they ask for is understood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchlab.errors import UserError
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import (
    LANGUAGES,
    Reference,
    minimal,
    normalized,
    read_phrase,
)
from fetchlab.sim.looks import LookRules, draw_looks
from fetchlab.sim.scene import COLOURS, Goal, Scene, SceneObject
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.instruction import Vocabulary, split


def scene_of(*looks: tuple[str, str]) -> Scene:
    """Objects of these colours and shapes in a row, half a metre apart."""
    objects = tuple(
        SceneObject(colour=colour, shape=shape, x=0.5 * row, y=0.0, yaw=0.0)
        for row, (colour, shape) in enumerate(looks)
    )
    return Scene(objects=objects, goal=Goal(task="fetch", target=0))


def said(scene: Scene, row: int = 0, language: str = "english") -> set[str]:
    """How the object may be named."""
    references = [minimal(scene.objects, row, np.random.default_rng(seed)) for seed in range(20)]
    return {LANGUAGES[language].say(reference) for reference in references}


@pytest.mark.parametrize(
    ("looks", "names"),
    [
        ([("red", "block"), ("green", "block")], {"red block"}),  # the shape is but the noun
        ([("red", "mug"), ("red", "ball"), ("blue", "mug")], {"red mug"}),
        ([("red", "mug"), ("red", "ball"), ("blue", "ball")], {"mug"}),
        ([("red", "mug"), ("blue", "mug"), ("blue", "ball")], {"red object"}),
        ([("red", "mug"), ("blue", "ball")], {"mug", "red object"}),  # either is short enough
    ],
)
def test_an_object_is_named_with_the_fewest_words(
    looks: list[tuple[str, str]], names: set[str]
) -> None:
    assert said(scene_of(*looks)) == names


def test_a_double_cannot_be_named() -> None:
    with pytest.raises(ValueError, match="red mug is not the only one"):
        said(scene_of(("red", "mug"), ("red", "mug")))


def test_chinese_says_the_same() -> None:
    scene = scene_of(("red", "mug"), ("red", "ball"), ("blue", "mug"))
    assert said(scene, language="chinese") == {"红色杯子"}
    assert LANGUAGES["chinese"].say(Reference(colour="green")) == "绿色物体"
    for text in ("把红色杯子放到蓝色球左边", "put the red mug left of the blue ball"):
        request = TASKS["place_beside"].request(text)
        assert request.target == Reference(colour="red", shape="mug")
        assert request.other == Reference(colour="blue", shape="ball")
        assert request.relation == "left"


def test_languages_share_no_word() -> None:
    both = EnvConfig(task="mixed", shapes=tuple(SHAPES), phrasings="training")
    english, chinese = (
        Vocabulary(TASKS["mixed"].sentences(replace(both, languages=(language,))))
        for language in LANGUAGES
    )
    assert not set(english.words) & set(chinese.words)
    assert all(len(character) == 1 for character in chinese.words)


@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.sampled_from(list(LANGUAGES)))
def test_every_name_names_one_object(seed: int, n_objects: int, language: str) -> None:
    generator = np.random.default_rng(seed)
    scene = scene_of(*draw_looks(generator, n_objects, LookRules(shapes=tuple(SHAPES)), n_named=2))
    for row in (0, 1):
        reference = minimal(scene.objects, row, generator)
        assert reference.rows(scene.objects) == [row]
        assert read_phrase(LANGUAGES[language].say(reference)) == reference


def test_capitals_blanks_and_full_stops_do_not_matter() -> None:
    assert normalized("Fetch the red mug.") == "fetch the red mug"
    assert TASKS["fetch"].request("Fetch the red mug!") == TASKS["fetch"].request(
        "fetch the red mug"
    )
    assert normalized(" Fetch  the\tred mug .\n") == "fetch the red mug"
    assert split("取红色杯子。") == ["取", "红", "色", "杯", "子"]


def test_mixed_tells_its_tasks_apart() -> None:
    sentences = {
        "take the red mug and lift it up": "fetch",
        "take the red mug and put it in the box": "place_in_box",
        "take the red mug and put it in front of the ball": "place_beside",
        "拿起红色杯子": "fetch",
        "拿起红色杯子放进盒子": "place_in_box",
        "拿起红色杯子放到球后面": "place_beside",
    }
    asked = {sentence: TASKS["mixed"].request(sentence).task for sentence in sentences}
    assert asked == sentences


MUGS = scene_of(("red", "mug"), ("red", "ball"), ("blue", "mug"))


@pytest.mark.parametrize(
    ("task", "sentence", "message"),
    [
        ("fetch", "fetch the red object", "two objects of this scene: red mug, red ball: say 'red"),
        (
            "fetch",
            "fetch the green mug",
            "'green mug' names no object of this scene: there are red",
        ),
        ("fetch", "取绿色杯子", "'绿色杯子' names no object of this scene: there are 红色杯子"),
        (
            "fetch",
            "取杯子",
            "'杯子' names two objects of this scene: 红色杯子, 蓝色杯子: say '红色杯子'",
        ),
        (
            "fetch",
            "fetch the pink elephant",
            "^'pink elephant' names no kind of object: known are the colours red, .* and the "
            "shapes block, .*, as in 'red block', 'red object', 'block'$",
        ),
        ("fetch", "take the red and lift it up", "^'red' names no kind of object"),
        ("mixed", "take the pink mug and put it in the box", "^'pink mug' names no kind of object"),
        ("place_beside", "put the ball left of the cup", "^'cup' names no kind of object"),
        ("fetch", "取粉色杯子", "^'粉色杯子' names no kind .* colours 红色, .* shapes 方块, "),
        ("fetch", "take the red mug and put it in the box", "give --task place_in_box or mixed$"),
        (
            "reach",
            "fetch the mug",
            "is no sentence of task reach: give --task fetch or mixed or re",
        ),
        ("fetch", "dance", "is no sentence that task fetch knows: say it as in 'fetch the red bl"),
        (
            "mixed",
            "dance",
            "as in 'fetch the red block' or 'put the red block in the box' or 'put the red block "
            "left of the blue block'$",
        ),
        (
            "mixed",
            "跳舞",
            "as in '取红色方块' or '把红色方块放进盒子' or '把红色方块放到蓝色方块左边'$",
        ),
        ("fetch", "fetch the 红色 mug", "mixes English and Chinese: say it in one language"),
        ("place_beside", "put the ball left of the red ball", "names the same object twice"),
        ("place_beside", "put the blue mug in front of the ball", "mug.* is so .* already"),
    ],
)
def test_sentences_that_mean_nothing_here_are_refused(
    task: str, sentence: str, message: str
) -> None:
    objects = (*MUGS.objects[:2], SceneObject(colour="blue", shape="mug", x=0.6, y=0, yaw=0))
    with pytest.raises(UserError, match=message) as refused:
        TASKS[task].goal(sentence, Scene(objects=objects, goal=MUGS.goal))
    assert "\n" not in str(refused.value)


def test_a_sentence_in_two_languages_is_no_list_of_words() -> None:
    vocabulary = Vocabulary(["fetch the red mug", "取红色杯子"])
    with pytest.raises(UserError, match="mixes English and Chinese"):
        vocabulary.numbers("fetch the 红色 mug")
    with pytest.raises(UserError, match="mixes English and Chinese"):
        Vocabulary(["fetch the 杯子"])


def test_phrases_name_a_kind_of_object() -> None:
    assert read_phrase("Red mug") == Reference(colour="red", shape="mug")
    with pytest.raises(UserError, match="'red' names no kind of object: known are the colours red"):
        read_phrase("red")


def test_an_instruction_decides_what_is_drawn() -> None:
    env = Tabletop(task="mixed", cameras=(), n_objects=4, languages=("english", "chinese"))
    for seed in range(5):
        env.reset(seed=seed, options={"task": "fetch"})
        colours = [thing.colour for thing in env.scene.objects]
        sentence = f"put the {colours[0]} block in the box."
        moment, info = env.reset(seed=seed, options={"instruction": sentence})
        assert moment["instruction"] == sentence[:-1]
        assert (env.scene.goal.task, info["target"]) == ("place_in_box", 0)
        assert env.scene.box is not None
    with pytest.raises(UserError, match="an instruction is a sentence, got 5"):
        env.reset(seed=0, options={"instruction": 5})
    with pytest.raises(UserError, match="asks for place_in_box, but the option task says fetch"):
        env.reset(seed=0, options={"instruction": sentence, "task": "fetch"})
    with pytest.raises(UserError, match="unknown part of task mixed 'reach'"):
        env.reset(seed=0, options={"task": "reach"})


def test_the_same_seed_gives_the_same_scene_whatever_is_said() -> None:
    env = Tabletop(task="fetch", cameras=(), n_objects=5, shapes=tuple(SHAPES))
    for seed in range(5):
        env.reset(seed=seed)
        drawn = env.scene.objects
        row = next(
            row
            for row, thing in enumerate(drawn)
            if [(o.colour, o.shape) for o in drawn].count((thing.colour, thing.shape)) == 1
        )
        env.reset(
            seed=seed,
            options={"instruction": f"fetch the {drawn[row].colour} {drawn[row].shape}"},
        )
        assert env.scene.objects == drawn and env.scene.target == row


def test_words_cover_all_colours_and_shapes() -> None:
    for language in LANGUAGES.values():
        assert set(language.colours) == set(COLOURS) and set(language.shapes) == set(SHAPES)
