"""Figure 1: a query against five keys is a dictionary lookup with soft edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fetchlab.eval.figures.base import Check, Figure, Table, as_svg
from fetchlab.eval.figures.five_keys import (
    HALF_TABLE_CM,
    KEYS,
    N_OBJECTS,
    N_SEEDS,
    NORMS,
    PLACES_CM,
    STEP,
    least_fall_of_entropy,
    look_up,
    random_values,
    sharpness,
    unit,
)
from fetchlab.eval.figures.hull import beyond_hull
from fetchlab.eval.report.charts import FAINT, GRID, INK, SEEN, SERIES
from fetchlab.sim.scene import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Largest weight and entropy / ln 5 for each of the norms: exact to the digits shown.
ON_KEY = (
    (0.2000, 1.0000),
    (0.2761, 0.9810),
    (0.3593, 0.9288),
    (0.5242, 0.7699),
    (0.8495, 0.3367),
    (0.9851, 0.0545),
    (0.9999, 0.0008),
    (1.0000, 0.0000),
)
HALF_WAY = (
    (0.2000, 1.0000),
    (0.2581, 0.9810),
    (0.3139, 0.9292),
    (0.4018, 0.7784),
    (0.4902, 0.4925),
    (0.4998, 0.4327),
    (0.5000, 0.4307),
    (0.5000, 0.4307),
)
# The mean over all directions, as 2,400 random ones gave it.
ANYWHERE = (
    (0.200, 1.000),
    (0.270, 0.981),
    (0.343, 0.929),
    (0.480, 0.774),
    (0.726, 0.412),
    (0.862, 0.205),
    (0.931, 0.102),
    (0.973, 0.041),
)


def directions() -> dict[str, tuple[Tensor, tuple[tuple[float, float], ...], float]]:
    """Where the query points, what must come out for each norm, and how closely."""
    every = torch.arange(3_600, dtype=torch.float64) * (2 * math.pi / 3_600)
    half_way = torch.full((1,), STEP / 2, dtype=torch.float64)
    return {
        "on a key": (every[:1], ON_KEY, 5.1e-5),
        "half-way between two keys": (half_way, HALF_WAY, 5.1e-5),
        "any direction, mean": (every, ANYWHERE, 5e-3),
    }


def sharpness_checks() -> Iterator[Check]:
    """Largest weight and entropy as the arrow grows."""
    for where, (angles, wanted, tolerance) in directions().items():
        measured = sharpness(angles, NORMS).tolist()
        for norm, values, expected in zip(NORMS, measured, wanted, strict=True):
            for name, value, right in zip(
                ("largest weight", "entropy / ln 5"), values, expected, strict=True
            ):
                yield Check(
                    quantity=f"{where}, |q| = {norm:g}: {name}",
                    value=value,
                    low=right - tolerance,
                    high=right + tolerance,
                )


def hull_checks(n_queries: int) -> Iterator[Check]:
    """The output never leaves the hull of the values, and what it tends to at both ends."""
    values = random_values()
    generator = torch.Generator().manual_seed(0)
    angle, length = torch.rand(2, N_SEEDS, n_queries, generator=generator, dtype=torch.float64)
    outputs, _ = look_up(50 * length[..., None] * unit(2 * math.pi * angle), values)
    yield Check(
        quantity=f"{N_SEEDS * n_queries:,} queries: how far the output leaves the hull, cm",
        value=float(beyond_hull(outputs, values[:, None]).max()),
        high=0.0,
    )
    on_key = KEYS[:1].expand(N_SEEDS, -1, -1)  # (S, 1, 2)
    means, named = values.mean(1, keepdim=True), values[:, :1]
    for norm, what, goal, high in (
        (1e-6, "the mean of the values", means, 1.2e-5),
        (50, "the value of the key", named, 3e-9),
    ):
        apart = (look_up(norm * on_key, values)[0] - goal).norm(dim=-1)
        yield Check(
            quantity=f"|q| = {norm:g} on a key: distance from {what}, cm",
            value=float(apart.max()),
            high=high,
        )


def sharpness_table() -> Table:
    """The same numbers to read."""
    columns = [sharpness(angles, NORMS).tolist() for angles, _, _ in directions().values()]
    return Table(
        caption="largest weight / entropy as a share of ln 5",
        header=("length of the query", *directions()),
        rows=tuple(
            (f"{norm:g}", *(f"{weight:.4f} / {spread:.4f}" for weight, spread in row))
            for norm, *row in zip(NORMS, *columns, strict=True)
        ),
    )


def example() -> dict[str, Any]:
    """What the page needs to redo the lookup: `names`, `keys`, `values` in cm, and the width d."""
    return {
        "names": list(COLOURS)[:N_OBJECTS],
        "keys": KEYS.tolist(),
        "values": [list(place) for place in PLACES_CM],
        "d": KEYS.shape[-1],
    }


def figure(*, quick: bool) -> Figure:
    """Measure figure 1.

    `data`: `names` of the five objects, `keys` [[x, y], …] on the unit circle, `values`
    [[x, y], …] in cm from the table's middle, and `d`, the width of query and keys.
    """
    checks = (
        *sharpness_checks(),
        Check(
            quantity="501 lengths, 12 directions: the entropy's smallest fall per step",
            value=least_fall_of_entropy(),
            high=-5e-11,
        ),
        *hull_checks(200 if quick else 1_000),
    )
    return Figure(
        number=1,
        title="A soft lookup",
        question="What does a query get back when several keys match it a little?",
        text=TEXT,
        svg=as_svg(draw()),
        checks=checks,
        tables=(sharpness_table(),),
        data=example(),
    )


def draw() -> Drawing:
    """How sharp the lookup gets with the arrow's length, and where its answer goes."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.6, 3.9), layout="constrained")
    sharp, table = drawing.subplots(1, 2)
    draw_sharpness(sharp)
    draw_table(table)
    return drawing


