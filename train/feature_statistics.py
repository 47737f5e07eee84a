"""The statistics of every column of a dataset, for `meta/stats.json`."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fetchlab.train.lerobot import Features

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
IMAGE_STRIDE = 8
"""cameras are measured on every n-th frame of an episode: neighbours look alike"""


class FeatureStatistics:
    """Gathers episode tables; numbers are measured on every frame, images on every eighth."""

    def __init__(self, features: Features) -> None:
        self._numbers: dict[str, list[NDArray[Any]]] = {}
        self._histograms: dict[str, NDArray[np.int64]] = {}
        self._image_frames = 0
        for key, feature in features.items():
            if feature["dtype"] == "image":
                self._histograms[key] = np.zeros((3, 256), np.int64)  # colour channel, brightness
            else:
                self._numbers[key] = []

    def add(self, table: pa.Table) -> None:
        """Take an episode in."""
        for key, gathered in self._numbers.items():
            gathered.append(column_array(table, key))
        for key, histogram in self._histograms.items():
            for struct in table.column(key)[::IMAGE_STRIDE].to_pylist():
                histogram += _histogram(struct["bytes"])
        self._image_frames += len(range(0, len(table), IMAGE_STRIDE))

    def result(self) -> dict[str, dict[str, Any]]:
        """Feature → min, max, mean, std, count and quantiles, as JSON takes them."""
        numbers = {key: _of_numbers(np.concatenate(v)) for key, v in self._numbers.items()}
        cameras = {k: _of_histogram(h, self._image_frames) for k, h in self._histograms.items()}
        return cameras | numbers


def column_array(table: pa.Table, key: str) -> NDArray[Any]:
    """A numeric column: (T,) for scalars, (T, n) for lists of length n."""
    column = table.column(key).combine_chunks()
    if not pa.types.is_fixed_size_list(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.flatten().to_numpy()).reshape(len(column), column.type.list_size)


def _of_numbers(values: NDArray[Any]) -> dict[str, Any]:
    values = values.reshape(len(values), -1).astype(np.float64)  # (T, n)
    quantiles = np.quantile(values, list(QUANTILES.values()), axis=0)
    return {
        "min": values.min(axis=0).tolist(),
        "max": values.max(axis=0).tolist(),
        "mean": values.mean(axis=0).tolist(),
        "std": values.std(axis=0).tolist(),
        "count": [len(values)],
        **{name: row.tolist() for name, row in zip(QUANTILES, quantiles, strict=True)},
    }


def _histogram(png: bytes) -> NDArray[np.int64]:
    """(3, 256) how often each channel takes each value, channels as red, green, blue."""
    image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None  # this process wrote it
    channels = image[:, :, ::-1].reshape(-1, 3).T
    return np.stack([np.bincount(channel, minlength=256) for channel in channels])


def _of_histogram(histogram: NDArray[np.int64], frames: int) -> dict[str, Any]:
    """Statistics a channel, shape (3, 1, 1), of pixels in [0, 1]; quantiles are exact."""
    levels = np.arange(256) / 255
    total = histogram.sum(axis=1)
    mean = histogram @ levels / total
    variance = np.maximum(histogram @ levels**2 / total - mean**2, 0)
    shares = histogram.cumsum(axis=1) / total[:, None]
    quantiles = {name: levels[(shares < q).sum(axis=1)] for name, q in QUANTILES.items()}
    low = levels[(histogram > 0).argmax(axis=1)]
    high = levels[255 - (histogram[:, ::-1] > 0).argmax(axis=1)]
    values = {"min": low, "max": high, "mean": mean, "std": np.sqrt(variance), **quantiles}
    shaped = {name: value.reshape(3, 1, 1).tolist() for name, value in values.items()}
    return {**shaped, "count": [frames]}
