"""Writing a dataset: an episode becomes a table, tables become a LeRobotDataset."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.sim.config import EnvConfig
from fetchlab.train import lerobot
from fetchlab.train.feature_statistics import FeatureStatistics

ABOUT = b"fetchlab"
"""key of the episode's description in the metadata of its table"""


@dataclass(frozen=True, kw_only=True)
class AboutEpisode:
    """What is true of a whole episode."""

    episode_index: int
    instruction: str
    scene_seed: int  # the seed its scene was reset with; evaluation must not use it
    n_objects: int
    failures: tuple[str, ...]  # reasons of the attempts before the one that succeeded


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A verified demonstration of T control steps, as it was recorded."""

    about: AboutEpisode
    images: dict[str, NDArray[np.uint8]]  # camera → (T, H, W, 3)
    before: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    """camera → (H, W, 3) shown before the episode, where objects fade"""
    proprioception: NDArray[np.float32]  # (T, P)
    environment_state: NDArray[np.float32]  # (T, M * (1 + F))
    actions: NDArray[np.float32]  # (T, A) the expert's clean targets
    executed_actions: NDArray[np.float32]  # (T, A) what was sent to the simulator
    rewards: NDArray[np.float32]  # (T,)

    def __len__(self) -> int:
        return len(self.actions)


def episode_table(episode: Episode, env: EnvConfig) -> pa.Table:
    """The episode as the dataset's columns, except those of `lerobot.JOINED`."""
    features = {k: f for k, f in lerobot.features_of(env).items() if k not in lerobot.JOINED}
    schema = lerobot.schema_of(features)
    last = np.arange(len(episode)) == len(episode) - 1
    columns = {
        **{lerobot.camera_key(c): _png_structs(images) for c, images in episode.images.items()},
        **{
            key: _png_structs(episode.before[camera][None]) * len(episode)
            for camera, key in lerobot.before_keys(env).items()
        },
        "observation.state": episode.proprioception,
        "observation.environment_state": episode.environment_state,
        "action": episode.actions,
        "executed.action": episode.executed_actions,
        "next.reward": episode.rewards,
        "next.done": last,
        "next.success": last,  # only verified successes become episodes
        "timestamp": np.arange(len(episode)) / env.control_hz,
        "frame_index": np.arange(len(episode)),
    }
    arrays = [_arrow_array(columns[field.name], field.type) for field in schema]
    about = json.dumps(asdict(episode.about)).encode()
    return pa.table(arrays, schema=schema.with_metadata({ABOUT: about}))


def about_of(table: pa.Table) -> AboutEpisode:
    about = json.loads(table.schema.metadata[ABOUT])
    return AboutEpisode(**{**about, "failures": tuple(about["failures"])})


def _png_structs(images: NDArray[np.uint8]) -> list[dict[str, Any]]:
    return [
        {"bytes": encode_png(image), "path": f"frame-{frame:06d}.png"}
        for frame, image in enumerate(images)
    ]


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """Lossless; OpenCV wants the channels as blue, green, red."""
    _, encoded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    return encoded.tobytes()


def _arrow_array(values: Any, kind: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        flat = pa.array(np.ravel(values), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(flat, type=kind)
    return pa.array(values, kind)


class DatasetWriter:
    """Joins episode tables into a dataset; its bytes depend on nothing but these tables."""

    def __init__(self, root: Path, env: EnvConfig) -> None:
        self._root, self._env = root, env
        features = lerobot.features_of(env)
        self._schema = lerobot.schema_of(features)
        self._statistics = FeatureStatistics(features)
        self._tasks: dict[str, int] = {}
        self._episodes: list[dict[str, Any]] = []
        self._frames = 0
        self._files = 0
        self._sink: BinaryIO | None = None
        self._parquet: pq.ParquetWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Append an episode as one row group."""
        about, length = about_of(table), len(table)
        task = self._tasks.setdefault(about.instruction, len(self._tasks))
        joined = {
            "episode_index": np.full(length, about.episode_index),
            "index": np.arange(self._frames, self._frames + length),
            "task_index": np.full(length, task),
        }
        for name, values in joined.items():
            table = table.append_column(name, pa.array(values, pa.int64()))
        table = table.select(self._schema.names).cast(self._schema)
        self._file_for(table.nbytes).write_table(table)
        self._statistics.add(table)
        self._describe(about, length)

    def _file_for(self, size: int) -> pq.ParquetWriter:
        """The open data file, or the next one when this episode would not fit."""
        limit = lerobot.DATA_FILE_MEGABYTES * 1_000_000
        if self._sink is not None and self._sink.tell() + size > limit:
            self._finish_file()
        if self._parquet is None:
            path = self._root / lerobot.data_path(self._files)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sink = path.open("wb")
            self._parquet = pq.ParquetWriter(self._sink, self._schema, compression="snappy")
            self._files += 1
        return self._parquet

    def _finish_file(self) -> None:
        if self._parquet is not None and self._sink is not None:
            self._parquet.close()
            self._sink.close()
        self._parquet = self._sink = None

    def _describe(self, about: AboutEpisode, length: int) -> None:
        chunk, file = divmod(self._files - 1, lerobot.FILES_PER_CHUNK)
        self._episodes.append(
            {
                "episode_index": about.episode_index,
                "tasks": [about.instruction],
                "length": length,
                "data/chunk_index": chunk,
                "data/file_index": file,
                "dataset_from_index": self._frames,
                "dataset_to_index": self._frames + length,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                "scene.seed": about.scene_seed,
                "scene.n_objects": about.n_objects,
                "scene.attempts": 1 + len(about.failures),
            }
        )
        self._frames += length

    def close(self, fetchlab: dict[str, Any]) -> None:
        """Finish the data files and write `meta/`; `info.json` comes last."""
        if not self._episodes:
            raise UserError("a dataset needs at least one episode")
        self._finish_file()
        episodes = self._root / lerobot.EPISODES_PATH
        episodes.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(self._episodes), episodes)
        self._write_tasks()
        self._write_json(lerobot.STATS_PATH, self._statistics.result())
        info = lerobot.info_of(
            self._env,
            episodes=len(self._episodes),
            frames=self._frames,
            tasks=len(self._tasks),
            fetchlab=fetchlab,
        )
        self._write_json(lerobot.INFO_PATH, info)

    def _write_tasks(self) -> None:
        """The sentences must be the pandas index: LeRobot reads the task of a frame from it."""
        import pandas as pd

        index = pd.Index(list(self._tasks), name="task")
        tasks = pd.DataFrame({"task_index": list(self._tasks.values())}, index=index)
        tasks.to_parquet(self._root / lerobot.TASKS_PATH)

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        (self._root / name).write_text(json.dumps(content, indent=4) + "\n")
