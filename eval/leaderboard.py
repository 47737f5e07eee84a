"""`fetchlab leaderboard`: benchmark results that anyone can add to, as one table."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import tyro

from fetchlab.errors import UserError
from fetchlab.eval.entry import Entry, EntryCell, entries_of, read_entry, write_entry
from fetchlab.eval.fingerprint import refuse_difference
from fetchlab.eval.statistics import Interval, seed_spread, wilson
from fetchlab.eval.tables import percent

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = Path("results")
TASKS = ("fetch", "place_in_box", "place_beside")
SEEN, BEYOND = (2, 3, 4, 5), (6, 8, 10, 15, 20)  # numbers of objects: demonstrated, and not


@dataclass(frozen=True, kw_only=True)
class LeaderboardConfig:
    """The results that were added to `results/`, best first; or add those of a benchmark.

    They are sorted by success beyond: the mean over fetch, place_in_box and place_beside, and over
    6, 8, 10, 15 and 20 objects, after demonstrations with 2 to 5. A number of objects that a policy
    cannot take counts as failed.
    """

    places: Annotated[tuple[Path, ...], tyro.conf.Positional] = (FOLDER,)
    """files, or folders of them"""
    json: bool = False
    """print a JSON list instead of the table"""
    add: Path | None = None
    """folder of a `fetchlab benchmark`: writes an entry for each of its policies first"""
    name: str = ""
    """what the entries that are added are called, before the name of the policy"""
    authors: str = ""
    """who made the policies that are added"""
    link: str = ""
    """where more is to be read about them"""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One line of the table; rates are fractions, None where cells are missing."""

    name: str
    beyond: float | None
    """success at numbers of objects that were never demonstrated"""
    beyond_ci95: Interval | None
    """over trainings (t) if there are several, else over episodes (Wilson)"""
    worst_seed: float | None
    """the same, of the worst training"""
    seen: float | None
    """success at demonstrated numbers"""
    n_seeds: int
    n_episodes: int
    """played at numbers never demonstrated, over all trainings"""
    authors: str
    missing: str
    """the first cell that keeps the entry from being ranked"""


def run_leaderboard(config: LeaderboardConfig) -> None:
    """`fetchlab leaderboard`."""
    from rich.console import Console

    if config.add is not None:
        about = {"prefix": config.name, "authors": config.authors, "link": config.link}
        for entry in entries_of(config.add, **about):
            write_entry(config.places[0], entry)
    standings = ranked(read_entries(config.places))
    if config.json:
        sys.stdout.write(json.dumps([asdict(one) for one in standings], indent=1) + "\n")
        return
    console = Console()
    console.print(leaderboard_table(standings))
    for one in standings:
        if one.missing:
            console.print(f"{one.name} is not ranked: it has {one.missing}", style="dim")


def read_entries(places: Sequence[Path]) -> list[Entry]:
    """The entries of all files; UserError if one is not valid or they cannot be compared."""
    paths = [path for place in places for path in _files(place)]
    entries = [read_entry(path) for path in paths]
    for path, entry in zip(paths, entries, strict=True):
        what = f"{path} and {paths[0]}"
        refuse_difference(what, entries[0].fingerprint, entry.fingerprint)
    return entries


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    found = sorted(place.glob("*.json"))
    if not found:
        raise UserError(f"{place} holds no entries: add one with fetchlab leaderboard --add DIR")
    return found


def ranked(entries: Sequence[Entry]) -> list[Standing]:
    """Best first, and what cannot be ranked last."""
    standings = map(standing, entries)
    return sorted(standings, key=lambda s: -1.0 if s.beyond is None else s.beyond, reverse=True)


def standing(entry: Entry) -> Standing:
    """What the table says about an entry."""
    cells = _counts(entry)
    wanted = [(task, count) for task in TASKS for count in BEYOND]
    missing = next((place for place in wanted if place not in cells), None)
    known = [(task, count) for task in TASKS for count in SEEN]
    seen = seed_rates([cells[place] for place in known]) if cells.keys() >= set(known) else None
    beyond = None if missing else seed_rates([cells[place] for place in wanted])
    return Standing(
        name=entry.name,
        beyond=fmean(beyond) if beyond else None,
        beyond_ci95=_interval(beyond, [cells[p] for p in wanted]) if beyond else None,
        worst_seed=min(beyond) if beyond else None,
        seen=fmean(seen) if seen else None,
        n_seeds=entry.n_trainings,
        n_episodes=sum(
            cell.n_episodes * len(cell.successes)
            for (_, count), cell in cells.items()
            if count in BEYOND
        ),
        authors=entry.authors,
        missing=f"no {missing[0]} with {missing[1]} objects" if missing else "",
    )


def _counts(entry: Entry) -> dict[tuple[str, int], EntryCell]:
    return {
        (cell.task, cell.n_objects): cell
        for cell in entry.cells
        if cell.suite == "counts" and cell.trained == "nominal"
    }


def seed_rates(cells: Sequence[EntryCell]) -> list[float]:
    """The mean rate of the cells, a number a training; a cell that was refused counts as 0."""
    n_seeds = max([len(cell.successes) for cell in cells] + [1])
    rates = [cell.rates or (0.0,) * n_seeds for cell in cells]
    return [fmean(column) for column in zip(*rates, strict=True)]


def _interval(rates: Sequence[float], cells: Sequence[EntryCell]) -> Interval:
    if (interval := seed_spread(rates).ci95) is not None:
        return interval
    episodes = max(cell.n_episodes for cell in cells) * len(cells)  # refused cells failed in all
    return wilson(sum(sum(cell.successes) for cell in cells), episodes)


def leaderboard_table(standings: Sequence[Standing]) -> Table:
    """A row an entry."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "Success with 6 to 20 objects after demonstrations with 2 to 5, mean of three tasks"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("", "name", "beyond", "95 %", "worst seed", "seen", "seeds", "by"):
        text = column in ("name", "by")
        table.add_column(column, justify="left" if text else "right", no_wrap=column != "by")
    for rank, one in enumerate(standings, start=1):
        table.add_row(*_row(rank, one))
    return table


def _row(rank: int, one: Standing) -> list[str]:
    seen = "" if one.seen is None else percent(one.seen)
    ending = [seen, str(one.n_seeds), one.authors]
    if one.beyond is None or one.beyond_ci95 is None or one.worst_seed is None:
        return ["", one.name, "–", "", "", *ending]
    low, high = one.beyond_ci95
    sure = f"{100 * low:.1f}–{100 * high:.1f}"
    return [str(rank), one.name, percent(one.beyond), sure, percent(one.worst_seed), *ending]
