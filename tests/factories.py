"""Made-up observations and policies: nothing here needs the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from fetchlab.policy.act import ActConfig, ActPolicy
from fetchlab.policy.act_pointers import ActPointersPolicy
from fetchlab.policy.act_pointers_config import ActPointersConfig
from fetchlab.policy.base import Statistics, TrainingBatch
from fetchlab.policy.slot_mlp import SlotMlpConfig, SlotMlpPolicy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import (
    COLOUR,
    HEIGHT,
    MAX_ROWS,
    OBJECT_FEATURES,
    PROPRIOCEPTION,
    SHAPE,
    ObservationBatch,
)
from fetchlab.sim.scene import COLOURS
from fetchlab.sim.tasks.registry import TASKS

SENTENCES = tuple(f"fetch the {colour} block" for colour in COLOURS)
PHRASES = tuple(f"{colour} block" for colour in COLOURS)


def make_observations(
    batch: int = 3,
    *,
    n_objects: int = 4,
    cameras: int = 2,
    image_size: int = 16,
    seed: int = 0,
) -> ObservationBatch:
    """Random images and readings; scenes of different colours, the named one present."""
    generator = np.random.default_rng(seed)
    objects = np.zeros((batch, MAX_ROWS, len(OBJECT_FEATURES)), np.float32)
    colours = np.stack([generator.permutation(len(COLOURS)) for _ in range(batch)])
    for row in range(batch):
        for i in range(n_objects):
            objects[row, i, :2] = generator.uniform((0.3, -0.26), (0.7, 0.26))
            objects[row, i, [COLOUR.start + colours[row, i % len(COLOURS)], SHAPE.start]] = 1
            objects[row, i, HEIGHT] = 0.02  # a block on the table
    mask = np.tile(np.arange(MAX_ROWS) < n_objects, (batch, 1))
    shape = (batch, cameras, image_size, image_size, 3)
    return ObservationBatch(
        images=generator.integers(0, 256, shape, dtype=np.uint8),
        proprioception=generator.normal(0, 0.3, (batch, len(PROPRIOCEPTION))).astype(np.float32),
        objects=objects,
        objects_mask=mask,
        instructions=tuple(SENTENCES[row[0]] for row in colours),
    )


def make_batch(
    batch: int = 3, *, chunk_size: int = 8, action_dim: int = 8, seed: int = 0, **kwargs: Any
) -> TrainingBatch:
    """Random actions near the arm's readings, the last rows padded more and more."""
    observations = make_observations(batch, seed=seed, **kwargs)
    generator = np.random.default_rng(seed + 1)
    actions = generator.normal(0, 0.3, (batch, chunk_size, action_dim)).astype(np.float32)
    actions[..., -1] = generator.choice([0.0, 0.08], (batch, chunk_size))
    lengths = chunk_size - np.arange(batch) % chunk_size
    return TrainingBatch(
        observations=observations,
        actions=actions,
        actions_mask=np.arange(chunk_size) < lengths[:, None],
    )


def make_statistics(action_dim: int = 8) -> Statistics:
    return Statistics(
        proprioception_mean=np.linspace(-0.1, 0.1, len(PROPRIOCEPTION), dtype=np.float32),
        proprioception_std=np.linspace(0.0, 0.5, len(PROPRIOCEPTION), dtype=np.float32),
        action_mean=np.full(action_dim, 0.01, np.float32),
        action_std=np.linspace(0.0, 0.3, action_dim, dtype=np.float32),
    )


def make_act(
    *,
    image_size: int = 16,
    action_mode: str = "joint",
    cameras: tuple[str, ...] | None = None,
    history: int = 1,
    **settings: Any,
) -> ActPolicy:
    """A small transformer policy."""
    env_config = EnvConfig(
        cameras=("front", "wrist") if cameras is None else cameras,
        image_size=image_size,
        action_mode=action_mode,
        history=history,
    )
    settings = {"d_model": 16, "d_feedforward": 32, **settings}
    settings = {"sentences": SENTENCES, "phrases": PHRASES, **settings}
    config = ActConfig(env_config=env_config, **settings)
    return ActPolicy(config, make_statistics(env_config.action_dim))


def make_act_pointers(
    *,
    image_size: int = 16,
    cameras: tuple[str, ...] = ("front", "wrist"),
    task: str = "fetch",
    recalls: bool = False,
    **settings: Any,
) -> ActPointersPolicy:
    """A small transformer policy with pointers, which recalls the first frame or does not."""
    past: dict[str, Any] = {"history": 2, "memory": "first"} if recalls else {}
    env_config = EnvConfig(cameras=cameras, image_size=image_size, task=task, **past)
    settings = {"d_model": 16, "d_feedforward": 32, **settings}
    words = {
        "sentences": TASKS[task].sentences(env_config),
        "phrases": TASKS[task].phrases(env_config),
    }
    config = ActPointersConfig(env_config=env_config, **{**words, **settings})
    return ActPointersPolicy(config, make_statistics(env_config.action_dim))


def make_slot_mlp(task: str = "fetch", **settings: Any) -> SlotMlpPolicy:
    """A small slot baseline."""
    env_config = EnvConfig(cameras=(), task=task)
    settings = {"lookup_hidden": (32, 32), "control_hidden": (32, 32), **settings}
    words = {
        "sentences": TASKS[task].sentences(env_config),
        "phrases": TASKS[task].phrases(env_config),
    }
    config = SlotMlpConfig(env_config=env_config, **{**words, **settings})
    return SlotMlpPolicy(config, make_statistics())
