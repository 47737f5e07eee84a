"""The environment keeps Gymnasium's contract, its own promises, and says what is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics
from numpy.typing import NDArray

import fetchlab  # noqa: F401  (registers the environment)
from fetchlab.errors import UserError
from fetchlab.policy.expert import Expert, Noise
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.kinematics import joints_for
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.observation import MAX_ROWS, Observation, ObservationBatch
from fetchlab.sim.robot import HOME
from fetchlab.sim.shapes import BLOCK_SIZE, SHAPES

SMALL = EnvConfig(cameras=("front", "wrist"), image_size=32)
MIXED = replace(
    SMALL,
    task="mixed",
    shapes=tuple(SHAPES),
    languages=tuple(LANGUAGES),
    phrasings="training",
    crowding="touching",
)

MOVED, NOISY = (replace(MIXED, variation=name) for name in ("object_moved", "sensor_noise"))


def play(env: Tabletop, seed: int, n_objects: int) -> str:
    """A hash of everything that a noisy expert sees, does and earns in an episode."""
    digest = hashlib.sha256()
    expert, generator = Expert(env.config), np.random.default_rng(seed)
    moment, _ = env.reset(seed=seed, options={"n_objects": n_objects})
    finished = False
    while not finished:
        _, action = expert.demonstrate(Observation.from_gym(moment), Noise(), generator)
        moment, reward, terminated, truncated, _ = env.step(action)
        finished = terminated or truncated
        for part in (moment["agent_pos"], moment["environment_state"], *moment["pixels"].values()):
            digest.update(part.tobytes())
        digest.update(np.float64(reward).tobytes())
    return digest.hexdigest()


# The environment asks for absolute joint targets, as ACT does, so its space is not [-1, 1].
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space.*:UserWarning")
@pytest.mark.parametrize("action_mode", ["joint", "ee"])
def test_gymnasium_finds_nothing_wrong(action_mode: str) -> None:
    env = gymnasium.make(
        "fetchlab/Tabletop-v0", action_mode=action_mode, image_size=16, render_mode="rgb_array"
    )
    check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("task", ["fetch", "mixed"])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_tell_each_scene_apart(mode: str, task: str) -> None:
    settings: dict[str, Any] = {"cameras": ("front",), "image_size": 16, "task": task}
    settings |= {"languages": ("english", "chinese"), "phrasings": "held_out"}
    worlds: Any = gymnasium.make_vec(
        "fetchlab/Tabletop-v0", num_envs=2, vectorization_mode=mode, **settings
    )
    single = Tabletop(**settings)
    for seeds in ([3, 4], [5, 6]):
        moments, _ = worlds.reset(seed=seeds, options={"n_objects": 6})
        batch = ObservationBatch.from_gym(moments)
        for row, seed in enumerate(seeds):
            alone = Observation.from_gym(single.reset(seed=seed, options={"n_objects": 6})[0])
            assert batch.instructions[row] == alone.instruction
            np.testing.assert_array_equal(batch.images[row], alone.images)
            np.testing.assert_array_equal(batch.objects[row], alone.objects)
    worlds.close()


@pytest.mark.parametrize("config", [SMALL, MIXED, MOVED], ids=["fetch", "mixed", "moved"])
def test_same_seed_same_episode_after_any_history(config: EnvConfig) -> None:
    cases = [(7, 2), (8, 6), (9, 20)]
    fresh = [play(Tabletop.from_config(config), seed, count) for seed, count in cases]
    env = Tabletop.from_config(config)
    chance = np.random.default_rng(0)
    for _ in range(100):
        count = int(chance.integers(2, 21))
        env.reset(seed=int(chance.integers(10**6)), options={"n_objects": count})
        for _ in range(int(chance.integers(0, 4))):
            env.step(env.action_space.sample())
    assert [play(env, seed, count) for seed, count in cases] == fresh
    assert len(set(fresh)) == len(fresh)


@pytest.mark.parametrize("config", [SMALL, MOVED, NOISY], ids=["fetch", "moved", "noisy"])
def test_same_seed_same_episode_in_another_process(config: EnvConfig) -> None:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    here = play(Tabletop.from_config(config), 11, 5)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(_play_elsewhere, config, 11, 5).result() == here


def _play_elsewhere(config: EnvConfig, seed: int, n_objects: int) -> str:
    return play(Tabletop.from_config(config), seed, n_objects)


def test_blocks_rest_apart_and_nothing_is_solved_at_reset() -> None:
    env = Tabletop(cameras=())
    for seed in range(10):
        moment, info = env.reset(seed=seed, options={"n_objects": 20})
        assert not info["is_success"]
        before = moment["environment_state"].reshape(MAX_ROWS, -1)[:20]
        after, *_ = env.step(_stay())
        assert np.abs(after["environment_state"] - moment["environment_state"]).max() < 1e-4
        gaps = np.linalg.norm(before[:, None, 1:3] - before[None, :, 1:3], axis=-1)
        assert gaps[np.triu_indices(20, 1)].min() > BLOCK_SIZE * 2**0.5


def test_the_instruction_can_be_chosen() -> None:
    env = Tabletop(n_objects=6, cameras=())
    moment, info = env.reset(seed=0, options={"instruction": "fetch the purple block"})
    assert moment["instruction"] == env.task_description == "fetch the purple block"
    assert env.scene.objects[info["target"]].colour == "purple"
    with pytest.raises(
        UserError, match=r"^'pink block' names no kind of object: known are the colours red"
    ):
        env.reset(seed=0, options={"instruction": "fetch the pink block"})


def test_an_episode_is_truncated_at_its_limit_and_then_stays_as_it_is() -> None:
    env = Tabletop(cameras=())
    env.reset(seed=0)
    for step in range(40):
        result = env.step(_stay())
        assert result[2:4] == (False, step == 39)
    assert result[4]["failure_reason"] == "no_reach"
    assert env.step(env.action_space.sample()) is result


def test_actions_that_cannot_be_are_named() -> None:
    env = Tabletop(cameras=())
    env.reset(seed=0)
    action = _stay()
    action[3] = np.nan
    with pytest.raises(UserError, match="joint_4"):
        env.step(action)
    with pytest.raises(UserError, match=r"\(8,\).*got \(7,\)"):
        env.step(action[:7])
    words: Any = ["left"] * 8
    with pytest.raises(UserError, match="numbers: joint_1"):
        env.step(words)


def test_a_step_needs_a_scene_and_counts_may_be_numpy_integers() -> None:
    env = Tabletop(cameras=(), n_objects=(np.int64(3), np.int64(3)))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="call reset"):
        env.step(_stay())
    env.reset(seed=0)
    assert len(env.scene.objects) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "fetsh"}, "unknown task 'fetsh': did you mean fetch"),
        ({"cameras": ("fromt",)}, "unknown camera 'fromt': did you mean front"),
        ({"cameras": ("front", "front")}, "twice"),
        ({"action_mode": "torque"}, "unknown action mode"),
        ({"shapes": ("blok",)}, "unknown shape 'blok': did you mean block"),
        ({"shapes": ()}, "shapes name none: known are block, brick"),
        ({"shapes": ("mug", "mug")}, "shapes name one twice: mug, mug"),
        ({"languages": ("german",)}, "unknown language 'german': known are english, chinese"),
        ({"phrasings": "heldout"}, "unknown phrasings 'heldout': did you mean held_out"),
        ({"crowding": "close"}, "unknown crowding 'close': known are apart, touching"),
        ({"pairs": "none"}, "unknown pairs 'none': known are all, seen, unnamed, held_out"),
        ({"distractors": "color"}, "unknown distractors 'color': did you mean colour"),
        ({"distractors": "both"}, "distractors both need several shapes, got block alone"),
        ({"variation": "frontdark"}, "unknown variation 'frontdark': did you mean front_dark"),
        ({"n_objects": "3"}, r"within, got '3': give 5 or \(2, 5\)"),
        ({"n_objects": 21}, "2 to 20"),
        ({"n_objects": (5, 3)}, "2 to 20"),
        ({"n_objects": (2,)}, "2 to 20"),
        ({"n_objects": 2.5}, "2 to 20"),
        ({"n_objects": None}, "2 to 20"),
        ({"control_hz": 7}, "240"),
        ({"image_size": 2}, "image_size"),
        ({"render_mode": "human"}, "render mode"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Tabletop(**settings)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("n_object", 3, "did you mean n_objects"),
        ("task", 5, "the option task is the name of a task, got 5"),
        ("instruction", 5, "an instruction is a sentence, got 5"),
        ("n_objects", "3", "got '3'"),
    ],
)
def test_reset_options_that_cannot_be_are_refused(option: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Tabletop(cameras=()).reset(seed=0, options={option: value})


def test_observations_share_no_memory() -> None:
    env = Tabletop.from_config(SMALL)
    first, _ = env.reset(seed=0)
    kept = {camera: image.copy() for camera, image in first["pixels"].items()}
    pose = first["agent_pos"].copy()
    action = _stay()
    action[0] += 0.5
    env.step(action)
    np.testing.assert_array_equal(first["agent_pos"], pose)
    for camera, image in kept.items():
        np.testing.assert_array_equal(first["pixels"][camera], image)


def test_render_gives_a_larger_view_for_videos() -> None:
    env = RecordEpisodeStatistics(
        gymnasium.make("fetchlab/Tabletop-v0", cameras=(), render_mode="rgb_array")
    )
    env.reset(seed=0)
    frame: Any = env.render()
    assert frame.shape == (480, 640, 3) and frame.std() > 10
    assert env.metadata["render_fps"] == 10
    env.close()


def test_assets_are_generated_again_when_the_cache_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = play(Tabletop.from_config(SMALL), 1, 3)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert play(Tabletop.from_config(SMALL), 1, 3) == ordinary
    assert list((tmp_path / "fetchlab").glob("panda-*/panda.urdf"))


def test_memory_does_not_grow_with_episodes() -> None:
    env = Tabletop(cameras=())
    for seed in range(50):
        env.reset(seed=seed, options={"n_objects": 20})
    before = _resident_megabytes()
    for seed in range(300):
        env.reset(seed=seed, options={"n_objects": 20})
    assert _resident_megabytes() - before < 20


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def _stay() -> NDArray[np.float32]:
    """The action that keeps the robot where it is at home, gripper open."""
    return np.array([*joints_for(np.array(HOME)), 0.08], np.float32)
