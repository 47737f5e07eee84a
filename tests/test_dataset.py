"""Datasets on disk and in memory: what goes in comes out, and damage is named."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recordings import SMALL, change_column, cut_image, write_dataset

from fetchlab.errors import UserError
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import MAX_ROWS
from fetchlab.train import lerobot
from fetchlab.train.dataset import Demonstrations, statistics_of
from fetchlab.train.feature_statistics import column_array
from fetchlab.train.writer import Episode

DATA = "data/chunk-000/file-000.parquet"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Episode]]:
    root = tmp_path_factory.mktemp("dataset")
    return root, write_dataset(root, episodes=8)


@pytest.fixture(scope="module")
def demonstrations(dataset: tuple[Path, list[Episode]]) -> Demonstrations:
    return Demonstrations.load(dataset[0])


# Round trip -------------------------------------------------------------------------------


def test_what_was_recorded_is_loaded(
    dataset: tuple[Path, list[Episode]], demonstrations: Demonstrations
) -> None:
    episodes = dataset[1]
    assert len(demonstrations) == sum(map(len, episodes))
    assert demonstrations.env_config == SMALL
    for episode, (start, end) in zip(episodes, pairwise(demonstrations.bounds), strict=True):
        for camera, images in enumerate(episode.images.values()):
            np.testing.assert_array_equal(demonstrations.images[start:end, camera], images)
        np.testing.assert_array_equal(
            demonstrations.proprioception[start:end], episode.proprioception
        )
        np.testing.assert_array_equal(demonstrations.actions[start:end], episode.actions)
        np.testing.assert_array_equal(
            demonstrations.executed_actions[start:end], episode.executed_actions
        )
        rows = episode.environment_state.reshape(len(episode), MAX_ROWS, -1)
        np.testing.assert_array_equal(demonstrations.objects[start:end], rows[:, :, 1:])
        np.testing.assert_array_equal(demonstrations.objects_mask[start:end], rows[:, :, 0] > 0)
        said = demonstrations.observations(np.arange(start, end)).instructions
        assert set(said) == {episode.about.instruction}
    assert demonstrations.scene_seeds.tolist() == [e.about.scene_seed for e in episodes]
    assert demonstrations.n_objects.tolist() == [e.about.n_objects for e in episodes]


def test_files_are_lerobot_v3(dataset: tuple[Path, list[Episode]]) -> None:
    root, episodes = dataset
    info = json.loads((root / "meta/info.json").read_text())
    frames = sum(map(len, episodes))
    assert info["codebase_version"] == "v3.0" and info["fps"] == 10
    assert (info["total_episodes"], info["total_frames"]) == (8, frames)
    assert info["splits"] == {"train": "0:8"} and info["video_path"] is None
    table = pq.read_table(root / DATA)
    assert set(table.column_names) == set(info["features"])
    assert pq.ParquetFile(root / DATA).num_row_groups == 8
    assert pq.ParquetFile(root / DATA).metadata.row_group(0).column(0).compression == "SNAPPY"
    assert column_array(table, "index").tolist() == list(range(frames))
    assert column_array(table, "next.done").sum() == column_array(table, "next.success").sum() == 8
    np.testing.assert_allclose(
        column_array(table, "timestamp"), column_array(table, "frame_index") / 10, rtol=1e-6
    )
    assert str(table.schema.field("observation.images.front").type) == (
        "struct<bytes: binary, path: string>"
    )
    assert table.schema.field("action").type.list_size == 8
    hugging_face = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert hugging_face["observation.images.wrist"] == {"_type": "Image"}


def test_tasks_are_the_pandas_index(dataset: tuple[Path, list[Episode]]) -> None:
    root, episodes = dataset
    tasks = pd.read_parquet(root / "meta/tasks.parquet")
    assert tasks.index.name == "task" and tasks.columns.tolist() == ["task_index"]
    assert set(tasks.index) == {episode.about.instruction for episode in episodes}


def test_episodes_table_finds_every_episode(dataset: tuple[Path, list[Episode]]) -> None:
    root, episodes = dataset
    rows = pq.read_table(root / lerobot.EPISODES_PATH).to_pylist()
    assert [row["length"] for row in rows] == [len(episode) for episode in episodes]
    assert rows[0]["dataset_from_index"] == 0
    for before, row in pairwise(rows):
        assert row["dataset_from_index"] == before["dataset_to_index"]
    assert rows[2]["scene.attempts"] == 2 and rows[2]["tasks"] == [episodes[2].about.instruction]


def test_statistics_file(dataset: tuple[Path, list[Episode]]) -> None:
    root, episodes = dataset
    stats = json.loads((root / "meta/stats.json").read_text())
    actions = np.concatenate([episode.actions for episode in episodes])
    np.testing.assert_allclose(stats["action"]["mean"], actions.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(stats["action"]["q90"], np.quantile(actions, 0.9, axis=0), rtol=1e-5)
    assert stats["action"]["count"] == [len(actions)]
    pixels = np.concatenate([e.images["front"][::8].reshape(-1, 3) for e in episodes]) / 255
    camera = stats["observation.images.front"]
    assert np.shape(camera["mean"]) == (3, 1, 1)
    np.testing.assert_allclose(np.ravel(camera["mean"]), pixels.mean(axis=0))
    np.testing.assert_allclose(np.ravel(camera["std"]), pixels.std(axis=0))
    np.testing.assert_allclose(np.ravel(camera["q10"]), np.quantile(pixels, 0.1, axis=0), atol=0.01)
    assert 0 <= np.min(camera["min"]) <= np.max(camera["max"]) <= 1


def test_data_goes_on_in_the_next_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lerobot, "DATA_FILE_MEGABYTES", 0.02)
    write_dataset(tmp_path, episodes=6)
    assert len(list((tmp_path / "data/chunk-000").iterdir())) > 1
    in_parts = Demonstrations.load(tmp_path)
    monkeypatch.undo()
    write_dataset(tmp_path / "one", episodes=6)
    np.testing.assert_array_equal(in_parts.images, Demonstrations.load(tmp_path / "one").images)


# Batches ----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_chunks_start_at_their_frame_and_end_with_the_episode(
    demonstrations: Demonstrations, data: st.DataObject
) -> None:
    frames = data.draw(st.lists(st.integers(0, len(demonstrations) - 1), min_size=1, max_size=9))
    chunk_size = data.draw(st.integers(1, 12))
    batch = demonstrations.batch(np.array(frames), chunk_size)
    assert batch.actions.shape == (len(frames), chunk_size, 8)
    bounds = demonstrations.bounds
    for row, frame in enumerate(frames):
        end = bounds[np.searchsorted(bounds, frame, side="right")]
        valid = min(chunk_size, end - frame)
        assert batch.actions_mask[row].tolist() == [k < valid for k in range(chunk_size)]
        np.testing.assert_array_equal(
            batch.actions[row, :valid], demonstrations.actions[frame : frame + valid]
        )
    np.testing.assert_array_equal(batch.observations.images, demonstrations.images[frames])


def test_held_out_episodes_are_whole_and_apart(demonstrations: Demonstrations) -> None:
    training, held_out = demonstrations.training_frames, demonstrations.held_out_frames
    assert sorted([*training, *held_out]) == list(range(len(demonstrations)))
    episode_of = np.repeat(np.arange(8), demonstrations.lengths)
    assert not set(episode_of[training]) & set(episode_of[held_out])
    assert len(set(episode_of[held_out])) == 1


def test_one_demonstration_cannot_be_split(tmp_path: Path) -> None:
    write_dataset(tmp_path, episodes=1)
    with pytest.raises(UserError, match="at least 2 demonstrations"):
        _ = Demonstrations.load(tmp_path).training_frames


def test_statistics_are_of_relative_unpadded_training_chunks(
    demonstrations: Demonstrations,
) -> None:
    frames = demonstrations.training_frames
    chunks, mask = demonstrations.chunks(frames, 3)
    relative = chunks.copy()
    relative[:, :, :7] -= demonstrations.proprioception[frames, None, :7]
    found = statistics_of(demonstrations, 3)
    np.testing.assert_allclose(found.action_mean, relative[mask].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.action_std, relative[mask].std(axis=0), atol=1e-6)
    absolute = statistics_of(demonstrations, 3, relative=False)
    np.testing.assert_allclose(absolute.action_mean, chunks[mask].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(
        found.proprioception_mean, demonstrations.proprioception[frames].mean(axis=0), atol=1e-6
    )


# The door ---------------------------------------------------------------------------------


def test_fewer_cameras_are_enough(dataset: tuple[Path, list[Episode]]) -> None:
    root, episodes = dataset
    wrist = Demonstrations.load(root, replace(SMALL, cameras=("wrist",)))
    np.testing.assert_array_equal(wrist.images[: len(episodes[0]), 0], episodes[0].images["wrist"])
    blind = Demonstrations.load(root, EnvConfig(cameras=()))  # of any image size
    assert blind.images.shape[1] == 0 and len(blind) == len(wrist)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (replace(SMALL, cameras=("front", "overhead")), "front, wrist.*front, overhead"),
        (replace(SMALL, action_mode="ee"), "action_mode joint.*expects ee"),
        (replace(SMALL, image_size=32), "image_size 16.*expects 32"),
        (replace(SMALL, control_hz=20), "control_hz 10.*expects 20"),
    ],
)
def test_another_world_is_refused(
    dataset: tuple[Path, list[Episode]], wanted: EnvConfig, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Demonstrations.load(dataset[0], wanted)


def test_another_task_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path, episodes=2)
    path = tmp_path / lerobot.INFO_PATH
    path.write_text(path.read_text().replace('"task": "fetch"', '"task": "juggle"'))
    with pytest.raises(UserError, match="unknown task 'juggle'"):
        Demonstrations.load(tmp_path, SMALL)


@pytest.mark.parametrize(
    "name", [DATA, lerobot.INFO_PATH, lerobot.EPISODES_PATH, lerobot.TASKS_PATH]
)
@pytest.mark.parametrize("damage", ["missing", "truncated", "empty"])
def test_damage_is_named(tmp_path: Path, name: str, damage: str) -> None:
    write_dataset(tmp_path, episodes=2)
    path = tmp_path / name
    if damage == "missing":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"")
    with pytest.raises(UserError, match=name) as caught:
        Demonstrations.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    write_dataset(tmp_path, episodes=2)
    change_column(tmp_path / DATA, "observation.images.wrist", cut_image(3))
    with pytest.raises(UserError, match="frame 3 of camera wrist"):
        Demonstrations.load(tmp_path)


def test_lost_frames_are_noticed(tmp_path: Path) -> None:
    write_dataset(tmp_path, episodes=3)
    table = pq.read_table(tmp_path / DATA)
    pq.write_table(table[:-2], tmp_path / DATA)
    with pytest.raises(UserError, match="incomplete"):
        Demonstrations.load(tmp_path)


def test_files_of_different_datasets_are_told_apart(tmp_path: Path) -> None:
    write_dataset(tmp_path, episodes=2)
    path = tmp_path / lerobot.INFO_PATH
    path.write_text(path.read_text().replace('"joint"', '"ee"'))
    with pytest.raises(UserError, match=r"announces 4 numbers an action, .* hold 8"):
        Demonstrations.load(tmp_path)
    path.write_text(path.read_text().replace('"ee"', '"joint"'))
    tasks = pq.read_table(tmp_path / lerobot.TASKS_PATH)
    pq.write_table(tasks[:0], tmp_path / lerobot.TASKS_PATH)
    with pytest.raises(UserError, match="lacks sentences"):
        Demonstrations.load(tmp_path)


def test_a_foreign_folder_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="fetchlab collect"):
        Demonstrations.load(tmp_path)
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta/info.json").write_text('{"codebase_version": "v2.1"}')
    with pytest.raises(UserError, match=r"v3\.0"):
        Demonstrations.load(tmp_path)


def test_the_fingerprint_follows_the_bytes(tmp_path: Path) -> None:
    write_dataset(tmp_path / "a", episodes=2)
    write_dataset(tmp_path / "b", episodes=2)
    write_dataset(tmp_path / "c", episodes=2, seed=1)
    a, b, c = (Demonstrations.load(tmp_path / name).fingerprint for name in "abc")
    assert a == b != c


def test_decoding_reports_its_progress(tmp_path: Path) -> None:
    write_dataset(tmp_path, episodes=2)
    told: list[tuple[int, int]] = []
    demonstrations = Demonstrations.load(tmp_path, on_decoded=lambda *now: told.append(now))
    assert told[-1] == (2 * len(demonstrations), 2 * len(demonstrations))
