"""What else an observation may hold: depth, and where each camera stands and looks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import fetchlab  # noqa: F401  (registers the environment)
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import ObservationBatch
from fetchlab.sim.pictures import FAR
from fetchlab.sim.shapes import SHAPES

DEEP: dict[str, Any] = {"cameras": ("front", "overhead", "wrist"), "depth": True}


@pytest.mark.parametrize("history", [1, 3])
def test_depth_is_told_in_metres_beside_the_same_images(history: int) -> None:
    env = Tabletop(image_size=48, history=history, **DEEP)
    plain = Tabletop(image_size=48, cameras=DEEP["cameras"])
    moment, ordinary = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    assert moment in env.observation_space and list(moment["depth"]) == list(DEEP["cameras"])
    for camera, depth in moment["depth"].items():
        assert depth.shape == ((48, 48) if history == 1 else (history, 48, 48))
        expected = env.picture(camera, 48).depth
        np.testing.assert_allclose(depth.reshape(-1, 48, 48)[-1], expected, rtol=1e-5)
        newest = moment["pixels"][camera].reshape(-1, 48, 48, 3)[-1]
        np.testing.assert_array_equal(newest, ordinary["pixels"][camera])
    batch = ObservationBatch.from_gyms([moment])  # policies read the images alone
    assert batch.images.shape == (1, 3 * history, 48, 48, 3)
    assert (
        not Tabletop(image_size=48, variation="front_dark", **DEEP)
        .reset(seed=0)[0]["depth"]["front"]
        .any()
    )


def test_a_pixel_and_its_depth_lie_where_the_camera_says() -> None:
    """Every pixel of the table, taken back into the world, lies on the table."""
    env = Tabletop(image_size=96, variation="camera_jitter", **DEEP)
    moment, info = env.reset(seed=3)
    for camera, geometry in info["cameras"].items():
        picture, depth = env.picture(camera, 96), moment["depth"][camera]
        v, u = np.nonzero(picture.segmentation == picture.names.index("table"))
        rays = np.linalg.inv(geometry["intrinsics"]) @ [u + 0.5, v + 0.5, np.ones(len(u))]
        points = geometry["pose"] @ [*(rays * depth[v, u]), np.ones(len(u))]
        top = np.abs(points[2]) < 0.01
        assert top.mean() > 0.97  # the rest is its edge
        assert np.abs(points[0, top] - 0.4).max() < 0.42 and np.abs(points[1, top]).max() < 0.42


@pytest.mark.parametrize("variation", ["none", "camera_jitter", "table_colour", "lighting"])
def test_a_table_drawn_earlier_changes_no_pixel(variation: str) -> None:
    """Depth and colours of a whole episode, against pictures that are drawn whole."""
    env = Tabletop(task="mixed", shapes=tuple(SHAPES), image_size=64, variation=variation, **DEEP)
    for seed in range(2):  # the second one with another table, light or camera
        moment, _ = env.reset(seed=seed, options={"n_objects": 10})
        for _ in range(4):
            for camera in ("front", "overhead"):
                view = env._views._view(env._views._cameras[camera], env._reading)
                whole = env._world.shot(view, 64, 64, env._views._conditions.light)
                np.testing.assert_array_equal(moment["pixels"][camera], whole.image)
                depth = np.minimum(whole.depth, np.float32(FAR))
                np.testing.assert_array_equal(moment["depth"][camera], depth)
            moment, *_ = env.step(env.action_space.sample())
    env.close()


def test_the_table_hides_what_has_fallen_below_it() -> None:
    env = Tabletop(n_objects=2, cameras=("overhead",), image_size=64)
    env.reset(seed=0)
    env._world.set_down("object_0", (0.5, 0.0, -0.2), 0)
    view = env._views._view(env._views._cameras["overhead"], env._reading)
    light = env._views._conditions.light
    shot = env._world.still_shot(view, 64, light)
    np.testing.assert_array_equal(shot.image, env._world.shot(view, 64, 64, light).image)
    env.close()


def test_the_camera_on_the_hand_is_told_where_it_has_got_to() -> None:
    env = Tabletop(cameras=("front", "wrist"))
    before = env.reset(seed=0)[1]["cameras"]
    action = env.action_space.sample()
    after = env.step(action)[4]["cameras"]
    np.testing.assert_array_equal(before["front"]["pose"], after["front"]["pose"])
    assert np.linalg.norm(before["wrist"]["pose"][:3, 3] - after["wrist"]["pose"][:3, 3]) > 0.05
    rotation = after["wrist"]["pose"][:3, :3]
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(rotation) == pytest.approx(1)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_take_every_setting(mode: str) -> None:
    settings: dict[str, Any] = {
        "task": "mixed",
        "shapes": tuple(SHAPES),
        "pairs": "seen",
        "distractors": "both",
        "cameras": ("front", "overhead"),
        "variation": "screen_anywhere",
        "history": 2,
        "memory": "first",
        "depth": True,
        "image_size": 16,
    }
    worlds: Any = gymnasium.make_vec(
        "fetchlab/Tabletop-v0", num_envs=2, vectorization_mode=mode, **settings
    )
    moments, infos = worlds.reset(seed=[3, 4])
    assert moments["depth"]["front"].shape == (2, 2, 16, 16)
    assert infos["cameras"]["front"]["intrinsics"].shape == (2, 3, 3)
    single = Tabletop(**settings)
    for row, seed in enumerate((3, 4)):
        alone = single.reset(seed=seed)[0]
        for kind in ("pixels", "depth"):
            np.testing.assert_array_equal(moments[kind]["front"][row], alone[kind]["front"])
    worlds.close()
