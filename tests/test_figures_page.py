"""The page of the figures: it fits, asks the network for nothing and follows light and dark."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser import needs_browser
from tests.lesson import BAD_NUMBER, measured

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.command import measure_all
from fetchlab.eval.figures.page import number, range_text, render, write_page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    everything = [measured(n, wrong=n == 3) for n in range(1, 8)]
    return write_page(tmp_path_factory.mktemp("figures"), everything).as_uri()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_asks_for_nothing_complains_of_nothing_and_fits(
    browser: Browser, address: str, width: int, scheme: Any
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    for control in page.locator("summary, .play button, .choice label").all():
        control.click()
    assert requests == [address] and complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.slow
@needs_browser
def test_what_real_figures_hand_over_comes_to_life(browser: Browser, tmp_path: Path) -> None:
    everything = list(measure_all((1, 4, 6, 7), quick=True, workers=2))
    everything.sort(key=lambda one: one.figure.number)
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(write_page(tmp_path, everything).as_uri())
    assert complaints == []
    lookup, order, _, cost = (dict(one.figure.data) for one in everything)
    assert page.locator(".dial text").all_text_contents() == list(lookup["names"])
    assert page.locator(".path circle").count() == len(order["paths"][0]["waypoints"])
    assert page.locator(".frame image").get_attribute("href") == cost["image"]
    names = {row["name"] for row in cost["latencies"]}
    shown = page.locator('[data-play="7"]').inner_text()
    assert names and all(name in shown for name in names)


def test_a_page_of_some_figures_says_which_are_missing() -> None:
    page = render([measured(3)])
    assert "Not measured yet: figures 1, 2, 4, 5, 6, 7." in page
    assert 'data-play="3"' not in page


def test_what_is_written_cannot_become_markup() -> None:
    page = render([measured(6, wrong=True, data={"text": "</script><b>"})])
    assert "far &lt;off&gt;" in page and "Is &lt;this&gt; a question?" in page
    assert "</script><b>" not in page and "\\u003c/script" in page


def test_drawings_follow_the_page_and_share_no_names() -> None:
    page = render([measured(2), measured(3)])
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) == 2
    names = [name for text in drawings for name in re.findall(r'id="([^"]+)"', text)]
    assert len(set(names)) == len(names)
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', "".join(drawings)))
    assert used and {a or b for a, b in used} <= set(names)
    assert "var(--series-0)" in drawings[0] and "color-mix(in srgb, var(--ink) 75%" in drawings[0]
    assert "http" not in drawings[0] and "#ffffff" not in drawings[0]


def test_numbers_and_ranges_in_words() -> None:
    shown = [number(x) for x in (182.0, 89440.0, 0.40111, 1.3e-15, 3.4e8, -0.25, math.nan)]
    words = ["182", "89,440", "0.4011", "1.3 × 10⁻¹⁵", "340,000,000", "−0.25", "not a number"]
    assert shown == words
    assert range_text(Check(quantity="", value=1, low=0.2, high=0.4)) == "0.2 to 0.4"
    assert range_text(Check(quantity="", value=1, low=8)) == "at least 8"
    assert range_text(Check(quantity="", value=1, high=0.3)) == "at most 0.3"
    assert range_text(Check(quantity="", value=1, low=182, high=182)) == "exactly 182"
    assert not BAD_NUMBER.ok


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    first = write_page(tmp_path, [measured(1)]).read_bytes()
    assert write_page(tmp_path, [measured(1)]).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["figures.html"]
