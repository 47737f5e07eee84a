"""What heads look at: known attention over known pixels has known shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.factories import make_act

from fetchlab.eval.gaze import WHOLE, finder, gaze_sentence
from fetchlab.eval.grounding import CLASSES, Look, Numbers, look, patch_shares, phase_of, summarize
from fetchlab.eval.statistics import mean_interval
from fetchlab.sim.observation import (
    MAX_ROWS,
    OBJECT_FEATURES,
    PROPRIOCEPTION,
    SHAPE,
    Observation,
)
from fetchlab.sim.pictures import Picture

# Patches of 2 by 2 pixels: named block; half other block, half table; arm; background.
SEGMENTATION = np.array([[3, 3, 2, 0], [3, 3, 2, 0], [1, 1, -1, -1], [1, 1, -1, -1]], np.int32)
PICTURE = Picture(
    rgb=np.zeros((4, 4, 3), np.uint8),
    depth=np.ones((4, 4), np.float32),
    segmentation=SEGMENTATION,
    names=("table", "panda", "object_0", "object_1"),
)
SHARES = patch_shares(PICTURE, target=1, grid=(2, 2))
ON_NAMED, UNIFORM = [1, 0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25, 0]


def seen(*heads: Sequence[float], shares: Numbers = SHARES) -> Look:
    """What heads of one layer look at, whose attention is given for 4 patches and the robot."""
    return look(np.array([heads], np.float64), shares, episode=0, phase="approach")


def test_a_patch_counts_by_its_pixels() -> None:
    np.testing.assert_array_equal(SHARES[0, 0], [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(SHARES[0, 1], [0, 0.5, 0, 0.5, 0])
    np.testing.assert_array_equal(SHARES[1, 0], [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(SHARES[1, 1], [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(patch_shares(PICTURE, 0, (2, 2))[0, 1], [0.5, 0, 0, 0.5, 0])


def test_the_open_box_is_another_thing() -> None:
    boxed = replace(PICTURE, names=("box", "panda", "object_0", "object_1"))
    np.testing.assert_array_equal(patch_shares(boxed, 1, (2, 2))[0, 1], [0, 1, 0, 0, 0])


def test_known_attention_gives_known_shares() -> None:
    looked = seen(ON_NAMED, UNIFORM, [0, 0.2, 0, 0, 0.8])
    np.testing.assert_array_equal(looked.mass[0, 0], [1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(looked.mass[0, 1], [*looked.area, 0])
    np.testing.assert_array_equal(looked.area, [0.25, 0.125, 0.25, 0.125, 0.25])
    np.testing.assert_allclose(looked.mass[0, 2], [0, 0.1, 0, 0.1, 0, 0.8])
    np.testing.assert_array_equal(looked.on_patches, [[1, 0.25, 0]])
    assert looked.patches == 0.25


def test_a_patch_that_shows_a_corner_of_the_object_shows_it() -> None:
    looked = look(np.array([[ON_NAMED[:4][::-1]]]), patch_shares(PICTURE, 0, (2, 2)), 0, "lift")
    assert (looked.on_patches[0, 0], looked.patches) == (0, 0.25)
    looked = look(np.array([[[0, 1, 0, 0]]]), patch_shares(PICTURE, 0, (2, 2)), 0, "lift")
    assert (looked.on_patches[0, 0], looked.mass[0, 0, 0]) == (1, 0.5)


def test_shares_sum_to_one() -> None:
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.ones(5), (2, 3, 3))  # two cameras of 3 by 3 patches
    weights = generator.dirichlet(np.ones(20), (2, 4))  # two layers, four heads, two more tokens
    looked = look(weights, shares, 0, "lift")
    np.testing.assert_allclose(looked.mass.sum(axis=-1), 1.0)
    np.testing.assert_allclose(looked.mass[..., -1], weights[..., 18:].sum(axis=-1))


def state(tool: Sequence[float], opening: float, block: Sequence[float]) -> Observation:
    """A moment with two objects; the second is the named one."""
    objects = np.zeros((MAX_ROWS, len(OBJECT_FEATURES)), np.float32)
    objects[0, :2], objects[1, :2] = (0.45, 0.0), block
    objects[:2, SHAPE.start] = 1  # blocks
    readings = np.zeros(len(PROPRIOCEPTION), np.float32)
    readings[7:] = opening, *tool
    return Observation(
        images=np.zeros((0, 1, 1, 3), np.uint8),
        proprioception=readings,
        objects=objects,
        objects_mask=np.arange(MAX_ROWS) < 2,
        instruction="fetch the red block",
    )


@pytest.mark.parametrize(
    ("tool", "opening", "phase"),
    [
        ((0.45, 0.0, 0.25), 0.08, "approach"),
        ((0.45, 0.0, 0.02), 0.04, "approach"),  # it has another block
        ((0.51, 0.1, 0.10), 0.08, "descend"),
        ((0.50, 0.1, 0.06), 0.04, "lift"),  # as wide open as the block is wide
        ((0.50, 0.1, 0.06), 0.01, "descend"),  # closed, but empty
        ((0.50, 0.1, 0.02), 0.08, "close"),
        ((0.52, 0.1, 0.02), 0.08, "descend"),  # low, but still beside it
        ((0.52, 0.1, 0.02), 0.04, "close"),
    ],
)
def test_phases_follow_from_the_physical_state(
    tool: Sequence[float], opening: float, phase: str
) -> None:
    assert phase_of(state(tool, opening, (0.5, 0.1)), target=1) == phase


def test_every_episode_weighs_the_same() -> None:
    blind, staring = seen(ON_NAMED, UNIFORM), seen(UNIFORM, ON_NAMED)
    looks = [blind, replace(blind, phase="lift"), replace(blind, phase="lift")]
    looks += [replace(staring, episode=1)]
    gazes = summarize(make_act(), 6, looks)
    assert {gaze.phase for gaze in gazes} == {WHOLE, "approach", "lift"}
    whole = {gaze.head: gaze for gaze in gazes if gaze.phase == WHOLE}
    assert [whole[head].named for head in (1, 2)] == [0.625, 0.625]
    assert (whole[1].n_episodes, whole[1].n_frames, whole[1].n_objects) == (2, 4, 6)
    assert whole[1].named_ci95 == (0.0, 1.0)  # two episodes say little
    (lift,) = (gaze for gaze in gazes if (gaze.phase, gaze.head) == ("lift", 1))
    assert (lift.named, lift.named_ci95, lift.n_episodes, lift.n_frames) == (1.0, None, 1, 2)
    assert lift.area == dict(zip(CLASSES, SHARES.mean(axis=(0, 1)).tolist(), strict=True))


def test_an_interval_of_a_mean() -> None:
    assert mean_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((1.0368, 4.9632), abs=1e-4)
    assert mean_interval([0.5, 0.5]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="two values or more, got 1"):
        mean_interval([0.5])


def test_the_head_that_finds_the_object_is_named_from_one_with_chance_beside_it() -> None:
    mostly = [0.83, 0.1, 0.0, 0.0, 0.07]
    looks = [
        replace(seen(UNIFORM, mostly, [0, 1, 0, 0, 0]), episode=episode) for episode in range(3)
    ]
    gazes = summarize(make_act(pointing_weight=0), 6, looks)
    assert (finder(gazes).layer, finder(gazes).head) == (1, 2)
    assert gaze_sentence(gazes) == (
        "Layer 1, head 2 finds the named object: 83 % of its attention lies on the patches that "
        "show it, which are 25 % of all patches (3 episodes with 6 objects, 95 % interval 83 to "
        "83 %)."
    )


def test_a_head_that_was_taught_is_said_to_be() -> None:
    looks = [seen(ON_NAMED, UNIFORM)]
    gazes = summarize(make_act(), 6, looks)
    assert [gaze.taught for gaze in gazes if gaze.phase == WHOLE] == [True, False]
    assert "extra questions taught this head" in gaze_sentence(gazes)
    untaught = summarize(make_act(position_query_weight=0), 6, looks)
    assert not any(gaze.taught for gaze in untaught)
    assert "taught" not in gaze_sentence(untaught)
    assert "taught" not in gaze_sentence(summarize(make_act(), 6, [seen(UNIFORM, ON_NAMED)]))


def test_where_no_head_finds_it_that_is_said() -> None:
    gazes = summarize(make_act(), 6, [seen(UNIFORM, [0.3, 0, 0.7, 0, 0])])
    assert gaze_sentence(gazes) == (
        "No head finds the named object; layer 1, head 2 looks most at it: 30 % of its attention "
        "lies on the patches that show it, which are 25 % of all patches (one episode with 6 "
        "objects)."
    )
