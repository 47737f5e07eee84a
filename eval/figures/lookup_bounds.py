"""What the learned lookup must reach: after 3,000 steps, and after 1,000 in the quick version."""

from __future__ import annotations

from typing import NamedTuple

from fetchlab.eval.figures.lookup_scenes import Question
from fetchlab.eval.figures.lookup_training import BY_COLOUR, MLP, POSITION, SORTED, VECTOR, WIDE

ONE, TWO, FOUR = "attention, 1 head", "attention, 2 heads", "attention, 4 heads"
Range = tuple[float, float]  # cm


class Bound(NamedTuple):
    """A mean distance in cm: over which seeds, and the range for it."""

    contestant: str
    question: Question
    test: str
    seeds: str
    """`mean`, `median`, `best` or `worst`"""
    full: Range
    quick: Range


BOUNDS = (
    Bound(ONE, POSITION, "2–5", "worst", (0, 0.3), (0, 0.6)),
    Bound(ONE, POSITION, "6", "worst", (0, 0.4), (0, 1.0)),
    Bound(ONE, POSITION, "8", "mean", (0, 0.5), (0, 1.4)),
    Bound(ONE, POSITION, "10", "worst", (0, 1.0), (0, 2.2)),
    Bound(ONE, POSITION, "20", "mean", (0, 1.3), (0, 3.6)),
    Bound(TWO, POSITION, "2–5", "mean", (0, 0.3), (0, 0.6)),
    Bound(TWO, POSITION, "6", "mean", (0, 0.4), (0, 1.0)),
    Bound(FOUR, POSITION, "2–5", "mean", (0, 0.3), (0, 0.65)),
    Bound(FOUR, POSITION, "6", "mean", (0, 0.4), (0, 1.2)),
    Bound(FOUR, POSITION, "10", "mean", (0, 1.3), (0, 3.2)),
    Bound(MLP, POSITION, "2–5", "best", (6, 11), (11, 17)),
    Bound(MLP, POSITION, "2–5", "worst", (6, 11), (11, 17)),
    Bound(MLP, POSITION, "6", "best", (16, 22), (20, 28)),
    Bound(MLP, POSITION, "6", "worst", (16, 22), (20, 28)),
    Bound(MLP, SORTED, "2–5", "mean", (3.3, 5.3), (5.1, 7.1)),
    Bound(MLP, SORTED, "6", "mean", (15, 20), (17, 22)),
    Bound(MLP, BY_COLOUR, "2–5", "mean", (1.7, 3.1), (2.2, 3.8)),
    Bound(MLP, BY_COLOUR, "6", "mean", (2.0, 3.6), (2.9, 4.9)),
    Bound(ONE, VECTOR, "2–5", "mean", (30.2, 31.3), (29.2, 34.9)),
    Bound(WIDE, VECTOR, "2–5", "median", (30.2, 31.3), (29.2, 34.9)),
    Bound(TWO, VECTOR, "2–5", "median", (0, 0.3), (0, 1.18)),
    Bound(TWO, VECTOR, "6", "median", (0, 0.6), (0, 2.6)),
    Bound(TWO, VECTOR, "10", "median", (0, 1.5), (0, 6.0)),
    Bound(FOUR, VECTOR, "2–5", "median", (0, 0.3), (0, 1.12)),
    Bound(FOUR, VECTOR, "6", "median", (0, 0.6), (0, 2.6)),
    Bound(FOUR, VECTOR, "10", "median", (0, 1.5), (0, 6.0)),
    Bound(MLP, VECTOR, "2–5", "mean", (17.5, 20.1), (24.3, 28.4)),
    Bound(MLP, VECTOR, "6", "mean", (31.8, 36.8), (36.3, 41.3)),
)
