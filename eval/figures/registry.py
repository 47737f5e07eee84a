"""The lesson's figures by their number; each is measured by the `figure` of its module."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from fetchlab.errors import UserError
from fetchlab.eval.figures.base import Figure

FIGURES: Mapping[int, str] = {
    1: "fetchlab.eval.figures.soft_lookup",
    2: "fetchlab.eval.figures.learned_lookup",
    3: "fetchlab.eval.figures.scale",
    4: "fetchlab.eval.figures.order",
    5: "fetchlab.eval.figures.depth",
    6: "fetchlab.eval.figures.masks",
    7: "fetchlab.eval.figures.tokens",
}


def measure(number: int, *, quick: bool = False) -> Figure:
    """Compute, check and draw one figure. Raises UserError for a number that there is not."""
    if number not in FIGURES:
        raise UserError(f"there is no figure {number}: choose from 1 to {len(FIGURES)}")
    figure: Figure = importlib.import_module(FIGURES[number]).figure(quick=quick)
    return figure
