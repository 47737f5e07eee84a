"""`fetchlab bench`: how fast each stage is on this machine."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchlab.eval.bench import stages
from fetchlab.eval.bench.measure import Measurement, machine
from fetchlab.eval.parallel import load
from fetchlab.eval.results import check_folder, command_line
from fetchlab.policy.expert import Expert
from fetchlab.train.provenance import git_commit, versions

if TYPE_CHECKING:
    from rich.table import Table

RESULT = "bench.json"
LIBRARIES = ("torch", "numpy", "pybullet", "gymnasium", "opencv-python-headless")


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """How fast each stage is: simulation, demonstrations, training, inference, evaluation.

    Everything is measured several times, since the machine may be busy; `cost` tells each
    quantity in control steps without cameras, which compares better between machines than seconds.
    """

    out: Path
    """folder for bench.json; an earlier one is replaced"""
    quick: bool = False
    """fewer and shorter repetitions: about half a minute"""
    policy: Path | None = None
    """trained policy whose latency and evaluation are timed; by default an `act` trained for a
    few steps, and the evaluation of the expert in its world"""

    def __post_init__(self) -> None:
        check_folder(self.out)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How often and how long everything is measured."""

    repeats: int
    episodes: int
    demonstrations: int
    training_steps: int
    calls: int
    evaluation_episodes: int


THOROUGH = Effort(
    repeats=5,
    episodes=6,
    demonstrations=100,
    training_steps=60,
    calls=200,
    evaluation_episodes=100,
)
QUICK = Effort(
    repeats=3, episodes=1, demonstrations=24, training_steps=12, calls=40, evaluation_episodes=20
)


def run_bench(config: BenchConfig) -> None:
    """`fetchlab bench`."""
    from rich.console import Console
    from rich.progress import track

    described = machine()
    policy = load(str(config.policy)) if config.policy else None  # a wrong one fails at once
    console = Console()
    with tempfile.TemporaryDirectory(prefix="fetchlab-bench-") as folder:
        stream = measure_all(QUICK if config.quick else THOROUGH, policy, Path(folder))
        measured = list(track(stream, "measuring", total=None, console=console, transient=True))
    summaries = [one.summary(measured[0]) for one in measured]
    console.print(table(summaries))
    console.print(str(write(config.out, described, summaries)), highlight=False)


def measure_all(effort: Effort, chosen: Any, folder: Path) -> Iterator[Measurement]:
    """Every measurement, the reference first; `chosen` is a loaded policy or None."""
    repeats = effort.repeats
    yield from stages.simulation(repeats, effort.episodes)
    yield stages.resetting(repeats, effort.episodes)
    yield stages.demonstrating(repeats, effort.demonstrations, folder / "data")
    yield stages.training(
        folder / "data" / "0", repeats, effort.training_steps, folder / "policies"
    )
    policy: Any = chosen or load(str(folder / "policies" / "0"))
    yield from stages.inferring(policy, repeats, effort.calls)
    player = policy if chosen else Expert(policy.env_config)
    yield stages.evaluating(player, repeats, effort.evaluation_episodes)


def table(summaries: list[dict[str, Any]]) -> Table:
    """A row a measurement."""
    from rich.table import Table

    shown = Table(title="Speed", caption="cost: in control steps without cameras")
    shown.add_column("")
    for column in ("minimum", "median", "maximum", "unit", "cost"):
        shown.add_column(column, justify="right")
    for row in summaries:
        values = [f"{row[key]:,.1f}" for key in ("minimum", "median", "maximum")]
        shown.add_row(row["name"], *values, row["unit"], f"{row['cost_in_steps']:.2f}")
    return shown


def write(out: Path, described: dict[str, Any], summaries: list[dict[str, Any]]) -> Path:
    """Write bench.json, whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    content = {
        "format": 1,
        "command": command_line(),
        "machine": described,
        "versions": versions(*LIBRARIES),
        "git_commit": git_commit(),
        "measurements": summaries,
    }
    partial = out / f"{RESULT}.partial"
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, out / RESULT)
    return out / RESULT
