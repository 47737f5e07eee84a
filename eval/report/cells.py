"""Every cell of a benchmark as a row: what was played, how it ended, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fetchlab.eval.arms import NOMINAL
from fetchlab.eval.benchmark.summary import Pool
from fetchlab.eval.report import words
from fetchlab.eval.results import CellKey
from fetchlab.eval.suites import SUITES


def cell_views(pools: Sequence[Pool], seconds: Mapping[CellKey, float]) -> list[dict[str, Any]]:
    """A table for each suite; `seconds` an episode, by cell."""
    return [
        {
            "suite": suite,
            "rows": [_row(pool, seconds) for pool in pools if pool.key.suite == suite],
        }
        for suite in dict.fromkeys(pool.key.suite for pool in pools)
    ]


def _row(pool: Pool, seconds: Mapping[CellKey, float]) -> dict[str, Any]:
    key, took = pool.key, seconds.get(pool.key)
    failures = sorted(pool.failures.items(), key=lambda item: (-item[1], item[0]))
    return {
        "pool": pool,
        "arm": words.arm_text(key.arm),
        "trained": _trained(key),
        "task": words.task_text(key.task),
        "steps": "–" if pool.mean_steps is None else f"{pool.mean_steps:.1f}",
        "seconds": "–" if took is None else f"{took:.2f}",
        "failures": [f"{reason.replace('_', ' ')} {count}" for reason, count in failures],
    }


def _trained(key: CellKey) -> str:
    """The condition of the demonstrations, where it is not the usual one."""
    conditions = {condition.name: condition for condition in SUITES[key.suite].trained}
    return "" if key.trained == NOMINAL else conditions[key.trained].description
