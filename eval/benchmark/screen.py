"""What a benchmark says on screen: what it is about to do, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fetchlab.eval.benchmark.config import BenchmarkConfig, collections, trainings
from fetchlab.eval.benchmark.recipe import SEEN
from fetchlab.eval.benchmark.store import Store
from fetchlab.eval.benchmark.summary import Contrast, Group, Summary
from fetchlab.eval.benchmark.training import is_trained
from fetchlab.eval.report.page import REPORT
from fetchlab.eval.report.words import counts_text
from fetchlab.eval.results import RESULTS, Results
from fetchlab.eval.suites import NOMINAL

if TYPE_CHECKING:
    from rich.table import Table


def announce(config: BenchmarkConfig, store: Store) -> None:
    """How much there is to do, and which suites are left out and why."""
    from rich.console import Console

    console = Console(stderr=True)
    all_trainings = trainings(config)
    done = sum(is_trained(store, training) for training in all_trainings)
    console.print(
        f"{len(config.chosen)} suites, {len(config.contestants)} policies; "
        f"{len(collections(config))} collections of demonstrations, "
        f"{len(all_trainings)} trainings ({done} done)",
        highlight=False,
    )
    tell_left_out(config.left_out)


def tell_left_out(reasons: Mapping[str, str]) -> None:
    """What is not played, and why."""
    from rich.console import Console

    for what, reason in reasons.items():
        line = f"left out: {what.replace('_', ' ')}: {reason}"
        Console(stderr=True).print(line, style="dim", highlight=False, soft_wrap=True)


def show(results: Results, summary: Summary, out: Path) -> None:
    """Print success by task, every suite against its control, and where the files are."""
    from rich.console import Console

    console = Console()
    if summary.groups:
        console.print(group_table(summary))
    if summary.contrasts:
        console.print(contrast_table(summary))
    for name in (RESULTS, REPORT):
        console.print(f"{out / name}", style="dim", soft_wrap=True)


def group_table(summary: Summary) -> Table:
    """A row a policy and task: success at demonstrated numbers of objects and at others."""
    table = _table("Success by number of objects, in %: mean over trainings (worst–best)")
    halves = {side: _widest(summary, side) for side in (True, False)}
    for column in ("policy", "task"):
        table.add_column(column, no_wrap=True)
    for counts in halves.values():
        table.add_column(f"{counts_text(counts)} objects" if counts else "", no_wrap=True)
    for policy, task in dict.fromkeys((group.policy, group.task) for group in summary.groups):
        mine = [g for g in summary.groups if (g.policy, g.task) == (policy, task)]
        found = {group.counts[0] in SEEN: group for group in mine}
        cells = [_spread(found.get(side), counts) for side, counts in halves.items()]
        table.add_row(policy, task, *cells)
    return table


def _widest(summary: Summary, seen: bool) -> tuple[int, ...]:
    """The numbers of objects of the policy that can take most."""
    found = [group.counts for group in summary.groups if (group.counts[0] in SEEN) is seen]
    return max(found, key=len, default=())


def _spread(group: Group | None, usual: tuple[int, ...]) -> str:
    """Success; and with which numbers of objects, if not with the usual ones."""
    if group is None:
        return ""
    one = group.spread
    rates = f" ({100 * one.worst:.1f}–{100 * one.best:.1f})" if one.n_seeds > 1 else ""
    only = "" if group.counts == usual else f", {counts_text(group.counts)} only"
    return f"{100 * one.mean:.1f}{rates}{only}"


def contrast_table(summary: Summary) -> Table:
    """A section a suite, a row an arm, a column a policy: success, and the difference."""
    table = _table("Success in %, and the difference to the same scenes without the change")
    policies = list(dict.fromkeys(one.policy for one in summary.contrasts))
    table.add_column("change")
    for policy in policies:
        table.add_column(policy, justify="right", no_wrap=True)
    found = {(c.suite, c.trained, c.arm, c.policy): c for c in summary.contrasts}
    for suite in dict.fromkeys(one.suite for one in summary.contrasts):
        table.add_row(f"[bold]{suite}[/bold]")
        for trained, arm in dict.fromkeys(key[1:3] for key in found if key[0] == suite):
            about = "" if trained == NOMINAL else f", trained on {trained}"
            shown = [found.get((suite, trained, arm, policy)) for policy in policies]
            table.add_row(f"  {arm}{about}".replace("_", " "), *map(_difference, shown))
    return table


def _difference(contrast: Contrast | None) -> str:
    if contrast is None:
        return ""
    one = contrast.comparison
    return f"{100 * one.n_first / one.n:.1f} [dim]({100 * one.difference:+.1f})[/dim]"


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
