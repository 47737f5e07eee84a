"""What a benchmark says on screen: what it is about to do, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fetchlab.eval.arms import NOMINAL
from fetchlab.eval.benchmark.config import (
    BenchmarkConfig,
    collections,
    most_episodes,
    trainings,
)
from fetchlab.eval.benchmark.pairs import ArmKey, Contrast, FullNames
from fetchlab.eval.benchmark.recipe import SEEN
from fetchlab.eval.benchmark.store import Store
from fetchlab.eval.benchmark.summary import Group, Summary
from fetchlab.eval.benchmark.training import is_trained, steps_of
from fetchlab.eval.report.page import REPORT
from fetchlab.eval.report.words import counts_text, number, points, remark
from fetchlab.eval.results import RESULTS, Results
from fetchlab.eval.suites import SUITES

if TYPE_CHECKING:
    from rich.table import Table


def announce(config: BenchmarkConfig, store: Store) -> None:
    """How much there is to do, and which suites are left out and why."""
    from rich.console import Console

    console = Console(stderr=True)
    all_trainings = trainings(config)
    done = sum(is_trained(store, training) for training in all_trainings)
    shown = sum(n for _, n in collections(config).values())
    steps = sum(steps_of(training, config) for training in all_trainings)
    console.print(
        f"{number(len(config.chosen), 'suite')}, "
        f"{number(len(config.contestants), 'policy', 'policies')}; "
        f"{number(len(collections(config)), 'collection')} of demonstrations ({shown:,} in all), "
        f"{number(len(all_trainings), 'training')} ({steps:,} steps in all; {done} done), "
        f"at most {most_episodes(config):,} episodes to play",
        highlight=False,
        soft_wrap=True,
    )
    if done < len(all_trainings) and not config.quick:
        less = "take less with fewer --suites or --seeds, with --task fetch, or with --quick"
        line = f"all trainings and suites take many hours on a few cores: {less}"
        console.print(line, style="dim", highlight=False, soft_wrap=True)
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
    several = any(group.spread.n_seeds > 1 for group in summary.groups)
    over = ": mean over trainings (worst–best)" if several else ""
    table = _table(f"Success by number of objects, in %{over}")
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
    table = _table("Success in %, and the difference to the same seeds without the change")
    policies = list(dict.fromkeys(one.policy for one in summary.contrasts))
    table.add_column("change")
    for policy in policies:
        table.add_column(policy, justify="right", no_wrap=True)
    suites = list(dict.fromkeys(one.suite for one in summary.contrasts))
    for suite in suites:
        table.add_row(f"[bold]{suite}[/bold]")
        for what, cells in _rows(summary, suite).items():
            table.add_row(
                f"  {what}".replace("_", " "), *(cells.get(name, "") for name in policies)
            )
    remarks = [(suite, remark(SUITES[suite])) for suite in suites]
    table.caption = "\n".join(f"{suite}: {text}" for suite, text in remarks if text) or None
    table.caption_justify = "left"
    return table


def _rows(summary: Summary, suite: str) -> dict[str, dict[str, str]]:
    """By what was changed, and then by policy, what is said about it."""
    shown = [
        (_about(one), one.policy, _difference(one))
        for one in summary.contrasts
        if one.suite == suite
    ]
    shown += [
        (f"{_about(one)}, colour and shape said", one.policy, _named(one))
        for one in summary.full_names
        if one.suite == suite
    ]
    shown += [
        (
            f"{_about(one)} minus on {one.against}",
            one.policy,
            points(one.comparison.difference),
        )
        for one in summary.lessons
        if one.suite == suite
    ]
    found: dict[str, dict[str, str]] = {}
    for what, policy, text in shown:
        found.setdefault(what, {})[policy] = text
    return found


def _about(one: ArmKey) -> str:
    return one.arm if one.trained == NOMINAL else f"{one.arm}, trained on {one.trained}"


def _difference(contrast: Contrast) -> str:
    one = contrast.comparison
    return f"{100 * one.n_first / one.n:.1f} [dim]({100 * one.difference:+.1f})[/dim]"


def _named(one: FullNames) -> str:
    return f"{100 * one.rate:.1f} [dim](of {one.n_scenes})[/dim]"


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
