"""One file of the leaderboard: what it must say, checked field by field when it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from fetchlab.errors import UserError
from fetchlab.eval.results import Cell, CellKey, read_results, write_whole
from fetchlab.policy.registry import POLICIES

FORMAT = 1
IN_JSON = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


@dataclass(frozen=True, kw_only=True)
class EntryCell:
    """One cell of the benchmark, over all trainings of a policy."""

    suite: str
    arm: str
    trained: str
    """condition that the demonstrations were made under"""
    task: str
    n_objects: int
    n_episodes: int
    """of each training; 0 where the policy was refused"""
    successes: tuple[int, ...]
    """one number a training"""
    note: str
    """why nothing was played; else empty"""

    def __post_init__(self) -> None:
        if any(not 0 <= won <= self.n_episodes for won in self.successes):
            raise UserError(f"successes must be 0 to n_episodes ({self.n_episodes})")
        if self.n_episodes and not self.successes:
            raise UserError("successes must have a number for each training")
        if not self.n_episodes and not self.note:
            raise UserError("note must say why no episode was played")

    @property
    def place(self) -> tuple[str, str, str, str, int]:
        return self.suite, self.arm, self.trained, self.task, self.n_objects

    @property
    def rates(self) -> tuple[float, ...]:
        """Success of each training; () where nothing was played."""
        return tuple(won / self.n_episodes for won in self.successes) if self.n_episodes else ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one policy reached in the benchmark. Raises UserError, naming the field."""

    name: str
    authors: str
    link: str
    policy: str
    """what it is, in a few words"""
    cells: tuple[EntryCell, ...]
    fingerprint: dict[str, str]

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UserError("name must not be empty")
        if not self.cells:
            raise UserError("cells must not be empty")
        places = [cell.place for cell in self.cells]
        twice = next((place for place in places if places.count(place) > 1), None)
        if twice is not None:
            raise UserError(f"cells has one twice: {', '.join(map(str, twice))}")
        trainings = {len(cell.successes) for cell in self.cells if cell.n_episodes}
        if len(trainings) > 1:
            raise UserError(f"successes must be of equally many trainings, got {sorted(trainings)}")

    @property
    def n_trainings(self) -> int:
        return max(len(cell.successes) for cell in self.cells)


def read_entry(path: Path) -> Entry:
    """The entry in this file. Raises UserError naming the file and the field that is wrong."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except ValueError as error:
        raise UserError(f"{path} is cut off or no JSON: {error}") from None
    try:
        return _entry(content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def write_entry(folder: Path, entry: Entry) -> Path:
    """Write `NAME.json` into the folder, whole or not at all; UserError if there is one."""
    path = folder / f"{entry.name}.json"
    if path.exists():
        raise UserError(f"{path} is there already: give another --name, or remove it")
    content = {"format": FORMAT, **asdict(entry)}
    return write_whole(path, json.dumps(content, indent=1) + "\n")


def _entry(content: Any) -> Entry:
    if not isinstance(content, dict):
        raise UserError("an entry is a JSON object")
    if content.get("format") != FORMAT:
        raise UserError(f"format must be {FORMAT}, got {content.get('format')!r}")
    content = {key: value for key, value in content.items() if key != "format"}
    _check_fields(Entry, content)
    cells = []
    for row, cell in enumerate(content["cells"]):
        try:
            cells.append(_cell(cell))
        except UserError as error:
            raise UserError(f"cells[{row}]: {error}") from None
    if not all(isinstance(value, str) for value in content["fingerprint"].values()):
        raise UserError("fingerprint must hold text only")
    return Entry(**{**content, "cells": tuple(cells)})


def _cell(content: Any) -> EntryCell:
    if not isinstance(content, dict):
        raise UserError("a cell is a JSON object")
    _check_fields(EntryCell, content)
    if not all(type(won) is int for won in content["successes"]):
        raise UserError("successes must be whole numbers")
    return EntryCell(**{**content, "successes": tuple(content["successes"])})


def _check_fields(kind: type[Entry | EntryCell], content: Mapping[str, Any]) -> None:
    """UserError unless there are exactly the fields of the class, each of its JSON type."""
    hints = get_type_hints(kind)
    for name, hint in hints.items():
        if name not in content:
            raise UserError(f"{name} is missing")
        expected = next((plain for plain in (str, int, dict) if _is(hint, plain)), list)
        if type(content[name]) is not expected:
            raise UserError(f"{name} must be {IN_JSON[expected]}")
    for name in content:
        if name not in hints:
            raise UserError(f"{name} is no field: known are {', '.join(hints)}")


def _is(hint: Any, plain: type) -> bool:
    return (get_origin(hint) or hint) is plain


def entries_of(folder: Path, *, prefix: str = "", authors: str = "", link: str = "") -> list[Entry]:
    """An entry for each policy of the benchmark in this folder."""
    results = read_results(folder)
    if not results.fingerprint:
        raise UserError(f"{folder} holds no fingerprint: add the folder of a fetchlab benchmark")
    return [
        Entry(
            name=f"{prefix}-{policy}" if prefix else policy,
            authors=authors,
            link=link,
            policy=POLICIES[policy].description if policy in POLICIES else policy,
            cells=summed([cell for cell in results.cells if cell.policy == policy]),
            fingerprint=results.fingerprint,
        )
        for policy in dict.fromkeys(cell.policy for cell in results.cells)
    ]


def summed(cells: Iterable[Cell]) -> tuple[EntryCell, ...]:
    """The cells of one policy, those of all its trainings together."""
    groups: dict[CellKey, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(replace(cell.key, training_seed=None), []).append(cell)
    return tuple(
        EntryCell(
            suite=key.suite,
            arm=key.arm,
            trained=key.trained,
            task=key.task,
            n_objects=key.n_objects,
            n_episodes=group[0].n_episodes,
            successes=tuple(cell.n_success for cell in group if cell.n_episodes),
            note=group[0].note,
        )
        for key, group in groups.items()
    )
