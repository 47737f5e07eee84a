"""What the cells say together: over trainings, against the controls, and policy against policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from fetchlab.eval.benchmark.recipe import SEEN
from fetchlab.eval.results import Cell, CellKey
from fetchlab.eval.statistics import (
    Interval,
    PairedComparison,
    SeedSpread,
    compare_paired,
    episodes_needed,
    scenes_needed,
    seed_spread,
    wilson,
)
from fetchlab.eval.suites import CONTROL, NOMINAL


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One cell over all trainings of a policy."""

    key: CellKey
    """without a training seed"""
    n_episodes: int
    """of all trainings together; 0 where the policy was refused"""
    n_success: int
    ci95: Interval | None
    """Wilson, over episodes: how far other scenes could have moved the rate"""
    spread: SeedSpread | None
    """over trainings: how far other seeds could have"""
    failures: dict[str, int]
    mean_steps: float | None
    note: str

    @property
    def rate(self) -> float | None:
        return self.n_success / self.n_episodes if self.n_episodes else None


@dataclass(frozen=True, kw_only=True)
class Group:
    """Success of a policy in several cells of `counts` together, and its spread over trainings."""

    policy: str
    task: str
    counts: tuple[int, ...]
    n_episodes: int
    """of each training"""
    spread: SeedSpread


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """An arm against its control, on the same seeds, over all counts, tasks and trainings."""

    policy: str
    trained: str
    suite: str
    arm: str
    comparison: PairedComparison
    """the first is the arm"""


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Two policies in the same scenes of `counts`, over all trainings."""

    first: str
    second: str
    task: str
    counts: tuple[int, ...]
    comparison: PairedComparison
    scenes_needed: int | None
    """that both play, to tell rates apart that differ like these; None for equal ones"""
    episodes_needed: int | None
    """of each of them, were their scenes different"""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All of it."""

    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    contrasts: tuple[Contrast, ...]
    duels: tuple[Duel, ...]


def summarize(cells: Sequence[Cell]) -> Summary:
    """The summary of a benchmark's cells."""
    return Summary(
        pools=tuple(map(_pool, _by_key(cells).values())),
        groups=tuple(_groups(cells)),
        contrasts=tuple(_contrasts(cells)),
        duels=tuple(_duels(cells)),
    )


def _by_key(cells: Iterable[Cell]) -> dict[CellKey, list[Cell]]:
    """The cells of all trainings of a policy together, in the order of the seeds given."""
    found: dict[CellKey, list[Cell]] = {}
    for cell in cells:
        found.setdefault(replace(cell.key, training_seed=None), []).append(cell)
    return found


def _pool(cells: Sequence[Cell]) -> Pool:
    n, won = sum(cell.n_episodes for cell in cells), sum(cell.n_success for cell in cells)
    failures: Counter[str] = sum((Counter(cell.failures) for cell in cells), Counter())
    steps = [cell.mean_steps for cell in cells if cell.mean_steps is not None]
    rates = [cell.success_rate for cell in cells if cell.success_rate is not None]
    return Pool(
        key=replace(cells[0].key, training_seed=None),
        n_episodes=n,
        n_success=won,
        ci95=wilson(won, n) if n else None,
        spread=seed_spread(rates) if rates else None,
        failures=dict(sorted(failures.items())),
        mean_steps=fmean(steps) if steps else None,
        note=cells[0].note,
    )


# Numbers of objects, seen and not ---------------------------------------------------------


def halves(cells: Iterable[Cell]) -> list[tuple[int, ...]]:
    """The numbers of objects that were demonstrated, and those beyond; only what there is."""
    counts = sorted({cell.n_objects for cell in cells})
    seen = tuple(count for count in counts if count in SEEN)
    beyond = tuple(count for count in counts if count not in SEEN)
    return [half for half in (seen, beyond) if half]


def counted(cells: Iterable[Cell]) -> list[Cell]:
    """The cells of `counts`, of policies with the usual demonstrations."""
    return [cell for cell in cells if (cell.suite, cell.trained) == ("counts", NOMINAL)]


