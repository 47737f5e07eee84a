"""The self-contained page about a benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from fetchlab.eval.arms import NOMINAL
from fetchlab.eval.benchmark.recipe import SEEN
from fetchlab.eval.benchmark.summary import Pool, Summary
from fetchlab.eval.report import words
from fetchlab.eval.report.cells import cell_views
from fetchlab.eval.report.charts import (
    NARROW,
    SERIES,
    WIDE,
    Line,
    Series,
    line_chart,
    success_chart,
)
from fetchlab.eval.report.grounding import grounding_views
from fetchlab.eval.report.heat import HeatMap
from fetchlab.eval.report.page import DASHED, REPORT, Clip, duration, fill, span, stage_rows
from fetchlab.eval.results import Cell, CellKey, Results, write_whole
from fetchlab.eval.statistics import SeedSpread, episodes_needed, wilson
from fetchlab.eval.suites import SUITES
from fetchlab.eval.tables import percent

TEMPLATE = "benchmark.html.jinja"
MANY_SEEDS = 3  # trainings that an interval is shown for
EXAMPLES = ((0.5, 0.9), (0.8, 0.9), (0.90, 0.95), (0.96, 0.98))  # rates to tell apart


@dataclass(frozen=True, kw_only=True)
class BenchmarkStory:
    """All that the page tells."""

    results: Results
    summary: Summary
    n_demonstrations: int
    n_episodes: int
    """in each cell"""
    seeds: tuple[int, ...]
    timings: Mapping[str, float]
    minutes: Mapping[tuple[str, str], float]
    """of demonstrating and training, by policy and condition"""
    left_out: Mapping[str, str]
    cell_seconds: Mapping[CellKey, float] = field(default_factory=dict)
    """an episode, by cell without training seed"""
    clips: tuple[Clip, ...] = ()


def write_benchmark_report(folder: Path, story: BenchmarkStory) -> Path:
    """Write `report.html` into the folder, whole or not at all."""
    return write_whole(folder / REPORT, fill(TEMPLATE, context(story)))


def context(story: BenchmarkStory) -> dict[str, Any]:
    """What the template fills in."""
    results, summary = story.results, story.summary
    policies = [facts.policy for facts in results.policies]
    series = [
        Series(
            policy=policy,
            label=words.policy_text(policy),
            colour=SERIES[row % len(SERIES)],
            dashed=policy in DASHED or policy == "expert_blind",
        )
        for row, policy in enumerate(policies)
    ]
    return {
        "story": story,
        "results": results,
        "series": series,
        "colours": {one.policy: f"var(--series-{row})" for row, one in enumerate(series)},
        "headline": headline(summary, policies[0]),
        "curves": curves(summary, series),
        "policies": policies,
        "suites": HeatMap(summary=summary, policies=policies).suites(),
        "duels": duel_rows(summary),
        "examples": [(*pair, episodes_needed(*pair)) for pair in EXAMPLES],
        "spreads": spread_rows(summary),
        "data": data_views(summary, story.minutes),
        "failures": failure_rows(summary, policies),
        "cells": cell_views(summary.pools, story.cell_seconds),
        "grounding": grounding_views(
            results.grounding, {p: words.policy_text(p) for p in policies}
        ),
        "stages": stage_rows(stages(story.timings)),
        "seen_text": span(SEEN),
        "words": words,
        "descriptions": {name: suite.description for name, suite in SUITES.items()},
        "fingerprint": json.dumps(results.fingerprint, indent=1),
        "versions": json.dumps(results.versions, indent=1),
        "total": duration(sum(story.timings.values())),
    }


def headline(summary: Summary, policy: str) -> str:
    """What the first policy reaches, in one plain sentence."""
    groups = [group for group in summary.groups if group.policy == policy]
    if not groups:
        return f"What {policy} does when its world changes"
    seen = [group.spread.mean for group in groups if group.counts[0] in SEEN]
    beyond = [group for group in groups if group.counts[0] not in SEEN]
    ending = f" {percent(fmean(seen))} of new scenes of that kind" if seen else ""
    if beyond:
        more = percent(fmean(group.spread.mean for group in beyond))
        ending += (
            f"{' and' if seen else ''} {more} of scenes with {words.counts_text(beyond[0].counts)}"
        )
    text = f"Shown tables with {span(SEEN)} objects, {policy} succeeds in{ending}"
    return text.replace(" %", "\u00a0%")


# Success against the number of objects ----------------------------------------------------


def curves(summary: Summary, series: Sequence[Series]) -> list[dict[str, Any]]:
    """A chart and a table for each task."""
    pools = [p for p in summary.pools if (p.key.suite, p.key.trained) == ("counts", NOMINAL)]
    return [
        _curve(task, [pool for pool in pools if pool.key.task == task], series)
        for task in dict.fromkeys(pool.key.task for pool in pools)
    ]


def _curve(task: str, pools: Sequence[Pool], series: Sequence[Series]) -> dict[str, Any]:
    cells = [as_cell(pool) for pool in pools]
    sizes = (("wide", WIDE), ("narrow", NARROW))
    return {
        "task": words.task_text(task),
        "done": words.DONE.get(task, "the task was done"),
        "says": _says(cells, series[0].policy),
        "pools": {(pool.key.policy, pool.key.n_objects): pool for pool in pools},
        "counts": sorted({cell.n_objects for cell in cells}),
        "charts": {n: success_chart(cells, series, SEEN, size, "objects") for n, size in sizes},
    }


def _says(cells: Sequence[Cell], policy: str) -> str:
    """What the chart shows of one policy: with fewest objects and with most."""
    mine = [cell for cell in cells if cell.policy == policy and cell.success_rate is not None]
    if not mine:
        return f"{policy} could not play it."
    ends = mine[0], mine[-1]
    few, many = (f"{words.rate(end.success_rate)} with {end.n_objects} objects" for end in ends)
    return f"{policy}: {few}, {many}."


def as_cell(pool: Pool) -> Cell:
    """The pooled cell as charts draw cells."""
    return Cell(
        **asdict(pool.key),
        n_episodes=pool.n_episodes,
        n_success=pool.n_success,
        success_rate=pool.rate,
        ci95=pool.ci95,
        failures=pool.failures,
        mean_steps=pool.mean_steps,
        note=pool.note,
        episodes=(),
    )


# Tables -----------------------------------------------------------------------------------


def duel_rows(summary: Summary) -> list[dict[str, Any]]:
    """Two policies in the same scenes."""
    return [
        {
            "who": (duel.first, duel.second),
            "task": words.task_text(duel.task),
            "counts": words.counts_text(duel.counts),
            "n": one.n,
            "rates": (percent(one.n_first / one.n), percent(one.n_second / one.n)),
            "difference": words.points(one.difference),
            "interval": words.between(one.ci95),
            "sure": one.p_value < 0.05,
            "p": words.chance(one.p_value),
            "needed": (duel.scenes_needed, duel.episodes_needed),
        }
        for duel in summary.duels
        for one in [duel.comparison]
    ]


def spread_rows(summary: Summary) -> list[dict[str, Any]]:
    """How much the trainings of a policy differ; nothing where it was trained once."""
    return [
        {
            "policy": group.policy,
            "task": words.task_text(group.task),
            "counts": words.counts_text(group.counts),
            "spread": group.spread,
            "interval": _t_interval(group.spread),
        }
        for group in summary.groups
        if group.spread.n_seeds > 1
    ]


def _t_interval(spread: SeedSpread) -> str:
    """In percent; two trainings may be equal by luck, and would seem to leave no doubt."""
    if spread.ci95 is None or spread.n_seeds < MANY_SEEDS:
        return "–"
    low, high = spread.ci95
    return f"{100 * low:.0f}–{100 * high:.0f} %"


def failure_rows(summary: Summary, policies: Sequence[str]) -> list[dict[str, Any]]:
    """Why each policy failed, in all suites but the ablations, which make it fail."""
    rows = []
    for policy in policies:
        mine = [p for p in summary.pools if p.key.policy == policy and p.key.suite != "ablations"]
        reasons: dict[str, int] = {}
        for pool in mine:
            for reason, count in pool.failures.items():
                reasons[reason] = reasons.get(reason, 0) + count
        n = sum(pool.n_episodes for pool in mine)
        ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        shares = [(words.reason_text(reason), count, count / n) for reason, count in ordered]
        rows.append({"policy": policy, "n": n, "reasons": shares})
    return rows


# Data and time ----------------------------------------------------------------------------


def data_views(summary: Summary, minutes: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """For each policy, success against demonstrations and against minutes."""
    pools = [pool for pool in summary.pools if pool.key.suite == "data" and pool.n_episodes]
    views = []
    for policy in dict.fromkeys(pool.key.policy for pool in pools if pool.key.trained != NOMINAL):
        mine = [pool for pool in pools if pool.key.policy == policy]
        amounts = {p.key.trained: int(p.key.trained.rsplit("_", 1)[1]) for p in mine}
        took = {trained: minutes[policy, trained] for trained in amounts}
        views.append(
            {
                "policy": policy,
                "legend": _data_lines(mine, amounts),
                "charts": _data_charts(mine, amounts, "demonstrations", tuple(amounts.values())),
                "times": _data_charts(mine, took, "minutes of demonstrating and training"),
            }
        )
    return views


def _data_charts(
    pools: Sequence[Pool], x: Mapping[str, float], axis: str, ticks: tuple[float, ...] = ()
) -> dict[str, str]:
    lines = _data_lines(pools, x)
    sizes = (("wide", (3.9, 3.2)), ("narrow", NARROW))
    return {name: line_chart(lines, axis, size, ticks) for name, size in sizes}


def _data_lines(pools: Sequence[Pool], x: Mapping[str, float]) -> list[Line]:
    """A line for 2 to 5 objects, and one for each number beyond."""
    counts = sorted({pool.key.n_objects for pool in pools})
    seen = tuple(count for count in counts if count in SEEN)
    groups = [seen, *((count,) for count in counts if count not in SEEN)]
    lines = []
    for row, group in enumerate(group for group in groups if group):
        by_amount = {
            trained: [p for p in pools if p.key.trained == trained and p.key.n_objects in group]
            for trained in sorted(x, key=lambda trained: x[trained])
        }
        sums = [
            (sum(pool.n_solved for pool in some), sum(pool.n_scenes for pool in some))
            for some in by_amount.values()
        ]
        lines.append(
            Line(
                label=words.objects(group),
                colour=SERIES[row],
                x=[x[trained] for trained in by_amount],
                rates=[won / n for won, n in sums],
                intervals=[wilson(won, n) for won, n in sums],
            )
        )
    return lines


def stages(timings: Mapping[str, float]) -> dict[str, float]:
    """Demonstrations and trainings as one stage each."""
    summed: dict[str, float] = {}
    for what, seconds in timings.items():
        stage = {"demonstrations": "demonstrations", "training": "trainings, summed"}
        name = stage.get(what.split(" ")[0], what)
        summed[name] = summed.get(name, 0.0) + seconds
    return summed
