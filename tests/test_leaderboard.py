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
from tests.test_report import COUNTS, make_cell, make_results

from fetchlab.errors import UserError
from fetchlab.eval.entry import Entry, EntryCell, read_entry, summed, write_entry
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
from fetchlab.eval.statistics import wilson


def make_entry(name: str = "mine", seen: tuple[int, ...] = (9, 10), beyond: int = 8) -> Entry:
    """Ten episodes a cell; `seen` successes of each training, one fewer beyond and so on."""
    cells = [
        EntryCell(
            suite="counts",
            arm="",
            trained="nominal",
            task=task,
            n_objects=count,
            n_episodes=10,
            successes=seen if count in SEEN else (beyond,) * len(seen),
            note="",
        )
        for task in TASKS
        for count in (*SEEN, *BEYOND)
    ]
    about = {"authors": "A. Person", "link": "", "policy": "a policy"}
    return Entry(name=name, cells=tuple(cells), fingerprint={"renderer": "3fa2"}, **about)


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
        (lambda c: c.update(name=" "), "name must not be empty"),
        (lambda c: c.update(name=3), "name must be text"),
        (lambda c: c.update(score=1), "score is no field"),
        (lambda c: c.update(format=9), "format must be 1, got 9"),
        (lambda c: c.update(cells=[]), "cells must not be empty"),
        (lambda c: c.update(cells={}), "cells must be a list"),
        (lambda c: c["cells"].append(c["cells"][0]), "one twice: counts, , nominal, fetch, 2"),
        (lambda c: c["cells"].append(7), r"cells\[27\]: a cell is a JSON object"),
        (lambda c: c["cells"][1].pop("task"), r"cells\[1\]: task is missing"),
        (lambda c: c["cells"][1].update(n_objects="3"), r"n_objects must be a whole number"),
        (lambda c: c["cells"][1].update(successes=[11, 0]), r"must be 0 to n_episodes \(10\)"),
        (lambda c: c["cells"][1].update(successes=[1.5, 0]), "must be whole numbers"),
        (lambda c: c["cells"][1].update(successes=[9]), r"equally many trainings, got \[1, 2\]"),
        (lambda c: c["cells"][1].update(n_episodes=0, successes=[]), "note must say why"),
        (lambda c: c.update(fingerprint={"renderer": 1}), "fingerprint must hold text only"),
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


def test_the_headline_is_the_mean_over_tasks_and_counts_beyond() -> None:
    found = standing(changed(make_entry(), 20, "fetch", successes=(0, 8)))
    cells = len(TASKS) * len(BEYOND)
    assert found.beyond == pytest.approx((0.8 + (0.8 * (cells - 1) + 0.0) / cells) / 2)
    assert found.worst_seed == pytest.approx(0.8 * (cells - 1) / cells)
    assert found.seen == pytest.approx(0.95) and found.n_seeds == 2
    assert found.n_episodes == cells * 20


def test_a_single_training_has_the_interval_of_its_episodes() -> None:
    found = standing(make_entry(seen=(9,)))
    n = 10 * len(TASKS) * len(BEYOND)
    assert found.beyond_ci95 == pytest.approx(wilson(round(0.8 * n), n))


def test_a_count_that_it_cannot_take_counts_as_failed() -> None:
    nothing = {"n_episodes": 0, "successes": (), "note": "cannot take 20 objects"}
    entry = make_entry()
    for task in TASKS:
        entry = changed(entry, 20, task, **nothing)
    found = standing(entry)
    assert found.beyond == pytest.approx(0.8 * 4 / 5) and found.missing == ""
    single = make_entry(seen=(9,))
    for task in TASKS:
        single = changed(single, 20, task, **nothing)
    n = 10 * len(TASKS) * len(BEYOND)
    assert standing(single).beyond_ci95 == pytest.approx(wilson(round(0.64 * n), n))


def test_the_best_comes_first_and_what_lacks_cells_last() -> None:
    partial = replace(make_entry("partial"), cells=make_entry().cells[:5])
    nothing = make_entry("nothing", beyond=0)
    order = ranked([partial, nothing, make_entry("good", beyond=9), make_entry("fair")])
    assert [one.name for one in order] == ["good", "fair", "nothing", "partial"]
    assert order[-1].missing == "no fetch with 8 objects"


def test_other_scenes_are_not_put_into_one_table(tmp_path: Path) -> None:
    write_entry(tmp_path, make_entry("a"))
    write_entry(tmp_path, replace(make_entry("b"), fingerprint={"renderer": "91bc"}))
    with pytest.raises(UserError, match=r"b\.json .* renderer 91bc there, 3fa2 here"):
        read_entries([tmp_path])


def test_the_table_and_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_entry(tmp_path, make_entry("a"))
    run_leaderboard(LeaderboardConfig(places=(tmp_path,), json=True))
    (line,) = json.loads(capsys.readouterr().out)
    assert line == json.loads(json.dumps(asdict(standing(make_entry("a")))))
    run_leaderboard(LeaderboardConfig(places=(tmp_path,)))
    assert "80.0 %" in capsys.readouterr().out


def test_an_empty_folder_and_a_missing_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no entries"):
        read_entries([tmp_path])
    with pytest.raises(UserError, match=r"none\.json does not exist"):
        read_entries([tmp_path / "none.json"])


def test_the_cells_of_all_trainings_become_one() -> None:
    key = CellKey(policy="act", suite="counts", n_objects=5)
    played = make_cell("act", 5, 3, n=10)
    cells = [replace(played, training_seed=seed, n_success=won) for seed, won in ((0, 7), (1, 9))]
    (cell,) = summed(cells)
    assert cell.successes == (7, 9) and cell.n_episodes == 10
    assert (cell.suite, cell.task, cell.n_objects) == (key.suite, "fetch", 5)


def test_a_benchmark_is_added_and_nothing_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, board = tmp_path / "run", tmp_path / "board"
    make_results_of(run, {"renderer": "3fa2"})
    config = LeaderboardConfig(places=(board,), add=run, name="mine", authors="A. Person")
    run_leaderboard(config)
    entry = read_entry(board / "mine-act.json")
    assert entry.authors == "A. Person" and entry.policy == "transformer on camera pixels"
    assert len(entry.cells) == len(COUNTS) and "no fetch with 15" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"mine-act\.json is there already"):
        run_leaderboard(config)
    make_results_of(run, {})
    with pytest.raises(UserError, match="holds no fingerprint"):
        run_leaderboard(replace(config, name="other"))


def make_results_of(folder: Path, fingerprint: dict[str, str]) -> None:
    replace(make_results(), fingerprint=fingerprint).write(folder)


RESULTS = Path(__file__).parent.parent / "results"


def test_the_entries_of_this_repository_are_valid() -> None:
    for path in RESULTS.glob("*.json"):
        assert read_entry(path).name == path.stem


def test_the_example_in_the_readme_is_valid(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", (RESULTS / "README.md").read_text(), re.DOTALL)
    path = tmp_path / "example.json"
    path.write_text(example)
    assert read_entry(path).cells[0].rates == (0.98, 0.97, 0.985)
