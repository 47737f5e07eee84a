"""What evaluations show on screen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fetchlab.eval.arms import CONTROL
from fetchlab.eval.gaze import gaze_sentence
from fetchlab.eval.results import Cell, Results, Swap
from fetchlab.eval.statistics import compare_outcomes
from fetchlab.eval.suites import SUITES

if TYPE_CHECKING:
    from rich.table import Table

TITLE = "Success in scenes that no demonstration used, and the 95 % interval"


def percent(rate: float) -> str:
    """A fraction in percent, without decimals where it is exactly 0 or 1."""
    digits = 0 if rate in (0.0, 1.0) else 1
    return f"{100 * rate:.{digits}f} %"


def interval_text(cell: Cell) -> str:
    """The 95 % interval in percent."""
    if cell.ci95 is None:
        return ""
    low, high = cell.ci95
    return f"{100 * low:.1f}–{100 * high:.1f}"


def failures_text(cell: Cell) -> str:
    """Why episodes failed, most frequent first."""
    ordered = sorted(cell.failures.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{spaced(reason)} {count}" for reason, count in ordered)


def cell_table(cells: Sequence[Cell]) -> Table:
    """A row a cell, a section a policy."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    if any(cell.arm for cell in cells) or len({cell.task for cell in cells}) > 1:
        return suite_table(cells)
    table = Table(title=TITLE, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("policy", no_wrap=True)
    for column in ("objects", "succeeded", "rate", "interval", "steps"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("failures")
    for row, cell in enumerate(cells):
        last = row + 1 == len(cells) or cells[row + 1].policy != cell.policy
        steps = "" if cell.mean_steps is None else f"{cell.mean_steps:.1f}"
        numbers = *_numbers(cell), interval_text(cell), steps
        table.add_row(cell.policy, *numbers, cell.note or failures_text(cell), end_section=last)
    return table


def suite_table(cells: Sequence[Cell]) -> Table:
    """A row a cell, a section a policy: its tasks and arms, and how these compare with controls."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    with_arms = any(cell.arm for cell in cells)
    names = [*["arm"] * with_arms, *["task"] * (len({cell.task for cell in cells}) > 1)]
    title = f"{TITLE}\n{_measure(cells)}" if with_arms else TITLE
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    policies = dict.fromkeys(cell.policy for cell in cells)
    for name, titles in zip(names, (policies, ()), strict=False):
        widths = widest_word([getattr(cell, name) for cell in cells]), *map(len, titles)
        table.add_column(name, min_width=max(widths))
    for column in ("objects", "succeeded", "rate", "minus control" if with_arms else "interval"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("failures", min_width=10)
    for policy in policies:
        table.add_row(f"[bold]{policy}[/bold]")
        for cell in (cell for cell in cells if cell.policy == policy):
            about = [spaced(getattr(cell, name)) for name in names]
            sure = against_control(cell, cells) if with_arms else interval_text(cell)
            table.add_row(*about, *_numbers(cell), sure, cell.note or failures_text(cell))
        table.add_section()
    return table


def _measure(cells: Sequence[Cell]) -> str:
    """What the interval is of, and what is to be known about the control."""
    suite = SUITES[cells[0].suite]  # one evaluation plays one
    seeds = "in the same scenes" if suite.same_scenes else "with the same seeds, in other scenes"
    return "\n".join(filter(None, [f"of the difference from the control {seeds}", suite.remark]))


def _numbers(cell: Cell) -> tuple[str, str, str]:
    """Objects, successes and their rate."""
    if cell.success_rate is None:
        return str(cell.n_objects), "–", ""
    return (
        str(cell.n_objects),
        f"{cell.n_success}/{cell.n_episodes}",
        percent(cell.success_rate),
    )


def widest_word(names: Sequence[str]) -> int:
    """Characters of the longest word in these names."""
    return max(len(word) for name in names for word in name.split("_"))


def spaced(name: str) -> str:
    """A name as words, which may be wrapped."""
    return name.replace("_", " ")


def control_of(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """The control that a cell is measured against, if it was played; none for a control."""
    wanted = replace(cell.key, arm=CONTROL, control=True)
    found = (other for other in cells if other.key == wanted and other.n_episodes)
    return None if cell.control else next(found, None)


def against_control(cell: Cell, cells: Sequence[Cell]) -> str:
    """By how much the arm is better than its control on the same seeds, and the 95 % interval."""
    other = control_of(cell, cells)
    if other is None or not cell.n_episodes:
        return ""
    rounds = [(cell.episodes, other.episodes)]
    compared = compare_outcomes(rounds, same_scenes=SUITES[cell.suite].same_scenes)
    low, high = compared.ci95
    return f"{100 * compared.difference:+.1f} ({100 * low:+.0f} to {100 * high:+.0f})"


def swap_sentence(swap: Swap) -> str:
    """The instruction swap in words."""
    low, high = swap.ci95
    return (
        f"Only the words for the object changed, in {swap.n} scenes: {swap.policy} took the newly "
        f"named one in {swap.n_followed} ({percent(swap.rate)}, 95 % interval {100 * low:.1f} to "
        f"{100 * high:.1f} %), and each sentence's own in {swap.n_both}."
    )


def show_results(results: Results, path: Path) -> None:
    """Print the table, the instruction swap and where the file is."""
    from rich.console import Console

    console = Console()
    console.print(cell_table(results.cells))
    if results.instruction_swap is not None:
        console.print(swap_sentence(results.instruction_swap))
    if results.grounding:
        console.print(gaze_sentence(results.grounding))
    console.print(f"{path}", style="dim", soft_wrap=True)


@contextlib.contextmanager
def episode_progress(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; what it yields is told how many more episodes are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = TextColumn("evaluating"), BarColumn(), MofNCompleteColumn(), Left()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("episodes", total=total)
        yield lambda episodes: progress.advance(task, episodes)


def matrix_table(cells: Sequence[Cell], seen: Sequence[int]) -> Table:
    """A row a policy, a column a number of objects."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    counts = sorted({cell.n_objects for cell in cells})
    table = Table(
        title="Scenes in which the named block was fetched, in %, and the 95 % interval\n"
        "(* as many blocks as in the demonstrations)",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("policy", no_wrap=True, min_width=max(len(cell.policy) for cell in cells))
    for count in counts:
        table.add_column(f"{count}{'*' if count in seen else ''}", justify="right", min_width=6)
    for policy in dict.fromkeys(cell.policy for cell in cells):
        mine = {cell.n_objects: cell for cell in cells if cell.policy == policy}
        table.add_row(policy, *(_short(mine.get(count)) for count in counts))
    return table


def _short(cell: Cell | None) -> str:
    """Percent, and below it the 95 % interval; narrow enough for seven columns."""
    if cell is None:
        return ""
    if cell.success_rate is None or cell.ci95 is None:
        return "cannot"
    low, high = cell.ci95
    return f"{100 * cell.success_rate:.1f}\n[dim]{100 * low:.0f}–{100 * high:.0f}[/dim]"
