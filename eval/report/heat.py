"""The heat map: every suite's arms by policy, as rate and as difference to the control."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fetchlab.eval.arms import NOMINAL, Arm, Suite
from fetchlab.eval.benchmark.pairs import ArmKey, Contrast, FullNames, Lesson
from fetchlab.eval.benchmark.summary import Pool, Summary
from fetchlab.eval.report import words
from fetchlab.eval.results import CellKey
from fetchlab.eval.statistics import Comparison
from fetchlab.eval.suites import SUITES
from fetchlab.eval.tables import percent

CURVES = ("counts", "data")  # suites that have charts of their own
Row = TypeVar("Row", bound=ArmKey)
DARKEST = 42  # percent of colour where everything succeeds: the text on it stays readable


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """What the rows are filled from."""

    summary: Summary
    policies: Sequence[str]

    def suites(self) -> list[dict[str, Any]]:
        """A block a suite, in it one for each way that policies were trained."""
        names = dict.fromkeys(pool.key.suite for pool in self.summary.pools)
        suites = [SUITES[name] for name in names if name not in CURVES]
        return [
            {
                "suite": suite.name,
                "description": suite.description,
                "remark": words.remark(suite),
                "blocks": [*self._blocks(suite, self._pools(suite)), *self._lessons(suite)],
            }
            for suite in suites
        ]

    def _pools(self, suite: Suite) -> list[Pool]:
        return [pool for pool in self.summary.pools if pool.key.suite == suite.name]

    def _blocks(self, suite: Suite, pools: Sequence[Pool]) -> list[dict[str, Any]]:
        conditions = [c for c in suite.trained if c.name in {pool.key.trained for pool in pools}]
        conditions = conditions or list(suite.trained[:1])  # only scripted policies
        played = {pool.key.arm for pool in pools}
        arms = [arm for arm in suite.arms if arm.name in played]
        return [
            {
                "trained": condition.description if len(conditions) > 1 else "",
                "rows": [row for arm in arms for row in self._rows(arm, condition.name, pools)],
            }
            for condition in conditions
        ]

    def _rows(self, arm: Arm, trained: str, pools: Sequence[Pool]) -> Iterator[dict[str, Any]]:
        """All scenes of an arm; and those in which the sentence says all, if that was counted."""
        by_policy = [_mine(pools, policy, trained, arm.name) for policy in self.policies]
        about = {"control": not arm.control, "description": arm.description}
        cells = [self._cell(mine) for mine in by_policy]
        yield {"arm": words.arm_text(arm.name), **about, "cells": cells}
        names = self.summary.full_names
        named = [_at(mine[0].key, names) if mine else None for mine in by_policy]
        if any(named):
            about["description"] = "of these, sentences that say colour and shape"
            yield {"arm": "", **about, "cells": [_named(one) for one in named]}

    def _cell(self, mine: Sequence[Pool]) -> dict[str, Any]:
        """One policy in one row."""
        n = sum(pool.n_scenes for pool in mine)
        if not n:
            return {"rate": "", "note": mine[0].note if mine else "not trained for it"}
        rate = sum(pool.n_solved for pool in mine) / n
        return _shaded(rate, words.number(n, "scene")) | _against(
            _at(mine[0].key, self.summary.contrasts)
        )

    def _lessons(self, suite: Suite) -> list[dict[str, Any]]:
        """What another way to be trained changed: a block for each two of them."""
        mine = [one for one in self.summary.lessons if one.suite == suite.name]
        texts = {condition.name: condition.description for condition in suite.trained}
        return [
            {
                "trained": f"{texts[trained]}, minus: {texts[against]}",
                "rows": [self._lesson(arm, trained, mine) for arm in suite.arms if arm.control],
            }
            for trained, against in dict.fromkeys((one.trained, one.against) for one in mine)
        ]

    def _lesson(self, arm: Arm, trained: str, lessons: Sequence[Lesson]) -> dict[str, Any]:
        found = {o.policy: o for o in lessons if (o.arm, o.trained) == (arm.name, trained)}
        cells = [_learned(found.get(policy)) for policy in self.policies]
        about = {"control": False, "description": "difference in points, in the same scenes"}
        return {"arm": words.arm_text(arm.name), **about, "cells": cells}


def _mine(pools: Sequence[Pool], policy: str, trained: str, arm: str) -> list[Pool]:
    """A policy's in an arm; of a scripted one the same, however others were trained."""
    mine = [pool for pool in pools if (pool.key.policy, pool.key.arm) == (policy, arm)]
    trained = NOMINAL if {pool.key.trained for pool in mine} == {NOMINAL} else trained
    return [pool for pool in mine if pool.key.trained == trained]


def _at(key: CellKey, rows: Sequence[Row]) -> Row | None:
    """What is said about the arm that a cell belongs to."""
    wanted = (key.policy, key.trained, key.suite, key.arm)
    return next((o for o in rows if (o.policy, o.trained, o.suite, o.arm) == wanted), None)


def _shaded(rate: float, note: str) -> dict[str, Any]:
    shade = f"color-mix(in srgb, var(--series-0) {DARKEST * rate:.0f}%, transparent)"
    return {"rate": percent(rate), "note": note, "style": f"background: {shade}"}


def _named(one: FullNames | None) -> dict[str, Any]:
    if one is None:
        return {"rate": "", "note": "did not play it"}
    low, high = one.ci95
    scenes = words.number(one.n_scenes, "scene")
    note = f"{scenes}, 95 % interval {100 * low:.1f} to {100 * high:.1f} %"
    return _shaded(one.rate, note) | {"difference": f"of {scenes}", "verdict": ""}


def _learned(lesson: Lesson | None) -> dict[str, Any]:
    if lesson is None:
        return {"rate": "", "note": "was not trained in two ways"}
    one = lesson.comparison
    note = f"{words.number(one.n, 'scene')}, p {words.chance(one.p_value)}"
    difference = words.points(one.difference)
    about = {"rate": difference, "difference": words.between(one.ci95), "style": ""}
    return about | {"verdict": _verdict(one), "note": note}


def _against(contrast: Contrast | None) -> dict[str, Any]:
    """The difference to the control, marked where chance can hardly have made it."""
    if contrast is None:
        return {"difference": "", "verdict": ""}
    one = contrast.comparison
    note = (
        f"{words.number(one.n, 'scene')}, 95 % interval of the difference {words.between(one.ci95)}"
    )
    return {"difference": words.points(one.difference), "verdict": _verdict(one), "note": note}


def _verdict(comparison: Comparison) -> str:
    low, high = comparison.ci95
    return "worse" if high < 0 else "better" if low > 0 else ""
