"""Made-up figures of the lesson, for the tests of the command and the page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure as Drawing

from fetchlab.eval.figures.base import Check, Figure, Table, as_svg
from fetchlab.eval.figures.folder import Measured
from fetchlab.eval.report.charts import FAINT, SERIES


def made_up(number: int, *, wrong: bool = False, data: dict[str, Any] | None = None) -> Figure:
    """A figure with one check of each kind; `wrong`: one more that fails."""
    checks = [
        Check(quantity="parameters", value=182, low=182, high=182),
        Check(quantity="error, cm", value=0.25, high=0.3),
        Check(quantity="ratio", value=9.7, low=8),
        Check(quantity="spread", value=1.3e-15, low=0, high=1e-12),
    ]
    if wrong:
        checks.append(Check(quantity="far <off>", value=5.0, low=0.0, high=1.0))
    return Figure(
        number=number,
        title=f"Made up {number}",
        question="Is <this> a question?",
        text=("First paragraph, with 1 < 2.", "Second paragraph."),
        svg=drawing(),
        checks=tuple(checks),
        tables=(Table(caption="A table", header=("d", "value"), rows=(("8", "1.0"),)),),
        data=data or {},
    )


def drawing() -> str:
    """With a placeholder colour, a fixed one, a grey and black text."""
    figure = Drawing(figsize=(7, 3))
    left, right = figure.subplots(1, 2)
    left.plot([1, 2, 3], color=SERIES[0], marker="o")
    left.set_title("curve", color=FAINT)
    left.text(1, 2, "grey", color="#404040")
    right.imshow([[0, 1], [1, 0]])
    right.set_xlabel("black text")
    return as_svg(figure)


def measured(number: int, **changes: Any) -> Measured:
    """The figure as the command holds it."""
    figure = made_up(number, **changes)
    return Measured(figure=figure, quick=True, seconds=1.25, made_with={"torch": "2.13.0"})


BAD_NUMBER = Check(quantity="no number", value=math.nan, low=0.0)


def settled(figure: Callable[..., Figure], *, quick: bool) -> Figure:
    """A figure with timings, measured up to three times until every check holds.

    A machine that others use too can miss a bound on time once; a number that does not depend on
    time is wrong all three times.
    """
    for _ in range(3):
        measured: Figure = figure(quick=quick)
        if all(check.ok for check in measured.checks):
            break
    return measured
