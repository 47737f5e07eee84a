"""Every cell of every policy, played once and kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fetchlab.eval.arms import NOMINAL
from fetchlab.eval.benchmark.config import BenchmarkConfig, trainings
from fetchlab.eval.benchmark.recipe import SCENES_SEED
from fetchlab.eval.benchmark.store import Store
from fetchlab.eval.parallel import Played, as_played, load, worker_count
from fetchlab.eval.plan import CellPlan, Scope, plan_cells, without_cameras
from fetchlab.eval.results import Cell
from fetchlab.policy.registry import is_scripted

OnShard = Callable[["Work", int], None]
"""called with what was played, and how many of its episodes"""


def plan_all(config: BenchmarkConfig, store: Store) -> tuple[list[CellPlan], dict[str, str]]:
    """The cells of all policies in their order, and of each the suites in theirs.

    Arms that no learned policy can play are left out, and it is told why.
    """
    plans = list(_all(config, store))
    learned = [plan for plan in plans if not is_scripted(plan.key.policy)] or plans
    playable = {_arm(plan) for plan in learned if plan.role is not None}
    notes = {_arm(plan): plan.note for plan in reversed(learned) if _arm(plan) not in playable}
    whole = {suite for suite, _ in notes} - {suite for suite, _ in playable}
    left_out = {
        suite if suite in whole else f"{suite} {arm}": note
        for (suite, arm), note in reversed(notes.items())
    }
    return [plan for plan in plans if _arm(plan) in playable], left_out


def _arm(plan: CellPlan) -> tuple[str, str]:
    return plan.key.suite, plan.key.arm


def _all(config: BenchmarkConfig, store: Store) -> Iterator[CellPlan]:
    for policy in config.contestants:
        if is_scripted(policy):
            yield from _plan(policy, config, NOMINAL, None)
        for training in trainings(config):
            if training.policy == policy:
                source = str(store.policy(training))
                yield from _plan(source, config, training.condition.name, training.seed)


def _plan(
    source: str, config: BenchmarkConfig, trained: str, seed: int | None
) -> Iterator[CellPlan]:
    """A scripted policy plays every suite; a trained one those that its training is meant for."""
    policy = load(source, without_cameras(config.recipe.world))  # a trained one knows its own
    for suite in config.chosen:
        if seed is None or trained in {condition.name for condition in suite.trained}:
            scope = Scope(counts=suite.counts, episodes=config.recipe.episodes, seed=SCENES_SEED)
            yield from plan_cells(source, policy, suite, scope, trained=trained, training_seed=seed)


def play_all(plans: Sequence[CellPlan], config: BenchmarkConfig, store: Store) -> list[Cell]:
    """Play what has not been played; every cell is on disk as soon as it is finished."""
    todo = works([plan for plan in plans if store.cell(plan.key, plan.seeds) is None])
    with store.timed("evaluation"), _progress(todo) as tell:
        for played, seconds in played_cells(todo, worker_count(config.workers), tell):
            store.write_cell(played)
            store.set_cell_time(played.key, seconds)
    return [cell for plan in plans if (cell := store.cell(plan.key, plan.seeds))]


@dataclass(kw_only=True)
class Work:
    """Episodes that one cell or several stand for: all suites play the same control, but once."""

    cells: list[CellPlan]
    n_waiting: int
    """shards that have not been played"""
    played: Played = field(default_factory=dict)
    seconds: float = 0.0
    """that these took one process"""

    def __str__(self) -> str:
        key = self.cells[0].key
        seed = "" if key.training_seed is None else f" seed {key.training_seed}"
        arm = f" {key.arm}" if key.arm else ""
        return f"{key.policy}{seed}: {key.suite}{arm}, {key.task}, {key.n_objects} objects"


def works(plans: Sequence[CellPlan]) -> list[Work]:
    """The work of all cells, those with the same episodes together."""
    together: dict[object, list[CellPlan]] = {}
    for plan in plans:
        alike = plan.key if plan.role is None else (plan.role, plan.specs)
        together.setdefault(alike, []).append(plan)
    return [Work(cells=cells, n_waiting=len(cells[0].shards())) for cells in together.values()]


def played_cells(todo: Sequence[Work], workers: int, tell: OnShard) -> Iterator[tuple[Cell, float]]:
    """Each cell as soon as all its episodes have been played, and the seconds they took."""
    owners = {shard: work for work in todo for shard in work.cells[0].shards()}
    for work in todo:
        if not work.n_waiting:  # what is refused
            yield from ((plan.cell({}), 0.0) for plan in work.cells)
    for done in as_played(list(owners), workers):
        work = owners[done.shard]
        work.played |= done.by_episode()
        work.seconds += done.seconds
        work.n_waiting -= 1
        tell(work, len(done.results))
        if not work.n_waiting:
            yield from ((plan.cell(work.played), work.seconds) for plan in work.cells)
            work.played = {}


@contextlib.contextmanager
def _progress(todo: Sequence[Work]) -> Iterator[OnShard]:
    """A bar of all episodes, with what is being played and how long the rest will take."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = TextColumn("playing {task.description}"), BarColumn(), MofNCompleteColumn(), Left()
    with Progress(*columns, TextColumn("left"), console=Console(stderr=True)) as bar:
        total = sum(len(work.cells[0].specs) for work in todo)
        task = bar.add_task("", total=total, visible=total > 0)
        yield lambda work, n: bar.update(task, advance=n, description=str(work))
