"""`fetchlab leaderboard --add`: whole benchmarks only, and all of what is added or nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.test_leaderboard import make_entry
from tests.test_report import COUNTS, make_results

from fetchlab.errors import UserError
from fetchlab.eval.benchmark.recipe import SCENES_SEED, WORLD
from fetchlab.eval.entry import read_entry, recorded, write_entry
from fetchlab.eval.leaderboard import LeaderboardConfig, run_leaderboard


def make_benchmark(folder: Path, renderer: str = "3fa2", **changes: Any) -> Path:
    """The folder of a finished one, with the cells of `make_results`."""
    settings = json.loads(
        json.dumps({"world": asdict(replace(WORLD, **changes)), "demonstrations": 300})
    )
    record = {"settings": settings, "fingerprint": {"renderer": renderer}}
    replace(make_results(), fingerprint=record["fingerprint"]).write(folder)
    (folder / "benchmark.json").write_text(json.dumps(record))
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_benchmark_is_added_and_nothing_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, board = make_benchmark(tmp_path / "run"), tmp_path / "board"
    config = LeaderboardConfig(places=(board,), add=run, name="mine", authors="A. Person")
    run_leaderboard(config)
    entry = read_entry(board / "mine-act.json")
    assert entry.authors == "A. Person" and entry.policy == "transformer on camera pixels"
    scripted = read_entry(board / "mine-expert.json")
    assert (entry.demonstrations, scripted.demonstrations) == (300, 0)
    assert entry.world == recorded(WORLD) and entry.seed == SCENES_SEED
    assert len(entry.cells) == len(COUNTS) and "no fetch with 15" in capsys.readouterr().out
    (board / "mine-act.json").unlink()
    before = names(board)
    with pytest.raises(UserError, match=r"mine-act_objects\.json is there already"):
        run_leaderboard(config)
    assert names(board) == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"task": "fetch"}, "run cannot be ranked: world .* another task; add a fetchlab bench"),
        ({"image_size": 64}, "another image_size"),
        ({"renderer": "91bc"}, r"run and \S+there\.json cannot .* renderer 91bc there, 3fa2 here"),
    ],
)
def test_what_is_not_of_the_benchmark_is_not_added(
    change: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    write_entry(tmp_path / "board", make_entry("there"))
    run = make_benchmark(tmp_path / "run", **change)
    with pytest.raises(UserError, match=complaint):
        run_leaderboard(LeaderboardConfig(places=(tmp_path / "board",), add=run))
    assert names(tmp_path / "board") == ["there.json"]


def test_only_the_folder_of_a_benchmark_can_be_added(tmp_path: Path) -> None:
    make_results().write(tmp_path / "eval")
    for name in ("eval", "nothing"):
        config = LeaderboardConfig(places=(tmp_path / "board",), add=tmp_path / name)
        with pytest.raises(UserError, match="make one with fetchlab benchmark --out"):
            run_leaderboard(config)
    scenes = make_benchmark(tmp_path / "scenes")
    content = json.loads((scenes / "results.json").read_text())
    (scenes / "results.json").write_text(json.dumps({**content, "seed": 7}))
    with pytest.raises(UserError, match="seed must be that of the benchmark"):
        run_leaderboard(LeaderboardConfig(places=(tmp_path / "board",), add=scenes))
    with pytest.raises(UserError, match="name must be of letters"):
        add = make_benchmark(tmp_path / "run")
        run_leaderboard(LeaderboardConfig(places=(tmp_path / "board",), add=add, name="../x"))
    with pytest.raises(UserError, match="--authors is said of what is added: give --add"):
        LeaderboardConfig(authors="A. Person")
    assert not (tmp_path / "board").exists()
