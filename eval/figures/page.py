"""`figures.html`: the lesson's figures to read from top to bottom, some of them to play with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.folder import Measured
from fetchlab.eval.figures.registry import FIGURES
from fetchlab.eval.figures.theme import inline
from fetchlab.eval.results import command_line, write_whole

PAGE = "figures.html"
# In this order they are one script: what a file uses comes before it.
SCRIPTS = ("formulas.js", "elements.js", "lookup.js", "order.js", "masks.js", "cost.js", "start.js")
TURNS = [math.radians(72 * i) for i in range(5)]
APPROACH = [[5.0 + 2.0 * i, 6.0 - 0.1 * i * i] for i in range(12)]
# What the interactive parts show where a figure hands over nothing of its own.
EXAMPLES: Mapping[int, Mapping[str, Any]] = {
    1: {
        "names": ("red", "green", "blue", "yellow", "purple"),
        "keys": [[math.cos(turn), math.sin(turn)] for turn in TURNS],
        "values": [[-24.0, 17.0], [9.0, 31.0], [29.0, -4.0], [6.0, -7.0], [-21.0, -32.0]],  # cm
    },
    4: {"paths": [{"waypoints": APPROACH, "block": [29.5, -8.0]}]},  # cm
}
RAISED = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAYS = {  # figures with a part to play with, and what it is called
    1: "Drag the query",
    4: "Choose positions and mask",
    6: "Edit a token, grow a sequence",
    7: "Count tokens, see what they cost",
}


def write_page(out: Path, everything: Sequence[Measured]) -> Path:
    """Write `figures.html` into the folder, whole or not at all."""
    return write_whole(out / PAGE, render(everything))


def render(everything: Sequence[Measured]) -> str:
    """The page as one HTML text that asks the network for nothing."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "range": range_text}
    return environment.from_string(_packaged("figures", "figures.html.jinja")).render(
        style=_packaged("report", "style.css") + _packaged("figures", "figures.css"),
        script="\n".join(_packaged("figures", name) for name in SCRIPTS),
        chapters=[chapter(one) for one in everything],
        missing=sorted(FIGURES.keys() - {one.figure.number for one in everything}),
        data={n: interactive_data(one) for one in everything if (n := one.figure.number) in PLAYS},
        plays=PLAYS,
        n_ok=sum(one.n_ok for one in everything),
        n_checks=sum(one.n_checks for one in everything),
        command=command_line(),
        made_with=made_with(everything),
    )


def _packaged(part: str, name: str) -> str:
    return (resources.files(f"fetchlab.eval.{part}") / name).read_text("utf-8")


def chapter(one: Measured) -> dict[str, Any]:
    """What the template tells about one figure."""
    figure = one.figure
    return {
        "figure": figure,
        "svg": inline(figure.svg, f"f{figure.number}"),
        "n_ok": one.n_ok,
        "n_checks": one.n_checks,
        "quick": one.quick,
        "seconds": f"{one.seconds:.1f}",
    }


def interactive_data(one: Measured) -> dict[str, Any]:
    """What the script is told: the figure's own data, over the lesson's example."""
    return {**EXAMPLES.get(one.figure.number, {}), **one.figure.data}


def made_with(everything: Sequence[Measured]) -> list[tuple[str, str]]:
    """Which figures were made with which versions, machine and commit."""
    groups: dict[str, list[str]] = {}
    for one in everything:
        groups.setdefault(json.dumps(one.made_with, indent=1), []).append(str(one.figure.number))
    return [(", ".join(numbers), text) for text, numbers in groups.items()]


def number(value: float) -> str:
    """Short enough to read, exact enough to compare: "89,440", "0.4011", "1.3 × 10⁻¹⁵"."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}".replace("-", "−")
    text = f"{value:.4g}" if abs(value) < 1e4 else f"{value:.3e}"
    mantissa, _, exponent = text.replace("-", "−").partition("e")
    if not exponent:
        return mantissa
    return f"{mantissa} × 10{exponent.lstrip('+0').replace('−0', '−').translate(RAISED)}"


def range_text(check: Check) -> str:
    """What the number must be: "0.2 to 0.4", "at most 0.3", "at least 8" or "exactly 182"."""
    low, high = check.low, check.high
    if low == high:
        return f"exactly {number(low)}"
    if not math.isfinite(low):
        return f"at most {number(high)}"
    if not math.isfinite(high):
        return f"at least {number(low)}"
    return f"{number(low)} to {number(high)}"
