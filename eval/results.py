"""`results.json`: what an evaluation leaves behind, and how it is read again."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fetchlab.errors import UserError
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.statistics import Interval, wilson
from fetchlab.sim.config import EnvConfig
from fetchlab.train.provenance import git_commit, versions

RESULTS = "results.json"
FORMAT = 1
LIBRARIES = ("torch", "numpy", "pybullet", "gymnasium")


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One line of a cell."""

    seed: int
    success: bool
    steps: int
    reason: str
    instruction: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One policy at one number of objects; rates are fractions, None where nothing was played."""

    policy: str
    suite: str
    n_objects: int
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
    def count(
        cls, policy: str, suite: str, n_objects: int, results: Sequence[EpisodeResult]
    ) -> Cell:
        """The cell of these episodes."""
        n, won = len(results), sum(result.success for result in results)
        failures = Counter(result.reason for result in results if not result.success)
        return cls(
            policy=policy,
            suite=suite,
            n_objects=n_objects,
            n_episodes=n,
            n_success=won,
            success_rate=won / n,
            ci95=wilson(won, n),
            failures=dict(sorted(failures.items())),
            mean_steps=sum(result.steps for result in results) / n,
            note="",
            episodes=tuple(
                Episode(
                    seed=result.seed,
                    success=result.success,
                    steps=result.steps,
                    reason=result.reason,
                    instruction=result.instruction,
                )
                for result in results
            ),
        )

    @classmethod
    def refused(cls, policy: str, suite: str, n_objects: int, note: str) -> Cell:
        """The cell of a count that the policy cannot take."""
        return cls(
            policy=policy,
            suite=suite,
            n_objects=n_objects,
            n_episodes=0,
            n_success=0,
            success_rate=None,
            ci95=None,
            failures={},
            mean_steps=None,
            note=note,
            episodes=(),
        )


@dataclass(frozen=True, kw_only=True)
class Swap:
    """How often a policy fetched the block that a changed colour word named."""

    policy: str
    n: int
    """pairs of episodes: the same scene, another colour word"""
    n_followed: int
    """pairs in which the changed word's block was fetched"""
    n_both: int
    """pairs in which each sentence fetched its own block"""
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

    def write(self, folder: Path) -> Path:
        """Write `results.json` into the folder, whole or not at all."""
        content = {"format": FORMAT, **asdict(self)}
        return write_whole(folder / RESULTS, json.dumps(content, indent=1) + "\n")


def read_results(folder: Path) -> Results:
    """The evaluation in this folder; UserError if there is none that can be read."""
    path = folder / RESULTS
    if not path.is_file():
        raise UserError(f"{folder} holds no {RESULTS}: give the --out folder of `fetchlab eval`")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        swap = content["instruction_swap"]
        return Results(
            task=content["task"],
            seed=content["seed"],
            policies=tuple(PolicyFacts(**facts) for facts in content["policies"]),
            cells=tuple(_cell(cell) for cell in content["cells"]),
            instruction_swap=Swap(**{**swap, "ci95": tuple(swap["ci95"])}) if swap else None,
            timings_s=content["timings_s"],
            command=content["command"],
            versions=content["versions"],
            grounding=tuple(_gaze(gaze) for gaze in content.get("grounding", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a result of this version of fetchlab ({error!r}): "
            "run the evaluation again"
        ) from error


def _cell(content: dict[str, Any]) -> Cell:
    interval = content["ci95"]
    return Cell(
        **{
            **content,
            "ci95": tuple(interval) if interval else None,
            "episodes": tuple(Episode(**episode) for episode in content["episodes"]),
        }
    )


def _gaze(content: dict[str, Any]) -> Gaze:
    intervals = {key: value for key, value in content.items() if key.endswith("_ci95")}
    pairs = {key: tuple(value) if value else None for key, value in intervals.items()}
    return Gaze(**{**content, **pairs})


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
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


def world(env: EnvConfig | dict[str, Any]) -> dict[str, Any]:
    """The settings that make scenes and time; cameras and action mode belong to the policy."""
    settings = env if isinstance(env, dict) else asdict(env)
    return {key: settings.get(key) for key in ("task", "control_hz")}


def command_line() -> str:
    """The command that is running, as a person would type it."""
    return shlex.join(["fetchlab", *sys.argv[1:]])
