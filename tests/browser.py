"""A real browser without a window, for the tests of pages that people click and drag in."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, sync_playwright

FOUND = [
    path
    for name in ("chromium", "chromium-browser", "google-chrome")
    if (path := shutil.which(name))
]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
needs_browser = pytest.mark.skipif(
    not FOUND and not os.environ.get("FETCHLAB_REQUIRE_BROWSER"),
    reason="needs chromium (with FETCHLAB_REQUIRE_BROWSER its absence is an error)",
)


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """The first browser that is installed."""
    with sync_playwright() as playwright:
        path = FOUND[0] if FOUND else "chromium"
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def slide(part: Locator, label: str, step: int) -> None:
    """Move the slider to its step-th value, as the keyboard would."""
    part.get_by_label(label, exact=True).fill(str(step))


def choose(part: Locator, group: str, option: str) -> None:
    part.get_by_role("group", name=group).get_by_role("radio", name=option, exact=True).check()


def values(rows: Locator) -> list[float]:
    return [float(text) for text in rows.evaluate_all("all => all.map(one => one.dataset.value)")]
