"""Figure 4: attention sees a set of tokens; positions tell it the order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from fetchlab.eval.figures.base import Check, Figure, Table, as_svg
from fetchlab.eval.figures.offsets import (
    WIDTHS,
    code_checks,
    offset_checks,
    rotary_scores,
    similarity,
)
from fetchlab.eval.figures.reach_retreat import ORDERS, ReachConfig, accuracy, record
from fetchlab.eval.figures.shuffling import shuffle_checks
from fetchlab.eval.parallel import one_thread
from fetchlab.eval.report.charts import FAINT, GRID, INK, SERIES
from fetchlab.sim.world import TABLE_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

NAMES = {
    "none": "nothing",
    "sinusoidal": "sinusoidal codes",
    "rotary": "rotary positions",
    "causal mask": "causal mask alone",
}
QUICK = ReachConfig(n_seen=150, n_tested=60, n_seeds=2, steps=150, learning_rate=1e-2)
N_DRAWN = 8
HALF_TABLE_CM = 50 * TABLE_SIZE


def reach_checks(found: Mapping[str, Tensor]) -> Iterator[Check]:
    """Reach or retreat is a coin toss without positions, and easy with them."""
    yield Check(
        quantity="reach or retreat, no positions: furthest from one half, any seed",
        value=float((found["none"] - 0.5).abs().max()),
        high=0.0,
    )
    for order in ORDERS[1:]:
        yield Check(
            quantity=f"reach or retreat, {order}: share told right, mean of the seeds",
            value=float(found[order].mean()),
            low=0.97,
        )


@one_thread()
def figure(*, quick: bool) -> Figure:
    """Measure figure 4.

    `data`: `paths`, a few recorded approaches, each {"waypoints": [[x, y], …] in the order of
    time, "block": [x, y]} in cm from the middle of the table; `accuracy`, {order: [share told
    right, a number a seed]} for the orders "none", "sinusoidal", "rotary" and "causal mask".
    """
    config = QUICK if quick else ReachConfig()
    recordings = record(config)
    found = {order: accuracy(order, recordings, config) for order in ORDERS}
    checks = (*shuffle_checks(), *offset_checks(), *code_checks(), *reach_checks(found))
    paths = [_as_drawn(path) for path in recordings.tested[:N_DRAWN]]
    return Figure(
        number=4,
        title="Order comes from positions",
        question="Does attention notice in which order its tokens come?",
        text=TEXT,
        svg=as_svg(draw(paths, found)),
        checks=checks,
        tables=(reach_table(found),),
        data={
            "paths": paths,
            "accuracy": {order: values.tolist() for order, values in found.items()},
        },
    )


def reach_table(found: Mapping[str, Tensor]) -> Table:
    """How many paths each model tells right."""
    return Table(
        caption="reach or retreat: share of the tested paths told right",
        header=("order comes from", "mean", "least", "most"),
        rows=tuple(
            (
                NAMES[order],
                *(f"{100 * float(x):.1f} %" for x in (values.mean(), values.min(), values.max())),
            )
            for order, values in found.items()
        ),
    )


def draw(paths: list[dict[str, Any]], found: Mapping[str, Tensor]) -> Drawing:
    """Recorded paths, what positions look like to a dot product, and who tells the direction."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.6, 6.6), layout="constrained")
    panels = drawing.subplots(2, 2)
    draw_paths(panels[0, 0], paths)
    draw_accuracy(panels[0, 1], found)
    draw_codes(panels[1, 0])
    draw_rotary(panels[1, 1])
    return drawing


def draw_paths(axes: Axes, paths: list[dict[str, Any]]) -> None:
    """The table from above: waypoints from light to dark, blocks as squares."""
    for path in paths:
        x, y = zip(*path["waypoints"], strict=True)
        axes.plot(x, y, color=SERIES[0], linewidth=1, alpha=0.4)
        for step, place in enumerate(path["waypoints"]):
            axes.plot(*place, ".", color=SERIES[0], alpha=0.25 + 0.75 * step / len(x))
        axes.plot(*path["block"], "s", color=SERIES[2], markersize=6)
    _plain(axes, "approaches, recorded in the simulator", "cm from the middle of the table")
    axes.set_aspect("equal", adjustable="datalim")


def draw_accuracy(axes: Axes, found: Mapping[str, Tensor]) -> None:
    """A dot a seed; the coin toss is dashed."""
    for row, values in enumerate(found.values()):
        axes.plot(values.tolist(), [row] * len(values), "o", color=SERIES[row], markersize=7)
    axes.axvline(0.5, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(found)), [NAMES[order] for order in found])
    axes.invert_yaxis()
    axes.set_xlim(0.45, 1.03)
    axes.set_xticks([0.5, 0.75, 1.0], ["50 %", "75 %", "100 %"])
    _plain(axes, "reach or retreat?", "told right (a dot a seed)")


def draw_codes(axes: Axes) -> None:
    """Likeness of sinusoidal codes over their distance."""
    for row, width in enumerate(WIDTHS):
        offsets = tuple(range(65))
        axes.plot(offsets, similarity(width, offsets), color=SERIES[row], label=f"d = {width}")
    axes.legend(frameon=False, labelcolor=INK, fontsize=9.5)
    _plain(axes, "likeness of two positions' codes", "positions apart")


def draw_rotary(axes: Axes) -> None:
    """The score of one query and key at every pair of positions: equal along diagonals."""
    scores = rotary_scores(1, 48, 16)[0]
    axes.imshow(scores.numpy(), cmap="cividis")
    _plain(axes, "rotary scores: stripes along diagonals", "position of the key")
    axes.set_ylabel("position of the query", color=FAINT)


def _plain(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, color=INK, fontsize=11)
    axes.set_xlabel(below, color=FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.tick_params(colors=FAINT, length=0)


def _as_drawn(path: Tensor) -> dict[str, Any]:
    """A path (12, 4) in half tables as waypoints and block, in cm to the millimetre."""
    rounded = [[round(HALF_TABLE_CM * x, 1) for x in row] for row in path.tolist()]
    return {"waypoints": [row[:2] for row in rounded], "block": rounded[0][2:]}


TEXT = (
    "Attention compares contents. Give it the same tokens in another order, and each token gets "
    "the same answer as before, to the last digits: a row of tokens is a bag of tokens. For words, "
    "waypoints and history frames that is not enough.",
    "The arm reaches for a block: twelve waypoints, recorded in the simulator. Run backwards, the "
    "same twelve waypoints are a retreat. A model without positions gives both the same answer, "
    "so it is right exactly once for each pair: 50 %, a coin toss, however long it learns.",
    "Two ways to tell it the order. Sinusoidal codes are added to the tokens: waves of many "
    "lengths, whose dot product depends only on how far two positions are apart. Rotary positions "
    "turn queries and keys by an angle that grows with the position, so that a score depends on "
    "the distance alone. With either, reach and retreat are told apart almost always.",
    "A trap: a causal mask tells the order, too, without any positions. The first token reads "
    "only itself and the last one reads all. The coin toss is there only without a mask.",
)
