"""Evaluations side by side, scene by scene."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from fetchlab.errors import UserError
from fetchlab.eval.results import Cell, Results, read_results, world, write_whole
from fetchlab.eval.statistics import PairedComparison, compare_paired
from fetchlab.eval.tables import percent

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


@dataclass(frozen=True)
class Contestant:
    """One policy of one evaluation."""

    label: str
    results: Results
    cells: dict[int, Cell]  # by number of objects
    env: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Match:
    """Two policies at one number of objects."""

    n_objects: int
    first: str
    second: str
    comparison: PairedComparison


def read_contestants(folders: Sequence[Path]) -> list[Contestant]:
    """Every policy of every folder."""
    found = []
    for folder in folders:
        results = read_results(folder)
        several = len(results.policies) > 1
        for facts in results.policies:
            cells = {c.n_objects: c for c in results.cells if c.policy == facts.policy}
            label = f"{folder}: {facts.policy}" if several else str(folder)
            found.append(Contestant(label, results, cells, facts.env))
    if len(found) < 2:
        raise UserError(f"{folders[0]} holds one policy only: give another folder to compare with")
    return found


def check_comparable(first: Contestant, second: Contestant) -> None:
    """UserError, naming the difference, unless both played the same scenes in the same world."""
    worlds = world(first.env), world(second.env)
    for key in worlds[0]:
        _same(key, first, second, worlds[0][key], worlds[1][key])
    _same("seed", first, second, first.results.seed, second.results.seed)
    for library in ("fetchlab", "pybullet", "numpy"):
        versions = first.results.versions.get(library), second.results.versions.get(library)
        _same(f"version of {library}", first, second, *versions)


def _same(what: str, first: Contestant, second: Contestant, mine: object, theirs: object) -> None:
    if mine != theirs:
        raise UserError(
            f"cannot pair {first.label} and {second.label}: {what} is {mine} there and {theirs} "
            "here; evaluate both alike"
        )


def matches(first: Contestant, second: Contestant) -> list[Match]:
    """One match a count that both played.

    Raises UserError if they have no count in common, or other scenes at one.
    """
    check_comparable(first, second)
    played = [
        (first.cells[count], second.cells[count])
        for count in sorted(first.cells.keys() & second.cells.keys())
        if first.cells[count].n_episodes and second.cells[count].n_episodes
    ]
    if not played:
        raise UserError(f"{first.label} and {second.label} have no number of objects in common")
    found = []
    for mine, theirs in played:
        what = f"number of episodes at {mine.n_objects} objects"
        _same(what, first, second, mine.n_episodes, theirs.n_episodes)
        comparison = compare_paired(
            [episode.success for episode in mine.episodes],
            [episode.success for episode in theirs.episodes],
        )
        names = {"first": first.label, "second": second.label}
        found.append(Match(n_objects=mine.n_objects, comparison=comparison, **names))
    return found


def match_table(found: Sequence[Match]) -> Table:
    """A row a count: both rates, the difference, and how sure it is."""
    from rich.table import Table

    table = Table(title=f"A: {found[0].first}\nB: {found[0].second}", title_justify="left")
    for column in ("objects", "A", "B", "only A", "only B", "A minus B (95 %)", "p"):
        table.add_column(column, justify="right", no_wrap=True)
    for match in found:
        one = match.comparison
        low, high = one.ci95
        table.add_row(
            str(match.n_objects),
            percent(one.n_first / one.n),
            percent(one.n_second / one.n),
            str(one.n_only_first),
            str(one.n_only_second),
            f"{100 * one.difference:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}) %",
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
