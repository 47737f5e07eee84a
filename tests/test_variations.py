"""Each variation changes what it says and nothing else, and leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetchlab.policy.expert import Expert
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import MAX_ROWS, Observation
from fetchlab.sim.pictures import noisy, with_hue_shifted
from fetchlab.sim.scene import COLOURS, TABLE_RGBA
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.variations import MOST_SHIFTED, MOST_TURNED, VARIATIONS, Conditions

WORLD = EnvConfig(cameras=tuple(CAMERAS), image_size=32, shapes=tuple(SHAPES), task="mixed")
STAYS_AS_IT_IS = [name for name in VARIATIONS if name not in ("object_moved", "arm_pushed")]
STILL = ("front", "overhead")
Moments = list[dict[str, Any]]


def varied(name: str, **settings: Any) -> Tabletop:
    return Tabletop.from_config(replace(WORLD, variation=name, **settings), n_objects=4)


def play(env: Tabletop, seed: int, steps: int = 3) -> Moments:
    """What there is to see while the expert acts."""
    expert, moment = Expert(env.config), env.reset(seed=seed)[0]
    moments = [moment]
    for _ in range(steps):
        moments.append(env.step(expert.act(Observation.from_gym(moments[-1])))[0])
    return moments


def physics(moments: Moments) -> list[Any]:
    keys = ("agent_pos", "environment_state", "instruction")
    return [np.asarray(moment[key]).tolist() for moment in moments for key in keys]


def images(moments: Moments) -> np.ndarray:
    return np.stack([list(moment["pixels"].values()) for moment in moments])  # (T, C, H, W, 3)


@pytest.fixture(scope="module")
def nominal() -> Moments:
    return play(varied("none"), seed=4)


@pytest.mark.parametrize("name", STAYS_AS_IT_IS)
def test_scene_sentence_and_physics_stay_the_same(name: str, nominal: Moments) -> None:
    moments = play(varied(name), seed=4)
    assert physics(moments) == physics(nominal)
    assert np.array_equal(images(moments), images(nominal)) == (name == "none")


@pytest.mark.parametrize("name", VARIATIONS)
def test_a_seed_decides_it_and_nothing_is_left_of_it(name: str) -> None:
    env = varied(name)
    first = play(env, seed=7, steps=8)
    play(env, seed=8)
    again = play(env, seed=7, steps=8)
    assert physics(again) == physics(first)
    np.testing.assert_array_equal(images(again), images(first))
    env.config = replace(env.config, variation="none")
    fresh = play(varied("none"), seed=9)
    after = play(env, seed=9)
    assert physics(after) == physics(fresh)
    np.testing.assert_array_equal(images(after), images(fresh))


def test_without_a_seed_episodes_differ_in_their_variation_too() -> None:
    env = varied("table_colour")
    env.reset(seed=1)
    colours = {tuple(env.reset()[0]["pixels"]["front"][-1, 0]) for _ in range(5)}
    assert len(colours) > 1


@pytest.mark.parametrize("name", [name for name, what in VARIATIONS.items() if what.blinds])
def test_blinded_cameras_show_no_object_and_the_others_show_them_as_ever(name: str) -> None:
    """Two scenes that differ in nothing but colours and places look alike to a blinded camera."""
    scenes = [play(varied(name), seed, steps=0)[0]["pixels"] for seed in range(4)]
    plain = [play(varied("none"), seed, steps=0)[0]["pixels"] for seed in range(4)]
    blind = set()
    for camera in CAMERAS:
        same = [np.array_equal(a[camera], b[camera]) for a, b in zip(scenes, plain, strict=True)]
        blind |= set() if all(same) else {camera}
        for seen, unchanged in zip(scenes, same, strict=True):
            assert unchanged or len(np.unique(seen[camera].reshape(-1, 3), axis=0)) == 1
        assert not (f"{camera}_dark" in name and any(seen[camera].any() for seen in scenes))
    assert blind == set(VARIATIONS[name].blinds)


def test_a_screen_stands_before_one_camera_or_the_other() -> None:
    draw = VARIATIONS["screen_anywhere"].draw
    drawn = [draw(np.random.default_rng(seed)).screened for seed in range(200)]
    assert {("front",), ("overhead",)} == set(drawn)
    assert 70 < drawn.count(("front",)) < 130


def test_a_screen_hides_even_what_is_lifted() -> None:
    """As the segmentation has it: no pixel of the table, of an object or of the box."""
    for camera in STILL:
        env = varied(f"{camera}_screened", cameras=())
        for seed in range(3):
            play(env, seed, steps=12)
            picture = env.picture(camera, 128)
            seen = {picture.names[i] for i in np.unique(picture.segmentation) if i >= 0}
            assert seen == {f"{camera}_screen"}


@given(st.integers(0, 2**32 - 1))
def test_jittered_cameras_are_nearly_where_they_were(seed: int) -> None:
    cameras = VARIATIONS["camera_jitter"].draw(np.random.default_rng(seed)).cameras
    assert set(cameras) == set(STILL)
    for name, camera in cameras.items():
        was, now = CAMERAS[name].view(np.zeros(3), np.eye(3)), camera.view(np.zeros(3), np.eye(3))
        assert 0 < np.linalg.norm(now.eye - was.eye) <= MOST_SHIFTED
        turn = now.axes() @ was.axes().T
        angle = np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))
        assert 0 < angle <= MOST_TURNED + 1e-6


@given(st.integers(0, 2**32 - 1))
def test_a_table_is_never_as_colourful_as_an_object(seed: int) -> None:
    *rgb, alpha = VARIATIONS["table_colour"].draw(np.random.default_rng(seed)).table_rgba

    def saturation(colour: Any) -> float:
        return float(1 - min(colour) / max(colour))

    assert alpha == 1 and rgb != list(TABLE_RGBA[:3])
    assert saturation(rgb) <= 0.36 < min(map(saturation, COLOURS.values()))


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(-180, 180))
def test_a_shift_of_hue_shifts_nothing_but_hue(seed: int, degrees: float) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    shifted = with_hue_shifted(image, degrees)
    for most in (np.max, np.min):  # brightness, and with it saturation
        difference = most(image, axis=-1).astype(int) - most(shifted, axis=-1)
        assert np.abs(difference).max() <= 1
    hues = [
        cv2.cvtColor(each.astype(np.float32) / 255, cv2.COLOR_RGB2HSV) for each in (image, shifted)
    ]
    off = (hues[1] - hues[0])[..., 0] - degrees
    colourful = hues[0][..., 1] * hues[0][..., 2] > 0.5
    assert np.abs((off + 180) % 360 - 180)[colourful].max(initial=0) < 1.5


def test_a_hue_shift_confuses_no_two_colours() -> None:
    rgb = np.array([list(COLOURS.values())], np.float32)
    hues = np.sort(cv2.cvtColor(rgb, cv2.COLOR_RGB2HSV)[0, :, 0])
    gaps = np.diff([*hues, hues[0] + 360])
    shifts = [VARIATIONS["hue_shift"].draw(np.random.default_rng(s)).hue_shift for s in range(100)]
    assert min(shifts) < -5 and max(shifts) > 5
    assert max(map(abs, shifts)) < gaps.min() / 2


def test_noise_has_its_strength_and_is_new_in_every_frame() -> None:
    grey = np.full((64, 64, 3), 128, np.uint8)
    generator = np.random.default_rng(0)
    one, two = (noisy(grey, 10.0, generator).astype(float) for _ in range(2))
    assert one.std() == pytest.approx(10, rel=0.05) and one.mean() == pytest.approx(128, abs=0.5)
    assert (one - two).std() == pytest.approx(10 * 2**0.5, rel=0.05)
    white = noisy(np.full((8, 8, 3), 255, np.uint8), 10.0, generator)
    assert white.min() > 200  # nothing wraps around
    before, after = images(play(varied("sensor_noise"), seed=4, steps=1))
    plain, later = images(play(varied("none"), seed=4, steps=1))
    unchanged = (plain == later).all(axis=-1)
    assert (before != after)[unchanged].mean() > 0.8


def test_light_and_table_change_the_look_of_the_table_alone() -> None:
    plain = play(varied("none"), seed=2, steps=0)[0]["pixels"]["overhead"].astype(int)
    painted = play(varied("table_colour"), seed=2, steps=0)[0]["pixels"]["overhead"].astype(int)
    picture = varied("none", cameras=())
    picture.reset(seed=2)
    shown = picture.picture("overhead", 32)
    table = shown.segmentation == shown.names.index("table")
    changed = np.abs(plain - painted).max(axis=-1) > 3
    assert changed[table].mean() > 0.95 and changed[~table].mean() < 0.05
    lit = play(varied("lighting"), seed=2, steps=0)[0]["pixels"]["overhead"].astype(int)
    assert (np.abs(plain - lit).max(axis=-1) > 3)[table].mean() > 0.95


def test_the_true_pose_of_a_jittered_camera_is_told() -> None:
    """A block is drawn where pose and intrinsics project it, whatever the jitter."""
    for name in ("none", "camera_jitter"):
        env = Tabletop(n_objects=5, cameras=tuple(CAMERAS), variation=name, image_size=256)
        for seed in range(2):
            moment, info = env.reset(seed=seed)
            rows = moment["environment_state"].reshape(MAX_ROWS, -1)
            for camera, geometry in info["cameras"].items():
                picture = env.picture(camera, 256)
                for row in range(5):
                    drawn = np.argwhere(
                        picture.segmentation == picture.names.index(f"object_{row}")
                    )
                    if len(drawn) < 200 or drawn.min() == 0 or drawn.max() == 255:
                        continue  # partly hidden
                    point = np.array([*rows[row, 1:3], 0.02, 1.0])
                    seen = geometry["intrinsics"] @ (np.linalg.inv(geometry["pose"]) @ point)[:3]
                    v, u = drawn.mean(axis=0) + 0.5
                    np.testing.assert_allclose(seen[:2] / seen[2], (u, v), atol=2.5)


def test_by_default_nothing_is_different() -> None:
    assert VARIATIONS["none"].draw(np.random.default_rng(0)) == Conditions()
    assert all(what.description for what in VARIATIONS.values())
