"""What happens in mid-episode: the named object set elsewhere, the arm pushed, and the recovery."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fetchlab.policy.expert import Expert
from fetchlab.sim.arrangement import CLEARANCE, SPACING
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.disturbances import ELSEWHERE, HIGH
from fetchlab.sim.env import Tabletop
from fetchlab.sim.footprint import gap
from fetchlab.sim.observation import HEIGHT, Observation
from fetchlab.sim.scene import AREA_X, AREA_Y, is_beside
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.variations import MOVED_AT, PUSH_STEPS, PUSHED_AT

WORLD = EnvConfig(cameras=(), shapes=tuple(SHAPES), task="mixed")
BLOCKS = EnvConfig(cameras=())


def play(env: Tabletop, seed: int, n_objects: int = 5) -> tuple[list[Observation], bool]:
    """All that the expert sees in an episode, and whether it succeeds."""
    expert = Expert(env.config)
    moment, info = env.reset(seed=seed, options={"n_objects": n_objects})
    seen, finished = [Observation.from_gym(moment)], False
    while not finished:
        moment, _, terminated, truncated, info = env.step(expert.act(seen[-1]))
        seen.append(Observation.from_gym(moment))
        finished = terminated or truncated
    return seen, bool(info["is_success"])


def leaps(seen: list[Observation], row: int) -> list[int]:
    """Control steps in which the object got from where it lay further than a push could take it."""
    places = np.array([one.objects[row, [0, 1, HEIGHT]] for one in seen])  # (T, 3)
    way, lifted = np.hypot(*np.diff(places[:, :2], axis=0).T), places[:, 2] - places[0, 2]
    low = np.abs(lifted) < 0.005
    return np.flatnonzero((way > 0.07) & low[:-1] & low[1:]).tolist()


@pytest.mark.parametrize("config", [WORLD, BLOCKS], ids=["shapes", "blocks"])
@pytest.mark.parametrize("n_objects", [5, 20])
def test_the_named_object_is_set_elsewhere_and_fetched_from_there(
    config: EnvConfig, n_objects: int
) -> None:
    env, moved = Tabletop.from_config(replace(config, variation="object_moved")), 0
    for seed in range(12):
        seen, success = play(env, seed, n_objects)
        assert success
        scene, row = env.scene, env.scene.target
        for step in leaps(seen, row):
            moved += 1
            assert step >= MOVED_AT[0]
            before, after = seen[step], seen[step + 1].objects
            new, tool = after[row, :2], before.proprioception[8:10]
            assert AREA_X[0] <= new[0] <= AREA_X[1] and AREA_Y[0] <= new[1] <= AREA_Y[1]
            assert np.hypot(*(new - before.objects[row, :2])) >= ELSEWHERE - 1e-3
            assert np.hypot(*(new - tool)) >= ELSEWHERE - 1e-3
            base = SHAPES[scene.objects[row].shape].base
            assert after[row, HEIGHT] == pytest.approx(base, abs=2e-3)
            assert_free(env, after)
    assert moved >= 9


def assert_free(env: Tabletop, objects: np.ndarray) -> None:
    """The named object stands free of all others, and the goal is still to be reached."""
    scene, goal = env.scene, env.scene.goal
    (x, y), me = objects[goal.target, :2].tolist(), scene.objects[goal.target]
    turned = float(np.arctan2(*objects[goal.target, [-1, -2]]))
    for row, other in enumerate(scene.objects):
        if row == goal.target:
            continue
        place = objects[row, :2]
        if env.config.shapes != ("block",):
            assert np.hypot(*(place - (x, y))) >= SPACING - 1e-3
        yaw = float(np.arctan2(*objects[row, [-1, -2]]))
        apart = gap(me.shape, (x, y, turned), other.shape, (*place.tolist(), yaw))
        assert apart > CLEARANCE - 5e-3
    if goal.other is not None and goal.relation is not None:
        way = np.array([x, y]) - objects[goal.other, :2]
        assert not is_beside(way.tolist(), goal.relation)


def test_an_object_in_the_hand_is_never_moved() -> None:
    env = Tabletop.from_config(replace(WORLD, task="fetch", variation="object_moved"))
    for seed in range(12):
        seen, _ = play(env, seed)
        row = env.scene.target
        for step in leaps(seen, row):
            rest = seen[0].objects[row, :3]
            np.testing.assert_allclose(seen[step].objects[row, :3], rest, atol=0.01)


def test_the_arm_is_pushed_for_a_while_and_never_low() -> None:
    """The same actions lead elsewhere, by some centimetres, and back."""
    pushed = Tabletop.from_config(replace(BLOCKS, variation="arm_pushed"))
    calm = Tabletop.from_config(BLOCKS)
    for seed in range(8):
        pushed.reset(seed=seed)
        start = calm.reset(seed=seed)[0]["agent_pos"]
        stay = np.array([*start[:7], 0.08], np.float32)
        off = [
            float(np.linalg.norm(pushed.step(stay)[0]["agent_pos"][8:11] - start[8:11]))
            for _ in range(PUSHED_AT[1] + PUSH_STEPS + 4)
        ]
        begins = next(step for step, way in enumerate(off) if way > 0.01)
        assert PUSHED_AT[0] <= begins <= PUSHED_AT[1]
        assert 0.03 < max(off) < 0.14 and off[-1] < 0.002
        assert max(off) == max(off[begins : begins + PUSH_STEPS])


def test_low_fingers_are_not_pushed() -> None:
    env = Tabletop.from_config(replace(BLOCKS, variation="arm_pushed", action_mode="ee"))
    for seed in range(4):
        env.reset(seed=seed)
        low = np.array([0.45, 0.0, HIGH - 0.02, 0.08], np.float32)
        for _ in range(6):
            env.step(low)
        tool = [env.step(low)[0]["agent_pos"][8:11] for _ in range(6)]
        assert np.ptp(tool, axis=0).max() < 0.003


@pytest.mark.parametrize("task", ["fetch", "mixed"])
@pytest.mark.parametrize("variation", ["object_moved", "arm_pushed"])
def test_the_expert_recovers(task: str, variation: str) -> None:
    env = Tabletop.from_config(replace(WORLD, task=task, variation=variation))
    outcomes = [play(env, seed)[1] for seed in range(100, 125)]
    assert sum(outcomes) >= 24


def test_fingers_that_close_where_the_object_was_go_up_and_start_over() -> None:
    """In this scene it is set elsewhere while they close around it; they must not chase it low."""
    env = Tabletop.from_config(replace(WORLD, variation="object_moved"))
    seen, success = play(env, 71)
    (step,) = leaps(seen, env.scene.target)
    assert seen[step].proprioception[10] < 0.05 and success
    heights: Any = [one.proprioception[10] for one in seen[step + 1 : step + 5]]
    assert max(heights) > 0.07
