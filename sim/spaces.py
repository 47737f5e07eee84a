"""What goes in and out of the environment, as Gymnasium's spaces."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.sim.actions import ACTION_BOUNDS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import MAX_ROWS, OBJECT_FEATURES, PROPRIOCEPTION
from fetchlab.sim.pictures import FAR
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.sim.sentence import Sentence

ROW = 1 + len(OBJECT_FEATURES)  # a row of environment_state: present, then the features


def action_space(config: EnvConfig) -> spaces.Space[NDArray[np.float32]]:
    low, high = ACTION_BOUNDS[config.action_mode]
    return spaces.Box(np.array(low, np.float32), np.array(high, np.float32))


def observation_space(config: EnvConfig, sentences: Sequence[str]) -> spaces.Dict:
    size = config.image_size
    shape = (size, size) if config.history == 1 else (config.history, size, size)
    parts: dict[str, spaces.Space[Any]] = {
        "agent_pos": spaces.Box(-4.0, 4.0, (len(PROPRIOCEPTION),), np.float32),
        "environment_state": spaces.Box(-10.0, 10.0, (MAX_ROWS * ROW,), np.float32),
        "instruction": Sentence(sentences),
    }
    if config.cameras:
        image = spaces.Box(0, 255, (*shape, 3), np.uint8)
        parts["pixels"] = spaces.Dict({camera: image for camera in config.cameras})
    if config.cameras and config.depth:
        distance = spaces.Box(0.0, FAR, shape, np.float32)
        parts["depth"] = spaces.Dict({camera: distance for camera in config.cameras})
    return spaces.Dict(parts)


def count_range(n_objects: object) -> tuple[int, int]:
    """The lowest and highest number of objects. Raises UserError for what is none."""
    bounds = n_objects if isinstance(n_objects, (tuple, list)) else (n_objects, n_objects)
    whole = len(bounds) == 2 and all(isinstance(bound, Integral) for bound in bounds)
    if not whole or not 2 <= bounds[0] <= bounds[1] <= MAX_OBJECTS:
        raise UserError(
            f"n_objects must be 2 to {MAX_OBJECTS} or a range within, got {n_objects!r}: give 5 "
            "or (2, 5)"
        )
    return int(bounds[0]), int(bounds[1])
