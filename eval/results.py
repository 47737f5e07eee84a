"""`results.json`: what an evaluation leaves behind, and how it is read again."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from fetchlab.errors import UserError
from fetchlab.eval.decode import decode, read_object
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.statistics import Interval, wilson
from fetchlab.sim.config import EnvConfig
from fetchlab.train.provenance import git_commit, versions

RESULTS = "results.json"
PARTIAL = ".partial"  # ends the name of a file while it is being written
FORMAT = 1
LIBRARIES = ("torch", "numpy", "pybullet", "gymnasium")
OF_THE_POLICY = ("cameras", "image_size", "action_mode", "history", "memory", "depth")
"""settings of EnvConfig that may differ between policies that play the same scenes"""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One line of a cell."""

    seed: int
    success: bool
    steps: int
    reason: str
    instruction: str


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """What tells a cell from all others."""

    policy: str
    suite: str
    n_objects: int
    arm: str = ""
    """what the suite changed (`eval/suites.py`); empty where it changes nothing"""
    control: bool = False
    """whether the suite's other arms are measured against this one"""
    task: str = "fetch"
    """of a policy of several tasks, the one that was played"""
    trained: str = "nominal"
    """what the policy was trained on: a condition of the suite"""
    training_seed: int | None = None
    """None where it is not known, or nothing was trained"""


@dataclass(frozen=True, kw_only=True)
class Cell(CellKey):
    """One policy at one number of objects; rates are fractions, None where nothing was played."""

    n_episodes: int
    n_success: int
    success_rate: float | None
    ci95: Interval | None
    failures: dict[str, int]
    mean_steps: float | None
    """control steps until the end, over all episodes"""
    note: str
    """why nothing was played; else empty"""
    episodes: tuple[Episode, ...]

    @classmethod
    def count(cls, key: CellKey, results: Sequence[EpisodeResult]) -> Cell:
        """The cell of these episodes."""
        episodes = [
            Episode(
                seed=result.seed,
                success=result.success,
                steps=result.steps,
                reason=result.reason,
                instruction=result.instruction,
            )
            for result in results
        ]
        interval = wilson(sum(result.success for result in results), len(results))
        numbers = numbers_of(episodes)
        return cls(**asdict(key), **numbers, ci95=interval, note="", episodes=tuple(episodes))

    @classmethod
    def refused(cls, key: CellKey, note: str) -> Cell:
        """The cell of what the policy cannot play."""
        return cls(**asdict(key), **numbers_of(()), ci95=None, note=note, episodes=())

    @property
    def key(self) -> CellKey:
        return CellKey(**{one.name: getattr(self, one.name) for one in fields(CellKey)})

    def check(self) -> None:
        """Raises UserError unless its numbers are those of its episodes."""
        for name, number in numbers_of(self.episodes).items():
            if getattr(self, name) != number:
                raise UserError(f"{name} is not that of its episodes")
        if bool(self.episodes) is not (self.ci95 is not None) or not (self.episodes or self.note):
            raise UserError("it needs episodes and their ci95, or a note that says why not")
        if self.ci95 and not np.allclose(self.ci95, wilson(self.n_success, self.n_episodes)):
            raise UserError("ci95 is not that of its episodes")


def by_training(cells: Iterable[Cell]) -> dict[CellKey, list[Cell]]:
    """The cells of all trainings of a policy together, in the order of the seeds given."""
    found: dict[CellKey, list[Cell]] = {}
    for cell in cells:
        found.setdefault(replace(cell.key, training_seed=None), []).append(cell)
    return found


def numbers_of(episodes: Sequence[Episode]) -> dict[str, Any]:
    """What a cell counts in its episodes."""
    n, won = len(episodes), sum(episode.success for episode in episodes)
    failures = Counter(episode.reason for episode in episodes if not episode.success)
    return {
        "n_episodes": n,
        "n_success": won,
        "success_rate": won / n if n else None,
        "failures": dict(sorted(failures.items())),
        "mean_steps": sum(episode.steps for episode in episodes) / n if n else None,
    }


@dataclass(frozen=True, kw_only=True)
class Swap:
    """How often a policy did it with the object that a changed word named."""

    policy: str
    n: int
    """pairs of episodes: the same scene, other words for the object"""
    n_followed: int
    """pairs in which it was done with the newly named object"""
    n_both: int
    """pairs in which each sentence moved its own object"""
    rate: float
    ci95: Interval


@dataclass(frozen=True, kw_only=True)
class PolicyFacts:
    """What was evaluated."""

    policy: str
    source: str
    max_objects: int
    env: dict[str, Any]
    parameters: int | None
    """None: nothing was learned"""


@dataclass(frozen=True, kw_only=True)
class Results:
    """One evaluation, of one policy or several."""

    task: str
    seed: int
    policies: tuple[PolicyFacts, ...]
    cells: tuple[Cell, ...]
    instruction_swap: Swap | None
    timings_s: dict[str, float]
    command: str
    versions: dict[str, str | None]
    grounding: tuple[Gaze, ...] = ()
    """what attention heads look at, if that was measured"""
    fingerprint: dict[str, str] = field(default_factory=dict)
    """of what made the scenes and their pictures; empty in results of old"""

    def write(self, folder: Path, indent: int | None = 1) -> Path:
        """Write `results.json` into the folder, whole or not at all; without indent, in a line."""
        content = {"format": FORMAT, **asdict(self)}
        return write_whole(folder / RESULTS, json.dumps(content, indent=indent) + "\n")


def read_results(folder: Path) -> Results:
    """The evaluation in this folder; UserError if there is none that can be read."""
    path = folder / RESULTS
    if not path.is_file():
        raise UserError(f"{folder} holds no {RESULTS}: give the --out folder of `fetchlab eval`")
    try:
        return _results(read_object(path))
    except UserError as error:
        raise UserError(
            f"{path} is not a result of this version of fetchlab ({error}): "
            "run the evaluation again"
        ) from None


def _results(content: dict[str, Any]) -> Results:
    found = content.pop("format", None)
    if found != FORMAT:
        raise UserError(f"format must be {FORMAT}, got {found!r}")
    results = decode(Results, content)
    for row, cell in enumerate(results.cells):
        try:
            cell.check()
        except UserError as error:
            raise UserError(f"cells[{row}]: {error}") from None
    if len({cell.key for cell in results.cells}) != len(results.cells):
        raise UserError("cells has one twice")
    return results


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    return put_in_place(partial, path)


def check_folder(out: Path) -> None:
    """UserError unless files can be put there, or in a folder made there; said before the work."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file: give a folder")
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise UserError(f"--out {out} cannot be made: {nearest} is no folder to write in")


def put_in_place(partial: Path, path: Path) -> Path:
    """The finished file takes its place; where that is a folder, nothing is left behind."""
    try:
        os.replace(partial, path)
    except OSError as error:
        partial.unlink()
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    return path


def provenance() -> dict[str, str | None]:
    """What the numbers were made with."""
    machine = f"{platform.system()} {platform.machine()}"
    return {**versions(*LIBRARIES), "commit": git_commit(), "machine": machine}


def world(env: dict[str, Any]) -> dict[str, Any]:
    """The recorded settings that make scenes and time; what came later has its default."""
    settings = {one.name: one.default for one in fields(EnvConfig)} | env
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in settings.items()
        if key not in OF_THE_POLICY
    }


def command_line() -> str:
    """The command that is running, as a person would type it."""
    return shlex.join(["fetchlab", *sys.argv[1:]])