def draw_sharpness(axes: Axes) -> None:
    """The largest weight over the length of the query."""
    lengths = torch.linspace(0, 20, 201, dtype=torch.float64).tolist()
    names = ("straight at a key", "half-way between two", "any direction, mean")
    for row, (name, (angles, _, _)) in enumerate(zip(names, directions().values(), strict=True)):
        largest = sharpness(angles[::20], lengths)[:, 0]
        axes.plot(lengths, largest.tolist(), color=SERIES[row], linewidth=2.2, label=name)
    axes.set_title("how much the best match counts", color=INK, fontsize=11)
    axes.set_xlabel("length of the query", color=FAINT)
    axes.set_ylabel("largest weight", color=FAINT)
    axes.set_ylim(0, 1.03)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(GRID)
    axes.tick_params(colors=FAINT, length=0)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9.5, loc="lower right")


def draw_table(axes: Axes) -> None:
    """The table from above: the hull of the values, and the answers as the arrow grows."""
    from matplotlib.colors import to_hex
    from matplotlib.patches import Polygon

    axes.add_patch(Polygon(PLACES_CM, facecolor=SEEN, edgecolor=GRID))
    for name, (x, y) in zip(COLOURS, PLACES_CM, strict=False):
        axes.plot(x, y, "s", markersize=11, color=to_hex(COLOURS[name]))
        axes.annotate(name, (x, y), (0, 9), textcoords="offset points", color=FAINT, ha="center")
    lengths = torch.linspace(0, 20, 81, dtype=torch.float64)[:, None]
    values = torch.tensor([PLACES_CM], dtype=torch.float64)
    for row, angle in enumerate((0.0, STEP / 2)):
        queries = lengths * unit(torch.tensor(angle, dtype=torch.float64))  # (Q, 2)
        trail = look_up(queries[None], values)[0][0].T.tolist()
        axes.plot(*trail, color=SERIES[row], linewidth=2.2)
        axes.plot(*(along[-1] for along in trail), "o", color=SERIES[row], markersize=6)
    axes.set_title("where the answer goes as it grows", color=INK, fontsize=11)
    axes.set(xlim=(-HALF_TABLE_CM, HALF_TABLE_CM), ylim=(-HALF_TABLE_CM, HALF_TABLE_CM))
    axes.set_aspect("equal")
    axes.set_xlabel("cm from the middle of the table", color=FAINT)
    axes.spines[:].set_color(GRID)
    axes.tick_params(colors=FAINT, length=0)


TEXT = (
    "Five objects lie on the table. Each has a key, which says what it looks like, and a value, "
    "which says where it is. A query is compared with every key. The better a key fits, the more "
    "its value counts in the answer, which is a weighted mean of all five.",
    "The direction of the query says what is asked for, its length how strictly. A query of "
    "length zero gets the plain mean. A long one gets almost exactly the value of the best key: "
    "at length 10, pointed straight at a key, that one counts 98.5 %. The spread of the weights "
    "(their entropy) falls with every bit of length.",
    "Whatever is asked, the answer lies inside the hull, the shape spanned by the five places: a "
    "mean of places cannot lie beyond them.",
    "A trap: length makes the lookup sharp only if one key fits best. Half-way between two keys "
    "both fit equally well, each gets one half however long the query is, and the answer lies "
    "between the two objects, where there may be nothing.",
)
