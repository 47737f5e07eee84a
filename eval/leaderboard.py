"""`fetchlab leaderboard`: benchmark results that anyone can add to, as one table."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import tyro

from fetchlab.errors import UserError
from fetchlab.eval.entry import (
    Entry,
    EntryCell,
    entries_of,
    path_of,
    read_entry,
    write_entry,
)
from fetchlab.eval.fingerprint import refuse_difference
from fetchlab.eval.statistics import Interval, seed_spread, wilson
from fetchlab.eval.tables import percent

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = Path("results")
TASKS = ("fetch", "place_in_box", "place_beside")
FEWEST_EPISODES = 50  # in each cell that counts
HOW_TO_ADD = "add yours with fetchlab leaderboard --add FOLDER, the --out of fetchlab benchmark"
SEEN, BEYOND = (2, 3, 4, 5), (6, 8, 10, 15, 20)  # numbers of objects: demonstrated, and not


@dataclass(frozen=True, kw_only=True)
class LeaderboardConfig:
    """The results that were added to `results/`, best first; or add those of a benchmark.

    They are sorted by success beyond: the mean over fetch, place_in_box and place_beside, and over
    6, 8, 10, 15 and 20 objects, after demonstrations with 2 to 5. A number of objects that a policy
    cannot take counts as failed. To be ranked takes 50 episodes in each of these cells.
    """

    places: Annotated[tuple[Path, ...], tyro.conf.Positional] = (FOLDER,)
    """files, or folders of them"""
    json: bool = False
    """print a JSON list instead of the table"""
    add: Path | None = None
    """folder of a whole `fetchlab benchmark` (without --task and --quick): writes an entry for each
    of its policies first"""
    name: str = ""
    """what the entries that are added are called, before the name of the policy: letters, digits
    and . _ -"""
    authors: str = ""
    """who made the policies that are added"""
    link: str = ""
    """where more is to be read about them"""

    def __post_init__(self) -> None:
        for name in ("name", "authors", "link"):
            if getattr(self, name) and self.add is None:
                raise UserError(f"--{name} is said of what is added: give --add FOLDER too")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One line of the table; rates are fractions, None where cells are missing."""

    name: str
    beyond: float | None
    """success at numbers of objects that were never demonstrated"""
    beyond_ci95: Interval | None
    """the wider one of two: over trainings (t), and over scenes (Wilson)"""
    worst_seed: float | None
    """the same, of the worst training"""
    seen: float | None
    """success at demonstrated numbers"""
    n_seeds: int
    demonstrations: int
    n_episodes: int
    """played at numbers never demonstrated, over all trainings"""
    authors: str
    not_ranked: str
    """the first thing that keeps it from being ranked; else empty"""


def run_leaderboard(config: LeaderboardConfig) -> None:
    """`fetchlab leaderboard`."""
    from rich.console import Console

    if config.add is not None:
        add_entries(config)
    standings = ranked(read_entries(config.places))
    if config.json:
        sys.stdout.write(json.dumps([asdict(one) for one in standings], indent=1) + "\n")
        return
    console = Console()
    if not standings:
        places = " ".join(map(str, config.places))
        console.print(f"{places}: no entries yet; {HOW_TO_ADD}", markup=False, soft_wrap=True)
        return
    console.print(leaderboard_table(standings))
    for one in standings:
        if one.not_ranked:
            line = f"{one.name} is not ranked: {one.not_ranked}"
            console.print(line, style="dim", markup=False, soft_wrap=True)


def add_entries(config: LeaderboardConfig) -> None:
    """Write an entry for each policy of the benchmark, or, if one cannot be written, none."""
    folder, board = Path(config.add or ""), config.places[0]
    if board.is_file():
        raise UserError(f"{board} is a file: --add writes into a folder")
    about = {"prefix": config.name, "authors": config.authors, "link": config.link}
    entries = {path_of(board, entry): entry for entry in entries_of(folder, **about)}
    there = _read([place for place in config.places if place.exists()])
    check_comparable(there)
    check_names({**there, **entries})
    if there:
        usual, new = _most_common(there), next(iter(entries.values()))
        what = f"{folder} and {usual}"
        refuse_difference(what, there[usual].fingerprint, new.fingerprint)
    for entry in entries.values():
        write_entry(board, entry)


def read_entries(places: Sequence[Path]) -> list[Entry]:
    """The entries of all files; UserError if one is not valid or they cannot be compared."""
    entries = _read(places)
    check_names(entries)
    check_comparable(entries)
    return list(entries.values())


def _read(places: Sequence[Path]) -> dict[Path, Entry]:
    return {path: read_entry(path) for place in places for path in _files(place)}


