"""Figures 4, 6 and 7 to play with: what is chosen on the page gives Python's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page
from tests.browser import choose, needs_browser, slide, values
from tests.lesson import measured
from torch import Tensor

from fetchlab.eval.figures.page import APPROACH, write_page
from fetchlab.policy import masks
from fetchlab.policy.attention import attend_with_weights
from fetchlab.policy.cache import KeyValueCache
from fetchlab.tokenizers.positions import Rotary, sinusoidal

pytestmark = needs_browser
LATENCIES = [{"name": "act", "cameras": 2, "history": 1, "ms": 12.5}]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    everything = [measured(n) for n in (4, 6)] + [measured(7, data={"latencies": LATENCIES})]
    return write_page(tmp_path_factory.mktemp("figures"), everything).as_uri()


@pytest.fixture(scope="module")
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """One page for the tests that only turn its knobs."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(3000)
    page.goto(address)
    yield page
    page.close()


@pytest.fixture
def part(opened: Page, request: pytest.FixtureRequest) -> Locator:
    """The interactive part with the number that the test is parametrized with."""
    return opened.locator(f'[data-play="{request.param}"]')


def figure(number: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("part", [number], indirect=True)


def turned(vector: Tensor, n: int) -> Tensor:
    """The vector at each of n positions, with rotary positions: (n, d)."""
    copies = vector.expand(1, 1, n, -1)
    rotated: Tensor = Rotary(len(vector))(copies, torch.arange(n))[0, 0]
    return rotated


def expected_scores(positions: str, width: int) -> Tensor:
    """Dot products between 20 positions, in Python."""
    numbers = torch.arange(width).double()
    query, key = (1 + numbers).sin(), (2 + 0.9 * numbers).sin()
    if positions == "sinusoidal":
        codes = sinusoidal(torch.arange(20).double(), width)
        return codes @ codes.T
    if positions == "rotary":
        return turned(query, 20) @ turned(key, 20).T
    return (query @ key).expand(20, 20)


def expected_change(positions: str, mask: str, width: int, order: list[int]) -> float:
    """How far one attention layer's results move when the waypoints change their order."""
    x, y = torch.tensor(APPROACH, dtype=torch.float64).T[..., None] / 10
    j = torch.arange(width).double()
    content = ((1 + j % 7) * x + (1 + j % 5) * y + j).sin()  # (12, d)

    def attended(tokens: Tensor) -> Tensor:
        if positions == "sinusoidal":
            tokens = tokens + sinusoidal(torch.arange(12).double(), width)
        x = tokens[None, None]
        turned = Rotary(width)(x, torch.arange(12)) if positions == "rotary" else x
        allowed = masks.causal(12) if mask == "causal" else None
        return attend_with_weights(turned, turned, x, allowed)[0][0, 0]

    return float((attended(content[order]) - attended(content)[order]).abs().max())


@figure(4)
@pytest.mark.parametrize("width", [16, 64, 512])
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary"])
def test_positions_and_order(part: Locator, positions: str, mask: str, width: int) -> None:
    choose(part, "positions", positions)
    choose(part, "mask", mask)
    choose(part, "width d", str(width))
    shown = torch.tensor(values(part.locator(".heat rect")), dtype=torch.float64).reshape(20, 20)
    torch.testing.assert_close(shown, expected_scores(positions, width), rtol=0, atol=1e-9)
    for offset in range(-19, 20):  # the same all along a diagonal
        assert shown.diagonal(offset).max() - shown.diagonal(offset).min() < 1e-9
    hidden = part.locator(".heat .hidden").count()
    assert hidden == (190 if mask == "causal" else 0)

    part.get_by_role("button", name="shuffle").click()
    waypoints = part.locator("[data-order]")
    order = [int(word) for word in str(waypoints.get_attribute("data-order")).split()]
    change = float(str(waypoints.get_attribute("data-value")))
    assert sorted(order) == list(range(12))
    assert change == pytest.approx(expected_change(positions, mask, width, order), abs=1e-9)
    verdict = part.locator(".verdict").nth(1).inner_text()
    blind = positions == "none" and mask == "none"
    assert order == list(range(12)) or verdict.startswith("Not noticed" if blind else "Noticed")


@figure(4)
def test_the_pairs_of_one_offset_light_up(part: Locator) -> None:
    choose(part, "mask", "none")
    part.locator(".heat rect").nth(20 * 9 + 2).click()  # position 9 asks, 2 is read
    assert part.locator(".heat .chosen").count() == 20 - 7
    slide(part, "look at the pairs that are apart by", 19)
    assert part.locator(".heat .chosen").count() == 20
    assert "itself" in part.get_by_text("apart by").locator("..").inner_text()


@figure(6)
@pytest.mark.parametrize("mask", ["none", "causal", "block"])
def test_who_reads_whom_and_who_notices(part: Locator, mask: str) -> None:
    choose(part, "mask", mask)
    slide(part, "tokens", 8)  # 12 of them
    if mask == "block":
        slide(part, "observation tokens, read as one piece", 4)  # 5 of them
    allowed = {"none": torch.ones(12, 12).bool(), "causal": masks.causal(12)}
    allowed["block"] = masks.block(5, 12)
    reads = part.locator(".cell").evaluate_all("all => all.map(one => Number(one.dataset.reads))")
    assert torch.equal(torch.tensor(reads).bool().reshape(12, 12), allowed[mask])
    for token in (0, 3, 8):
        part.get_by_role("button", name=f"edit token {token + 1}", exact=True).click()
        changed = str(part.locator(".readers").get_attribute("data-changed")).split()
        assert [int(one) for one in changed] == allowed[mask][:, token].nonzero().flatten().tolist()
        assert part.locator(".readers .notices").count() == len(changed)


@figure(6)
def test_what_the_cache_saves(part: Locator) -> None:
    choose(part, "mask", "causal")
    counted = {64: (89440, 2080), 128: (707264, 8256), 256: (5625216, 32896)}
    counted[512] = (44870400, 131328)
    slide(part, "layers L", 3)
    slide(part, "width d", 1)
    for n, expected in counted.items():
        slide(part, "tokens in the end", int(math.log2(n)) - 4)
        assert values(part.locator(".weights li")) == list(expected)
        ratio, numbers = values(part.locator(".fact"))
        assert ratio == pytest.approx((2 * n + 1) / 3) and numbers == 2 * 4 * n * 64
    assert numbers * 4 == 4 * KeyValueCache(1, 4, 512, 16).n_bytes
    assert part.locator(".fact").nth(1).inner_text().startswith("1 MiB")

    choose(part, "mask", "block")
    slide(part, "observation tokens, read as one piece", 9)  # 10 at once, then one by one
    without, cached = values(part.locator(".weights li"))
    assert without == sum(t * t for t in range(10, 513))
    assert cached == 10 * 10 + sum(range(11, 513))
    choose(part, "mask", "none")
    assert "not possible" in part.locator(".weights").inner_text()


@figure(7)
@pytest.mark.parametrize(
    ("cameras", "history", "width", "n", "share", "gigaflops"),
    [
        (1, 1, 128, 196, 0.203, 0.097),
        (2, 1, 256, 392, 0.203, 0.774),
        (3, 1, 512, 588, 0.161, 4.41),
        (3, 2, 256, 1176, 0.434, 3.27),
        (2, 4, 128, 1568, 0.671, 1.88),
        (3, 4, 512, 2352, 0.434, 26.1),
    ],
)
def test_tokens_and_what_they_cost(
    part: Locator, cameras: int, history: int, width: int, n: int, share: float, gigaflops: float
) -> None:
    slide(part, "cameras", cameras - 1)
    slide(part, "frames of history", history - 1)
    slide(part, "width d", int(math.log2(width)) - 6)
    slide(part, "image side", 3)  # 224
    slide(part, "patch side", 2)  # 16
    slide(part, "layers", 1)
    tokens, layer, network, attention = values(part.locator(".fact"))
    assert tokens == n and attention == pytest.approx(share, abs=5e-4)
    linear, quadratic = 24 * n * width**2, 4 * n**2 * width
    assert layer == linear + quadratic and network == 2 * layer
    assert layer / 1e9 == pytest.approx(gigaflops, rel=5e-3, abs=5e-4)
    shown = values(part.locator(".weights").first.locator("li"))
    assert shown == [8 * n * width**2, 16 * n * width**2, quadratic]
    assert part.locator(".frame").count() == cameras * history


@figure(7)
def test_patches_that_do_not_fit_and_measured_times(part: Locator) -> None:
    slide(part, "cameras", 1)
    slide(part, "frames of history", 0)
    for step, (patch, n) in enumerate({8: 784, 14: 256, 16: 196, 28: 64, 32: 49, 56: 16}.items()):
        slide(part, "patch side", step)
        assert values(part.locator(".fact"))[0] == 2 * n, patch
    slide(part, "image side", 1)  # 96 pixels, of which 56 make one patch
    assert "40 pixels of each side are left over" in part.locator(".verdict").inner_text()
    assert "12.5 ms" in part.inner_text() and "control period" in part.inner_text()
    slide(part, "cameras", 2)
    assert "control period" not in part.inner_text()  # nothing was measured for three
