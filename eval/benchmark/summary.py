"""What the cells say together: over trainings, against the controls, and policy against policy.

A scene counts once, however many trainings played it: with the mean over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from fetchlab.eval.benchmark.pairs import (
    Contrast,
    Duel,
    FullNames,
    Lesson,
    contrasts,
    counted,
    duels,
    full_names,
    halves,
    lessons,
)
from fetchlab.eval.results import Cell, CellKey, by_training
from fetchlab.eval.statistics import Interval, SeedSpread, seed_spread, wilson


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One cell over all trainings of a policy."""

    key: CellKey
    """without a training seed"""
    n_scenes: int
    """that every training played; 0 where the policy was refused"""
    n_trainings: int
    n_success: int
    """of all trainings together"""
    ci95: Interval | None
    """Wilson, over scenes: how far others could have moved the rate"""
    spread: SeedSpread | None
    """over trainings: how far other seeds could have"""
    failures: dict[str, int]
    mean_steps: float | None
    note: str

    @property
    def n_episodes(self) -> int:
        """Of all trainings together."""
        return self.n_scenes * self.n_trainings

    @property
    def n_solved(self) -> float:
        """Scenes in which it succeeded, the mean over trainings."""
        return self.n_success / self.n_trainings

    @property
    def rate(self) -> float | None:
        return self.n_success / self.n_episodes if self.n_scenes else None


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
class Summary:
    """All of it."""

    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    contrasts: tuple[Contrast, ...]
    lessons: tuple[Lesson, ...]
    full_names: tuple[FullNames, ...]
    duels: tuple[Duel, ...]


def summarize(cells: Sequence[Cell]) -> Summary:
    """The summary of a benchmark's cells."""
    return Summary(
        pools=tuple(map(_pool, by_training(cells).values())),
        groups=tuple(_groups(cells)),
        contrasts=tuple(contrasts(cells)),
        lessons=tuple(lessons(cells)),
        full_names=tuple(full_names(cells)),
        duels=tuple(duels(cells)),
    )


def _pool(cells: Sequence[Cell]) -> Pool:
    n, won = cells[0].n_episodes, sum(cell.n_success for cell in cells)
    failures: Counter[str] = sum((Counter(cell.failures) for cell in cells), Counter())
    steps = [cell.mean_steps for cell in cells if cell.mean_steps is not None]
    rates = [cell.success_rate for cell in cells if cell.success_rate is not None]
    return Pool(
        key=replace(cells[0].key, training_seed=None),
        n_scenes=n,
        n_trainings=len(cells),
        n_success=won,
        ci95=wilson(won / len(cells), n) if n else None,
        spread=seed_spread(rates) if rates else None,
        failures=dict(sorted(failures.items())),
        mean_steps=fmean(steps) if steps else None,
        note=cells[0].note,
    )


# Numbers of objects, seen and not ---------------------------------------------------------


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
