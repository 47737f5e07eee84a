"""Figure 1 to play with: the query arrow is dragged, and the page looks up as Python does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page
from tests.browser import needs_browser, slide, values
from tests.lesson import measured
from torch import Tensor

from fetchlab.eval.figures.page import EXAMPLES, write_page
from fetchlab.policy.attention import attend_with_weights

pytestmark = needs_browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_page(tmp_path_factory.mktemp("figures"), [measured(1)]).as_uri()


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(3000)
    page.goto(address)
    yield page
    page.close()


@pytest.fixture
def part(page: Page) -> Locator:
    return page.locator('[data-play="1"]')


def looked_up(asked: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """The lesson's lookup in Python: answer (2,) in cm and weights (5,)."""
    given = ([asked], EXAMPLES[1]["keys"], EXAMPLES[1]["values"])
    query, keys, values = (torch.tensor(x, dtype=torch.float64)[None, None] for x in given)
    output, weights = attend_with_weights(query, keys, values)
    return output.flatten(), weights.flatten()


def shown_lookup(part: Locator) -> tuple[Tensor, Tensor, tuple[float, float]]:
    """Answer, weights and query as the page has them."""
    x, y = map(float, str(part.get_attribute("data-query")).split())
    answer = str(part.locator(".fact").nth(1).get_attribute("data-value")).split()
    weights = values(part.locator(".weights li"))
    exact = [torch.tensor(row, dtype=torch.float64) for row in ([*map(float, answer)], weights)]
    return exact[0], exact[1], (x, y)


def agree(part: Locator) -> tuple[float, float]:
    """Assert that the page looks up as Python does; returns its query."""
    answer, weights, query = shown_lookup(part)
    torch.testing.assert_close((answer, weights), looked_up(query), rtol=1e-9, atol=1e-9)
    return query


def test_the_query_can_be_dragged(part: Locator, page: Page) -> None:
    part.locator(".dial").scroll_into_view_if_needed()
    disc = part.locator(".disc").bounding_box()
    tip = part.locator(".tip").bounding_box()
    assert disc and tip
    before = agree(part)
    middle = (disc["x"] + disc["width"] / 2, disc["y"] + disc["height"] / 2)
    page.mouse.move(tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2)
    page.mouse.down()
    for angle in (2.0, 2.3, 2.6):  # six tenths of the way to the ring: length 6
        reach = 0.3 * disc["width"]
        at = middle[0] + reach * math.cos(angle), middle[1] - reach * math.sin(angle)
        page.mouse.move(*at, steps=4)
    page.mouse.up()
    page.mouse.move(*middle)  # let go: this must not move it
    after = agree(part)
    assert after != before
    assert after == pytest.approx((6 * math.cos(2.6), 6 * math.sin(2.6)), abs=0.1)
    answer, _, _ = shown_lookup(part)
    mark = part.locator(".answer").get_attribute("transform")
    drawn = [float(x) for x in re.findall(r"-?[\d.]+", str(mark))]
    assert drawn == pytest.approx([answer[0].item(), -answer[1].item()])


def test_the_query_follows_the_keyboard_and_tells_a_screen_reader(
    part: Locator, page: Page
) -> None:
    part.get_by_role("button", name="at red, short").click()
    assert agree(part) == pytest.approx((1.0, 0.0))
    handle = part.get_by_role("slider", name="query arrow")
    handle.focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
    turned = math.radians(4)
    assert agree(part) == pytest.approx((1.2 * math.cos(turned), 1.2 * math.sin(turned)))
    spoken = str(handle.get_attribute("aria-valuetext"))
    assert spoken.startswith("4 degrees, length 1.2") and "red" in spoken
    page.keyboard.press("Home")
    assert agree(part) == pytest.approx((0.0, 0.0))
    assert "mean" in part.locator(".verdict").inner_text()


def test_the_lessons_numbers_and_the_half_way_trap(part: Locator) -> None:
    part.get_by_role("button", name="at red, long").click()
    assert shown_lookup(part)[1].max().item() == pytest.approx(0.9851, abs=5e-5)
    spread = float(str(part.locator(".fact").first.get_attribute("data-value")))
    assert spread / math.log(5) == pytest.approx(0.0545, abs=5e-5)
    assert "hard lookup" in part.locator(".verdict").inner_text()
    part.get_by_role("button", name="half-way red–green, long").click()
    assert shown_lookup(part)[1][:2].tolist() == pytest.approx([0.4998, 0.4998], abs=5e-5)
    assert "trap" in part.locator(".verdict").inner_text()
    slide(part, "length of the query", 50)
    assert shown_lookup(part)[1].max().item() == pytest.approx(0.4902, abs=5e-5)


def test_a_finger_drags_the_arrow_on_a_phone(browser: Browser, address: str) -> None:
    viewport: Any = {"width": 390, "height": 844}
    context = browser.new_context(
        viewport=viewport, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    part = page.locator('[data-play="1"]')
    part.locator(".dial").scroll_into_view_if_needed()
    scrolled = page.evaluate("scrollY")
    disc, tip = part.locator(".disc").bounding_box(), part.locator(".tip").bounding_box()
    assert disc and tip
    finger = page.context.new_cdp_session(page)
    at = [tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2]
    target = [disc["x"] + disc["width"] / 2, disc["y"] + 0.9 * disc["height"]]

    def touch(kind: str, *points: list[float]) -> None:
        touches = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    touch("touchStart", at)
    for share in (0.3, 0.6, 1.0):
        moved = [a + share * (b - a) for a, b in zip(at, target, strict=True)]
        touch("touchMove", moved)
    touch("touchEnd")
    assert agree(part) == pytest.approx((0.0, -8.0), abs=0.2)
    assert page.evaluate("scrollY") == scrolled  # the arrow moved, not the page
    context.close()
