"""What `fetchlab figures` leaves in its folder, and how a later run reads it again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fetchlab.errors import UserError
from fetchlab.eval.figures.base import Check, Figure, Table
from fetchlab.eval.figures.registry import FIGURES
from fetchlab.eval.figures.theme import standalone
from fetchlab.eval.results import write_whole

CHECKS = "figures.json"
OURS = re.compile(r"figures\.json|figure-\d+\.json")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A figure and how it came about."""

    figure: Figure
    quick: bool
    seconds: float
    made_with: dict[str, str | None]
    """versions, commit and machine"""

    @property
    def n_checks(self) -> int:
        """Numbers that have a range."""
        return len(self.figure.checks)

    @property
    def n_ok(self) -> int:
        """Numbers that lie in it."""
        return sum(check.ok for check in self.figure.checks)


def check_ours(out: Path) -> None:
    """UserError if the folder holds something, and nothing of this command."""
    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    if names and not any(OURS.fullmatch(name) for name in names):
        raise UserError(
            f"--out {out} holds something else than figures ({min(names)}): give a new folder"
        )


def read(out: Path, *, without: Collection[int]) -> list[Measured]:
    """The figures that lie in the folder, except those about to be measured again."""
    wanted = [number for number in FIGURES if number not in without]
    paths = [out / f"figure-{number}.json" for number in wanted]
    return [_read(path) for path in paths if path.is_file()]


def _read(path: Path) -> Measured:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        svg = path.with_suffix(".svg").read_text(encoding="utf-8")
        figure = content.pop("figure")
        checks = tuple(_check(**row) for row in figure.pop("checks"))
        tables = tuple(_table(**table) for table in figure.pop("tables"))
        text = tuple(figure.pop("text"))
        made = Figure(**figure, text=text, svg=svg, checks=checks, tables=tables)
        return Measured(figure=made, **content)
    except (KeyError, TypeError, ValueError, AttributeError, FileNotFoundError) as error:
        number = path.stem.split("-")[1]
        raise UserError(
            f"{path} is not a figure of this version of fetchlab ({error!r}): measure it again "
            f"with `fetchlab figures {number} --out {path.parent}`"
        ) from error


def _check(quantity: str, value: float | None, low: float | None, high: float | None) -> Check:
    return Check(
        quantity=quantity,
        value=math.nan if value is None else value,
        low=-math.inf if low is None else low,
        high=math.inf if high is None else high,
    )


def _table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(caption=caption, header=tuple(header), rows=tuple(tuple(row) for row in rows))


def write(out: Path, measured: Measured) -> None:
    """The drawing, then the numbers: where these are, the figure is complete."""
    name = f"figure-{measured.figure.number}"
    write_whole(out / f"{name}.svg", standalone(measured.figure.svg))
    figure = {**vars(measured.figure), "checks": _rows(measured.figure)}
    figure["tables"] = [asdict(table) for table in measured.figure.tables]
    del figure["svg"]
    write_whole(out / f"{name}.json", as_json({**vars(measured), "figure": figure}))


def _rows(figure: Figure) -> list[dict[str, Any]]:
    bounds = ("value", "low", "high")
    return [
        {"quantity": check.quantity, **{key: _finite(getattr(check, key)) for key in bounds}}
        for check in figure.checks
    ]


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def write_checks(out: Path, everything: Sequence[Measured]) -> Path:
    """`figures.json`: every number beside its range; a bound that is not there is null."""
    rows = [
        {"figure": one.figure.number, **row, "ok": check.ok}
        for one in everything
        for row, check in zip(_rows(one.figure), one.figure.checks, strict=True)
    ]
    return write_whole(out / CHECKS, as_json(rows))


def as_json(content: Any) -> str:
    """Standard JSON: no NaN, no infinity."""
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
