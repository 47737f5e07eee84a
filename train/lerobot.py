"""The LeRobotDataset v3.0 file format: features, paths, Arrow schema, and careful reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import MAX_ROWS, OBJECT_FEATURES, PROPRIOCEPTION, TOOL
from fetchlab.sim.tasks.registry import TASKS

CODEBASE_VERSION = "v3.0"
FILES_PER_CHUNK = 1000
DATA_FILE_MEGABYTES = 100
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
EPISODES_PATH = "meta/episodes/chunk-000/file-000.parquet"
TASKS_PATH = "meta/tasks.parquet"
STATS_PATH = "meta/stats.json"
INFO_PATH = "meta/info.json"
JOINED = ("episode_index", "index", "task_index")
"""columns that only the whole dataset knows; a single episode's table lacks them"""

Features = dict[str, dict[str, Any]]


def camera_key(camera: str) -> str:
    return f"observation.images.{camera}"


def before_keys(env: EnvConfig) -> dict[str, str]:
    """Camera → column of the frame before the first, the same all through an episode.

    Only where objects fade; the first observation of an episode comes after it.
    """
    if not TASKS[env.task].fades:
        return {}
    return {camera: f"observation.before.{camera}" for camera in env.cameras}


def features_of(env: EnvConfig) -> Features:
    """Every column of a dataset recorded in this world, as `info.json` describes it."""
    shape = [env.image_size, env.image_size, 3]
    image = {"dtype": "image", "shape": shape, "names": ["height", "width", "channels"]}
    action = _vector(_action_names(env))
    return {
        **{camera_key(camera): image for camera in env.cameras},
        **dict.fromkeys(before_keys(env).values(), image),
        "observation.state": _vector(PROPRIOCEPTION),
        "observation.environment_state": _vector(_environment_state_names()),
        "action": action,  # the expert's clean target, the label
        "executed.action": action,  # what was sent, noise included: a replay needs it
        "next.reward": _scalar("float32"),
        "next.done": _scalar("bool"),
        "next.success": _scalar("bool"),
        "timestamp": _scalar("float32"),
        "frame_index": _scalar("int64"),
        "episode_index": _scalar("int64"),
        "index": _scalar("int64"),
        "task_index": _scalar("int64"),
    }


def _vector(names: tuple[str, ...]) -> dict[str, Any]:
    return {"dtype": "float32", "shape": [len(names)], "names": list(names)}


def _scalar(dtype: str) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [1], "names": None}


def _action_names(env: EnvConfig) -> tuple[str, ...]:
    arm = PROPRIOCEPTION[:7] if env.action_mode == "joint" else PROPRIOCEPTION[TOOL]
    return (*(f"{name} target" for name in arm), "gripper_opening [m] target")


def _environment_state_names() -> tuple[str, ...]:
    row = ("present", *OBJECT_FEATURES)
    return tuple(f"object_{i} {name}" for i in range(MAX_ROWS) for name in row)


def object_rows(root: Path, state: NDArray[np.float32]) -> NDArray[np.float32]:
    """The object table of each frame (F, M · (1 + features)) as rows (F, M, 1 + features).

    Raises UserError if another version of the simulator wrote it.
    """
    expected = MAX_ROWS * (1 + len(OBJECT_FEATURES))
    if state.ndim != 2 or state.shape[1] != expected:
        raise UserError(
            f"{root} tells objects by {state.shape[-1]} numbers a frame, expected {expected}: "
            "another version of fetchlab made it, collect it again"
        )
    return state.reshape(len(state), MAX_ROWS, -1)


def schema_of(features: Features) -> pa.Schema:
    """The Arrow schema of the data files; its metadata lets `datasets` read images as images."""
    fields = [pa.field(key, _arrow_type(feature)) for key, feature in features.items()]
    hugging_face = {key: _hugging_face_type(feature) for key, feature in features.items()}
    return pa.schema(
        fields, metadata={"huggingface": json.dumps({"info": {"features": hugging_face}})}
    )


def _arrow_type(feature: Mapping[str, Any]) -> pa.DataType:
    if feature["dtype"] == "image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    value = {"float32": pa.float32(), "int64": pa.int64(), "bool": pa.bool_()}[feature["dtype"]]
    return value if feature["names"] is None else pa.list_(value, feature["shape"][0])


def _hugging_face_type(feature: Mapping[str, Any]) -> dict[str, Any]:
    if feature["dtype"] == "image":
        return {"_type": "Image"}
    value = {"dtype": feature["dtype"], "_type": "Value"}
    if feature["names"] is None:
        return value
    return {"feature": value, "length": feature["shape"][0], "_type": "Sequence"}


def data_path(file_number: int) -> str:
    """Where the n-th data file lies below the dataset's folder."""
    chunk, file = divmod(file_number, FILES_PER_CHUNK)
    return DATA_PATH.format(chunk_index=chunk, file_index=file)


def info_of(
    env: EnvConfig, *, episodes: int, frames: int, tasks: int, fetchlab: dict[str, Any]
) -> dict[str, Any]:
    """The content of `info.json`; `fetchlab` is our own block: world, seed, noise, versions."""
    return {
        "codebase_version": CODEBASE_VERSION,
        "robot_type": "panda",
        "fps": env.control_hz,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": FILES_PER_CHUNK,
        "data_files_size_in_mb": DATA_FILE_MEGABYTES,
        "video_files_size_in_mb": 200,
        "splits": {"train": f"0:{episodes}"},
        "data_path": DATA_PATH,
        "video_path": None,
        "features": features_of(env),
        "fetchlab": fetchlab,
    }


def read_info(root: Path) -> dict[str, Any]:
    """`info.json` of a dataset that fetchlab collected; UserError if this is none."""
    path = root / INFO_PATH
    if not path.is_file():
        raise UserError(
            f"{root} is no dataset: {path} is missing; "
            f"make one with `fetchlab collect --out {root}`"
        )
    info = read_json(path)
    if info.get("codebase_version") != CODEBASE_VERSION or not isinstance(
        info.get("fetchlab"), dict
    ):
        raise UserError(
            f"{path} does not describe a {CODEBASE_VERSION} dataset collected by fetchlab"
        )
    return info


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; UserError naming the file if it is missing or damaged."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: expected a JSON object")
    return content


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A parquet file; UserError naming it if it is missing, truncated or lacks a column."""
    if not path.is_file():
        raise UserError(f"{path} is missing; restore it or collect the dataset again")
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(
            f"{path} is truncated or damaged; restore it or collect the dataset again ({reason})"
        ) from None
    missing = [column for column in columns or [] if column not in table.column_names]
    if missing:
        raise UserError(f"{path} lacks the column {', '.join(missing)}")
    return table
