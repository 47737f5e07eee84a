"""Demonstrations in a mirror: what is seen, read, done and said there must be true there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fetchlab.policy.base import Array, TrainingBatch
from fetchlab.policy.expert import Expert
from fetchlab.policy.mirror import mirrored, words
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.sim.pictures import Light
from fetchlab.sim.scene import Scene, SceneObject
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.variations import VARIATIONS, Conditions

CAMERAS = ("front", "overhead", "wrist")
FREE = slice(35, None), slice(40), slice(None)  # rows of each in which the arm is not seen


def reflected(scene: Scene) -> Scene:
    """The scene as it stands in the mirror, with its goal there."""

    def turned(thing: SceneObject) -> SceneObject:
        return replace(thing, y=-thing.y, yaw=-thing.yaw)

    sides = {"left": "right", "right": "left"}
    relation = scene.goal.relation
    goal = replace(scene.goal, relation=sides.get(relation or "", relation))
    box = None if scene.box is None else (scene.box[0], -scene.box[1])
    return replace(scene, objects=tuple(map(turned, scene.objects)), box=box, goal=goal)


def batch_of(moment: Any, actions: Array) -> TrainingBatch:
    observations = ObservationBatch.from_gyms([moment])
    shape = (1, len(actions))
    return TrainingBatch(
        observations=observations, actions=actions[None], actions_mask=np.ones(shape, bool)
    )


def world(task: str, action_mode: str) -> Tabletop:
    return Tabletop(
        task=task, shapes=tuple(SHAPES), cameras=CAMERAS, image_size=96, action_mode=action_mode
    )


def put_into_the_mirror(env: Tabletop, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on its scenes stand there, lit from the other side."""
    draw, light = env._draw, Light(direction=(0.4, 0.8, 1.6))
    usual = replace(VARIATIONS["none"], draw=lambda _: Conditions(light=light))
    monkeypatch.setattr("fetchlab.sim.env.VARIATIONS", {**VARIATIONS, "none": usual})

    def draw_there(**options: Any) -> tuple[Scene, str]:
        scene, said = draw(**options)
        return reflected(scene), words(said)

    monkeypatch.setattr(env, "_draw", draw_there)


@pytest.mark.parametrize("action_mode", ["joint", "ee"])
@pytest.mark.parametrize("task", ["place_in_box", "place_beside"])
def test_what_was_done_here_succeeds_there(
    task: str, action_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = world(task, action_mode)
    expert, over = Expert(env.config), False
    actions: list[Array] = []
    moments: list[Any] = []
    moment, _ = env.reset(seed=3, options={"n_objects": 4})
    while not over:
        moments.append(moment)
        actions.append(expert.act(Observation.from_gym(moment)))
        moment, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    assert info["is_success"]
    there = mirrored(batch_of(moments[0], np.stack(actions)), np.array([True]), action_mode)

    put_into_the_mirror(env, monkeypatch)
    moment, _ = env.reset(seed=3, options={"n_objects": 4})
    seen = ObservationBatch.from_gyms([moment])
    assert there.observations.instructions == seen.instructions
    np.testing.assert_allclose(there.observations.proprioception, seen.proprioception, atol=2e-4)
    np.testing.assert_allclose(there.observations.objects, seen.objects, atol=1e-4)
    off = np.abs(there.observations.images[0, :, :, 2:-2].astype(int) - seen.images[0, :, :, 2:-2])
    for camera, rows in enumerate(FREE):
        assert (off[camera, rows] > 8).any(axis=-1).mean() < 0.01
    for action in there.actions[0]:
        *_, info = env.step(action)
        if info["is_success"]:
            break
    assert info["is_success"]


def test_left_and_right_change_places() -> None:
    pairs = {
        "put the red mug left of the blue block": "put the red mug right of the blue block",
        "把红色杯子放到蓝色方块右边": "把红色杯子放到蓝色方块左边",
        "put the mug behind the ball": "put the mug behind the ball",
    }
    for said, turned in pairs.items():
        assert words(said) == turned and words(turned) == said


def test_twice_in_the_mirror_is_as_before_and_other_rows_stay() -> None:
    env = Tabletop(task="place_beside", cameras=CAMERAS, image_size=16)
    moments = [env.reset(seed=seed)[0] for seed in range(3)]
    rng = np.random.default_rng(0)
    batch = TrainingBatch(
        observations=ObservationBatch.from_gyms(moments),
        actions=rng.normal(size=(3, 4, 8)).astype(np.float32),
        actions_mask=np.ones((3, 4), bool),
    )
    rows = np.array([True, False, True])
    once = mirrored(batch, rows, "joint")
    twice = mirrored(once, rows, "joint")
    for name in ("images", "proprioception", "objects"):
        before, after = (getattr(one.observations, name) for one in (batch, twice))
        inner = np.s_[..., 1:, :] if name == "images" else np.s_[...]
        np.testing.assert_allclose(after[inner], before[inner], atol=1e-6)
        np.testing.assert_array_equal(getattr(once.observations, name)[1], before[1])
    np.testing.assert_allclose(twice.actions, batch.actions, atol=1e-6)
    assert twice.observations.instructions == batch.observations.instructions
    assert (once.observations.images[0] != batch.observations.images[0]).any()
