"""`fetchlab figures`: measure the lesson's figures, check their numbers, write the page."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from fetchlab.errors import UserError
from fetchlab.eval.figures import folder
from fetchlab.eval.figures.folder import Measured
from fetchlab.eval.figures.page import number, range_text, write_page
from fetchlab.eval.figures.registry import FIGURES, measure
from fetchlab.eval.parallel import one_thread, process_pool, worker_count
from fetchlab.eval.results import check_folder, provenance

if TYPE_CHECKING:
    from rich.table import Table

SLOW = (2, 5)
"""figures that begin first, so that no core waits for one of them in the end"""


@dataclass(frozen=True, kw_only=True)
class FiguresConfig:
    """The figures of the attention lesson, measured: every number beside the range it must lie in.

    Writes figures.html (one page to read, with parts to play with), figures.json (all checks) and
    a drawing for each figure. Figures that were measured into the same folder before are kept.
    The exit status is 1 if a number lies outside its range.
    """

    numbers: Annotated[tuple[int, ...], tyro.conf.Positional] = ()
    """which figures, 1 to 7; all of them if none is named"""
    out: Path
    """folder for the page and the numbers: a new one, or one that this command wrote"""
    quick: bool = False
    """fewer seeds and shorter training, in about half a minute"""
    workers: int = 0
    """processes; 0 is one a core"""

    def __post_init__(self) -> None:
        for wanted in self.numbers:
            if wanted not in FIGURES:
                raise UserError(f"there is no figure {wanted}: choose from 1 to {len(FIGURES)}")
        worker_count(self.workers)
        check_folder(self.out)
        folder.check_ours(self.out)


def run_figures(config: FiguresConfig) -> int:
    """`fetchlab figures`; 1 if a check failed."""
    from rich.console import Console

    numbers = sorted(set(config.numbers or FIGURES))
    earlier = folder.read(config.out, without=numbers)
    measured = []
    with progress(len(numbers)) as tell:
        for one in measure_all(numbers, quick=config.quick, workers=worker_count(config.workers)):
            folder.write(config.out, one)
            measured.append(one)
            tell(one)
    everything = sorted([*earlier, *measured], key=lambda one: one.figure.number)
    checks = folder.write_checks(config.out, everything)
    page = write_page(config.out, everything)
    console = Console()
    console.print(summary_table(sorted(measured, key=lambda one: one.figure.number)))
    for line in failures(measured):
        console.print(line, style="red", highlight=False, soft_wrap=True)
    for path in (checks, page):
        console.print(str(path), style="dim", soft_wrap=True, highlight=False)
    return int(any(one.n_ok < one.n_checks for one in measured))


def measure_all(numbers: Sequence[int], *, quick: bool, workers: int) -> Iterator[Measured]:
    """Each figure as soon as it is done, in several processes if there are several of both."""
    workers = min(workers, len(numbers))
    if workers == 1:
        with one_thread():
            yield from (measure_timed(number, quick) for number in numbers)
        return
    with process_pool(workers) as pool:
        first = sorted(numbers, key=lambda number: number not in SLOW)
        futures = [pool.submit(measure_timed, number, quick) for number in first]
        for future in as_completed(futures):
            yield future.result()


def measure_timed(number: int, quick: bool) -> Measured:
    """One figure and how long it took."""
    started = time.perf_counter()
    figure = measure(number, quick=quick)
    seconds = time.perf_counter() - started
    return Measured(figure=figure, quick=quick, seconds=seconds, made_with=provenance())


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[Measured], None]]:
    """A line a finished figure and a bar below, on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    columns = TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), Elapsed()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("figures", total=total)

        def tell(one: Measured) -> None:
            verdict = "ok" if one.n_ok == one.n_checks else "[red]not ok[/red]"
            bar.console.print(f"figure {one.figure.number}  {one.figure.title}: {verdict}")
            bar.advance(task)

        yield tell


def summary_table(measured: Sequence[Measured]) -> Table:
    """A row a figure."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("figure")
    for column in ("checks ok", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in measured:
        style = None if one.n_ok == one.n_checks else "red"
        name = f"{one.figure.number}  {one.figure.title}"
        table.add_row(name, f"{one.n_ok}/{one.n_checks}", f"{one.seconds:.1f}", style=style)
    return table


def failures(measured: Sequence[Measured]) -> list[str]:
    """Each number outside its range, in a line."""
    return [
        f"not ok: figure {one.figure.number}, {check.quantity}: {number(check.value)}, must be "
        f"{range_text(check)}"
        for one in measured
        for check in one.figure.checks
        if not check.ok
    ]
