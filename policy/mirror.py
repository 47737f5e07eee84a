"""Demonstrations in a mirror: the arm, the table and the cameras are symmetric in the plane y = 0.

Left becomes right, in images, places, joints and words alike, and every demonstration counts twice.
Only the light comes from the other side, and the arm's own links are not quite symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fetchlab.policy.base import Array, TrainingBatch
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.observation import OBJECT_FEATURES, PROPRIOCEPTION, ObservationBatch

# A reflection turns joints 1, 3 and 5 the other way, and joint 7 about the middle of its range of
# grips, where the gripper's yaw is 0.
JOINT_SIGNS = np.array([-1, 1, -1, 1, -1, 1, -1], np.float32)
JOINT_SHIFTS = np.array([0, 0, 0, 0, 0, 0, np.pi / 2], np.float32)  # rad
ACROSS = "end_effector_y [m]"
TURNED = ("y [m]", "sin_yaw")  # features of an object

Rows = NDArray[np.bool_]


def mirrored(batch: TrainingBatch, rows: Rows, action_mode: str) -> TrainingBatch:
    """The batch with these rows (B,) seen in the mirror."""
    seen = batch.observations
    pairs = zip(seen.instructions, rows.tolist(), strict=True)
    observations = ObservationBatch(
        images=_turned(seen.images, rows, _images),
        proprioception=_turned(seen.proprioception, rows, _readings),
        objects=_turned(seen.objects, rows, _objects),
        objects_mask=seen.objects_mask,
        instructions=tuple(words(said) if turned else said for said, turned in pairs),
    )
    actions = _turned(batch.actions, rows, partial(_actions, action_mode=action_mode))
    return replace(batch, observations=observations, actions=actions)


def _turned(values: NDArray[Any], rows: Rows, turn: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """A copy in which these rows are turned."""
    turned = values.copy()
    turned[rows] = turn(values[rows])
    return turned


def words(sentence: str) -> str:
    """The sentence with left and right exchanged."""
    for language in LANGUAGES.values():
        left, right = (language.relations[side] for side in ("left", "right"))
        parts = [part.replace(right, left) for part in sentence.split(left)]
        sentence = right.join(parts)
    return sentence


def _images(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(B, V, H, W, 3): the engine looks through a pixel's corner, so the mirror is a pixel off."""
    flipped = images[..., ::-1, :]
    return np.concatenate([flipped[..., :1, :], flipped[..., :-1, :]], axis=-2)


def _readings(proprioception: Array) -> Array:
    readings = proprioception.copy()  # (B, P)
    readings[:, :7] = _joints(readings[:, :7])
    readings[:, PROPRIOCEPTION.index(ACROSS)] *= -1
    return readings


def _joints(joints: Array) -> Array:
    result: Array = JOINT_SIGNS * joints + JOINT_SHIFTS  # (…, 7)
    return result


def _actions(actions: Array, action_mode: str) -> Array:
    """(B, K, A) absolute targets."""
    turned = actions.copy()
    if action_mode == "joint":
        turned[..., :7] = _joints(turned[..., :7])
    else:
        turned[..., 1] *= -1
    return turned


def _objects(objects: Array) -> Array:
    turned = objects.copy()  # (B, M, F)
    turned[..., [OBJECT_FEATURES.index(feature) for feature in TURNED]] *= -1
    return turned
