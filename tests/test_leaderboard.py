"""The leaderboard: what is wrong in a file is named, and the order is that of the numbers."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_report import make_cell

from fetchlab.errors import UserError
from fetchlab.eval.benchmark.recipe import SCENES_SEED, WORLD
from fetchlab.eval.entry import Entry, EntryCell, read_entry, recorded, summed, write_entry
from fetchlab.eval.fingerprint import fingerprint
from fetchlab.eval.leaderboard import (
    BEYOND,
    SEEN,
    TASKS,
    LeaderboardConfig,
    ranked,
    read_entries,
    run_leaderboard,
    standing,
)
from fetchlab.eval.results import CellKey
from fetchlab.eval.statistics import seed_spread, wilson

N = 50  # episodes a cell: the fewest that are ranked


def make_entry(name: str = "mine", seen: tuple[int, ...] = (45, 50), beyond: int = 40) -> Entry:
    """Successes of each training in every cell at seen counts, and of all trainings beyond."""
    cells = [
        EntryCell(
            suite="counts",
            arm="",
            trained="nominal",
            task=task,
            n_objects=count,
            n_episodes=N,
            successes=seen if count in SEEN else (beyond,) * len(seen),
            note="",
        )
        for task in TASKS
        for count in (*SEEN, *BEYOND)
    ]
    return Entry(
        name=name,
        authors="A. Person",
        link="",
        policy="a policy",
        demonstrations=7200,
        cells=tuple(cells),
        fingerprint={"renderer": "3fa2"},
        world=recorded(WORLD),
        seed=SCENES_SEED,
    )


def changed(entry: Entry, count: int, task: str, **changes: Any) -> Entry:
    cells = [
        replace(cell, **changes) if (cell.n_objects, cell.task) == (count, task) else cell
        for cell in entry.cells
    ]
    return replace(entry, cells=tuple(cells))


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    entry = make_entry()
    path = write_entry(tmp_path, entry)
    assert path.name == "mine.json" and read_entry(path) == entry


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c.pop("name"), "name is missing"),
        (lambda c: c.update(name=" "), "name must be of letters"),
        (lambda c: c.update(name="../mine"), "name must be of letters"),
        (lambda c: c.update(name="mine "), "name must be of letters"),
        (lambda c: c.update(authors="A\nB"), "authors must be one line of text"),
        (lambda c: c["world"].update(task="fetch"), "world is not .*: it has another task"),
        (lambda c: c["world"].pop("shapes"), "world is not .*: it has another shapes"),
        (lambda c: c["world"].update(variation="lighting"), "it has another variation"),
        (lambda c: c.update(seed=7), "seed must be that of the benchmark's scenes, 0, got 7"),
        (lambda c: c["cells"][1].update(n_objects=99), "n_objects must be 2 to 20, got 99"),
        (lambda c: c["cells"][1].update(suite="count"), "unknown suite 'count': did you mean"),
        (lambda c: c["cells"][1].update(task="fly"), "unknown task 'fly'"),
        (lambda c: c["cells"][1].update(arm="zzz"), "unknown arm of counts 'zzz'"),
        (lambda c: c["cells"][1].update(trained="x"), "unknown training for counts 'x'"),
        (lambda c: c["cells"][1].update(n_episodes=-5), "n_episodes must be 0 to 10000, got -5"),
        (lambda c: c["cells"][1].update(n_episodes=10**400), "n_episodes must be 0 to 10000"),
        (lambda c: c["cells"][1].update(n_episodes=0, successes=[0, 0]), "none if n_episodes is 0"),
        (lambda c: c.update(name=3), "name must be text"),
        (lambda c: c.update(demonstrations=-1), "demonstrations must not be negative, got -1"),
        (lambda c: c.pop("demonstrations"), "demonstrations is missing"),
        (lambda c: c.update(score=1), "score is no field"),
        (lambda c: c.update(format=9), "format must be 1, got 9"),
        (lambda c: c.update(cells=[]), "cells must not be empty"),
        (lambda c: c.update(cells={}), "cells must be a list"),
        (lambda c: c["cells"].append(c["cells"][0]), "one twice: counts, , nominal, fetch, 2"),
        (lambda c: c["cells"].append(7), r"cells\[27\]: must be a JSON object"),
        (lambda c: c["cells"][1].pop("task"), r"cells\[1\]: task is missing"),
        (lambda c: c["cells"][1].update(n_objects="3"), r"n_objects must be a whole number"),
        (lambda c: c["cells"][1].update(successes=[51, 0]), r"must be 0 to n_episodes \(50\)"),
        (
            lambda c: c["cells"][1].update(successes=[1.5, 0]),
            r"successes\[0\] must be a whole number",
        ),
        (lambda c: c["cells"][1].update(successes=[9]), r"equally many trainings, got \[1, 2\]"),
        (lambda c: c["cells"][1].update(n_episodes=0, successes=[]), "note must say why"),
        (lambda c: c.update(fingerprint={}), "fingerprint must not be empty"),
        (lambda c: c.update(fingerprint={"renderer": 1}), "fingerprint.renderer must be text"),
    ],
)
def test_what_is_wrong_is_named(change: Any, complaint: str, tmp_path: Path) -> None:
    content = json.loads(write_entry(tmp_path, make_entry()).read_text())
    change(content)
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"broken\.json.*{complaint}"):
        read_entry(path)


@given(st.integers(0, 2000))
def test_a_file_that_was_cut_is_told(at: int) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = write_entry(Path(folder), make_entry())
        text = path.read_text()
        path.write_text(text[: min(at, len(text) - 3)])
        with pytest.raises(UserError, match=r"mine\.json is cut off or no JSON"):
            read_entry(path)


def test_a_file_of_many_brackets_is_told(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(UserError, match=r"deep\.json is cut off or no JSON"):
        read_entry(path)


def test_the_headline_is_the_mean_over_tasks_and_counts_beyond() -> None:
    found = standing(changed(make_entry(), 20, "fetch", successes=(0, 40)))
    cells = len(TASKS) * len(BEYOND)
    assert found.beyond == pytest.approx((0.8 + (0.8 * (cells - 1) + 0.0) / cells) / 2)
    assert found.worst_seed == pytest.approx(0.8 * (cells - 1) / cells)
    assert found.seen == pytest.approx(0.95) and found.n_seeds == 2
    assert found.n_episodes == cells * 2 * N


def test_the_interval_is_the_wider_of_trainings_and_scenes() -> None:
    n = N * len(TASKS) * len(BEYOND)
    over_scenes = pytest.approx(wilson(round(0.8 * n), n))
    for seen in ((45,), (45, 45), (45, 45, 45)):  # that trainings agree makes no scenes
        assert standing(make_entry(seen=seen)).beyond_ci95 == over_scenes
    apart = standing(changed(make_entry(), 20, "fetch", successes=(0, 50)))
    rates = [0.8 * 14 / 15, (0.8 * 14 + 1) / 15]
    assert apart.beyond_ci95 == pytest.approx(seed_spread(rates).ci95)


def test_a_count_that_it_cannot_take_counts_as_failed() -> None:
    nothing = {"n_episodes": 0, "successes": (), "note": "cannot take 20 objects"}
    entry = make_entry()
    for task in TASKS:
        entry = changed(entry, 20, task, **nothing)
    found = standing(entry)
    assert found.beyond == pytest.approx(0.8 * 4 / 5) and found.not_ranked == ""
    n = N * len(TASKS) * len(BEYOND)
    assert found.beyond_ci95 == pytest.approx(wilson(round(0.64 * n), n))


def test_what_played_nothing_beyond_is_not_ranked() -> None:
    nothing = {"n_episodes": 0, "successes": (), "note": "cannot take so many objects"}
    entry = make_entry()
    for task in TASKS:
        for count in BEYOND:
            entry = changed(entry, count, task, **nothing)
    assert standing(entry).not_ranked == "it played nothing with 6 or more objects"


def test_few_episodes_are_not_ranked() -> None:
    found = standing(changed(make_entry(), 20, "fetch", n_episodes=49, successes=(49, 49)))
    assert found.beyond is None
    assert found.not_ranked == "too few episodes: 49 of fetch with 20 objects, 50 are needed"


def test_the_best_comes_first_and_what_lacks_cells_last() -> None:
    partial = replace(make_entry("partial"), cells=make_entry().cells[:5])
    nothing = make_entry("nothing", beyond=0)
    order = ranked([partial, nothing, make_entry("good", beyond=45), make_entry("fair")])
    assert [one.name for one in order] == ["good", "fair", "nothing", "partial"]
    assert order[-1].not_ranked == "it has no fetch with 8 objects"


def test_other_scenes_are_not_put_into_one_table_and_the_odd_file_is_named(tmp_path: Path) -> None:
    write_entry(tmp_path, replace(make_entry("a"), fingerprint={"renderer": "91bc"}))
    for name in ("b", "c"):
        write_entry(tmp_path, make_entry(name))
    expected = r"a\.json and \S+b\.json cannot .* renderer 91bc there, 3fa2 here"
    with pytest.raises(UserError, match=expected):
        read_entries([tmp_path])


def test_a_name_stands_once(tmp_path: Path) -> None:
    first = write_entry(tmp_path, make_entry("a"))
    (tmp_path / "b.json").write_text(first.read_text())
    with pytest.raises(UserError, match=r"b\.json: name a is that of \S+a\.json too"):
        read_entries([tmp_path])


def test_what_a_person_wrote_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_entry(tmp_path, replace(make_entry("a"), authors="[/bold] [red]B."))
    run_leaderboard(LeaderboardConfig(places=(tmp_path,)))
    assert "[/bold]" in capsys.readouterr().out


def test_the_table_and_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_entry(tmp_path, make_entry("a"))
    run_leaderboard(LeaderboardConfig(places=(tmp_path,), json=True))
    (line,) = json.loads(capsys.readouterr().out)
    assert line == json.loads(json.dumps(asdict(standing(make_entry("a")))))
    run_leaderboard(LeaderboardConfig(places=(tmp_path,)))
    assert "80.0 %" in capsys.readouterr().out


def test_an_empty_folder_says_how_to_add_and_a_missing_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_leaderboard(LeaderboardConfig(places=(tmp_path,)))
    said = capsys.readouterr().out
    assert "no entries yet; add yours with fetchlab leaderboard --add" in said
    assert said.count("\n") == 1
    run_leaderboard(LeaderboardConfig(places=(tmp_path,), json=True))
    assert json.loads(capsys.readouterr().out) == []
    with pytest.raises(UserError, match=r"none\.json does not exist"):
        read_entries([tmp_path / "none.json"])


def test_the_cells_of_all_trainings_become_one() -> None:
    key = CellKey(policy="act", suite="counts", n_objects=5)
    played = make_cell("act", 5, 3, n=10)
    cells = [replace(played, training_seed=seed, n_success=won) for seed, won in ((0, 7), (1, 9))]
    (cell,) = summed(cells)
    assert cell.successes == (7, 9) and cell.n_episodes == 10
    assert (cell.suite, cell.task, cell.n_objects) == (key.suite, "fetch", 5)


RESULTS = Path(__file__).parent.parent / "results"


def test_the_entries_of_this_repository_are_valid() -> None:
    for path in RESULTS.glob("*.json"):
        assert read_entry(path).name == path.stem


def test_the_example_in_the_readme_is_valid(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", (RESULTS / "README.md").read_text(), re.DOTALL)
    path = tmp_path / "example.json"
    path.write_text(example)
    entry = read_entry(path)
    assert entry.cells[0].rates == (0.98, 0.97, 0.985)
    ours = fingerprint()
    assert entry.fingerprint.keys() == ours.keys()
    assert entry.fingerprint["scenes"] == ours["scenes"]
