"""Every learned policy takes every task, shape and language: from demonstrations to an action."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.factories import make_statistics

from fetchlab.errors import UserError
from fetchlab.policy.registry import POLICIES, build_policy, load_policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.observation import IS_BOX
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.train import lerobot
from fetchlab.train.collection import collect
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.demonstrate import CollectConfig

WORLD = EnvConfig(
    task="mixed",
    image_size=16,
    shapes=tuple(SHAPES),
    languages=tuple(LANGUAGES),
    phrasings="training",
)
LEARNED = [name for name, entry in POLICIES.items() if entry.policy_class]


@pytest.fixture(scope="module")
def demonstrations(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    out = tmp_path_factory.mktemp("mixed") / "data"
    collect(CollectConfig(out=out, episodes=12, counts=(2, 6), workers=1, env=WORLD))
    return Demonstrations.load(out)


def test_the_world_comes_back_with_the_data(demonstrations: Demonstrations) -> None:
    assert demonstrations.env_config == WORLD
    asked = {TASKS["mixed"].request(sentence) for sentence in demonstrations.instructions}
    assert {one.task for one in asked} == {"fetch", "place_in_box", "place_beside"}
    assert {one.language for one in asked} == set(LANGUAGES)
    assert demonstrations.objects[..., IS_BOX].any()


def test_another_version_of_the_object_table_is_refused(tmp_path: Path) -> None:
    state = np.zeros((7, 180), np.float32)
    with pytest.raises(UserError, match="objects by 180 numbers a frame, expected 378: another"):
        lerobot.object_rows(tmp_path, state)


def test_a_world_with_every_setting_is_collected_and_replayed(tmp_path: Path) -> None:
    world = EnvConfig(
        image_size=16,
        task="mixed",
        shapes=tuple(SHAPES),
        pairs="unnamed",
        distractors="both",
        variation="object_moved",
        crowding="touching",
    )
    out = tmp_path / "data"
    collect(CollectConfig(out=out, episodes=4, counts=(4,), workers=1, env=world))
    demonstrations = Demonstrations.load(out)
    assert demonstrations.env_config == world and not demonstrations.before.size
    env = Tabletop.from_config(world)
    for episode, (start, end) in enumerate(pairwise(demonstrations.bounds.tolist())):
        seed = int(demonstrations.scene_seeds[episode])
        moment = env.reset(seed=seed, options={"n_objects": 4})[0]
        for frame in range(start, end):
            state = moment["environment_state"].reshape(len(demonstrations.objects[0]), -1)
            np.testing.assert_array_equal(state[:, 1:], demonstrations.objects[frame])
            moment = env.step(demonstrations.executed_actions[frame])[0]
    with pytest.raises(UserError, match=r"collected with variation object_moved, but .* none"):
        Demonstrations.load(out, replace(world, variation="none"))


@pytest.mark.parametrize("name", LEARNED)
def test_a_policy_learns_from_all_of_them(
    name: str, demonstrations: Demonstrations, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    world = WORLD if POLICIES[name].sees_images else replace(WORLD, cameras=())
    policy = build_policy(name, world, make_statistics(), chunk_size=4)
    frames = np.arange(0, len(demonstrations), 3)
    batch = demonstrations.batch(frames, policy.chunk_size)
    optimizer, losses = torch.optim.Adam(policy.parameters(), lr=3e-3), []
    for _ in range(8):
        loss, _ = policy.loss(batch)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    chunk = policy.chunk(batch.observations)
    assert chunk.shape == (len(frames), 4, 8) and np.isfinite(chunk).all()
    policy.save_pretrained(tmp_path / name)
    again = load_policy(tmp_path / name)
    assert again.env_config == world
    np.testing.assert_array_equal(
        again.act(batch.observations[0]), policy.act(batch.observations[0])
    )
