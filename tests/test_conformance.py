"""What every registered task and camera must do, whatever it is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fetchlab.policy.expert import Expert
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import LANGUAGES, PHRASINGS, Reference
from fetchlab.sim.observation import MAX_ROWS, OBJECT_FEATURES, PROPRIOCEPTION, Observation
from fetchlab.sim.scene import COLOURS
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.base import fill
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.instruction import MAX_WORDS, Vocabulary, split

EVERY_SHAPE = tuple(SHAPES)


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def episode(env: Tabletop, seed: int) -> tuple[list[Observation], dict[str, object]]:
    """What the expert sees in an episode, and how it ends."""
    expert = Expert(env.config)
    moment, info = env.reset(seed=seed)
    assert not info["is_success"]
    seen, finished = [Observation.from_gym(moment)], False
    while not finished:
        moment, _, terminated, truncated, info = env.step(expert.act(seen[-1]))
        assert moment in env.observation_space
        seen.append(Observation.from_gym(moment))
        finished = terminated or truncated
    return seen, info


@pytest.mark.parametrize("shapes", [("block",), EVERY_SHAPE], ids=["blocks", "shapes"])
def test_the_expert_succeeds_and_observations_are_as_declared(
    task: str, shapes: tuple[str, ...]
) -> None:
    env = Tabletop(task=task, image_size=32, shapes=shapes)
    vocabulary = Vocabulary(TASKS[task].sentences(env.config))
    for seed in range(3):
        seen, info = episode(env, seed)
        assert info["is_success"] and info["failure_reason"] == ""
        for observation in seen:
            assert observation.images.shape == (2, 32, 32, 3)
            assert observation.proprioception.shape == (len(PROPRIOCEPTION),)
            assert observation.objects.shape == (MAX_ROWS, len(OBJECT_FEATURES))
            assert vocabulary.numbers(observation.instruction)
            assert np.isfinite(observation.proprioception).all()
            assert np.isfinite(observation.objects).all()
            assert not observation.objects[~observation.objects_mask].any()


def test_seeds_decide_everything(task: str) -> None:
    env = Tabletop(task=task, cameras=(), shapes=EVERY_SHAPE)
    (first, _), (again, _), (other, _) = (episode(env, seed) for seed in (4, 4, 5))
    assert len(first) == len(again)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.proprioception, two.proprioception)
        np.testing.assert_array_equal(one.objects, two.objects)
    assert not np.array_equal(first[0].objects, other[0].objects)


def test_no_reading_is_dead(task: str) -> None:
    env = Tabletop(task=task, cameras=(), shapes=EVERY_SHAPE)
    seen = [observation for seed in range(12) for observation in episode(env, seed)[0]]
    dead = {"joint_3 [rad]", "joint_5 [rad]"}  # zero but for the servo's rounding: closed form
    if task == "reach":
        dead |= {"gripper_opening [m]"}
    readings = np.stack([observation.proprioception for observation in seen]).std(axis=0)
    alive = dict(zip(PROPRIOCEPTION, readings, strict=True))
    assert {name for name, std in alive.items() if std < 1e-3} == dead
    objects = np.concatenate([o.objects[o.objects_mask] for o in seen]).std(axis=0)
    has_box = any(part.has_box for part in TASKS[task].parts)
    still = {
        name for name, std in zip(OBJECT_FEATURES, objects.tolist(), strict=True) if std < 3e-3
    }
    assert still == (set() if has_box else {"is_box"})


@pytest.mark.parametrize("phrasings", PHRASINGS)
def test_every_sentence_is_understood_and_holds_no_unknown_word(task: str, phrasings: str) -> None:
    config = EnvConfig(
        task=task, shapes=EVERY_SHAPE, languages=tuple(LANGUAGES), phrasings=phrasings
    )
    said = TASKS[task].sentences(config)
    assert len(set(said)) == len(said)
    vocabulary, generator = Vocabulary(said), np.random.default_rng(0)
    sentences = set()
    for _ in range(300):
        scene = TASKS[task].scene(generator, config, int(generator.integers(2, 13)))
        sentence = TASKS[task].say(scene, generator, config)
        sentences.add(sentence)
        assert vocabulary.numbers(sentence)
        assert len(split(sentence)) <= MAX_WORDS
        assert TASKS[task].goal(sentence, scene) == scene.goal
    assert len(sentences) > 60


def test_held_out_phrasings_say_old_words_in_a_new_order(task: str) -> None:
    for part, language in product(TASKS[task].parts, LANGUAGES):
        templates = part.templates[language]
        assert len(templates.training) >= 4 and len(templates.held_out) >= 2
        assert not set(templates.training) & set(templates.held_out)
        references = [Reference(colour="red", shape="mug")] * 2
        said = [fill(one, language, references, "left") for one in templates.training]
        for template in templates.held_out:
            assert Vocabulary(said).numbers(fill(template, language, references, "left"))


def test_a_world_of_blocks_has_a_phrase_for_each_colour(task: str) -> None:
    config = EnvConfig(task=task)
    assert TASKS[task].phrases(config) == tuple(f"{colour} block" for colour in COLOURS)
    everything = EnvConfig(task=task, shapes=EVERY_SHAPE, languages=tuple(LANGUAGES))
    phrases = TASKS[task].phrases(everything)
    assert len(set(phrases)) == len(phrases) == 2 * (30 + 6 + 5)


@pytest.mark.parametrize("camera", CAMERAS)
def test_no_camera_is_blank_or_shares_its_image(camera: str) -> None:
    env = Tabletop.from_config(EnvConfig(cameras=tuple(CAMERAS), image_size=64))
    observation = Observation.from_gym(env.reset(seed=0)[0])
    image = observation.images[list(CAMERAS).index(camera)]
    assert image.std() > 5
    others = [i for i, name in enumerate(CAMERAS) if name != camera]
    assert not any(np.array_equal(image, observation.images[i]) for i in others)
