"""Made-up episodes and small datasets: nothing here needs the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import COLOUR, MAX_ROWS, OBJECT_FEATURES, PROPRIOCEPTION, SHAPE
from fetchlab.sim.scene import COLOURS
from fetchlab.train.writer import AboutEpisode, DatasetWriter, Episode, episode_table

SMALL = EnvConfig(image_size=16)


def make_episode(
    index: int = 0, *, length: int = 5, env: EnvConfig = SMALL, n_objects: int = 3
) -> Episode:
    """Random everything; the first object is the named one."""
    generator = np.random.default_rng(index)
    colours = generator.permutation(len(COLOURS))[:n_objects]
    rows = np.zeros((MAX_ROWS, 1 + len(OBJECT_FEATURES)), np.float32)
    rows[:n_objects, 0] = 1
    rows[:n_objects, 1:3] = generator.uniform((0.3, -0.25), (0.7, 0.25), (n_objects, 2))
    rows[range(n_objects), 1 + COLOUR.start + colours] = 1
    rows[:n_objects, 1 + SHAPE.start] = 1
    actions = generator.normal(0, 0.3, (length, env.action_dim)).astype(np.float32)
    shape = (length, env.image_size, env.image_size, 3)
    readings = generator.normal(0, 0.3, (length, len(PROPRIOCEPTION)))
    return Episode(
        about=AboutEpisode(
            episode_index=index,
            instruction=f"fetch the {list(COLOURS)[colours[0]]} block",
            scene_seed=2 * index,
            n_objects=n_objects,
            failures=("dropped",) if index % 3 == 2 else (),
        ),
        images={c: generator.integers(0, 256, shape, dtype=np.uint8) for c in env.cameras},
        proprioception=readings.astype(np.float32),
        environment_state=np.tile(rows.reshape(-1), (length, 1)),
        actions=actions,
        executed_actions=actions + generator.normal(0, 0.01, actions.shape).astype(np.float32),
        rewards=(np.arange(length) == length - 1).astype(np.float32),
    )


def change_column(path: Path, name: str, change: Callable[[list[Any]], list[Any]]) -> None:
    """Write a data file again with other values in one column."""
    table = pq.read_table(path)
    column = table.column_names.index(name)
    field = table.schema.field(column)
    values = pa.array(change(table.column(column).to_pylist()), field.type)
    pq.write_table(table.set_column(column, field, values), path)


def cut_image(at: int) -> Callable[[list[Any]], list[Any]]:
    """A change that leaves only the beginning of one of the images."""

    def change(images: list[Any]) -> list[Any]:
        images[at]["bytes"] = images[at]["bytes"][:40]
        return images

    return change


def write_dataset(
    root: Path, *, episodes: int = 6, env: EnvConfig = SMALL, **block: Any
) -> list[Episode]:
    """A dataset of made-up episodes of different lengths; returns what went in."""
    made = [make_episode(i, length=4 + i % 3, env=env) for i in range(episodes)]
    writer = DatasetWriter(root, env)
    for episode in made:
        writer.add(episode_table(episode, env))
    world = {
        "task": env.task,
        "cameras": list(env.cameras),
        "image_size": env.image_size,
        "action_mode": env.action_mode,
        "control_hz": env.control_hz,
    }
    writer.close({"env": world, **block})
    return made
