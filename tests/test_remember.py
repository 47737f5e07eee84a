"""Colours that are seen only before the first step: in the simulator, in a dataset, in a policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fetchlab  # noqa: F401  (registers the environment)
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.sim.scene import COLOURS
from fetchlab.train import lerobot
from fetchlab.train.collection import collect
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.demonstrate import CollectConfig

WORLD = EnvConfig(task="remember", cameras=("front", "overhead"), image_size=32)


def is_colourful(image: np.ndarray) -> bool:
    """Whether anything is more colourful than the table."""
    pixels = image.reshape(-1, 3).astype(float)
    return bool((np.ptp(pixels, axis=1) > 60).sum() > 3)


def colours_first(images: np.ndarray) -> list[bool]:
    """(T, H, W, 3) → which frames show colours."""
    return [is_colourful(image) for image in images]


def test_only_the_frame_before_the_first_shows_colours() -> None:
    env = Tabletop.from_config(replace(WORLD, history=3), n_objects=4)
    moment, info = env.reset(seed=1)
    stay = np.array([*moment["agent_pos"][:7], 0.08], np.float32)
    for camera in WORLD.cameras:
        shown = moment["pixels"][camera]
        assert colours_first(shown) == [True, True, False]
        np.testing.assert_array_equal(shown[0], shown[1])
        np.testing.assert_array_equal(shown[0], info["before"][camera])
    moment, *_, info = env.step(stay)
    assert colours_first(moment["pixels"]["front"]) == [True, False, False]
    assert "before" not in info
    assert colours_first(env.step(stay)[0]["pixels"]["front"]) == [False] * 3
    assert not is_colourful(env.picture("front", 64).rgb)


def test_without_history_no_camera_tells_the_colours_and_a_fresh_scene_has_them_again() -> None:
    env, plain = Tabletop.from_config(WORLD), Tabletop.from_config(replace(WORLD, task="fetch"))
    for seed in range(3):
        moment, info = env.reset(seed=seed)
        ordinary = plain.reset(seed=seed)[0]
        for camera in WORLD.cameras:
            assert not is_colourful(moment["pixels"][camera])
            np.testing.assert_array_equal(info["before"][camera], ordinary["pixels"][camera])
        for key in ("agent_pos", "environment_state"):  # the scripted expert knows them all along
            np.testing.assert_array_equal(moment[key], ordinary[key])


def test_scenes_that_differ_in_colours_alone_look_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the colour is left in the grey; so without memory the answer is a guess."""
    env = Tabletop.from_config(WORLD, n_objects=3)
    env.reset(seed=5)
    scene, names, seen = env.scene, list(COLOURS), []
    for shift in range(2):
        objects = tuple(
            replace(thing, colour=names[(names.index(thing.colour) + shift) % len(names)])
            for thing in scene.objects
        )
        drawn = replace(scene, objects=objects), "fetch the red block"
        monkeypatch.setattr(env, "_draw", lambda drawn=drawn: drawn)
        seen.append(env.reset(seed=5)[0]["pixels"])
        assert env.scene.objects == objects
    for camera in WORLD.cameras:
        np.testing.assert_array_equal(seen[0][camera], seen[1][camera])


def test_the_first_frame_is_kept_when_memory_says_so() -> None:
    env = Tabletop.from_config(replace(WORLD, history=2, memory="first"), n_objects=4)
    moment, expert = env.reset(seed=1)[0], Expert(env.config)
    for _ in range(6):
        assert colours_first(moment["pixels"]["front"]) == [True, False]
        moment = env.step(expert.act(Observation.from_gym(moment)))[0]


def test_vector_environments_show_it_too() -> None:
    settings: dict[str, Any] = {"task": "remember", "image_size": 32, "history": 2}
    worlds: Any = gymnasium.make_vec("fetchlab/Tabletop-v0", num_envs=2, **settings)
    moments, infos = worlds.reset(seed=[1, 2])
    assert ObservationBatch.from_gym(moments).images.shape == (2, 4, 32, 32, 3)
    assert infos["before"]["front"].shape == (2, 32, 32, 3)
    assert infos["cameras"]["wrist"]["pose"].shape == (2, 4, 4)
    np.testing.assert_array_equal(infos["before"]["front"], moments["pixels"]["front"][:, 0])
    worlds.close()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("remember") / "data"
    collect(CollectConfig(out=out, episodes=4, counts=(3,), workers=1, env=WORLD))
    return out


PASTS = [(1, "recent"), (2, "recent"), (3, "recent"), (2, "first"), (3, "first"), (4, "first")]


@pytest.mark.parametrize(("history", "memory"), PASTS)
def test_a_dataset_shows_what_the_simulator_showed(
    dataset: Path, history: int, memory: str
) -> None:
    world = replace(WORLD, history=history, memory=memory)
    demonstrations = Demonstrations.load(dataset, world)
    env = Tabletop.from_config(world)
    for episode in range(len(demonstrations.lengths)):
        seed = int(demonstrations.scene_seeds[episode])
        moment, _ = env.reset(seed=seed, options={"n_objects": 3})
        frames = np.arange(*demonstrations.bounds[episode : episode + 2])
        batch = demonstrations.observations(frames)
        for row, frame in enumerate(frames):
            np.testing.assert_array_equal(batch.images[row], Observation.from_gym(moment).images)
            moment = env.step(demonstrations.executed_actions[frame])[0]


@given(st.integers(2, 4), st.data())
def test_frames_of_many_episodes_mix_in_any_order(
    dataset: Path, history: int, data: st.DataObject
) -> None:
    world = replace(WORLD, history=history, memory="first", cameras=("overhead",))
    demonstrations = Demonstrations.load(dataset, world)
    every = st.integers(0, len(demonstrations) - 1)
    frames = np.array(data.draw(st.lists(every, min_size=1, max_size=8)))
    images = demonstrations.observations(frames).images
    for frame, shown in zip(frames, images, strict=True):
        episode = int(np.flatnonzero(demonstrations.bounds <= frame)[-1])
        np.testing.assert_array_equal(shown[0], demonstrations.before[episode, 0])
        np.testing.assert_array_equal(shown[-1], demonstrations.images[frame, 0])


def test_its_columns_are_declared_and_the_same_all_through_an_episode(dataset: Path) -> None:
    info = lerobot.read_info(dataset)
    key = "observation.before.overhead"
    assert info["features"][key] == info["features"]["observation.images.overhead"]
    table = pq.read_table(dataset / lerobot.data_path(0), columns=[key, "episode_index"])
    shown = {(row["episode_index"], row[key]["bytes"]) for row in table.to_pylist()}
    assert len(shown) == 4
