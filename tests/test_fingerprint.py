"""The fingerprint: the same everywhere, and different as soon as scenes or pictures are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fetchlab.errors import UserError
from fetchlab.eval.fingerprint import difference, fingerprint, refuse_difference
from fetchlab.sim import world
from fetchlab.sim.tasks.fetch import Fetch

SRC = Path(__file__).parent.parent / "src"


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    """A fingerprint is kept by its process."""
    fingerprint.cache_clear()
    yield
    fingerprint.cache_clear()


def test_another_process_finds_the_same() -> None:
    code = "import json, fetchlab.eval.fingerprint as f; print(json.dumps(f.fingerprint()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SRC
    )
    assert json.loads(done.stdout) == fingerprint()


def moved(by: float) -> Any:
    """Fetch scenes with their first object elsewhere [m]."""
    draw = Fetch.scene

    def scene(self: Fetch, *arguments: Any) -> Any:
        drawn = draw(self, *arguments)
        first, *others = drawn.objects
        return replace(drawn, objects=(replace(first, x=first.x + by), *others))

    return scene


def test_it_notices_a_change_of_the_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    for by, same in ((1e-3, False), (1e-10, True)):  # not what another processor rounds otherwise
        fingerprint.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(Fetch, "scene", moved(by))
            after = fingerprint()
        assert (before["scenes"] == after["scenes"]) is same
        assert before["meshes"] == after["meshes"]


def test_it_notices_a_change_of_the_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    fingerprint.cache_clear()
    monkeypatch.setattr(world, "TABLE_SIZE", 0.9 * world.TABLE_SIZE)
    after = fingerprint()
    assert difference(before, after).startswith("renderer ")
    assert before["scenes"] == after["scenes"]


def test_a_difference_is_named() -> None:
    here, there = {"renderer": "91bc", "numpy": "2.4"}, {"renderer": "3fa2", "numpy": "2.4"}
    assert difference(here, there) == "renderer 3fa2 there, 91bc here"
    assert difference(here, {"renderer": "91bc"}) == "numpy unknown there, 2.4 here"
    assert difference(here, dict(here)) == ""
    refuse_difference("a and b", here, dict(here))
    with pytest.raises(UserError, match="a and b cannot be compared: renderer 3fa2 there, 91bc"):
        refuse_difference("a and b", here, there)
