"""The benchmark's page: one file, no requests, the right numbers in plain words."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.console import Console
from tests.benchmark_cells import LEARNED, SCRIPTED, make_cells
from tests.browser import needs_browser
from tests.test_report import Outline

if TYPE_CHECKING:
    from playwright.sync_api import Browser

from fetchlab.eval.benchmark.screen import contrast_table, group_table
from fetchlab.eval.benchmark.summary import summarize
from fetchlab.eval.fingerprint import fingerprint
from fetchlab.eval.report.benchmark import TEMPLATE, BenchmarkStory, context
from fetchlab.eval.report.cells import cell_views
from fetchlab.eval.report.page import Clip, fill
from fetchlab.eval.report.words import number
from fetchlab.eval.results import PolicyFacts, Results
from fetchlab.eval.tables import percent
from fetchlab.eval.video import png


def make_story(**changes: Any) -> BenchmarkStory:
    cells = make_cells()
    results = Results(
        task="mixed",
        seed=0,
        policies=tuple(
            PolicyFacts(policy=name, source=name, max_objects=20, env={}, parameters=None)
            for name in (*LEARNED, *SCRIPTED)
        ),
        cells=cells,
        instruction_swap=None,
        timings_s={},
        command="fetchlab benchmark --policies act slot_mlp <x>",
        versions={"fetchlab": "0.1.0"},
        fingerprint=fingerprint(),
    )
    amounts = (25, 50, 100, 300, 1000)
    picture = png(np.full((8, 8, 3), 200, np.uint8))
    clip = Clip(title="act took another", caption="x", success=False, mp4=b"film", poster=picture)
    parts: dict[str, Any] = {
        "results": results,
        "summary": summarize(cells),
        "n_demonstrations": 1200,
        "n_episodes": 40,
        "seeds": (0, 1, 2),
        "timings": {"demonstrations nominal": 300.0, "training act/nominal/seed-0": 1800.0},
        "minutes": {
            (policy, f"demonstrations_{n}"): 30 + n / 100 for policy in LEARNED for n in amounts
        },
        "left_out": {"cameras wrist_dark": "needs the wrist camera"},
        "clips": (clip,),
    }
    return BenchmarkStory(**{**parts, **changes})


@pytest.fixture(scope="module")
def story() -> BenchmarkStory:
    return make_story()


@pytest.fixture(scope="module")
def page(story: BenchmarkStory) -> str:
    return fill(TEMPLATE, context(story))


def test_the_page_asks_the_network_for_nothing_and_is_well_formed(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert outline.open == [] and outline.speechless == 0
    assert outline.loaded and all(url.startswith(("data:", "#")) for url in outline.loaded)
    assert not re.search(r"https?://|@import|<script|<link|url\((?!#)", page)
    assert not re.search(r"#0[0-9a]0[0-9a]0[0-9a]", page)  # every placeholder colour replaced


def words(page: str) -> str:
    """The page's text."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_what_a_person_typed_cannot_become_markup(page: str) -> None:
    assert "slot_mlp &lt;x&gt; --out DIR" in page


def test_the_headline_is_the_mean_over_tasks(page: str, story: BenchmarkStory) -> None:
    groups = [group for group in story.summary.groups if group.policy == "act"]
    seen, beyond = (
        sum(group.spread.mean for group in groups if (group.counts[0] <= 5) is side) / 3
        for side in (True, False)
    )
    headline = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert headline is not None
    assert headline[1].replace("\u00a0", " ") == (
        f"Shown tables with 2 to 5 objects, act succeeds in {100 * seen:.1f} % of new scenes of "
        f"that kind and {100 * beyond:.1f} % of scenes with 6 to 20."
    )


def test_every_task_has_a_curve_and_its_numbers(page: str) -> None:
    text = words(page)
    for task in ("Fetch", "Put in the box", "Put beside another"):
        assert f"{task} Share" not in text and f"<h3>{task}</h3>" in page
    assert page.count("cannot take more") == 6  # the slots end: three tasks, two sizes
    assert "seen in training" in page


def test_the_heat_map_marks_what_chance_cannot_explain(story: BenchmarkStory) -> None:
    blocks = {suite["suite"]: suite["blocks"] for suite in context(story)["suites"]}
    assert "counts" not in blocks and "data" not in blocks
    (block,) = blocks["phrasings"]
    control, held_out = block["rows"]
    assert control["control"] and control["cells"][0]["difference"] == ""
    act, slots, expert, _ = held_out["cells"]
    assert act["verdict"] == "worse" and act["difference"].startswith("-")
    assert slots["verdict"] == "worse"
    assert (expert["rate"], expert["difference"], expert["verdict"]) == ("100 %", "+0.0", "")


def test_the_heat_map_has_a_block_for_each_training_and_says_who_cannot_play(
    story: BenchmarkStory,
) -> None:
    blocks = {suite["suite"]: suite["blocks"] for suite in context(story)["suites"]}
    assert [block["trained"] for block in blocks["memory"]] == [
        "one frame",
        "the first frame and the newest",
        "the first frame and the newest, minus: one frame",
    ]
    _, slots, expert, _ = blocks["memory"][0]["rows"][1]["cells"]
    assert slots == {"rate": "", "note": "not trained for it"}
    assert expert["rate"] == "100 %"  # the same however others were trained
    assert blocks["appearance"][0]["rows"][0]["cells"][1]["note"] == "needs images"


