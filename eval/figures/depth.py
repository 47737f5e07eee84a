"""Figure 5: what residuals and normalization are for, in 24 blocks with parts removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fetchlab.eval.figures.base import Figure, Table, as_svg
from fetchlab.eval.figures.collapse import COLLAPSING, collapse, law_checks
from fetchlab.eval.figures.deep_blocks import (
    N_LAYERS,
    N_TOKENS,
    VARIANTS,
    WIDTH,
    Trace,
    block_checks,
    residual_checks,
    trace,
)
from fetchlab.eval.figures.warm_up import RECIPES, STUCK, errors, warm_up_checks
from fetchlab.eval.parallel import one_thread
from fetchlab.eval.report.charts import FAINT, GRID, INK, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


@one_thread()
def figure(*, quick: bool) -> Figure:
    """Measure figure 5. The quick version leaves the warm-up out: it takes a minute to learn."""
    traces = {name: trace(config, 12 if quick else 20) for name, config in VARIANTS.items()}
    logs = collapse(2, 6) if quick else collapse(10, 7)
    learned = {} if quick else {recipe: errors(recipe) for recipe in RECIPES}
    return Figure(
        number=5,
        title="What holds a deep stack together",
        question="What goes wrong in 24 blocks when residuals or normalization are missing?",
        text=TEXT,
        svg=as_svg(draw(traces, logs, learned)),
        checks=(
            *block_checks(traces),
            *residual_checks(traces),
            *law_checks(logs),
            *warm_up_checks(learned),
        ),
        tables=(part_table(traces), *([warm_up_table(learned)] if learned else [])),
    )


def part_table(traces: Mapping[str, Trace]) -> Table:
    """Every variant: size, likeness, and what tells the tokens apart."""
    return Table(
        caption=f"{N_TOKENS} tokens of {WIDTH} numbers, sent through random blocks",
        header=(
            "block",
            *(f"size after {layer}" for layer in (6, 12, 24)),
            "cosine after 24",
            *(f"apart after {layer}" for layer in (1, 3, 5, 24)),
        ),
        rows=tuple(
            (
                name,
                *(f"{float(one.size[:, layer].mean()):.3g}" for layer in (6, 12, 24)),
                f"{float(one.cosine[:, -1].mean()):.3f}",
                *(f"{float(one.residual[:, layer].median()):.2g}" for layer in (1, 3, 5, 24)),
            )
            for name, one in traces.items()
        ),
    )


def warm_up_table(learned: Mapping[str, Tensor]) -> Table:
    """What each recipe learned."""
    return Table(
        caption="16 blocks learn to fetch with a high learning rate: distance from the block",
        header=("recipe", "mean", "best seed", "worst seed", "stuck"),
        rows=tuple(
            (
                recipe,
                *(f"{float(x):.1f} cm" for x in (values.mean(), values.min(), values.max())),
                f"{int((values > STUCK).sum())} of {len(values)}",
            )
            for recipe, values in learned.items()
        ),
    )


def draw(
    traces: Mapping[str, Trace], logs: NDArray[np.float64], learned: Mapping[str, Tensor]
) -> Drawing:
    """Size and sameness over depth, the collapse to 400 digits, and what warm-up saves."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.6, 6.6 if learned else 6.2), layout="constrained")
    panels = drawing.subplots(2, 2)
    draw_traces(panels[0, 0], {name: one.size for name, one in traces.items()})
    _plain(panels[0, 0], "size of the tokens", "blocks")
    draw_traces(panels[0, 1], {name: one.residual for name, one in traces.items()})
    _plain(panels[0, 1], "what tells tokens apart", "blocks")
    draw_law(panels[1, 0], logs)
    if learned:
        draw_warm_up(panels[1, 1], learned)
    else:
        panels[1, 1].set_axis_off()
        panels[1, 1].text(0.1, 0.5, "warm-up: full version only", color=FAINT)
    drawing.legend(*panels[0, 0].get_legend_handles_labels(), **LEGEND)
    return drawing


LEGEND = {"loc": "outside upper center", "ncols": 3, "frameon": False, "labelcolor": INK}
DRAWN = ("Pre-LN", "Post-LN", "no LN", "no residual, Pre-LN", COLLAPSING)


def draw_traces(axes: Axes, values: Mapping[str, Tensor]) -> None:
    """Medians over the seeds, logarithmic."""
    for row, name in enumerate(DRAWN):
        style = "-" if row < 3 else (0, (4, 2))
        axes.plot(values[name].median(dim=0).values, color=SERIES[row], label=name, linestyle=style)
    axes.set_yscale("log")
    axes.set_xticks(range(0, N_LAYERS + 1, 6))


def draw_law(axes: Axes, logs: NDArray[np.float64]) -> None:
    """Equal digits of the tokens, a line a seed: a straight line here is doubly exponential."""
    layers = np.arange(1, logs.shape[1])
    axes.plot(layers, -logs[:, 1:].T, color=SERIES[4], alpha=0.5, linewidth=1.2)
    law = -logs[:, -1].mean() * 3.0 ** (layers - layers[-1])
    axes.plot(layers, law, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label="times 3 a block")
    axes.axhline(16, color=FAINT, linewidth=0.8)
    axes.annotate(
        "double precision ends", (layers[0], 16), (0, 4), textcoords="offset points", color=FAINT
    )
    axes.set_yscale("log")
    axes.legend(frameon=False, labelcolor=INK, loc="lower right")
    _plain(axes, "attention alone: digits in common", "blocks")


def draw_warm_up(axes: Axes, learned: Mapping[str, Tensor]) -> None:
    """A dot a seed."""
    for row, values in enumerate(learned.values()):
        axes.plot(values.tolist(), [row] * len(values), "o", color=SERIES[row], markersize=7)
    axes.set_yticks(range(len(learned)), list(learned))
    axes.set_ylim(len(learned) - 0.5, -0.5)
    axes.set_xlim(0, 35)
    _plain(axes, "16 blocks learn to fetch", "distance from the block, cm")


def _plain(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, color=INK, fontsize=11)
    axes.set_xlabel(below, color=FAINT)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.tick_params(which="both", colors=FAINT, length=0)


TEXT = (
    "A block is attention, then a small network for each token; around both there is a shortcut "
    "(the residual: what comes out is added to what went in) and a normalization (LayerNorm). "
    "Here 24 blocks with random weights are stacked, and parts are removed.",
    "With everything in place (Pre-LN) the tokens grow to about 7 times their size, like the "
    "square root of the depth: each block adds a little to a sum. Without normalization each "
    "block more than doubles them, and after 24 blocks they are hundreds of millions. Post-LN "
    "normalizes after each sum, so their size is always 1.",
    "Without residuals all tokens become the same. With attention alone, each block "
    "triples the number of digits that they share: 8 digits after four blocks, 25 after five, 224 "
    "after seven. Double precision ends at 16 digits, so this was computed with 400.",
    "A trap: residuals alone do not keep tokens apart. With Post-LN, and without normalization, "
    "they end up all alike, too, only more slowly. Pre-LN is the one that keeps them apart.",
    "Post-LN has another weakness. With a high learning rate from the first step, a deep encoder "
    "stays stuck at naming the middle of the table. If the rate rises over the first 150 steps "
    "(warm-up), it learns. Pre-LN needs no warm-up.",
)
