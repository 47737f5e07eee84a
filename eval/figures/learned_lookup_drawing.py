"""Figure 2, drawn: errors while learning, by number of blocks, and by the order of the slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fetchlab.eval.figures.lookup_bounds import FOUR, ONE, TWO
from fetchlab.eval.figures.lookup_scenes import Question
from fetchlab.eval.figures.lookup_training import (
    BY_COLOUR,
    MLP,
    POSITION,
    SORTED,
    VECTOR,
    Outcome,
)
from fetchlab.eval.report.charts import FAINT, GRID, INK, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

COLOURS = {ONE: SERIES[0], TWO: SERIES[1], FOUR: SERIES[3], MLP: SERIES[2]}
LINES: dict[str, Any] = {"2–5": "-", "6": (0, (4, 2))}
SLOTS = {
    "any order": POSITION,
    "sorted\nby colour": SORTED,
    "one slot\na colour": BY_COLOUR,
}


def draw(outcome: Outcome) -> Drawing:
    """Four panels with one legend."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.6, 6.4), layout="constrained")
    (position, vector), (counts, slots) = drawing.subplots(2, 2)
    draw_learning(position, outcome, POSITION, "where is the green block?")
    draw_learning(vector, outcome, VECTOR, "from the red block to the green one?")
    draw_counts(counts, outcome)
    draw_slots(slots, outcome)
    add_legend(drawing)
    return drawing


def add_legend(drawing: Drawing) -> None:
    """The models by colour, and the two kinds of line."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linewidth=2, label=name) for name, colour in COLOURS.items()
    ]
    for test, style in LINES.items():
        words = f"{test} blocks" if test == "2–5" else f"{test} blocks, never seen in training"
        handles.append(Line2D([], [], color=FAINT, linestyle=style, linewidth=2, label=words))
    drawing.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        labelcolor=INK,
        fontsize=9.5,
    )


def dress(axes: Axes, title: str) -> None:
    """The look that all panels share."""
    axes.set_title(title, color=INK, fontsize=11)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.tick_params(which="both", colors=FAINT, length=0)


def error_axis(axes: Axes) -> None:
    """Errors from a millimetre to half a table, in steps that one can read."""
    axes.set_yscale("log")
    axes.set_ylim(0.08, 70)
    axes.set_yticks([0.1, 1, 10], ["1 mm", "1 cm", "10 cm"])
    axes.set_yticks([], minor=True)


def draw_learning(axes: Axes, outcome: Outcome, question: Question, title: str) -> None:
    """Median of the seeds over training; the shade is their range with trained numbers."""
    dress(axes, title)
    steps = outcome.test_at[1:]
    for name, colour in COLOURS.items():
        for test, style in LINES.items():
            errors = outcome.errors(name, question, test)[1:].median(-1).values
            axes.plot(steps, errors, color=colour, linestyle=style, linewidth=2)
        trained = outcome.errors(name, question, "2–5")[1:]
        axes.fill_between(
            steps, trained.amin(-1), trained.amax(-1), color=colour, alpha=0.13, linewidth=0
        )
    axes.set_xscale("log")
    axes.set_xticks([10, 100, 1_000], ["10", "100", "1,000"])
    axes.set_xticks([], minor=True)
    error_axis(axes)
    axes.set_xlabel("training steps", color=FAINT)


def draw_counts(axes: Axes, outcome: Outcome) -> None:
    """Mean error at the end, by number of blocks."""
    dress(axes, "more blocks than ever seen")
    for name, colour in COLOURS.items():
        tests = outcome.contestants[name].tests
        errors = [float(outcome.errors(name, POSITION, test)[-1].mean()) for test in tests]
        axes.plot(tests, errors, color=colour, marker="o", markersize=5, linewidth=2)
        if name == MLP:
            axes.annotate(
                "no seventh slot",
                (len(tests) - 1, errors[-1]),
                xytext=(8, -3),
                textcoords="offset points",
                color=FAINT,
                fontsize=9.5,
            )
    error_axis(axes)
    axes.set_xlabel("blocks on the table", color=FAINT)


def draw_slots(axes: Axes, outcome: Outcome) -> None:
    """What the MLP makes of kinder slot orders."""
    dress(axes, "the MLP, by the order of its slots")
    for place, (test, alpha) in enumerate((("2–5", 1.0), ("6", 0.55))):
        for row, question in enumerate(SLOTS.values()):
            error = float(outcome.errors(MLP, question, test)[-1].mean())
            x = row + 0.4 * place - 0.2
            axes.bar(x, error, width=0.36, color=COLOURS[MLP], alpha=alpha)
            words = f"{test} blocks\n{error:.1f}" if row == 0 else f"{error:.1f}"
            axes.text(x, error + 0.3, words, ha="center", color=INK, fontsize=9)
    axes.set_xticks(range(len(SLOTS)), list(SLOTS))
    axes.set_ylim(0, 30)
    axes.set_yticks([0, 10, 20], ["0", "10 cm", "20 cm"])
