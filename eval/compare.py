"""Evaluations side by side, scene by scene."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import tyro

from fetchlab.errors import UserError
from fetchlab.eval.arms import NOMINAL
from fetchlab.eval.fingerprint import refuse_difference
from fetchlab.eval.results import Cell, Results, read_results, world, write_whole
from fetchlab.eval.statistics import Comparison, compare_outcomes
from fetchlab.eval.tables import percent, spaced, widest_word
from fetchlab.train.provenance import in_words

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """Compare evaluations of the same scenes; the first is what the others are measured against."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """two or more folders that `fetchlab eval` wrote (of several policies, each is compared)"""
    json: Path | None = None
    """also write the comparison into this JSON file"""

    def __post_init__(self) -> None:
        if not self.folders:
            raise UserError("give two or more folders that `fetchlab eval` wrote")


class Place(NamedTuple):
    """What two policies must have in common to be paired, beside the world and the seeds."""

    suite: str
    arm: str
    trained: str
    task: str
    n_objects: int

    def __str__(self) -> str:
        arm = f", {self.suite} {self.arm}" if self.arm else ""
        trained = "" if self.trained == NOMINAL else f", trained on {self.trained}"
        return f"{self.n_objects} objects{arm}{trained}, {self.task}"


@dataclass(frozen=True)
class Contestant:
    """One policy of one evaluation."""

    label: str
    results: Results
    cells: dict[Place, Cell]
    env: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Match:
    """Two policies in one cell."""

    suite: str
    arm: str
    trained: str
    """condition of the demonstrations"""
    task: str
    n_objects: int
    first: str
    second: str
    comparison: Comparison


def read_contestants(folders: Sequence[Path]) -> list[Contestant]:
    """Every policy of every folder."""
    found = []
    for folder in folders:
        results = read_results(folder)
        several = len(results.policies) > 1
        for facts in results.policies:
            label = f"{folder}: {facts.policy}" if several else str(folder)
            mine = [cell for cell in results.cells if cell.policy == facts.policy]
            for ending, cells in trainings_of(mine).items():
                found.append(Contestant(label + ending, results, cells, facts.env))
    if len(found) < 2:
        raise UserError(f"{folders[0]} holds one policy only: give another folder to compare with")
    return found


def trainings_of(cells: Sequence[Cell]) -> dict[str, dict[Place, Cell]]:
    """The cells of the trainings with each seed, by an ending for its label."""
    found: dict[int | None, dict[Place, Cell]] = {}
    for cell in cells:
        found.setdefault(cell.training_seed, {})[place_of(cell)] = cell
    several = len(found) > 1
    return {f", seed {seed}" if several else "": places for seed, places in found.items()} or {
        "": {}
    }


def place_of(cell: Cell) -> Place:
    """Where a cell stands in every evaluation of the same suite."""
    return Place(cell.suite, cell.arm, cell.trained, cell.task, cell.n_objects)


def check_comparable(first: Contestant, second: Contestant) -> None:
    """UserError, naming the difference, unless both played the same scenes in the same world."""
    worlds = world(first.env), world(second.env)
    for key in worlds[0]:
        _same(key, first, second, worlds[0][key], worlds[1][key])
    _same("seed", first, second, first.results.seed, second.results.seed)
    prints = first.results.fingerprint, second.results.fingerprint
    if any(prints):
        refuse_difference(f"{first.label} and {second.label}", *reversed(prints))
        return
    for library in ("fetchlab", "pybullet", "numpy"):
        versions = first.results.versions.get(library), second.results.versions.get(library)
        _same(f"version of {library}", first, second, *versions)


def _same(what: str, first: Contestant, second: Contestant, mine: object, theirs: object) -> None:
    if mine != theirs:
        raise UserError(
            f"cannot pair {first.label} and {second.label}: {what} is {in_words(mine)} there and "
            f"{in_words(theirs)} here; evaluate both alike"
        )


def matches(first: Contestant, second: Contestant) -> list[Match]:
    """One match a cell that both played, in the order of the first.

    Raises UserError if they have no cell in common, or other scenes in one.
    """
    check_comparable(first, second)
    played = [
        (place, mine, second.cells[place])
        for place, mine in first.cells.items()
        if place in second.cells and mine.n_episodes and second.cells[place].n_episodes
    ]
    if not played:
        raise UserError(
            f"{first.label} and {second.label} have no number of objects in common that both "
            "played in the same suite"
        )
    found = []
    for place, mine, theirs in played:
        what = f"number of episodes at {place}"
        _same(what, first, second, mine.n_episodes, theirs.n_episodes)
        for one, other in zip(mine.episodes, theirs.episodes, strict=True):
            _same(f"a seed at {place}", first, second, one.seed, other.seed)
        comparison = compare_outcomes([(mine.episodes, theirs.episodes)])
        found.append(
            Match(
                **place._asdict(),
                first=first.label,
                second=second.label,
                comparison=comparison,
            )
        )
    return found


def match_table(found: Sequence[Match]) -> Table:
    """A row a cell: both rates, the difference, and how sure it is."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"A: {found[0].first}\nB: {found[0].second}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    about = ("suite", "arm", "trained", "task")
    names = [name for name in about if len({getattr(m, name) for m in found}) > 1]
    for name in names:
        table.add_column(name, min_width=widest_word([getattr(m, name) for m in found]))
    for column in ("objects", "A", "B", "only A", "only B", "A minus B, 95 %", "p"):
        table.add_column(column, justify="right", no_wrap=True)
    for match in found:
        one = match.comparison
        low, high = one.ci95
        table.add_row(
            *(spaced(getattr(match, name)) for name in names),
            str(match.n_objects),
            percent(one.n_first / one.n),
            percent(one.n_second / one.n),
            str(one.n_only_first),
            str(one.n_only_second),
            f"{100 * one.difference:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})",
            f"{one.p_value:.3f}" if one.p_value >= 0.001 else "< 0.001",
        )
    return table


def run_compare(config: CompareConfig) -> None:
    """`fetchlab compare`."""
    from rich.console import Console

    first, *others = read_contestants(config.folders)
    compared = [matches(first, other) for other in others]
    if config.json is not None:
        content = [asdict(match) for found in compared for match in found]
        write_whole(config.json, json.dumps(content, indent=1) + "\n")
    console = Console()
    for found in compared:
        console.print(match_table(found))
    console.print(
        "p: exact McNemar test of the scenes that only one of the two solved.", style="dim"
    )
