"""What every registered task and camera must do, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest

from fetchlab.policy.expert import Expert
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import OBJECT_FEATURES, PROPRIOCEPTION, Observation
from fetchlab.sim.scene import COLOURS, MAX_OBJECTS
from fetchlab.sim.tasks.registry import TASKS


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def episode(env: Tabletop, seed: int) -> tuple[list[Observation], dict[str, object]]:
    """What the expert sees in an episode, and how it ends."""
    expert = Expert(env.config)
    moment, info = env.reset(seed=seed)
    seen, finished = [Observation.from_gym(moment)], False
    while not finished:
        moment, _, terminated, truncated, info = env.step(expert.act(seen[-1]))
        assert moment in env.observation_space
        seen.append(Observation.from_gym(moment))
        finished = terminated or truncated
    return seen, info


def test_the_expert_succeeds_and_observations_are_as_declared(task: str) -> None:
    env = Tabletop(task=task, image_size=32)
    for seed in range(3):
        seen, info = episode(env, seed)
        assert info["is_success"] and info["failure_reason"] == ""
        for observation in seen:
            assert observation.images.shape == (2, 32, 32, 3)
            assert observation.proprioception.shape == (len(PROPRIOCEPTION),)
            assert observation.objects.shape == (MAX_OBJECTS, len(OBJECT_FEATURES))
            assert observation.instruction in TASKS[task].sentences()
            assert np.isfinite(observation.proprioception).all()
            assert not observation.objects[~observation.objects_mask].any()


def test_seeds_decide_everything(task: str) -> None:
    env = Tabletop(task=task, cameras=())
    (first, _), (again, _), (other, _) = (episode(env, seed) for seed in (4, 4, 5))
    assert len(first) == len(again)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.proprioception, two.proprioception)
        np.testing.assert_array_equal(one.objects, two.objects)
    assert not np.array_equal(first[0].objects, other[0].objects)


def test_no_reading_is_dead(task: str) -> None:
    env = Tabletop(task=task, cameras=())
    seen = [observation for seed in range(12) for observation in episode(env, seed)[0]]
    still = ("joint_3 [rad]", "joint_5 [rad]")  # zero but for the servo's rounding: closed form
    readings = np.stack([observation.proprioception for observation in seen]).std(axis=0)
    alive = dict(zip(PROPRIOCEPTION, readings, strict=True))
    assert all(std > 1e-3 for name, std in alive.items() if name not in still)
    objects = np.concatenate([o.objects[o.objects_mask] for o in seen])
    assert (objects.std(axis=0) > 1e-2).all()


def test_every_colour_can_be_named_by_a_sentence_of_its_own(task: str) -> None:
    phrases = TASKS[task].phrases()
    assert set(phrases) == set(COLOURS) and len(set(phrases.values())) == len(COLOURS)
    assert len(set(TASKS[task].sentences())) == len(TASKS[task].sentences())


@pytest.mark.parametrize("camera", CAMERAS)
def test_no_camera_is_blank_or_shares_its_image(camera: str) -> None:
    env = Tabletop.from_config(EnvConfig(cameras=tuple(CAMERAS), image_size=64))
    observation = Observation.from_gym(env.reset(seed=0)[0])
    image = observation.images[list(CAMERAS).index(camera)]
    assert image.std() > 5
    others = [i for i, name in enumerate(CAMERAS) if name != camera]
    assert not any(np.array_equal(image, observation.images[i]) for i in others)
