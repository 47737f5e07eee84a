"""Figure 6: masks decide who reads whom, and with that what can be kept instead of recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Figure, Table, as_svg
from fetchlab.eval.figures.caching import (
    LENGTHS,
    N_ROWS,
    Timing,
    Work,
    by_formula,
    count_checks,
    equality_checks,
    time_checks,
    timings,
)
from fetchlab.eval.figures.caching import memory_checks as cache_size_checks
from fetchlab.eval.figures.tiles import tile_checks
from fetchlab.eval.figures.visibility import memory_checks, visibility_checks
from fetchlab.eval.parallel import one_thread
from fetchlab.eval.report.charts import FAINT, GRID, INK, SERIES
from fetchlab.policy.masks import block, causal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


@one_thread()
def figure(*, quick: bool) -> Figure:
    """Measure figure 6.

    `data`: `counts`, [{"n_tokens", "full", "masked", "cached"}], score cells of one head in one
    layer to say n tokens; `timings`, [{"n_tokens", "n_rows", "full", "cached"}], milliseconds of
    one thread for one layer of width 64 and `n_rows` sequences side by side.
    """
    lengths, n_seeds = (LENGTHS[:3], 3) if quick else (LENGTHS, 12)
    alone, together = timings(lengths, 1), timings(lengths, N_ROWS)
    counts = [by_formula(n_tokens) for n_tokens in LENGTHS]
    return Figure(
        number=6,
        title="Who reads whom, and what can be kept",
        question="Which work need not be done again when a sequence grows by one token?",
        text=TEXT,
        svg=as_svg(draw(counts, together)),
        checks=(
            *visibility_checks(n_seeds),
            *memory_checks(n_seeds),
            *equality_checks(n_seeds),
            *count_checks(),
            *time_checks(together),
            *cache_size_checks(),
            *tile_checks(n_seeds),
        ),
        tables=(count_table(counts), time_table([*alone, *together])),
        data={
            "counts": [asdict(work) for work in counts],
            "timings": [asdict(timing) for timing in [*alone, *together]],
        },
    )


def count_table(counts: Sequence[Work]) -> Table:
    """Score cells for each length."""
    return Table(
        caption="score cells of one head in one layer, to say n tokens one after another",
        header=("n", "all again", "all again, masked half", "with the cache", "fewer"),
        rows=tuple(
            (
                f"{work.n_tokens}",
                *(f"{cells:,}" for cells in (work.full, work.masked, work.cached)),
                f"{work.ratio:.1f} ×",
            )
            for work in counts
        ),
    )


def time_table(measured: Sequence[Timing]) -> Table:
    """Milliseconds for each length."""
    return Table(
        caption="time of one thread, one layer of width 64",
        header=("sequences", "n", "all again", "with the cache", "faster"),
        rows=tuple(
            (
                f"{timing.n_rows}",
                f"{timing.n_tokens}",
                f"{timing.full:.0f} ms",
                f"{timing.cached:.0f} ms",
                f"{timing.ratio:.1f} ×",
            )
            for timing in measured
        ),
    )


def draw(counts: Sequence[Work], measured: Sequence[Timing]) -> Drawing:
    """Both masks, and what the cache saves in cells and in time."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.6, 6.8), layout="constrained")
    panels = drawing.subplots(2, 2)
    draw_mask(panels[0, 0], causal(12), 0, "causal mask")
    draw_mask(panels[0, 1], block(7, 12), 7, "block mask")
    draw_work(panels[1, 0], counts)
    panels[1, 0].set_title("score cells", color=INK, fontsize=11)
    draw_work(panels[1, 1], measured)
    panels[1, 1].set_title("milliseconds", color=INK, fontsize=11)
    return drawing


def draw_mask(axes: Axes, pattern: Tensor, n_prefix: int, title: str) -> None:
    """A square for each pair that may meet; those inside the observation in another colour."""
    for reader, read in torch.nonzero(pattern).tolist():
        inside = reader < n_prefix and read < n_prefix
        axes.plot(read, reader, "s", color=SERIES[1 if inside else 0], markersize=9)
    axes.set_title(title, color=INK, fontsize=11)
    axes.set_xlabel("is read (observation green)" if n_prefix else "is read", color=FAINT)
    axes.set_ylabel("reads", color=FAINT)
    axes.set_xlim(-0.7, len(pattern) - 0.3)
    axes.set_ylim(len(pattern) - 0.3, -0.7)
    axes.set_xticks(range(0, len(pattern), 2))
    axes.set_yticks(range(0, len(pattern), 2))
    axes.set_aspect("equal")
    axes.spines[:].set_color(GRID)
    axes.tick_params(colors=FAINT, length=0)


def draw_work(axes: Axes, measured: Sequence[Work] | Sequence[Timing]) -> None:
    """All again against the cache, both axes logarithmic."""
    lengths = [one.n_tokens for one in measured]
    axes.plot(lengths, [one.full for one in measured], "o-", color=SERIES[2], label="all again")
    axes.plot(
        lengths, [one.cached for one in measured], "o-", color=SERIES[0], label="with the cache"
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.set_xlabel("tokens said", color=FAINT)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[:].set_visible(False)
    axes.tick_params(which="both", colors=FAINT, length=0)
    axes.legend(frameon=False, labelcolor=INK, loc="upper left")


TEXT = (
    "A mask forbids a token to read some others, before the weights are made. What is masked has "
    "a weight of exactly 0: not small, zero. With the causal mask a token reads itself and "
    "earlier ones. Edit the sixty-fourth token, and nothing before it changes by a single bit.",
    "That is why work can be kept. Whoever says a sentence token by token needs the keys and "
    "values of all earlier tokens at every step, and with a causal mask they never change. A "
    "cache computes each once: to say 512 tokens, it compares 131,328 pairs instead of 44,870,400. "
    "The words are the same.",
    "Without a mask this does not work. An appended token is read by the old ones, and from the "
    "second block on their keys and values change. (In the first block they do not: there each "
    "token is still on its own.)",
    "Policies that see and speak use a block mask: the observation reads itself in both directions "
    "and never an action, so that it can be cached whole; actions read it and earlier actions.",
    "A trap: the time falls less than the count. Most of the time of a small model is spent on "
    "other things than comparing, and calling costs as much as computing. The longer the "
    "sequence, the more the cache saves. Another trap: a token that may read nothing makes the "
    "plain formula divide zero by zero. Here it gets zeros.",
)
