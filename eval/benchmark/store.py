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
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from fetchlab.errors import UserError
from fetchlab.eval.benchmark.config import (
    BenchmarkConfig,
    Training,
    collection_of,
    collections,
)
from fetchlab.eval.decode import decode, read_object, value_of
from fetchlab.eval.fingerprint import fingerprint, refuse_difference
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.results import PARTIAL, Cell, CellKey, by_training, check_folder, write_whole
from fetchlab.train.provenance import refuse_differences

RECORD, TIMINGS, CELL_TIMES = "benchmark.json", "timings.json", "cell_times.json"

Read = TypeVar("Read")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a benchmark was begun with."""

    settings: dict[str, Any]
    fingerprint: dict[str, str]

    def __post_init__(self) -> None:
        if not self.settings or not self.fingerprint:
            raise UserError("settings and fingerprint must not be empty")


def read_record(folder: Path) -> Record | None:
    """What the benchmark in this folder was begun with, None if there is none."""
    path = folder / RECORD
    try:
        return decode(Record, read_object(path)) if path.is_file() else None
    except UserError:
        raise UserError(f"{path} is damaged: restore it, or begin in another folder") from None


class Store:
    """The folder, claimed for one benchmark."""

    def __init__(self, config: BenchmarkConfig) -> None:
        """UserError if the folder holds anything else, or this benchmark with other settings."""
        self.out = config.out
        self._config = config
        check_folder(self.out)
        settings: dict[str, Any] = json.loads(json.dumps(asdict(config.recipe)))
        del settings["seeds"], settings["policies"]  # more may come later
        begun = read_record(self.out)
        if begun is not None:
            refuse_differences(self.out, begun.settings, settings)
            refuse_difference(str(self.out), fingerprint(), begun.fingerprint)
            return
        if self.out.exists() and any(one.name != RECORD + PARTIAL for one in self.out.iterdir()):
            raise UserError(f"--out {self.out} already holds something else: give a new folder")
        write_json(self.out / RECORD, asdict(Record(settings=settings, fingerprint=fingerprint())))

    def demonstrations(self, name: str) -> Path:
        """The folder of a dataset."""
        _, n = collections(self._config)[name]
        return self.out / "demonstrations" / f"{name}-{n}"

    def dataset_of(self, training: Training) -> Path:
        return self.demonstrations(collection_of(training.condition))

    def policy(self, training: Training) -> Path:
        return self.out / "policies" / training.name

    def cell(self, key: CellKey, seeds: Sequence[int]) -> Cell | None:
        """The finished cell of these scenes, None if it has not been played."""

        def parse(content: Any) -> Cell:
            cell = decode(Cell, content)
            cell.check()
            if cell.key != key:
                raise UserError("it is of another place")
            if [episode.seed for episode in cell.episodes] != list(seeds):
                raise UserError("it is of other scenes")
            return cell

        return _read(self._cell_path(key), parse)

    def write_cell(self, cell: Cell) -> None:
        write_json(self._cell_path(cell.key), asdict(cell))

    def set_cell_time(self, key: CellKey, seconds: float) -> None:
        """What its episodes took one process; cells with the same episodes share them."""
        found = self._times(CELL_TIMES)
        write_json(self.out / CELL_TIMES, found | {self._cell_name(key): round(seconds, 2)})

    def seconds_an_episode(self, cells: Sequence[Cell]) -> dict[CellKey, float]:
        """The mean over the trainings, by cell without training seed, of what was played."""
        times = self._times(CELL_TIMES)
        found = {
            key: [
                times[name] / cell.n_episodes
                for cell in group
                if cell.n_episodes and (name := self._cell_name(cell.key)) in times
            ]
            for key, group in by_training(cells).items()
        }
        return {key: fmean(some) for key, some in found.items() if some}

    def _cell_name(self, key: CellKey) -> str:
        return str(self._cell_path(key).relative_to(self.out / "cells").with_suffix(""))

    def _cell_path(self, key: CellKey) -> Path:
        seed = "untrained" if key.training_seed is None else f"seed-{key.training_seed}"
        folder = self.out / "cells" / key.policy / key.trained / seed / key.suite
        return folder / (key.arm or "plain") / f"{key.task}-{key.n_objects:02d}.json"

    def gazes(self, policy: str) -> tuple[Gaze, ...] | None:
        """What its heads look at, None if it has not been measured."""
        return _read(
            self._gaze_path(policy),
            lambda found: tuple(decode(Gaze, gaze) for gaze in found["gazes"]),
        )

    def write_gazes(self, policy: str, gazes: Sequence[Gaze]) -> None:
        write_json(self._gaze_path(policy), {"gazes": [asdict(gaze) for gaze in gazes]})

    def _gaze_path(self, policy: str) -> Path:
        return self.out / "grounding" / f"{policy}.json"

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by what took them."""
        return self._times(TIMINGS)

    def _times(self, name: str) -> dict[str, float]:
        def parse(content: dict[str, Any]) -> dict[str, float]:
            return dict(value_of(dict[str, float], content, "seconds"))

        return _read(self.out / name, parse) or {}

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
    """What the file holds, None if there is none; UserError if it is damaged."""
    if not path.is_file():
        return None
    try:
        return parse(read_object(path))
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path} is damaged: remove it, and it is made again") from None


def write_json(path: Path, content: Any) -> Path:
    """Write it whole or not at all."""
    return write_whole(path, json.dumps(content, indent=1) + "\n")
