"""Figure 3: without 1/√d_k the scores grow with the width, and the softmax stops listening."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fetchlab.eval.figures.base import Check, Figure, Table, as_svg
from fetchlab.eval.figures.saturation import RETRIEVAL_WIDTH, retrieval, saturation
from fetchlab.eval.figures.scale_bounds import EXPECTED, WIDTHS
from fetchlab.eval.parallel import one_thread
from fetchlab.eval.report.charts import FAINT, GRID, INK, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

N_KEYS, N_QUERIES = 16, 2_000
LEARNING_AT = (0, 30, 60, 100, 200, 300, 600, 1_000)
NAMES = ("raw", "scaled")
COLOURS = dict(zip(NAMES, (SERIES[2], SERIES[0]), strict=True))
Summary = Mapping[str, float]


def figure(*, quick: bool) -> Figure:
    """Measure, with the same random numbers with and without the scale."""
    with one_thread():
        found = {
            width: saturation(width, N_KEYS, N_QUERIES, 4 if quick else 48) for width in WIDTHS
        }
        few = saturation(512, 5, N_QUERIES, 4 if quick else 12)
        steps = LEARNING_AT[:6] if quick else LEARNING_AT
        curves = {
            name: retrieval(scale, 3 if quick else 10, steps)
            for name, scale in zip(NAMES, (1.0, 1 / math.sqrt(RETRIEVAL_WIDTH)), strict=True)
        }
    learning = {name: dict(zip(steps, curve, strict=True)) for name, curve in curves.items()}
    return Figure(
        number=3,
        title="Why the scores are divided by √d",
        question="What goes wrong when queries and keys get wide?",
        text=TEXT,
        svg=as_svg(draw(found, learning)),
        checks=(
            *softness_checks(found),
            *flatness_checks(found, within=0.025 if quick else 0.01),
            *few_keys_checks(*few),
            *learning_checks(learning),
        ),
        tables=(softness_table(found), learning_table(learning)),
    )


def softness_checks(found: Mapping[int, tuple[Summary, Summary]]) -> Iterator[Check]:
    """Every number of the table, for each width."""
    for row in EXPECTED:
        for i, width in enumerate(WIDTHS):
            raw, scaled = found[width]
            for name, summary, wanted, within in (
                ("raw", raw, row.raw[i], row.raw_within[i]),
                ("scaled", scaled, row.scaled[i], row.scaled_within),
            ):
                yield Check(
                    quantity=f"d = {width}, {name}: {row.quantity}",
                    value=summary[row.quantity],
                    low=wanted - within,
                    high=wanted + within,
                )


def flatness_checks(found: Mapping[int, tuple[Summary, Summary]], within: float) -> Iterator[Check]:
    """With the scale the width does not matter."""
    for quantity in ("variance of the scores", "median Jacobian", "median score gradient"):
        values = [scaled[quantity] for _, scaled in found.values()]
        middle = (max(values) + min(values)) / 2
        yield Check(
            quantity=f"scaled, all widths: {quantity} varies around its middle by a share of",
            value=(max(values) - middle) / middle,
            high=within,
        )


def few_keys_checks(raw: Summary, scaled: Summary) -> Iterator[Check]:
    """Five keys instead of sixteen are quieter still."""
    for name, summary, low, high in (
        ("raw", raw, 0.7e-5, 2.2e-5),
        ("scaled", scaled, 0.40, 0.416),
    ):
        yield Check(
            quantity=f"d = 512, five keys, {name}: median Jacobian",
            value=summary["median Jacobian"],
            low=low,
            high=high,
        )


def learning_checks(learning: Mapping[str, Mapping[int, float]]) -> Iterator[Check]:
    """Slower in the beginning; not stalled."""
    bounds = {
        ("raw", 100): (30, 38),
        ("scaled", 100): (18, 25),
        ("raw", 300): (10, 17),
        ("scaled", 300): (3, 6),
        ("raw", 1_000): (0, 2),
        ("scaled", 1_000): (0, 2),
    }
    for (name, step), (low, high) in bounds.items():
        if step in learning[name]:
            yield Check(
                quantity=f"{name}, retrieval with d = {RETRIEVAL_WIDTH}: "
                f"error after {step:,} steps, cm",
                value=learning[name][step],
                low=low,
                high=high,
            )


def softness_table(found: Mapping[int, tuple[Summary, Summary]]) -> Table:
    """All numbers, raw / scaled."""
    return Table(
        caption=f"{N_KEYS} keys, everything drawn from N(0, 1): raw / scaled by 1/√d",
        header=("", *(f"d = {width}" for width in WIDTHS)),
        rows=tuple(
            (
                row.quantity,
                *(" / ".join(f"{s[row.quantity]:.3g}" for s in found[w]) for w in WIDTHS),
            )
            for row in EXPECTED
        ),
    )


def learning_table(learning: Mapping[str, Mapping[int, float]]) -> Table:
    """The learning curves."""
    steps = list(learning["raw"])
    return Table(
        caption="find a noisy key among 16: error in cm by training steps",
        header=("", *(f"{step:,}" for step in steps)),
        rows=tuple(
            (name, *(f"{curve[step]:.1f}" for step in steps)) for name, curve in learning.items()
        ),
    )


def draw(
    found: Mapping[int, tuple[Summary, Summary]], learning: Mapping[str, Mapping[int, float]]
) -> Drawing:
    """The gradient that reaches the scores, and what it does to learning."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.6, 3.7), layout="constrained")
    gradient, curve = drawing.subplots(1, 2)
    for side, name in enumerate(NAMES):
        values = [found[width][side]["median score gradient"] for width in WIDTHS]
        gradient.plot(WIDTHS, values, color=COLOURS[name], marker="o", linewidth=2.2)
        curve.plot(
            list(learning[name]),
            list(learning[name].values()),
            color=COLOURS[name],
            linewidth=2.2,
            label={"raw": "scores as they are", "scaled": "divided by √d"}[name],
        )
    dress(gradient, "median gradient at the scores", "width d of queries and keys")
    gradient.set(xscale="log", yscale="log")
    gradient.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
    gradient.set_xticks([], minor=True)
    gradient.set_yticks([0.001, 0.01, 0.1], ["0.001", "0.01", "0.1"])
    dress(curve, f"error while learning, cm (d = {RETRIEVAL_WIDTH})", "training steps")
    curve.legend(frameon=False, labelcolor=INK, fontsize=9.5)
    curve.set_ylim(bottom=0)
    return drawing


def dress(axes: Axes, title: str, below: str) -> None:
    """The look that both panels share."""
    axes.set_title(title, color=INK, fontsize=11)
    axes.set_xlabel(below, color=FAINT)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.tick_params(which="both", colors=FAINT, length=0)


TEXT = (
    "A score is the sum of d products. The wider query and key are, the more products, and the "
    "further the scores lie apart: their variance is d. The softmax turns large differences into "
    "all or nothing. At a width of 512 the best of 16 keys gets 95 % of the weight, though the "
    "numbers are random and nothing has been learned yet.",
    "An all-or-nothing softmax hardly moves when a score changes a little, so hardly any gradient "
    "reaches the scores: for the typical (median) query 1,000 times less at a width of 512 than "
    "with the scores divided by √d. With that scale every number here is the same at all widths.",
    "What this does not mean: the mean gradient falls much less than the median, since some "
    "queries have two keys that tie. The gradient of the query itself is on average not smaller "
    "at all without the scale, which multiplies it too. And learning does not stop. A layer that "
    "has to find a noisy key among 16 starts much more slowly without the scale and ends at the "
    "same error.",
)
