"""What a figure of the lesson hands over: numbers beside their bounds, a drawing, plain words."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True, kw_only=True)
class Check:
    """A measured number beside the range it must fall in."""

    quantity: str
    value: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def ok(self) -> bool:
        """Whether it lies inside; what is not a number does not."""
        return self.low <= self.value <= self.high


@dataclass(frozen=True, kw_only=True)
class Table:
    """A few numbers to read, a row each."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure, measured."""

    number: int
    title: str
    question: str
    """what it answers, in one sentence"""
    text: tuple[str, ...]
    """paragraphs for someone without training in statistics"""
    svg: str
    checks: tuple[Check, ...]
    tables: tuple[Table, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """what the interactive part of the page needs, as JSON"""

    def __post_init__(self) -> None:
        if not self.checks:
            raise ValueError(f"figure {self.number} checks nothing")


def as_svg(drawing: Drawing) -> str:
    """The drawing as an SVG element: the same bytes for the same drawing."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "fetchlab", "svg.fonttype": "none"}):
        drawing.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :]
