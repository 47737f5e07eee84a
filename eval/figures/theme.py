"""A drawing's colours: fixed in a file of its own, those of the page, light or dark, inside it."""

from __future__ import annotations

import re
from collections.abc import Callable

from fetchlab.eval.report.charts import VARIABLES

# The light scheme of the page's style sheet; the colours of a drawing that stands alone.
LIGHT = {
    "--ink": "#1c1e21",
    "--faint": "#676d74",
    "--line": "#e4e4df",
    "--seen": "#f1efe6",
    "--series-0": "#1f5fbf",
    "--series-1": "#0f8a78",
    "--series-2": "#d0661b",
    "--series-3": "#8855b8",
    "--series-4": "#80868d",
    "--series-5": "#a5760b",
}
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


def standalone(svg: str) -> str:
    """The drawing as a file: placeholders of the charts become the light scheme's colours."""
    return _recoloured(svg, lambda colour: LIGHT.get(VARIABLES.get(colour, ""), colour))


def inline(svg: str, prefix: str) -> str:
    """The drawing as a part of the page: its font and colours, any width, names of its own."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:xmlns(?::xlink)?|width|height)="[^"]*"', "", svg, count=4)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # would style the whole page
    svg = re.sub(r'( id="|href="#|url\(#)', rf"\1{prefix}-", svg)
    return _recoloured(standalone(svg), _variable)


def _recoloured(svg: str, change: Callable[[str], str]) -> str:
    return COLOUR.sub(lambda found: change(found[0].lower()), svg)


def _variable(colour: str) -> str:
    """The page's variable; greys become mixtures of its ink and its paper."""
    named = {shade: name for name, shade in LIGHT.items()}
    if colour in named:
        return f"var({named[colour]})"
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    if max(red, green, blue) - min(red, green, blue) > 8:
        return colour
    ink = round(100 * (1 - green / 255))
    return f"color-mix(in srgb, var(--ink) {ink}%, var(--paper))"
