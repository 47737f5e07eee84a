"""The self-contained page about an evaluation: what came out, how sure it is, how it was made."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from fetchlab.eval.report.charts import (
    NARROW,
    SERIES,
    WIDE,
    Curve,
    Series,
    loss_chart,
    success_chart,
)
from fetchlab.eval.report.grounding import grounding_views
from fetchlab.eval.results import Cell, Results, write_whole
from fetchlab.eval.tables import percent

REPORT = "report.html"
LABELS = {
    "act": "Transformer, from camera pixels",
    "act_pointers": "Transformer that points at what is named, from camera pixels",
    "act_objects": "Transformer, from the object list",
    "slot_mlp": "MLP with six slots, from the object list",
    "slot_mlp_large": "Wider MLP with six slots, from the object list",
    "act_no_position_queries": "Transformer from pixels, trained without position queries",
    "expert": "Scripted expert",
    "expert_blind": "Scripted expert on any object: the chance level",
}
SUBJECTS = {"act": "a policy that sees only camera pixels"}  # of the headline
REASONS = {
    "wrong_object": "took or pushed another block",
    "no_reach": "never came near the block",
    "no_grasp": "came near, did not grasp it",
    "dropped": "lost the block again",
    "timeout": "ran out of time holding it",
}
DASHED = ("expert", "act_no_position_queries")


@dataclass(frozen=True, kw_only=True)
class Clip:
    """An episode to watch."""

    title: str
    caption: str
    success: bool
    mp4: bytes
    poster: bytes
    """PNG of one of its frames"""


@dataclass(frozen=True, kw_only=True)
class Look:
    """A moment with the attention drawn over the cameras."""

    caption: str
    png: bytes


@dataclass(frozen=True, kw_only=True)
class Story:
    """All that the page tells."""

    results: Results
    seen: tuple[int, ...]
    """numbers of objects in the demonstrations"""
    n_demonstrations: int
    clips: tuple[Clip, ...] = ()
    looks: tuple[Look, ...] = ()
    curves: tuple[Curve, ...] = ()


def write_report(folder: Path, story: Story) -> Path:
    """Write `report.html` into the folder, whole or not at all."""
    return write_whole(folder / REPORT, render(story))


def render(story: Story) -> str:
    """The page as one HTML text that asks the network for nothing."""
    return fill("report.html.jinja", context(story))


def fill(template: str, content: Mapping[str, Any]) -> str:
    """One of this folder's templates, with the style and the words and numbers filled in."""
    import jinja2

    files = resources.files("fetchlab.eval.report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": percent, "interval": interval, "inline": _base64}
    style = (files / "style.css").read_text("utf-8")
    page = environment.from_string((files / template).read_text("utf-8"))
    return page.render(style=style, **content)


def context(story: Story) -> dict[str, Any]:
    """What the template fills in."""
    results = story.results
    series = series_of(results)
    cells = {(cell.policy, cell.n_objects): cell for cell in results.cells}
    counts = sorted({cell.n_objects for cell in results.cells})
    charts = {
        name: success_chart(results.cells, series, story.seen, size)
        for name, size in (("wide", WIDE), ("narrow", NARROW))
    }
    return {
        "story": story,
        "results": results,
        "series": series,
        "labels": {one.policy: one.label for one in series},
        "colours": {one.policy: f"var(--series-{row})" for row, one in enumerate(series)},
        "cells": cells,
        "counts": counts,
        "charts": charts,
        "curves": loss_charts(story.curves, series),
        "headline": headline(results.cells, story.seen),
        "grounding": grounding_views(results.grounding, LABELS),
        "summary": success_summary(results.cells, series),
        "failures": failure_rows(results.cells, series),
        "stages": stage_rows(results.timings_s),
        "trained_without": "act_no_position_queries" in {one.policy for one in series},
        "seen_text": span(story.seen),
        "versions": json.dumps(results.versions, indent=1),
    }


