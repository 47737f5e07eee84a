"""The heat map: every suite's arms by policy, as rate and as difference to the control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fetchlab.eval.benchmark.summary import Contrast, Pool, Summary
from fetchlab.eval.report import words
from fetchlab.eval.suites import NOMINAL, SUITES, Arm, Suite
from fetchlab.eval.tables import percent

CURVES = ("counts", "data")  # suites that have charts of their own
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
                "blocks": self._blocks(suite, self._pools(suite)),
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
                "rows": [self._row(arm, condition.name, pools) for arm in arms],
            }
            for condition in conditions
        ]

    def _row(self, arm: Arm, trained: str, pools: Sequence[Pool]) -> dict[str, Any]:
        mine = [pool for pool in pools if pool.key.arm == arm.name]
        return {
            "arm": words.arm_text(arm.name),
            "description": arm.description,
            "control": not arm.control,
            "cells": [self._cell(policy, trained, mine) for policy in self.policies],
        }

    def _cell(self, policy: str, trained: str, pools: Sequence[Pool]) -> dict[str, Any]:
        """One policy in one row; a scripted one is the same however others were trained."""
        mine = [pool for pool in pools if pool.key.policy == policy]
        trained = NOMINAL if {pool.key.trained for pool in mine} == {NOMINAL} else trained
        mine = [pool for pool in mine if pool.key.trained == trained]
        n = sum(pool.n_episodes for pool in mine)
        if not n:
            return {"rate": "", "note": mine[0].note if mine else "not trained for it"}
        rate = sum(pool.n_success for pool in mine) / n
        shade = f"color-mix(in srgb, var(--series-0) {DARKEST * rate:.0f}%, transparent)"
        about = {"rate": percent(rate), "note": f"{n} episodes", "style": f"background: {shade}"}
        return about | _against(self._contrast(mine[0]))

    def _contrast(self, pool: Pool) -> Contrast | None:
        key = pool.key
        wanted = (key.policy, key.trained, key.suite, key.arm)
        contrasts = self.summary.contrasts
        found = (c for c in contrasts if (c.policy, c.trained, c.suite, c.arm) == wanted)
        return next(found, None)


def _against(contrast: Contrast | None) -> dict[str, Any]:
    """The difference to the control, marked where chance can hardly have made it."""
    if contrast is None:
        return {"difference": "", "verdict": ""}
    one = contrast.comparison
    low, high = one.ci95
    verdict = "worse" if high < 0 else "better" if low > 0 else ""
    note = f"{one.n} pairs of episodes, 95 % interval of the difference {words.between(one.ci95)}"
    return {"difference": words.points(one.difference), "verdict": verdict, "note": note}
