"""Scenes, cameras and kinematics, checked against geometry and the physics engine."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchlab.errors import UserError
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.env import Tabletop
from fetchlab.sim.kinematics import (
    JOINT_LOWER,
    JOINT_UPPER,
    WORKSPACE_LOWER,
    WORKSPACE_UPPER,
    joints_for,
)
from fetchlab.sim.robot import ARM_JOINTS, NAME, Panda
from fetchlab.sim.scene import (
    AREA_X,
    AREA_Y,
    COLOURS,
    GAP_X,
    GAP_Y,
    MAX_OBJECTS,
    draw_scene,
)
from fetchlab.sim.world import World

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds, n_objects=st.integers(2, MAX_OBJECTS))
def test_scenes_keep_their_promises(seed: int, n_objects: int) -> None:
    scene = draw_scene(np.random.default_rng(seed), n_objects)
    colours = [block.colour for block in scene.blocks]
    assert len(colours) == n_objects
    assert colours.count(colours[scene.target]) == 1
    if n_objects <= len(COLOURS):
        assert max(Counter(colours).values()) == 1
    for i, block in enumerate(scene.blocks):
        assert AREA_X[0] <= block.x <= AREA_X[1] and AREA_Y[0] <= block.y <= AREA_Y[1]
        for other in scene.blocks[:i]:
            assert abs(block.x - other.x) >= GAP_X or abs(block.y - other.y) >= GAP_Y


def test_the_target_may_be_any_object_of_any_colour() -> None:
    scenes = [draw_scene(np.random.default_rng(seed), 5) for seed in range(400)]
    places = Counter(scene.target for scene in scenes)
    colours = Counter(scene.blocks[scene.target].colour for scene in scenes)
    assert len(places) == 5 and min(places.values()) > 50
    assert len(colours) == 6 and min(colours.values()) > 40


@pytest.mark.parametrize("n_objects", [1, 21])
def test_counts_that_do_not_fit_are_refused(n_objects: int) -> None:
    with pytest.raises(UserError, match=f"2 to 20 objects, got {n_objects}"):
        draw_scene(np.random.default_rng(0), n_objects)


@given(
    st.tuples(*map(st.floats, WORKSPACE_LOWER, WORKSPACE_UPPER)),
    st.floats(-0.5, 0.5),
)
def test_inverse_kinematics_agrees_with_the_physics_engine(
    position: tuple[float, float, float], yaw: float
) -> None:
    joints = joints_for(np.array(position), yaw)
    assert (joints > JOINT_LOWER).all() and (joints < JOINT_UPPER).all()
    robot, world = _robot()
    world.reset_joints(NAME, dict(zip(ARM_JOINTS, joints.tolist(), strict=True)))
    np.testing.assert_allclose(robot.read().tool, position, atol=1e-6)
    rotation = robot.read().hand_rotation
    np.testing.assert_allclose(rotation[:, 2], (0, 0, -1), atol=1e-6)  # points straight down
    np.testing.assert_allclose(rotation[:2, 0], (np.cos(yaw), np.sin(yaw)), atol=1e-6)


_ROBOTS: list[tuple[Panda, World]] = []


def _robot() -> tuple[Panda, World]:
    if not _ROBOTS:
        world = World()
        _ROBOTS.append((Panda(world), world))
    return _ROBOTS[0]


def test_out_of_reach_is_said() -> None:
    with pytest.raises(UserError, match=r"\(0.900, 0.000, 0.300\) m is out of the arm's reach"):
        joints_for(np.array([0.9, 0.0, 0.3]))


@pytest.mark.parametrize("camera", CAMERAS)
def test_every_camera_sees_every_block_of_a_scene(camera: str) -> None:
    env = Tabletop(n_objects=4, cameras=(camera,))
    for seed in range(5):
        env.reset(seed=seed)
        picture = env.picture(camera, 96)
        seen = {picture.names[i] for i in np.unique(picture.segmentation) if i >= 0}
        hidden_by_the_arm = 1 if camera == "overhead" else 0
        assert len(seen & {f"object_{i}" for i in range(4)}) >= 4 - hidden_by_the_arm


def test_depth_and_segmentation_agree_with_the_scene() -> None:
    env = Tabletop(n_objects=3, cameras=())
    env.reset(seed=2)
    picture = env.picture("overhead", 128)
    table = picture.depth[picture.segmentation == picture.names.index("table")]
    height = CAMERAS["overhead"].eye[2]
    assert table.max() == pytest.approx(height, abs=0.01)  # the table top lies at z = 0
    for index in range(3):
        mine = picture.segmentation == picture.names.index(f"object_{index}")
        if mine.any():
            assert picture.depth[mine].min() == pytest.approx(height - 0.04, abs=0.01)
            colour = np.array(COLOURS[env.scene.blocks[index].colour])
            assert picture.rgb[mine].mean(axis=0).argmax() == colour.argmax()
