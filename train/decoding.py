"""Decoding the images of a dataset, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fetchlab.errors import UserError

OnDecoded = Callable[[int, int], None]
"""called with (images decoded, images in all)"""
DECODED_AT_ONCE = 256  # images a thread takes on


def decoded(
    root: Path,
    table: pa.Table,
    keys: Mapping[str, str],
    size: int,
    on_decoded: OnDecoded | None = None,
) -> NDArray[np.uint8]:
    """The images of each row and camera, (rows, C, size, size, 3); `keys`: camera → column.

    OpenCV decodes outside the interpreter's lock. Raises UserError for what is no such image.
    """
    total = len(table) * len(keys)
    images = np.empty((len(table), len(keys), size, size, 3), np.uint8)
    starts, done = range(0, len(table), DECODED_AT_ONCE), 0
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
    return images


def _decode_pngs(pngs: list[bytes | None], outs: NDArray[np.uint8]) -> int:
    """Into `outs` (n, H, W, 3), red first, up to the first that is no image of this size."""
    for row, (png, out) in enumerate(zip(pngs, outs, strict=True)):
        image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR) if png else None
        if image is None or image.shape != out.shape:
            return row
        cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=out)
    return len(pngs)
