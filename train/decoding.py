"""Decoding the images of a dataset, side by side, once for all who train on it."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa
from filelock import FileLock
from numpy.typing import NDArray

from fetchlab.errors import UserError

OnDecoded = Callable[[int, int], None]
"""called with (images decoded, images in all)"""
DECODED_AT_ONCE = 256  # images a thread takes on
FOLDER = ".decoded"  # in the dataset's; may be removed at any time
Images = NDArray[np.uint8]


def mapped(
    root: Path,
    table: pa.Table,
    keys: Mapping[str, str],
    size: int,
    *,
    fingerprint: str,
    on_decoded: OnDecoded | None = None,
) -> Images:
    """What `decoded` returns, read-only, from a file that is written by the first to need it.

    The system keeps in memory what fits, once for all processes. Where there is no place for the
    file, it is in this process's memory. The fingerprint is the dataset's.
    """
    if not keys:
        return decoded(root, table, keys, size)
    path = root / FOLDER / f"{'+'.join(keys)}-{fingerprint}.npy"
    shape = (len(table), len(keys), size, size, 3)
    found = _open(path, shape)
    if found is None:
        decode = partial(_decode, root=root, table=table, keys=keys, on_decoded=on_decoded)
        found = _written(path, shape, decode)
    elif on_decoded:
        on_decoded(shape[0] * shape[1], shape[0] * shape[1])
    return decoded(root, table, keys, size, on_decoded) if found is None else found


def decoded(
    root: Path,
    table: pa.Table,
    keys: Mapping[str, str],
    size: int,
    on_decoded: OnDecoded | None = None,
) -> Images:
    """The images of each row and camera, (rows, C, size, size, 3); `keys`: camera → column.

    Raises UserError for what is no such image.
    """
    images = np.empty((len(table), len(keys), size, size, 3), np.uint8)
    _decode(images, root=root, table=table, keys=keys, on_decoded=on_decoded)
    return images


def _open(path: Path, shape: tuple[int, ...]) -> Images | None:
    """The images in this file, None if it is not there or was damaged."""
    try:
        images = np.load(path, mmap_mode="r")
    except (OSError, EOFError, ValueError):
        return None
    return np.asarray(images) if images.shape == shape and images.dtype == np.uint8 else None


def _written(path: Path, shape: tuple[int, ...], decode: Callable[[Images], None]) -> Images | None:
    """The images in this file, once it is whole; None where there is no place for it."""
    try:
        path.parent.mkdir(exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            if _open(path, shape) is None:  # nobody wrote it meanwhile
                _write(path, shape, decode)
    except (OSError, NotImplementedError):  # not writable, a full disk, or one without locks
        return None
    return _open(path, shape)


def _write(path: Path, shape: tuple[int, ...], decode: Callable[[Images], None]) -> None:
    """The whole file or none."""
    if shutil.disk_usage(path.parent).free < np.prod(shape):  # writing to a full disk would crash
        raise OSError(errno.ENOSPC, "no room", str(path))
    unfinished = path.with_suffix(".partial")
    try:
        decode(np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.uint8, shape=shape))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _decode(
    images: Images,
    *,
    root: Path,
    table: pa.Table,
    keys: Mapping[str, str],
    on_decoded: OnDecoded | None,
) -> None:
    """Into `images`; OpenCV decodes outside the interpreter's lock."""
    total = len(table) * len(keys)
    size, starts, done = images.shape[2], range(0, len(table), DECODED_AT_ONCE), 0
    with ThreadPoolExecutor() as pool:
        for camera, (name, key) in enumerate(keys.items()):
            pngs = table.column(key).combine_chunks().field("bytes")
            parts = [pngs[start : start + DECODED_AT_ONCE].to_pylist() for start in starts]
            outs = [images[start : start + DECODED_AT_ONCE, camera] for start in starts]
            for start, readable in zip(starts, pool.map(_decode_pngs, parts, outs), strict=True):
                done += readable
                if readable < len(images[start : start + DECODED_AT_ONCE]):
                    raise UserError(
                        f"{root}: frame {start + readable} of camera {name} is no {size}x{size} "
                        "PNG; restore the dataset or collect it again"
                    )
                if on_decoded:
                    on_decoded(done, total)


def _decode_pngs(pngs: list[bytes | None], outs: Images) -> int:
    """Into `outs` (n, H, W, 3), red first, up to the first that is no image of this size."""
    for row, (png, out) in enumerate(zip(pngs, outs, strict=True)):
        image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR) if png else None
        if image is None or image.shape != out.shape:
            return row
        cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=out)
    return len(pngs)
