"""The report's charts: SVG whose colours follow the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fetchlab.eval.results import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that matplotlib writes, and the page's variables that they become.
INK, FAINT, GRID, SEEN = "#010101", "#020202", "#030303", "#040404"
VARIABLES = {INK: "--ink", FAINT: "--faint", GRID: "--line", SEEN: "--seen"}
SERIES = tuple(f"#0a0a{index:02x}" for index in range(6))
VARIABLES |= {colour: f"--series-{index}" for index, colour in enumerate(SERIES)}
WIDE, NARROW = (7.6, 4.1), (3.9, 3.9)  # inches, for a laptop and for a phone


@dataclass(frozen=True, kw_only=True)
class Series:
    """How one policy is named and drawn."""

    policy: str
    label: str
    colour: str
    dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A policy's loss while it learned."""

    policy: str
    steps: Sequence[int]
    loss: Sequence[float]
    held_out_steps: Sequence[int]
    held_out_loss: Sequence[float]


def success_chart(
    cells: Sequence[Cell],
    series: Sequence[Series],
    seen: Sequence[int],
    size: tuple[float, float],
    things: str = "blocks",
) -> str:
    """Success against the number of objects, with 95 % bands; the seen counts are shaded."""
    figure, axes = _figure(size)
    axes.axvspan(min(seen) - 0.4, max(seen) + 0.4, color=SEEN, zorder=0, linewidth=0)
    axes.text(min(seen) - 0.25, 62, "seen in training", color=FAINT, fontsize=9.5)
    for one in reversed(series):  # the first lies on top
        _draw_policy(axes, one, [cell for cell in cells if cell.policy == one.policy])
    counts = sorted({cell.n_objects for cell in cells})
    axes.set_xticks(counts)
    axes.set_xlim(counts[0] - 0.4, counts[-1] + 0.4)
    axes.set_ylim(0, 104)
    axes.set_yticks([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel(f"{things} on the table", color=FAINT)
    return svg(figure)


def _draw_policy(axes: Axes, one: Series, cells: Sequence[Cell]) -> None:
    played = [cell for cell in cells if cell.success_rate is not None and cell.ci95 is not None]
    x = [cell.n_objects for cell in played]
    y = [100 * (cell.success_rate or 0.0) for cell in played]
    bands = [cell.ci95 or (0.0, 1.0) for cell in played]
    low, high = ([100 * band[side] for band in bands] for side in (0, 1))
    axes.fill_between(x, low, high, color=one.colour, alpha=0.14, linewidth=0)
    style = {"linestyle": (0, (4, 3)) if one.dashed else "-", "linewidth": 2.2}
    axes.plot(x, y, color=one.colour, marker="o", markersize=5, label=one.label, **style)  # type: ignore[arg-type]
    if played and len(played) < len(cells):
        axes.plot(x[-1], y[-1], marker="X", markersize=11, color=one.colour)
        axes.annotate(
            "cannot take more",
            (x[-1], y[-1]),
            xytext=(9, -12),
            textcoords="offset points",
            color=one.colour,
            fontsize=9.5,
        )


@dataclass(frozen=True, kw_only=True)
class Line:
    """Success against something, with 95 % intervals; fractions."""

    label: str
    colour: str
    x: Sequence[float]
    rates: Sequence[float]
    intervals: Sequence[tuple[float, float]]


def line_chart(
    lines: Sequence[Line], axis: str, size: tuple[float, float], ticks: Sequence[float] = ()
) -> str:
    """Success against something: with ticks on a scale of factors, else from 0 on."""
    from matplotlib.ticker import NullFormatter

    figure, axes = _figure(size)
    for line in lines:
        low, high = ([100 * band[side] for band in line.intervals] for side in (0, 1))
        axes.fill_between(line.x, low, high, color=line.colour, alpha=0.14, linewidth=0)
        y = [100 * rate for rate in line.rates]
        axes.plot(line.x, y, color=line.colour, marker="o", markersize=5, linewidth=2.2)
    if ticks:
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)
    axes.set_ylim(0, 104)
    axes.set_yticks([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel(axis, color=FAINT)
    return svg(figure)


def loss_chart(curve: Curve, one: Series) -> str:
    """Training loss as a line, held-out loss as dots."""
    figure, axes = _figure((3.2, 2.4))
    axes.plot(curve.steps, curve.loss, color=one.colour, linewidth=1.6)
    axes.plot(curve.held_out_steps, curve.held_out_loss, "o", color=INK, markersize=3.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("training step", color=FAINT)
    return svg(figure)


def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(which="both", colors=FAINT, length=0, labelsize=10)
    return figure, axes


def svg(figure: Figure) -> str:
    """The drawing as an inline SVG: the page's own font and colours, any width, no addresses."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "fetchlab"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (?:xmlns(?::xlink)?|width|height)="[^"]*"', "", text, count=4)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text