def series_of(results: Results) -> list[Series]:
    """How each evaluated policy is named and drawn, in the order of the results."""
    policies = dict.fromkeys(cell.policy for cell in results.cells)
    return [
        Series(
            policy=policy,
            label=LABELS.get(policy, policy),
            colour=SERIES[row % len(SERIES)],
            dashed=policy in DASHED,
        )
        for row, policy in enumerate(policies)
    ]


def headline(cells: Sequence[Cell], seen: Sequence[int]) -> str:
    """The result of the first policy in one plain sentence."""
    first = cells[0].policy
    who = SUBJECTS.get(first, LABELS.get(first, first))
    mine = [cell for cell in cells if cell.policy == first and cell.n_episodes]
    known = [cell for cell in mine if cell.n_objects in seen]
    most = max(mine, key=lambda cell: cell.n_objects)
    if not known or most.n_objects in seen:
        return f"In {_share(mine)} scenes, the named block was fetched"
    return (
        f"Trained on tables with {span(seen)} blocks, {who} fetches the named one in "
        f"{_share(known)} new scenes of that kind, and in {_share([most])} scenes with "
        f"{most.n_objects}"
    )


def interval(cell: Cell) -> str:
    """The 95 % interval, short enough for a table on a phone."""
    low, high = cell.ci95 or (0.0, 1.0)
    return f"{100 * low:.1f}\u2013{100 * high:.1f}"


def _share(cells: Sequence[Cell]) -> str:
    won, played = sum(c.n_success for c in cells), sum(c.n_episodes for c in cells)
    return f"all {played}" if won == played else f"{won} of {played}"


def span(counts: Sequence[int]) -> str:
    """ "2 to 5" for (2, 3, 4, 5); every number for counts with gaps."""
    low, high = min(counts), max(counts)
    if low < high and sorted(counts) == list(range(low, high + 1)):
        return f"{low} to {high}"
    return ", ".join(map(str, sorted(counts)))


def success_summary(cells: Sequence[Cell], series: Sequence[Series]) -> str:
    """The chart in words, for those who cannot see it."""
    parts = []
    for one in series:
        mine = [cell for cell in cells if cell.policy == one.policy]
        rates = ", ".join(
            f"{percent(cell.success_rate)} with {cell.n_objects}"
            for cell in mine
            if cell.success_rate is not None
        )
        refused = [cell.n_objects for cell in mine if cell.success_rate is None]
        ending = f"; cannot take {span(refused)}" if refused else ""
        parts.append(f"{one.label}: {rates}{ending}.")
    return " ".join(parts)


def failure_rows(cells: Sequence[Cell], series: Sequence[Series]) -> list[dict[str, Any]]:
    """Why each policy failed, over all its episodes."""
    rows = []
    for one in series:
        mine = [cell for cell in cells if cell.policy == one.policy]
        reasons: dict[str, int] = {}
        for cell in mine:
            for reason, count in cell.failures.items():
                reasons[reason] = reasons.get(reason, 0) + count
        ordered = sorted(reasons.items(), key=lambda item: -item[1])
        rows.append(
            {
                "policy": one.policy,
                "n": sum(cell.n_episodes for cell in mine),
                "reasons": [(REASONS.get(reason, reason), count) for reason, count in ordered],
            }
        )
    return rows


def stage_rows(timings: Mapping[str, float]) -> list[dict[str, Any]]:
    """Each stage's time and its share of the longest."""
    longest = max([*timings.values(), 1e-9])
    return [
        {"stage": stage, "time": duration(seconds), "share": round(100 * seconds / longest, 1)}
        for stage, seconds in timings.items()
    ]


def duration(seconds: float) -> str:
    """ "48 s" or "2 min 05 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def loss_charts(curves: Sequence[Curve], series: Sequence[Series]) -> list[dict[str, str]]:
    """A small chart for each training."""
    by_policy = {one.policy: one for one in series}
    return [
        {"label": by_policy[curve.policy].label, "svg": loss_chart(curve, by_policy[curve.policy])}
        for curve in curves
        if curve.policy in by_policy
    ]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
