"""What each attention head looks at, as pictures and tables of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fetchlab.eval.gaze import WHOLE, Gaze, finder, gaze_sentence
from fetchlab.eval.report.charts import FAINT, INK, SERIES, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, NARROW = (7.6, 3.6), (3.9, 6.2)  # inches, for a laptop and for a phone
STRONGEST = 0.6  # opacity at 100 %: the number on it stays readable, light or dark
COLUMNS = ("named", "others", "arm", "table", "background")

Shares = Sequence[Sequence[float | None]]


def grounding_views(gazes: Sequence[Gaze], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the page shows of each policy that was measured."""
    policies = dict.fromkeys(gaze.policy for gaze in gazes)
    return [
        {"label": labels.get(policy, policy), **_view([g for g in gazes if g.policy == policy])}
        for policy in policies
    ]


def _view(gazes: Sequence[Gaze]) -> dict[str, Any]:
    best = finder(gazes)
    whole = [gaze for gaze in gazes if gaze.phase == WHOLE]
    mine = [gaze for gaze in gazes if _place(gaze) == _place(best) and gaze.phase != WHOLE]
    return {
        "sentence": gaze_sentence(gazes),
        "summary": " ".join(f"{_name(g)}: {_percent(g.on_named_patches)}." for g in whole),
        "charts": {
            "wide": gaze_chart(gazes, WIDE, stacked=False),
            "narrow": gaze_chart(gazes, NARROW, stacked=True),
        },
        "heads": [
            {"name": _name(gaze), "cells": list(zip(_attention(gaze), _sure(gaze), strict=True))}
            for gaze in whole
        ],
        "even": _even(best),
        "finder": _name(best),
        "phases": [
            {
                "name": gaze.phase,
                "frames": gaze.n_frames,
                "cells": list(zip(_attention(gaze), _even(gaze), strict=True)),
            }
            for gaze in mine
        ],
    }


def _attention(gaze: Gaze) -> list[str]:
    shares = [gaze.on_named_patches, *(getattr(gaze, thing) for thing in COLUMNS)]
    return [_percent(share) for share in (*shares, gaze.robot_token)]


def _sure(gaze: Gaze) -> list[str]:
    """The intervals that there are, in percent."""
    intervals = [gaze.on_named_patches_ci95, gaze.named_ci95]
    known = [f"{100 * i[0]:.0f}\u2013{100 * i[1]:.0f}" if i else "" for i in intervals]
    return [*known, *[""] * len(COLUMNS)]


def _even(gaze: Gaze) -> list[str]:
    shares = [gaze.named_patches, *(gaze.area[thing] for thing in COLUMNS)]
    return [*map(_percent, shares), ""]


def _place(gaze: Gaze) -> tuple[int, int]:
    return gaze.layer, gaze.head


def _name(gaze: Gaze) -> str:
    return f"layer\u00a0{gaze.layer}, head\u00a0{gaze.head}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.1 else f"{100 * share:.1f} %"


def gaze_chart(gazes: Sequence[Gaze], size: tuple[float, float], *, stacked: bool) -> str:
    """Attention on the patches that show the named object: by layer and head, and by phase."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    by_phase = {(gaze.phase, *_place(gaze)): gaze.on_named_patches for gaze in gazes}
    layers, heads = (sorted({place[axis] for place in map(_place, gazes)}) for axis in (0, 1))
    phases = list(dict.fromkeys(gaze.phase for gaze in gazes if gaze.phase != WHOLE))
    places = sorted({_place(gaze) for gaze in gazes})
    if stacked:
        above, below = figure.subplots(2, 1, height_ratios=[len(layers), len(places)])
    else:
        above, below = figure.subplots(1, 2)
    _heat_map(
        above,
        [[by_phase[WHOLE, layer, head] for head in heads] for layer in layers],
        [f"layer {layer}" for layer in layers],
        [f"head {head}" for head in heads],
        "whole episode",
    )
    _heat_map(
        below,
        [[by_phase.get((phase, *place)) for phase in phases] for place in places],
        [f"{layer} · {head}" for layer, head in places],
        phases,
        "layer · head, by phase",
    )
    return svg(figure)


def _heat_map(
    axes: Axes, shares: Shares, rows: Sequence[str], columns: Sequence[str], title: str
) -> None:
    from matplotlib.patches import Rectangle

    for row, line in enumerate(shares):
        for column, share in enumerate(line):
            if share is not None:
                strength = 0.04 + (STRONGEST - 0.04) * share
                cell = Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, linewidth=0)
                cell.set(facecolor=SERIES[0], alpha=strength)
                axes.add_patch(cell)
            text = "–" if share is None else f"{100 * share:.0f} %"
            middle = {"ha": "center", "va": "center", "color": INK, "fontsize": 10}
            axes.text(column + 0.5, row + 0.5, text, **middle)  # type: ignore[arg-type]
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks([column + 0.5 for column in range(len(columns))], columns)
    axes.set_yticks([row + 0.5 for row in range(len(rows))], rows)
    axes.tick_params(colors=FAINT, length=0, labelsize=9.5)
    axes.spines[:].set_visible(False)
    axes.set_title(title, color=FAINT, fontsize=10.5)
