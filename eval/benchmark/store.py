"""A benchmark's folder: what is finished stays, and what was begun with other settings is refused.

OUT/benchmark.json                settings and fingerprint
OUT/demonstrations/NAME-N/        datasets
OUT/policies/POLICY/TRAINED/seed-S/
OUT/cells/…/TASK-N.json           one file a finished cell
OUT/grounding/POLICY.json         what its heads look at
OUT/results.json, summary.json    the numbers, the same in every run
OUT/timings.json, cell_times.json, report.html
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from fetchlab.errors import UserError
from fetchlab.eval.benchmark.config import (
    BenchmarkConfig,
    Training,
    collection_of,
    collections,
)
from fetchlab.eval.fingerprint import fingerprint, refuse_difference
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.results import (
    Cell,
    CellKey,
    check_folder,
    read_cell,
    read_gaze,
    write_whole,
)
from fetchlab.train.lerobot import read_json
from fetchlab.train.provenance import refuse_differences

RECORD, TIMINGS, CELL_TIMES = "benchmark.json", "timings.json", "cell_times.json"

Read = TypeVar("Read")


class Store:
    """The folder, claimed for one benchmark."""

    def __init__(self, config: BenchmarkConfig) -> None:
        """UserError if the folder holds anything else, or this benchmark with other settings."""
        self.out = config.out
        self._config = config
        check_folder(self.out)
        path = self.out / RECORD
        settings: dict[str, Any] = json.loads(json.dumps(asdict(config.recipe)))
        del settings["seeds"], settings["policies"]  # more may come later
        if path.is_file():
            begun = read_json(path)
            refuse_differences(self.out, begun.get("settings", {}), settings)
            refuse_difference(str(self.out), fingerprint(), begun.get("fingerprint", {}))
        elif self.out.exists() and any(self.out.iterdir()):
            raise UserError(f"--out {self.out} already holds something else: give a new folder")
        else:
            content = {"settings": settings, "fingerprint": fingerprint()}
            write_json(path, content)

    def demonstrations(self, name: str) -> Path:
        """The folder of a dataset."""
        _, n = collections(self._config)[name]
        return self.out / "demonstrations" / f"{name}-{n}"

    def dataset_of(self, training: Training) -> Path:
        return self.demonstrations(collection_of(training.condition))

    def policy(self, training: Training) -> Path:
        return self.out / "policies" / training.name

    def cell(self, key: CellKey) -> Cell | None:
        """The finished cell, None if it has not been played."""
        return _read(self._cell_path(key), read_cell)

    def write_cell(self, cell: Cell) -> None:
        write_json(self._cell_path(cell.key), asdict(cell))

    def set_cell_time(self, key: CellKey, seconds: float) -> None:
        """What its episodes took one process; cells with the same episodes share them."""
        found: dict[str, float] = _read(self.out / CELL_TIMES, dict) or {}
        name = str(self._cell_path(key).relative_to(self.out / "cells").with_suffix(""))
        write_json(self.out / CELL_TIMES, found | {name: round(seconds, 2)})

    def _cell_path(self, key: CellKey) -> Path:
        seed = "untrained" if key.training_seed is None else f"seed-{key.training_seed}"
        folder = self.out / "cells" / key.policy / key.trained / seed / key.suite
        return folder / (key.arm or "plain") / f"{key.task}-{key.n_objects:02d}.json"

    def gazes(self, policy: str) -> tuple[Gaze, ...] | None:
        """What its heads look at, None if it has not been measured."""
        return _read(self._gaze_path(policy), lambda found: tuple(map(read_gaze, found["gazes"])))

    def write_gazes(self, policy: str, gazes: Sequence[Gaze]) -> None:
        write_json(self._gaze_path(policy), {"gazes": [asdict(gaze) for gaze in gazes]})

    def _gaze_path(self, policy: str) -> Path:
        return self.out / "grounding" / f"{policy}.json"

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by what took them."""
        found: dict[str, float] = _read(self.out / TIMINGS, dict) or {}
        return found

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add what the block takes to what it took before an interruption."""
        started = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - started
            self.set_times({what: self.timings.get(what, 0.0) + took})

    def set_times(self, seconds: Mapping[str, float]) -> None:
        rounded = {what: round(took, 1) for what, took in seconds.items()}
        write_json(self.out / TIMINGS, self.timings | rounded)


def _read(path: Path, parse: Callable[[dict[str, Any]], Read]) -> Read | None:
    if not path.is_file():
        return None
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path} is damaged: remove it, and it is made again") from None


def write_json(path: Path, content: Any) -> Path:
    """Write it whole or not at all."""
    return write_whole(path, json.dumps(content, indent=1) + "\n")
