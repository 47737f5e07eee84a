"""One file of the leaderboard: what it must say, checked field by field when it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fetchlab.errors import UserError, unknown
from fetchlab.eval.arms import NOMINAL, Suite
from fetchlab.eval.benchmark.config import MOST_EPISODES
from fetchlab.eval.benchmark.recipe import SCENES_SEED, WORLD
from fetchlab.eval.benchmark.store import read_record
from fetchlab.eval.decode import decode, read_object, value_of
from fetchlab.eval.results import RESULTS, Cell, Results, by_training, read_results, write_whole
from fetchlab.eval.suites import SUITES
from fetchlab.policy.registry import POLICIES, is_scripted
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.sim.tasks.registry import TASKS

FORMAT = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def recorded(world: EnvConfig) -> dict[str, Any]:
    """What differs from the usual world, as JSON holds it: settings that come later change none."""
    usual = EnvConfig()
    names = [field.name for field in fields(world)]
    chosen = {n: getattr(world, n) for n in names if getattr(world, n) != getattr(usual, n)}
    return dict(json.loads(json.dumps(chosen)))


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
        if self.suite not in SUITES:
            raise unknown("suite", self.suite, SUITES)
        suite = SUITES[self.suite]
        for kind, name, known in (
            ("task", self.task, list(TASKS)),
            (f"arm of {suite.name}", self.arm, [arm.name for arm in suite.arms]),
            (f"training for {suite.name}", self.trained, trainings_for(suite)),
        ):
            if name not in known:
                raise unknown(kind, name, known)
        if not 2 <= self.n_objects <= MAX_OBJECTS:
            raise UserError(f"n_objects must be 2 to {MAX_OBJECTS}, got {self.n_objects}")
        if not 0 <= self.n_episodes <= MOST_EPISODES:
            raise UserError(f"n_episodes must be 0 to {MOST_EPISODES}, got {self.n_episodes}")
        if any(not 0 <= won <= self.n_episodes for won in self.successes):
            raise UserError(f"successes must be 0 to n_episodes ({self.n_episodes})")
        if bool(self.n_episodes) is not bool(self.successes):
            raise UserError(
                "successes must have a number for each training, none if n_episodes is 0"
            )
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
    demonstrations: int
    """the usual ones that it learned from; 0 for a script"""
    cells: tuple[EntryCell, ...]
    fingerprint: dict[str, str]
    world: dict[str, Any]
    """settings of EnvConfig that differ from the usual ones: those of the benchmark"""
    seed: int
    """of the scenes: that of the benchmark"""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UserError(
                f"name must be of letters, digits and . _ - and begin with one of the first two, "
                f"got {self.name!r}"
            )
        for field in ("authors", "link", "policy"):
            if not getattr(self, field).isprintable():
                raise UserError(f"{field} must be one line of text")
        if self.demonstrations < 0:
            raise UserError(f"demonstrations must not be negative, got {self.demonstrations}")
        check_benchmark(self.world, self.seed)
        if not self.fingerprint:
            raise UserError("fingerprint must not be empty")
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


def trainings_for(suite: Suite) -> list[str]:
    """The conditions that its cells may be of; scripts have learned nothing, and count as usual."""
    return list(dict.fromkeys((NOMINAL, *(condition.name for condition in suite.trained))))


def check_benchmark(world: dict[str, Any], seed: int) -> None:
    """UserError unless this is the world of the benchmark, and these its scenes."""
    ours = recorded(WORLD)
    name = next((n for n in {**ours, **world} if ours.get(n) != world.get(n)), None)
    if name is not None:
        raise UserError(f"world is not that of the benchmark: it has another {name}")
    if seed != SCENES_SEED:
        raise UserError(f"seed must be that of the benchmark's scenes, {SCENES_SEED}, got {seed}")


def read_entry(path: Path) -> Entry:
    """The entry in this file. Raises UserError naming the file and the field that is wrong."""
    content = read_object(path)
    found = content.pop("format", None)
    try:
        if found != FORMAT:
            raise UserError(f"format must be {FORMAT}, got {found!r}")
        return decode(Entry, content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def path_of(folder: Path, entry: Entry) -> Path:
    """Where it is to be written. Raises UserError if there is something."""
    path = folder / f"{entry.name}.json"
    if path.exists():
        raise UserError(f"{path} is there already: give another --name, or remove it")
    return path


def write_entry(folder: Path, entry: Entry) -> Path:
    """Write `NAME.json` into the folder, whole or not at all; UserError if there is one."""
    content = {"format": FORMAT, **asdict(entry)}
    return write_whole(path_of(folder, entry), json.dumps(content, indent=1) + "\n")


def entries_of(folder: Path, *, prefix: str = "", authors: str = "", link: str = "") -> list[Entry]:
    """An entry for each policy of the benchmark in this folder; UserError if it holds none."""
    results, world, demonstrations = _benchmark_in(folder)
    return [
        Entry(
            name=f"{prefix}-{policy}" if prefix else policy,
            authors=authors,
            link=link,
            policy=POLICIES[policy].description if policy in POLICIES else policy,
            demonstrations=0 if is_scripted(policy) else demonstrations,
            cells=summed([cell for cell in results.cells if cell.policy == policy]),
            fingerprint=results.fingerprint,
            world=world,
            seed=results.seed,
        )
        for policy in dict.fromkeys(cell.policy for cell in results.cells)
    ]


def _benchmark_in(folder: Path) -> tuple[Results, dict[str, Any], int]:
    """The results of a finished benchmark, its world, and how many demonstrations it had."""
    begun = read_record(folder)
    if begun is None or not (folder / RESULTS).is_file():
        raise UserError(
            f"{folder} holds no finished benchmark: make one with fetchlab benchmark --out {folder}"
        )
    results = read_results(folder)
    if not results.fingerprint or not results.cells:
        raise UserError(f"{folder} holds no fingerprint or no cells: run fetchlab benchmark again")
    try:
        world = recorded(decode(EnvConfig, begun.settings.get("world")))
        demonstrations = value_of(int, begun.settings.get("demonstrations"), "demonstrations")
        check_benchmark(world, results.seed)
    except UserError as error:
        raise UserError(
            f"{folder} cannot be ranked: {error}; add a fetchlab benchmark of all tasks, without "
            "--task and --quick"
        ) from None
    return results, world, demonstrations


def summed(cells: Iterable[Cell]) -> tuple[EntryCell, ...]:
    """The cells of one policy, those of all its trainings together."""
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
        for key, group in by_training(cells).items()
    )