def test_memory_is_measured_against_one_frame(page: str, story: BenchmarkStory) -> None:
    blocks = {suite["suite"]: suite["blocks"] for suite in context(story)["suites"]}
    [row] = blocks["memory"][-1]["rows"]
    act, slots, expert, _ = row["cells"]
    (lesson,) = story.summary.lessons
    assert row["arm"] == "remember" and act["verdict"] == "better"
    assert act["rate"] == f"{100 * lesson.comparison.difference:+.1f}"
    assert slots["rate"] == expert["rate"] == ""
    assert "the control is new, too, to policies that were taught with grey objects" in words(page)


def test_compositions_tell_success_where_the_sentence_says_colour_and_shape(
    story: BenchmarkStory,
) -> None:
    blocks = {suite["suite"]: suite["blocks"] for suite in context(story)["suites"]}
    for block in blocks["compositions"]:
        _, named_control, held_out, named = block["rows"]
        assert named["description"] == "of these, sentences that say colour and shape"
        assert [row["control"] for row in (named_control, held_out, named)] == [True, False, False]
        assert named["cells"][0]["difference"] == "of 60 scenes"  # three tasks, every other one
    assert len(blocks["crowding"][0]["rows"]) == 2


def test_the_page_says_where_the_control_has_other_scenes(page: str) -> None:
    assert words(page).count("the control has the same seeds, but other scenes") == 3
    assert "played in the same scenes" not in words(page)


def test_one_of_a_thing_is_said_as_one(story: BenchmarkStory) -> None:
    bare = replace(story, n_episodes=1, seeds=(0,))
    text = words(fill(TEMPLATE, context(bare)))
    assert "4 policies, 1 training each · 1 episode a cell" in text
    assert number(1, "policy", "policies") == "1 policy" and number(1200, "suite") == "1,200 suites"


def text_of(table: object) -> str:
    console = Console(width=160, file=io.StringIO())
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_the_screen_says_what_was_repeated_and_what_was_not_paired(story: BenchmarkStory) -> None:
    assert "mean over trainings (worst–best)" in text_of(group_table(story.summary))
    once = summarize([cell for cell in story.results.cells if not cell.training_seed])
    assert "in %\n" in re.sub(" +\n", "\n", text_of(group_table(once)))
    text = text_of(contrast_table(story.summary))
    assert "crowding: the control has the same seeds, but other scenes" in text
    assert "memory: the control is new" in text and "cameras:" not in text
    assert re.search(
        r"held out, trained on pairs seen, colour and shape said +\d+\.\d \(of 60\)", text
    )
    assert re.search(r"remember, trained on remember history minus on remember +\+\d", text)


def test_pairs_trainings_and_failures_are_told(page: str, story: BenchmarkStory) -> None:
    text = words(page)
    assert "Each policy was trained 3 times" in text
    assert "took or pushed another object" in text and "let go beside the box" in text
    duel = next(d for d in story.summary.duels if d.second == "expert_blind")
    assert f"{duel.scenes_needed} or {duel.episodes_needed} each, unpaired" in text
    assert "1,141" in text  # episodes that tell 96 from 98 %
    assert "Left out: cameras wrist dark (needs the wrist camera)." in text


def test_every_cell_is_told_with_its_time(story: BenchmarkStory) -> None:
    pool = next(
        p for p in story.summary.pools if p.key.suite == "compositions" and len(p.failures) > 1
    )
    seconds = {pool.key: 0.345}
    views = cell_views(story.summary.pools, seconds)
    assert sum(len(view["rows"]) for view in views) == len(story.summary.pools)
    [row] = [row for view in views for row in view["rows"] if row["pool"] is pool]
    assert (row["steps"], row["seconds"]) == (f"{pool.mean_steps:.1f}", "0.34")
    assert row["trained"] == "the held-out pairs never occur"
    assert sum(int(text.rsplit(" ", 1)[1]) for text in row["failures"]) == (
        pool.n_episodes - pool.n_success
    )
    text = words(fill(TEMPLATE, context(replace(story, cell_seconds=seconds))))
    told = f"{pool.n_success:,} of {pool.n_episodes:,} {percent(pool.rate or 0)}"
    assert told in text and ", ".join(row["failures"]) in text


def test_data_is_drawn_against_demonstrations_and_minutes(page: str) -> None:
    assert page.count("minutes of demonstrating and training") == 4  # two policies, two sizes
    assert "How much data, how much time?" in page


def test_it_is_the_same_every_time(page: str, story: BenchmarkStory) -> None:
    assert fill(TEMPLATE, context(story)) == page


def test_it_renders_with_next_to_nothing(story: BenchmarkStory) -> None:
    cells = [cell for cell in story.results.cells if cell.suite == "disturbance"]
    expert = tuple(cell for cell in cells if cell.policy == "expert")
    results = replace(
        story.results,
        cells=expert,
        policies=tuple(facts for facts in story.results.policies if facts.policy == "expert"),
    )
    bare = replace(story, results=results, summary=summarize(expert), clips=(), left_out={})
    text = words(fill(TEMPLATE, context(bare)))
    assert "What expert does when its world changes." in text
    assert "Which policy is better" not in text and "How much luck" not in text


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen(width: int, page: str, browser: Browser) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 800})
    tab.set_content(page)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()
