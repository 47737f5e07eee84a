"""A repeated measurement, and what it was made on."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fetchlab.eval.parallel import usable_cores


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One quantity, measured several times; the machine may be shared, so the spread matters."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def seconds(self) -> float:
        """What one of it costs: a step, a reset, a demonstration."""
        return self.median / 1000 if self.unit == "ms" else 1 / self.median

    def summary(self, reference: Measurement) -> dict[str, Any]:
        """As JSON; `cost_in_steps` tells it in units of the reference, which travels better."""
        return {
            "name": self.name,
            "unit": self.unit,
            "minimum": min(self.values),
            "median": self.median,
            "maximum": max(self.values),
            "values": list(self.values),
            "cost_in_steps": self.seconds / reference.seconds,
        }


def rates(name: str, repeats: int, work: Callable[[int], int]) -> Measurement:
    """How many a second `work` does; it is told the repeat's number and returns how many it did."""
    values = []
    for repeat in range(repeats):
        started = time.perf_counter()
        done = work(repeat)
        values.append(done / (time.perf_counter() - started))
    return Measurement(name=name, unit="1/s", values=tuple(values))


class Ticks:
    """When how many were done; the rate leaves out what came before the first telling."""

    def __init__(self) -> None:
        self._told: list[tuple[float, int]] = []

    def tell(self, done: int) -> None:
        self._told.append((time.perf_counter(), done))

    def rate(self) -> float:
        """How many a second."""
        (started, before), (ended, after) = self._told[0], self._told[-1]
        return (after - before) / (ended - started)


def milliseconds(work: Callable[[], object]) -> float:
    """How long `work` takes [ms]."""
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "processor": _processor(),
        "usable_cores": usable_cores(),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
