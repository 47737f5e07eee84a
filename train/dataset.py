"""Demonstrations as arrays: decoded once, then gathered into batches."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.policy.actions import action_statistics
from fetchlab.policy.base import Array, Statistics, TrainingBatch
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import ObservationBatch, as_views
from fetchlab.train import lerobot
from fetchlab.train.decoding import OnDecoded, decoded, mapped
from fetchlab.train.feature_statistics import column_array

Indices = NDArray[np.int64]
HELD_OUT_FRACTION = 0.05
NUMERIC_COLUMNS = (
    "observation.state",
    "observation.environment_state",
    "action",
    "executed.action",
    "task_index",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Demonstrations:
    """F frames of E episodes, as arrays; frames of an episode are neighbours."""

    env_config: EnvConfig  # the world they show, with the cameras that were loaded
    images: NDArray[np.uint8]  # (F, C, H, W, 3), read-only
    before: NDArray[np.uint8]  # (E, C, H, W, 3) what was shown before; C is 0 if nothing was
    proprioception: Array  # (F, P)
    objects: Array  # (F, M, features)
    objects_mask: NDArray[np.bool_]  # (F, M)
    actions: Array  # (F, A) the expert's clean absolute targets
    executed_actions: Array  # (F, A) what was sent to the simulator
    task_index: Indices  # (F,) row of `instructions`
    instructions: tuple[str, ...]
    lengths: Indices  # (E,) frames
    scene_seeds: Indices  # (E,) evaluation must use none of them
    n_objects: Indices  # (E,)
    fingerprint: str  # changes with any byte of the dataset

    @classmethod
    def load(
        cls, root: Path, env_config: EnvConfig | None = None, on_decoded: OnDecoded | None = None
    ) -> Demonstrations:
        """Read a dataset whole, checking every file.

        With `env_config`, it must show that world, and only its cameras are decoded.
        Raises UserError naming the damaged file or the difference.
        """
        recorded = recorded_config(root)
        env_config = env_config or recorded
        _refuse_other_world(root, recorded, env_config)
        episodes = lerobot.read_table(root / lerobot.EPISODES_PATH)
        paths = _data_paths(root, episodes)
        keys = {camera: lerobot.camera_key(camera) for camera in env_config.cameras}
        before = lerobot.before_keys(env_config)
        columns = [*NUMERIC_COLUMNS, *keys.values(), *before.values()]
        table = pa.concat_tables([lerobot.read_table(path, columns) for path in paths])
        lengths = column_array(episodes, "length")
        if not len(table) == lengths.sum() == lerobot.read_info(root).get("total_frames"):
            raise UserError(f"{root} is incomplete: its files do not hold the frames they announce")
        arrays, instructions = _numeric_arrays(root, table), _instructions(root)
        _refuse_foreign_files(root, env_config, arrays, instructions)
        starts, size = np.cumsum(lengths) - lengths, env_config.image_size
        fingerprint = _fingerprint([root / lerobot.INFO_PATH, *paths])
        return cls(
            env_config=env_config,
            images=mapped(root, table, keys, size, fingerprint=fingerprint, on_decoded=on_decoded),
            before=decoded(root, table.take(starts), before, size),
            **arrays,
            instructions=instructions,
            lengths=lengths,
            scene_seeds=column_array(episodes, "scene.seed"),
            n_objects=column_array(episodes, "scene.n_objects"),
            fingerprint=fingerprint,
        )

    def __len__(self) -> int:
        return len(self.actions)

    @cached_property
    def bounds(self) -> Indices:
        """(E + 1,) where each episode starts; the last entry is the number of frames."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def _ends(self) -> Indices:
        """(F,) one past the last frame of the episode that a frame belongs to."""
        return np.repeat(self.bounds[1:], self.lengths)

    @cached_property
    def _starts(self) -> Indices:
        """(F,) the first frame of the episode that a frame belongs to."""
        return np.repeat(self.bounds[:-1], self.lengths)

    @cached_property
    def _held_out(self) -> NDArray[np.bool_]:
        """(E,) the same episodes on every machine, spread over counts and instructions."""
        episodes = len(self.lengths)
        if episodes < 2:
            raise UserError("training needs at least 2 demonstrations, one of them held out")
        held_out = np.zeros(episodes, bool)
        number = max(1, round(HELD_OUT_FRACTION * episodes))
        held_out[np.random.default_rng(0).permutation(episodes)[:number]] = True
        return held_out

    @cached_property
    def training_frames(self) -> Indices:
        return np.flatnonzero(~np.repeat(self._held_out, self.lengths))

    @cached_property
    def held_out_frames(self) -> Indices:
        return np.flatnonzero(np.repeat(self._held_out, self.lengths))

    def observations(self, frames: Indices) -> ObservationBatch:
        """What the policy would have seen at these frames."""
        return ObservationBatch(
            images=as_views(self._past(frames)),
            proprioception=self.proprioception[frames],
            objects=self.objects[frames],
            objects_mask=self.objects_mask[frames],
            instructions=tuple(self.instructions[task] for task in self.task_index[frames]),
        )

    def _past(self, frames: Indices) -> NDArray[np.uint8]:
        """(B, T, C, H, W, 3) what is remembered at each frame, itself last.

        Where the episode had not begun, that is what was shown before, or its first frame.
        """
        starts = self._starts[frames][:, None]  # (B, 1)
        steps = frames[:, None] - np.arange(self.env_config.history)[::-1]  # (B, T)
        if self.env_config.memory == "first":
            steps[:, :1] = starts - 1
        images: NDArray[np.uint8] = self.images[np.maximum(steps, starts)]
        if self.before.size:
            episodes = np.searchsorted(self.bounds, frames, side="right") - 1  # (B,)
            rows, _ = np.nonzero(steps < starts)
            images[steps < starts] = self.before[episodes[rows]]
        return images

    def chunks(self, frames: Indices, chunk_size: int) -> tuple[Array, NDArray[np.bool_]]:
        """The next K targets from each frame's own moment on, and which lie in its episode."""
        steps = frames[:, None] + np.arange(chunk_size)  # (B, K)
        ends = self._ends[frames][:, None]  # (B, 1)
        return self.actions[np.minimum(steps, ends - 1)], steps < ends  # (B, K, A), (B, K)

    def batch(self, frames: Indices, chunk_size: int) -> TrainingBatch:
        """Observations at these frames and the chunks that followed them."""
        actions, mask = self.chunks(frames, chunk_size)
        return TrainingBatch(
            observations=self.observations(frames), actions=actions, actions_mask=mask
        )


