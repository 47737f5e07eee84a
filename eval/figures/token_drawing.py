"""The drawing of figure 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from einops import rearrange
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from fetchlab.eval.figures.token_cost import PATCH_SIZE, Crossover, Decision
from fetchlab.eval.report.charts import FAINT, GRID, INK, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 3  # pixels between patches, as drawn
GAP_COLOUR = (128, 128, 128, 90)  # shows on light and dark pages
TOKENS_AN_IMAGE = 196
WIDTHS = (128, 256, 512)
IMAGES = (1, 2, 3, 4, 6, 8, 9, 12)  # that cameras and frames can make


def draw(
    patches: NDArray[np.uint8],
    crossovers: Sequence[Crossover],
    decisions: Sequence[Decision],
    period: float,
) -> Drawing:
    """The image in patches; attention's share; when attention catches up; latency."""
    drawing = Drawing(figsize=(7.6, 7.4), layout="constrained")
    image, share, times, latency = drawing.subplots(2, 2).flat
    draw_patches(image, patches)
    draw_share(share)
    draw_crossovers(times, [one for one in crossovers if one.path == "fused"])
    draw_decisions(latency, decisions, period)
    return drawing


def draw_patches(axes: Axes, patches: NDArray[np.uint8]) -> None:
    """Every patch apart from its neighbours, as the policy gets them."""
    rows, columns, n_numbers = patches.shape
    side = PATCH_SIZE + GAP
    drawn = np.full((rows, columns, side, side, 4), GAP_COLOUR, np.uint8)
    drawn[:, :, GAP:, GAP:, 3] = 255
    drawn[:, :, GAP:, GAP:, :3] = patches.reshape(rows, columns, PATCH_SIZE, PATCH_SIZE, 3)
    axes.imshow(rearrange(drawn, "r c h w rgba -> (r h) (c w) rgba"), interpolation="none")
    axes.set_axis_off()
    axes.set_title(
        f"{rows} × {columns} = {rows * columns} tokens of {n_numbers} numbers",
        color=INK,
        fontsize=11,
    )


def draw_share(axes: Axes) -> None:
    """n / (n + 6 d) by the number of images."""
    n_images = np.array(IMAGES)
    n = TOKENS_AN_IMAGE * n_images
    for row, width in enumerate(WIDTHS):
        axes.plot(n_images, 100 * n / (n + 6 * width), "o-", color=SERIES[row], markersize=4)
        end = 100 * n[-1] / (n[-1] + 6 * width)
        label(axes, f"d = {width}", (n_images[-1], end), row)
    axes.axhline(50, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xticks(IMAGES)
    finish(axes, "attention's share of the operations", "images: cameras × frames")


def draw_crossovers(axes: Axes, crossovers: Sequence[Crossover]) -> None:
    """Measured time of attention over that of the linear layers, beside n / 6 d."""
    for row, one in enumerate(crossovers):
        share = np.array(one.lengths) / (6 * one.width)
        name = f"d = {one.width}: equal at {one.n_tokens:.0f} tokens"
        axes.plot(share, one.ratios, "o-", color=SERIES[row], markersize=4, label=name)
    ends = (0.45, 1.3)
    axes.plot(ends, ends, color=INK, linestyle=(0, (4, 3)), linewidth=1.1, label="operations")
    axes.axhline(1, color=FAINT, linewidth=0.9)
    axes.set(xlim=ends, ylim=(0.4, 1.7))
    axes.legend(frameon=False, labelcolor=INK, fontsize=9.5, loc="upper left")
    finish(axes, "time of attention / linear layers", "tokens / 6d")


def draw_decisions(axes: Axes, decisions: Sequence[Decision], period: float) -> None:
    """Milliseconds by the number of images, and the time there is."""
    for row, name in enumerate(dict.fromkeys(one.name for one in decisions)):
        mine = sorted((one for one in decisions if one.name == name), key=lambda one: one.n_views)
        n_views, ms = [one.n_views for one in mine], [one.ms for one in mine]
        axes.plot(n_views, ms, "o-", color=SERIES[row], markersize=4, label=name)
    axes.axhline(period, color=INK, linewidth=1.2)
    axes.annotate("control period", (1, period), (0, 4), textcoords="offset points", color=INK)
    axes.set_yscale("log")
    axes.set_ylim(1, 1000)
    axes.set_yticks([1, 10, 100, 1000], ["1 ms", "10 ms", "100 ms", "1 s"])
    axes.set_xticks(IMAGES)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9.5, loc="upper left")
    finish(axes, "from an observation to an action", "images: cameras × frames")


def label(axes: Axes, text: str, at: tuple[float, float], row: int) -> None:
    """A line's name at its end, in its colour."""
    axes.annotate(
        text, at, (0, 5), textcoords="offset points", color=SERIES[row], fontsize=9.5, ha="right"
    )


def finish(axes: Axes, title: str, below: str) -> None:
    """Title, axis and grid, all alike."""
    axes.set_title(title, color=INK, fontsize=11)
    axes.set_xlabel(below, color=FAINT)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(which="both", colors=FAINT, length=0)
