"""A few frames of history: the same past in the simulator, in the dataset and in the policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from tests.factories import make_act, make_batch
from tests.recordings import SMALL, write_dataset

import fetchlab  # noqa: F401  (registers the environment)
from fetchlab.errors import UserError
from fetchlab.eval.rollout import EpisodeSpec, make_worlds, rollout
from fetchlab.policy.act import ActPolicy
from fetchlab.policy.expert import Expert, Noise
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.train.commands import TrainCommand, load_for, train_policy
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.demonstrate import CollectConfig

PAST = EnvConfig(image_size=16, history=3)


def observed(config: EnvConfig, steps: int) -> list[Observation]:
    """What the expert sees in the first steps of one episode."""
    env, expert = Tabletop.from_config(config), Expert(config)
    generator = np.random.default_rng(0)
    seen = [Observation.from_gym(env.reset(seed=3)[0])]
    for _ in range(steps):
        _, action = expert.demonstrate(seen[-1], Noise(), generator)
        seen.append(Observation.from_gym(env.step(action)[0]))
    env.close()
    return seen


def test_the_newest_frame_is_last_and_the_start_stands_for_what_was_before() -> None:
    now = observed(EnvConfig(image_size=16), 4)
    for step, moment in enumerate(observed(PAST, 4)):
        assert moment.images.shape == (3 * 2, 16, 16, 3)
        past = [now[max(0, step - back)].images for back in (2, 1, 0)]
        np.testing.assert_array_equal(moment.images, np.concatenate(past))


def test_the_first_frame_of_the_episode_can_be_kept_before_the_newest() -> None:
    now = [moment.images for moment in observed(EnvConfig(image_size=16), 4)]
    for step, moment in enumerate(observed(replace(PAST, memory="first"), 4)):
        past = [now[0], now[max(0, step - 1)], now[step]]
        np.testing.assert_array_equal(moment.images, np.concatenate(past))


def test_a_new_episode_forgets_the_last_one() -> None:
    env = Tabletop.from_config(PAST)
    env.reset(seed=1)
    env.step(env.action_space.sample())
    pixels = env.reset(seed=3)[0]["pixels"]["front"]
    env.close()
    np.testing.assert_array_equal(pixels[0], pixels[2])
    np.testing.assert_array_equal(pixels[2], observed(EnvConfig(image_size=16), 0)[0].images[0])


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space.*:UserWarning")
def test_gymnasium_finds_nothing_wrong() -> None:
    settings: dict[str, Any] = {"image_size": 16, "history": 2}
    env = gymnasium.make("fetchlab/Tabletop-v0", **settings)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
    worlds: Any = gymnasium.make_vec("fetchlab/Tabletop-v0", num_envs=2, **settings)
    batch = ObservationBatch.from_gym(worlds.reset(seed=[1, 2])[0])
    worlds.close()
    assert batch.images.shape == (2, 4, 16, 16, 3)


def test_the_dataset_gives_the_same_past(tmp_path: Path) -> None:
    episodes = write_dataset(tmp_path / "data")
    demonstrations = Demonstrations.load(tmp_path / "data", EnvConfig(image_size=16, history=3))
    for number, episode in enumerate(episodes):
        start = demonstrations.bounds[number]
        for step in range(len(episode)):
            images = demonstrations.observations(np.array([start + step])).images[0]
            past = [max(0, step - back) for back in (2, 1, 0)]
            expected = [episode.images[camera][t] for t in past for camera in SMALL.cameras]
            np.testing.assert_array_equal(images, np.stack(expected))


def test_the_dataset_keeps_the_first_frame_too(tmp_path: Path) -> None:
    episodes = write_dataset(tmp_path / "data")
    world = EnvConfig(image_size=16, history=3, memory="first")
    demonstrations = Demonstrations.load(tmp_path / "data", world)
    for number, episode in enumerate(episodes):
        frames = demonstrations.bounds[number] + np.arange(len(episode))
        for step, images in enumerate(demonstrations.observations(frames).images):
            past = [0, max(0, step - 1), step]
            expected = [episode.images[camera][t] for t in past for camera in SMALL.cameras]
            np.testing.assert_array_equal(images, np.stack(expected))


def test_a_policy_reads_every_frame_and_shows_its_attention_on_the_newest() -> None:
    policy = make_act(history=2)
    batch = make_batch(cameras=4)
    loss, _ = policy.loss(batch)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.eyes.parameters())
    weights = policy.attention(batch.observations)[0]
    assert weights.shape[-1] == 4 * 4 + 1  # four views of 2 by 2 patches, and the robot
    maps = policy.camera_maps(weights)
    np.testing.assert_array_equal(maps[..., 0, :, :].flatten(-2), weights[..., 8:12])


def test_it_is_trained_saved_and_played(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    command = TrainCommand(data=tmp_path / "data", out=tmp_path / "act", steps=2, history=2)
    train_policy(command, load_for("act", command.data, past={"history": 2, "memory": "first"}))
    policy = ActPolicy.from_pretrained(tmp_path / "act")
    assert policy.env_config == EnvConfig(image_size=16, history=2, memory="first")
    worlds = make_worlds(policy.env_config, 1)
    (result,) = rollout(policy, [EpisodeSpec(seed=1, n_objects=2)], worlds)
    worlds.close()
    assert result.steps > 0


def test_a_policy_sees_the_frames_it_is_registered_with_unless_others_are_asked_for(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    write_dataset(data)

    def seen(policy: str, **past: Any) -> tuple[int, str]:
        world = load_for(policy, data, past=past).env_config
        return world.history, world.memory

    assert seen("act_pointers") == (2, "first") and seen("act") == (1, "recent")
    assert seen("act_pointers", history=1, memory=None) == (1, "recent")
    assert seen("act", history=3, memory="first") == (3, "first")


def test_a_history_that_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give --history to train"):
        CollectConfig(out=tmp_path, env=PAST)
    for wrong in (0, 5):
        with pytest.raises(UserError, match=f"history must be 1 to 4 frames, got {wrong}"):
            EnvConfig(history=wrong)
    with pytest.raises(UserError, match="the first frame needs a history of 2 frames or more"):
        EnvConfig(memory="first")
    with pytest.raises(UserError, match="unknown memory 'last': known are recent, first"):
        EnvConfig(history=2, memory="last")
