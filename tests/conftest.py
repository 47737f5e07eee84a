"""What all tests share.

Property tests have no deadline: machines are shared, and time is the bench's to measure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("fetchlab", deadline=None)
settings.load_profile("fetchlab")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser, for the tests of pages."""
    from tests.browser import open_browser

    with open_browser() as browser:
        yield browser