def _groups(cells: Sequence[Cell]) -> Iterator[Group]:
    played = counted(cells)
    for policy, task in dict.fromkeys((cell.policy, cell.task) for cell in played):
        mine = [cell for cell in played if (cell.policy, cell.task) == (policy, task)]
        for counts in halves(mine):
            inside = [cell for cell in mine if cell.n_objects in counts]
            by_seed = _by_seed(inside)
            sizes = [sum(cell.n_episodes for cell in seed) for seed in by_seed.values()]
            if min(sizes):
                wins = [sum(cell.n_success for cell in seed) for seed in by_seed.values()]
                rates = [won / size for won, size in zip(wins, sizes, strict=True)]
                yield Group(
                    policy=policy,
                    task=task,
                    counts=tuple(sorted({cell.n_objects for cell in inside if cell.n_episodes})),
                    n_episodes=sizes[0],
                    spread=seed_spread(rates),
                )


def _by_seed(cells: Iterable[Cell]) -> dict[int | None, list[Cell]]:
    found: dict[int | None, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.training_seed, []).append(cell)
    return found


# Pairs ------------------------------------------------------------------------------------


def _contrasts(cells: Sequence[Cell]) -> Iterator[Contrast]:
    by_key = {cell.key: cell for cell in cells}
    arms: dict[tuple[str, str, str, str], list[tuple[Cell, Cell]]] = {}
    for cell in cells:
        other = by_key.get(replace(cell.key, arm=CONTROL, control=True))
        if other is not None and not cell.control and cell.n_episodes and other.n_episodes:
            place = cell.policy, cell.trained, cell.suite, cell.arm
            arms.setdefault(place, []).append((cell, other))
    for (policy, trained, suite, arm), matched in arms.items():
        about = {"policy": policy, "trained": trained, "suite": suite, "arm": arm}
        yield Contrast(**about, comparison=_compared(matched))


def _compared(matched: Iterable[tuple[Cell, Cell]]) -> PairedComparison:
    """Scene by scene, over all pairs of cells."""
    first: list[bool] = []
    second: list[bool] = []
    for one, other in matched:
        first += [episode.success for episode in one.episodes]
        second += [episode.success for episode in other.episodes]
    return compare_paired(first, second)


def _duels(cells: Sequence[Cell]) -> Iterator[Duel]:
    """The first policy against each other one: task by task, seen counts and those beyond."""
    played = counted(cells)
    first, *others = dict.fromkeys(cell.policy for cell in played) or [""]
    for second in others:
        for task in dict.fromkeys(cell.task for cell in played):
            for counts in halves(played):
                inside = [c for c in played if c.task == task and c.n_objects in counts]
                matched = list(_matched(inside, first, second))
                if matched:
                    yield _duel(first, second, task, matched)


def _matched(cells: Sequence[Cell], first: str, second: str) -> Iterator[tuple[Cell, Cell]]:
    """The n-th training of one with the n-th of the other; what is not trained meets them all."""
    trainings = [_by_seed(c for c in cells if c.policy == name) for name in (first, second)]
    rounds = max(map(len, trainings))
    ours, theirs = ([*by_seed.values()] * rounds for by_seed in trainings)
    for mine, other in zip(ours[:rounds], theirs[:rounds], strict=True):
        played = {cell.n_objects: cell for cell in other if cell.n_episodes}
        for cell in mine:
            if cell.n_episodes and cell.n_objects in played:
                yield cell, played[cell.n_objects]


def _duel(first: str, second: str, task: str, matched: Sequence[tuple[Cell, Cell]]) -> Duel:
    one = _compared(matched)
    return Duel(
        first=first,
        second=second,
        task=task,
        counts=tuple(sorted({cell.n_objects for cell, _ in matched})),
        comparison=one,
        scenes_needed=scenes_needed(one.n_only_first / one.n, one.n_only_second / one.n),
        episodes_needed=episodes_needed(one.n_first / one.n, one.n_second / one.n),
    )