def _files(place: Path) -> list[Path]:
    return sorted(place.glob("*.json")) if place.is_dir() else [place]


def check_names(entries: Mapping[Path, Entry]) -> None:
    """UserError, naming the second file, if two entries have the same name."""
    names: dict[str, Path] = {}
    for path, entry in entries.items():
        first = names.setdefault(entry.name.lower(), path)
        if first != path:
            raise UserError(f"{path}: name {entry.name} is that of {first} too")


def check_comparable(entries: Mapping[Path, Entry]) -> None:
    """UserError, naming the odd file first, unless all were played in the same scenes."""
    for path, entry in entries.items():
        usual = _most_common(entries)
        what = f"{path} and {usual}"
        refuse_difference(what, entries[usual].fingerprint, entry.fingerprint)


def _most_common(entries: Mapping[Path, Entry]) -> Path:
    """The first file with the fingerprint that most have, so that the odd one is named."""
    prints = {path: tuple(sorted(entry.fingerprint.items())) for path, entry in entries.items()}
    counts = Counter(prints.values())
    return max(prints, key=lambda path: counts[prints[path]])


def ranked(entries: Sequence[Entry]) -> list[Standing]:
    """Best first, and what cannot be ranked last."""
    standings = map(standing, entries)
    return sorted(standings, key=lambda s: -1.0 if s.beyond is None else s.beyond, reverse=True)


def standing(entry: Entry) -> Standing:
    """What the table says about an entry."""
    cells = _counts(entry)
    wanted = [(task, count) for task in TASKS for count in BEYOND]
    reason = next((why for place in wanted if (why := _why_not(place, cells.get(place)))), "")
    if not reason and not any(cells[place].n_episodes for place in wanted):
        reason = f"it played nothing with {BEYOND[0]} or more objects"
    known = [(task, count) for task in TASKS for count in SEEN]
    seen = seed_rates([cells[place] for place in known]) if cells.keys() >= set(known) else None
    beyond = None if reason else seed_rates([cells[place] for place in wanted])
    return Standing(
        name=entry.name,
        beyond=fmean(beyond) if beyond else None,
        beyond_ci95=_interval(beyond, [cells[p] for p in wanted]) if beyond else None,
        worst_seed=min(beyond) if beyond else None,
        seen=fmean(seen) if seen else None,
        n_seeds=entry.n_trainings,
        demonstrations=entry.demonstrations,
        n_episodes=sum(
            cell.n_episodes * len(cell.successes)
            for (_, count), cell in cells.items()
            if count in BEYOND
        ),
        authors=entry.authors,
        not_ranked=reason,
    )


def _why_not(place: tuple[str, int], cell: EntryCell | None) -> str:
    """Why an entry with this cell cannot be ranked; empty if it can."""
    where = f"{place[0]} with {place[1]} objects"
    if cell is None:
        return f"it has no {where}"
    if 0 < cell.n_episodes < FEWEST_EPISODES:
        return f"too few episodes: {cell.n_episodes} of {where}, {FEWEST_EPISODES} are needed"
    return ""


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
    """The wider one: trainings that agree by chance do not make the scenes more."""
    scenes = max(cell.n_episodes for cell in cells) * len(cells)  # refused cells failed in all
    over_scenes = wilson(fmean(rates) * scenes, scenes)
    over_trainings = seed_spread(rates).ci95 or over_scenes
    return max(over_scenes, over_trainings, key=lambda interval: interval[1] - interval[0])


def leaderboard_table(standings: Sequence[Standing]) -> Table:
    """A row an entry."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "Success with 6 to 20 objects after demonstrations with 2 to 5, mean of three tasks"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("", "name", "beyond", "95 %", "worst seed", "seen", "seeds", "demos", "by"):
        text = column in ("name", "by")
        table.add_column(column, justify="left" if text else "right", no_wrap=column != "by")
    for rank, one in enumerate(standings, start=1):
        table.add_row(*_row(rank, one))
    return table


def _row(rank: int, one: Standing) -> list[str]:
    from rich.markup import escape

    seen = "" if one.seen is None else percent(one.seen)
    demonstrations = str(one.demonstrations or "")
    ending = [seen, str(one.n_seeds), demonstrations, escape(one.authors)]
    if one.beyond is None or one.beyond_ci95 is None or one.worst_seed is None:
        return ["", one.name, "–", "", "", *ending]
    low, high = one.beyond_ci95
    sure = f"{100 * low:.1f}–{100 * high:.1f}"
    return [str(rank), one.name, percent(one.beyond), sure, percent(one.worst_seed), *ending]
