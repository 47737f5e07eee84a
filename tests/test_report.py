"""The report: one file, no requests, the right numbers in plain words."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from fetchlab.eval.report.charts import Curve
from fetchlab.eval.report.page import Clip, Look, Story, duration, render, span, write_report
from fetchlab.eval.results import Cell, CellKey, PolicyFacts, Results, Swap
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.statistics import wilson
from fetchlab.eval.video import png

COUNTS = (2, 3, 4, 5, 6, 8, 10)
FAILURES = {
    "act": (0, 0, 1, 0, 1, 2, 3),
    "act_objects": (0, 0, 0, 0, 0, 0, 1),
    "slot_mlp": (0, 1, 2, 3, 60, None, None),
    "act_no_position_queries": (90, 110, 130, 140, 150, 160, 165),
    "expert": (0, 0, 0, 0, 0, 0, 0),
}


def make_cell(policy: str, n_objects: int, n_failed: int | None, n: int = 200) -> Cell:
    if n_failed is None:
        note = f"cannot take {n_objects} objects (6 slots)"
        return Cell.refused(CellKey(policy=policy, suite="counts", n_objects=n_objects), note)
    episodes = [
        EpisodeResult(
            seed=2 * row + 1,
            n_objects=n_objects,
            success=row >= n_failed,
            steps=14 if row >= n_failed else 40,
            reason="" if row >= n_failed else ("wrong_object", "no_grasp")[row % 2],
            instruction="fetch the red block",
            target=0,
        )
        for row in range(n)
    ]
    return Cell.count(CellKey(policy=policy, suite="counts", n_objects=n_objects), episodes)


def make_results() -> Results:
    return Results(
        task="fetch",
        seed=0,
        policies=tuple(
            PolicyFacts(policy=name, source=name, max_objects=20, env={}, parameters=None)
            for name in FAILURES
        ),
        cells=tuple(
            make_cell(name, count, n_failed)
            for name, failed in FAILURES.items()
            for count, n_failed in zip(COUNTS, failed, strict=True)
        ),
        instruction_swap=Swap(
            policy="act", n=100, n_followed=99, n_both=98, rate=0.99, ci95=wilson(99, 100)
        ),
        timings_s={"demonstrations": 48.2, "training act": 71.0, "evaluation": 88.1},
        command="fetchlab quickstart --out runs/<first>",
        versions={"fetchlab": "0.1.0", "torch": "2.13.0"},
    )


def make_story(**changes: object) -> Story:
    picture = png(np.full((8, 8, 3), 200, np.uint8))
    steps = list(range(0, 1000, 10))
    parts: dict[str, object] = {
        "results": make_results(),
        "seen": (2, 3, 4, 5),
        "n_demonstrations": 1200,
        "clips": (
            Clip(title="10 blocks", caption="x", success=True, mp4=b"film", poster=picture),
            Clip(title="6 blocks", caption="y", success=False, mp4=b"film", poster=picture),
        ),
        "looks": (Look(caption="just before the grasp", png=picture),),
        "curves": (
            Curve(
                policy="act",
                steps=steps,
                loss=[2.0 / (1 + step / 50) + 0.1 for step in steps],
                held_out_steps=[250, 500, 750],
                held_out_loss=[0.5, 0.3, 0.25],
            ),
        ),
    }
    return Story(**{**parts, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def page() -> str:
    return render(make_story())


class Outline(HTMLParser):
    """Tags that were left open, pictures without words, and everything that is loaded."""

    VOID = frozenset({"meta", "img", "br", "path", "use", "rect", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.speechless = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [str(given[key]) for key in ("src", "poster", "srcset") if key in given]
        self.loaded += [str(given[key]) for key in given if key.endswith("href")]
        self.speechless += tag == "img" and not given.get("alt")
        self.speechless += tag == "video" and not given.get("aria-label")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_asks_the_network_for_nothing_and_is_well_formed(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert outline.open == [] and outline.speechless == 0
    assert outline.loaded and all(url.startswith(("data:", "#")) for url in outline.loaded)
    assert not re.search(r"https?://|@import|<script|<link|url\((?!#)", page)


def test_what_a_person_typed_cannot_become_markup(page: str) -> None:
    assert "runs/&lt;first&gt;" in page and "<first>" not in page


def test_the_headline_says_it_in_plain_words(page: str) -> None:
    headline = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert headline is not None
    assert headline[1] == (
        "Trained on tables with 2 to 5 blocks, a policy that sees only camera pixels fetches the "
        "named one in 799 of 800 new scenes of that kind, and in 197 of 200 scenes with 10."
    )


def test_every_number_of_the_table_has_its_n_and_interval(page: str) -> None:
    low, _ = wilson(197, 200)
    assert f"98.5 %<small>197 of 200</small><small>{100 * low:.1f}" in page
    assert page.count("cannot<small>take") == 2  # the slots end at six
    assert "cannot take 8, 10" in page  # the chart in words


def test_it_is_honest_about_the_position_queries(page: str) -> None:
    assert "used in training only" in page
    assert "trained for as long on the same" in page


def test_charts_follow_the_page_and_mark_where_the_slots_end(page: str) -> None:
    assert "var(--series-2)" in page and "cannot take more" in page and "seen in training" in page
    assert not re.search(r"#0[0-9a]0[0-9a]0[0-9a]", page)  # every placeholder colour replaced


def test_it_renders_without_films_curves_or_baselines() -> None:
    cells = tuple(make_cell("expert", count, 0, n=5) for count in (2, 3))
    results = make_results()
    bare = Results(**{**vars(results), "cells": cells, "instruction_swap": None})
    page = render(make_story(results=bare, clips=(), looks=(), curves=()))
    assert "In all 10 scenes, the named block was fetched" in page
    assert "Does it listen" not in page and "<video" not in page


def test_it_is_the_same_every_time(page: str) -> None:
    assert render(make_story()) == page


def test_it_is_written_whole(tmp_path: Path) -> None:
    path = write_report(tmp_path / "new", make_story())
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_small_words() -> None:
    assert (span((2, 3, 4, 5)), span((8, 10)), span((4,))) == ("2 to 5", "8, 10", "4")
    assert (duration(47.6), duration(125)) == ("48 s", "2 min 05 s")
