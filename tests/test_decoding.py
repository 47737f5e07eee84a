"""Images are decoded once for all who train on a dataset, and never wrongly."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.recordings import change_column, cut_image, write_dataset

from fetchlab.errors import UserError
from fetchlab.train import decoding, lerobot
from fetchlab.train.dataset import Demonstrations

DATA = lerobot.data_path(0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data", episodes=3)
    return tmp_path / "data"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images were decoded at a time."""
    counts: list[int] = []
    decode = decoding._decode_pngs

    def counted(pngs: list[bytes | None], outs: decoding.Images) -> int:
        counts.append(len(pngs))
        return decode(pngs, outs)

    monkeypatch.setattr(decoding, "_decode_pngs", counted)
    return counts


def kept(root: Path) -> list[str]:
    """Decoded images, finished or not."""
    return [path.suffix for path in (root / decoding.FOLDER).glob("*") if path.suffix != ".lock"]


def test_images_are_decoded_once(root: Path, decoded: list[int]) -> None:
    told: list[tuple[int, int]] = []
    first = Demonstrations.load(root)
    again = Demonstrations.load(root, on_decoded=lambda *now: told.append(now))
    np.testing.assert_array_equal(again.images, first.images)
    assert sum(decoded) == 2 * len(first) and told == [(2 * len(first), 2 * len(first))]
    with pytest.raises(ValueError, match="read-only"):
        again.images[0] = 0


def test_those_who_need_them_at_once_share_them(root: Path, decoded: list[int]) -> None:
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(Demonstrations.load, [root] * 4))
    assert sum(decoded) == 2 * len(loaded[0]) and kept(root) == [".npy"]


def test_other_data_are_decoded_anew(root: Path, decoded: list[int]) -> None:
    before = Demonstrations.load(root).images
    change_column(root / DATA, "observation.images.front", lambda images: images[::-1])
    np.testing.assert_array_equal(Demonstrations.load(root).images[:, 0], before[::-1, 0])
    assert sum(decoded) == 2 * 2 * len(before)


def test_a_damaged_file_is_written_again(root: Path) -> None:
    images = Demonstrations.load(root).images.copy()
    [path] = (root / decoding.FOLDER).glob("*.npy")
    for rest in (b"", path.read_bytes()[:200]):
        path.write_bytes(rest)
        np.testing.assert_array_equal(Demonstrations.load(root).images, images)


def test_a_full_disk_costs_memory_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    images = Demonstrations.load(root).images
    assert not kept(root)
    monkeypatch.undo()
    np.testing.assert_array_equal(Demonstrations.load(root).images, images)
    assert kept(root) == [".npy"]


def test_a_folder_that_cannot_be_written_costs_memory_only(root: Path) -> None:
    (root / decoding.FOLDER).write_text("in the way")
    assert Demonstrations.load(root).images.any()


def test_nothing_is_left_of_what_cannot_be_decoded(root: Path) -> None:
    change_column(root / DATA, "observation.images.wrist", cut_image(3))
    with pytest.raises(UserError, match="frame 3 of camera wrist"):
        Demonstrations.load(root)
    assert not kept(root)
