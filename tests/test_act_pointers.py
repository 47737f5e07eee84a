"""The policy with pointers: what it remembers, where it wants to go, and what it refuses."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factories import (
    make_act_pointers,
    make_batch,
    make_observations,
    make_statistics,
)

from fetchlab.errors import UserError
from fetchlab.policy.act_pointers import ActPointersPolicy
from fetchlab.policy.goal_place import GoalPlace
from fetchlab.policy.recall import Recall
from fetchlab.policy.registry import build_policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import ObservationBatch
from fetchlab.sim.scene import place_beside
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.base import Task
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.instruction import NO_WORDS, split
from fetchlab.tokenizers.objects import to_table_units
from fetchlab.tokenizers.patch import PatchTokenizer

# Memory ---------------------------------------------------------------------------------------


def test_recall_learns_to_trust_the_first_frame_for_one_role_and_the_newest_for_the_other() -> None:
    """What the first role names is carried about; the other is hidden half of the time."""
    torch.manual_seed(0)
    recall = Recall(n_roles=2, n_evidence=3, n_readings=1)
    optimizer = torch.optim.Adam(recall.parameters(), lr=1e-2)
    for _ in range(400):
        start, moved = torch.randn(2, 64, 2, 2)
        true = torch.stack([moved[:, 0], start[:, 1]], dim=1)
        hidden = torch.zeros(64, 2, 1, dtype=torch.bool)
        hidden[::2, 1] = True
        now = torch.where(hidden, torch.randn(64, 2, 2), true)
        sure = torch.where(hidden, 0.2, 0.9)
        evidence = torch.cat([now, sure], -1), torch.cat([start, torch.ones(64, 2, 1)], -1)
        places = recall(now, *evidence, torch.zeros(64, 1))
        errors = (places - true).abs().mean(dim=(0, 2))  # a role each
        optimizer.zero_grad()
        errors.sum().backward()
        optimizer.step()
    assert float(errors.detach().max()) < 0.05 < 0.3 < float((now - true).abs().mean(dim=(0, 2))[1])


def test_a_policy_splits_what_it_sees_into_the_first_and_the_newest_frame() -> None:
    policy = make_act_pointers(cameras=("front", "overhead"), recalls=True).eval()
    observations = make_observations(2, cameras=4)
    frames = policy._frames(observations)
    both = [observations.images[:, 2:], observations.images[:, :2]]
    assert isinstance(policy.eyes, PatchTokenizer) and frames.first is not None
    for patches, images in zip(frames, both, strict=True):
        expected = policy.eyes.patches(replace(observations, images=images))
        torch.testing.assert_close(patches, expected)
    assert not frames.first.requires_grad and frames.newest.requires_grad
    with pytest.raises(UserError, match="use the cameras, image size and history that the policy"):
        policy.chunk(replace(observations, images=observations.images[:, :3]))


@pytest.mark.parametrize(("task", "first_is_taught"), [("remember", True), ("fetch", False)])
def test_the_frame_with_the_colours_is_the_one_that_teaches(
    task: str, first_is_taught: bool
) -> None:
    policy = make_act_pointers(cameras=("front",), task=task, recalls=True)
    frames = policy._frames(make_observations(1, cameras=2))
    assert frames.first is not None
    assert frames.first.requires_grad is first_is_taught
    assert frames.newest.requires_grad is not first_is_taught


def test_a_history_that_it_would_not_heed_is_refused() -> None:
    policy = make_act_pointers()
    for past in ({"history": 2}, {"history": 3, "memory": "first"}):
        world = replace(policy.env_config, **past)
        with pytest.raises(UserError, match="give --history 2 --memory first, or --history 1"):
            replace(policy.config, env_config=world)


# Goals ----------------------------------------------------------------------------------------


@functools.cache
def mixed_world() -> tuple[Tabletop, ActPointersPolicy]:
    config = EnvConfig(task="mixed", cameras=("front",), image_size=16, shapes=tuple(SHAPES))
    policy = build_policy("act_pointers", config, make_statistics())
    assert isinstance(policy, ActPointersPolicy)
    return Tabletop.from_config(config), policy


@given(seed=st.integers(0, 200), part=st.sampled_from(TASKS["mixed"].parts))
@settings(max_examples=12, deadline=None)
def test_the_goal_is_where_the_simulator_wants_the_object(seed: int, part: Task) -> None:
    env, policy = mixed_world()
    observation, _ = env.reset(seed=seed, options={"n_objects": 4, "task": part.name})
    seen, scene = ObservationBatch.from_gyms([observation]), env.scene
    target, other = scene.goal.target, scene.goal.other
    expected = {
        "fetch": (scene.objects[target].x, scene.objects[target].y),
        "place_in_box": scene.box,
        "place_beside": other is not None
        and place_beside(
            (scene.objects[other].x, scene.objects[other].y), str(scene.goal.relation)
        ),
    }[part.name]
    objects, present = torch.tensor(seen.objects), torch.tensor(seen.objects_mask)
    targets = policy._targets(policy._names_asked(seen), objects, present)
    looked = policy._look(seen)
    right = to_table_units(torch.tensor([expected]))
    for shift in (0.0, 0.1):
        aim = looked.aim._replace(place=right + shift)
        loss = policy._goal_loss(looked._replace(aim=aim), seen, *targets)
        assert float(loss.detach()) == pytest.approx(shift, abs=1e-3)


def test_words_choose_among_places_and_tell_how_far_from_there() -> None:
    """Whatever the places are: two sentences, "beside the second" and "where the first is"."""
    torch.manual_seed(0)
    goal = GoalPlace(n_named=2, d_model=4)
    optimizer = torch.optim.Adam(goal.parameters(), lr=1e-2)
    words = torch.eye(4)[[0, 1] * 16]
    for _ in range(300):
        places = torch.randn(32, 2, 2)
        target = places[:, 0].clone()
        target[::2] = places[::2, 1] + torch.tensor([0.0, -0.25])
        aim = goal(words, places, torch.zeros(32, 2))
        loss = goal.loss(aim, target, torch.ones(32, dtype=torch.bool))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert float(loss.detach()) < 0.05
    nearer = goal(words, places, torch.tensor([0.2, 0.0]).expand(32, -1))
    torch.testing.assert_close(nearer.place, aim.place, atol=0.05, rtol=0)
    assert (nearer.token - aim.token).abs().max() > 1e-3


# The policy -----------------------------------------------------------------------------------


def test_two_names_and_the_box_are_pointed_at() -> None:
    policy = make_act_pointers(task="mixed")
    batch = make_batch(4)
    seen = policy._look(batch.observations)
    assert seen.found.pointed.maps.shape == (
        4,
        3,
        1,
        16,
    )  # two names and the box, front, 4 × 4 patches
    assert seen.gates.shape[:2] == (4, 2)
    _, metrics = policy.loss(batch)
    assert {"words", "place_l1", "map", "naming"} <= metrics.keys()


def test_without_words_no_sentence_is_heard() -> None:
    policy, observations = make_act_pointers(), make_observations(2)
    silent = ObservationBatch(**{**vars(observations), "instructions": (NO_WORDS, NO_WORDS)})
    gates, names = policy._names(silent)
    assert not names.any() and np.isfinite(policy.chunk(silent)).all() and gates.shape[0] == 2


def test_positions_are_asked_for_every_phrase() -> None:
    policy, observations = make_act_pointers(), make_observations(2)
    assert policy.positions(observations).shape == (2, len(policy.config.phrases), 2)


def test_pointers_need_a_camera_that_stands_still() -> None:
    message = "stands still, front or overhead, got wrist: collect with --cameras front wrist"
    with pytest.raises(UserError, match=message):
        make_act_pointers(cameras=("wrist",))
    with pytest.raises(UserError, match="got none: collect with --cameras front"):
        make_act_pointers(cameras=())
    with pytest.raises(UserError, match="look at pixels, got inputs 'objects'"):
        make_act_pointers(inputs="objects")
    with pytest.raises(UserError, match="leave their weights at 0"):
        make_act_pointers(position_query_weight=1.0)
    with pytest.raises(UserError, match="word_dropout must be 0 to below 1, got 1"):
        make_act_pointers(word_dropout=1.0)


def test_the_vocabulary_serves_both_languages() -> None:
    config = EnvConfig(task="mixed", languages=("english", "chinese"), shapes=tuple(SHAPES))
    words = {w for sentence in TASKS["mixed"].sentences(config) for w in split(sentence)}
    for phrase in TASKS["mixed"].phrases(config):
        assert set(split(phrase)) <= words