def recorded_config(root: Path) -> EnvConfig:
    """The world that a dataset shows."""
    recorded = lerobot.read_info(root)["fetchlab"].get("env", {})
    try:
        return EnvConfig.of(recorded)
    except (TypeError, UserError) as error:
        raise UserError(f"{root / lerobot.INFO_PATH} shows a world unknown here: {error}") from None


def _refuse_other_world(root: Path, recorded: EnvConfig, wanted: EnvConfig) -> None:
    """A policy may look through fewer cameras than were recorded, or remember more of their frames;
    all else must be equal."""
    missing = [camera for camera in wanted.cameras if camera not in recorded.cameras]
    if missing:
        raise UserError(
            f"{root} shows the cameras {', '.join(recorded.cameras) or 'none'}, but the policy "
            f"looks through {', '.join(wanted.cameras)}: collect with --cameras "
            f"{' '.join(wanted.cameras)}"
        )
    ignored = {"cameras", "history", "memory"} | (set() if wanted.cameras else {"image_size"})
    for field in fields(EnvConfig):
        have, want = getattr(recorded, field.name), getattr(wanted, field.name)
        if field.name not in ignored and have != want:
            raise UserError(
                f"{root} was collected with {field.name} {have}, but the policy expects {want}: "
                f"collect with {field.name} {want} or train a policy for {have}"
            )


def _refuse_foreign_files(
    root: Path, env: EnvConfig, arrays: dict[str, Any], instructions: tuple[str, ...]
) -> None:
    """The description and the sentences may have come from another dataset than the data."""
    width = arrays["actions"].shape[1]
    if width != env.action_dim:
        raise UserError(
            f"{root / lerobot.INFO_PATH} announces {env.action_dim} numbers an action, but the "
            f"data files hold {width}: restore the dataset or collect it again"
        )
    if arrays["task_index"].max() >= len(instructions):
        raise UserError(
            f"{root / lerobot.TASKS_PATH} lacks sentences that the data files use: restore the "
            "dataset or collect it again"
        )


def _data_paths(root: Path, episodes: pa.Table) -> list[Path]:
    """The data files that the episodes lie in, in order."""
    chunks = episodes.column("data/chunk_index").to_pylist()
    files = episodes.column("data/file_index").to_pylist()
    numbers = {
        chunk * lerobot.FILES_PER_CHUNK + file for chunk, file in zip(chunks, files, strict=True)
    }
    return [root / lerobot.data_path(number) for number in sorted(numbers)]


def _instructions(root: Path) -> tuple[str, ...]:
    table = lerobot.read_table(root / lerobot.TASKS_PATH, ["task_index", "task"])
    order = np.argsort(table.column("task_index").to_numpy())
    return tuple(table.column("task").take(pa.array(order)).to_pylist())


def _numeric_arrays(root: Path, table: pa.Table) -> dict[str, Any]:
    state = lerobot.object_rows(root, column_array(table, "observation.environment_state"))
    return {
        "proprioception": column_array(table, "observation.state"),
        "objects": np.ascontiguousarray(state[:, :, 1:]),
        "objects_mask": state[:, :, 0] > 0.5,
        "actions": column_array(table, "action"),
        "executed_actions": column_array(table, "executed.action"),
        "task_index": column_array(table, "task_index"),
    }


def _fingerprint(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def statistics_of(
    demonstrations: Demonstrations, chunk_size: int, relative: bool = True
) -> Statistics:
    """Means and deviations over the training frames and the steps of their chunks.

    With `relative`, arm targets are measured from the proprioception at the chunk's observation,
    as the policy predicts them; the gripper stays absolute.
    """
    frames = demonstrations.training_frames
    proprioception = demonstrations.proprioception[frames]  # (F, P)
    mean, std = action_statistics(
        *demonstrations.chunks(frames, chunk_size),
        proprioception,
        action_mode=demonstrations.env_config.action_mode,
        relative=relative,
    )
    return Statistics(
        proprioception_mean=proprioception.mean(axis=0, dtype=np.float64).astype(np.float32),
        proprioception_std=proprioception.std(axis=0, dtype=np.float64).astype(np.float32),
        action_mean=mean,
        action_std=std,
    )
