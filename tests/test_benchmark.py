"""The benchmark: everything once, the same bytes every time, and whatever happened goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark_cells import make_cells

from fetchlab.cli import main
from fetchlab.errors import UserError
from fetchlab.eval.benchmark import config as benchmark_config
from fetchlab.eval.benchmark import play
from fetchlab.eval.benchmark.command import run_benchmark
from fetchlab.eval.benchmark.config import BenchmarkConfig, trainings
from fetchlab.eval.benchmark.recipe import QUICK
from fetchlab.eval.benchmark.store import Store
from fetchlab.eval.benchmark.training import is_trained
from fetchlab.eval.compare import matches, read_contestants, trainings_of
from fetchlab.eval.parallel import Done, Shard, as_played
from fetchlab.eval.results import read_results

YARDSTICKS = ("expert", "expert_blind")
TINY = replace(QUICK, demonstrations=4, steps=2 / 5000, episodes=2, counts=(2, 3), seeds=(0, 1))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_config, "QUICK", TINY)


def make_config(out: Path, **changes: Any) -> BenchmarkConfig:
    settings = {"policies": YARDSTICKS, "suites": ("counts", "disturbance"), "workers": 1}
    return BenchmarkConfig(out=out, quick=True, **{**settings, **changes})


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A benchmark of the two yardsticks."""
    out = tmp_path_factory.mktemp("benchmark") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark_config, "QUICK", TINY)
        run_benchmark(make_config(out))
    yield out


def test_it_leaves_results_summary_times_and_a_report(finished: Path) -> None:
    assert {"results.json", "summary.json", "timings.json", "report.html"} <= names(finished)
    results = read_results(finished)
    assert results.timings_s == {} and str(finished) not in (finished / "results.json").read_text()
    assert {cell.policy for cell in results.cells} == set(YARDSTICKS)
    expert = [cell for cell in results.cells if cell.policy == "expert"]
    assert all(cell.n_success == cell.n_episodes == 2 for cell in expert)
    assert [cell.arm for cell in expert] == ["", "", "control", "object_moved", "arm_pushed"]
    assert "scenes" in results.fingerprint
    times = json.loads((finished / "cell_times.json").read_text())
    assert len(times) == len(results.cells) and min(times.values()) > 0
    took = times["expert/nominal/untrained/disturbance/object_moved/fetch-05"]
    page = unescape((finished / "report.html").read_text())
    assert f"<td>{took / 2:.2f}</td>" in page  # an episode


def test_the_same_benchmark_gives_the_same_bytes_in_any_folder(
    finished: Path, tmp_path: Path
) -> None:
    run_benchmark(make_config(tmp_path / "again", workers=2))
    for name in ("results.json", "summary.json"):
        assert (tmp_path / "again" / name).read_bytes() == (finished / name).read_bytes()


def test_all_policies_meet_the_same_scenes(finished: Path) -> None:
    cells = read_results(finished).cells
    by_place: dict[tuple[str, str, int], set[tuple[int, ...]]] = {}
    for cell in cells:
        seeds = tuple(episode.seed for episode in cell.episodes)
        by_place.setdefault((cell.suite, cell.arm, cell.n_objects), set()).add(seeds)
    assert all(len(seeds) == 1 for seeds in by_place.values())


def test_a_benchmark_can_be_compared_training_by_training(finished: Path) -> None:
    first, second = read_contestants([finished])
    assert [first.label, second.label] == [f"{finished}: expert", f"{finished}: expert_blind"]
    assert len(matches(first, second)) == 5
    found = trainings_of([cell for cell in make_cells(n=1) if cell.policy == "act"])
    assert list(found) == [f", seed {seed}" for seed in (0, 1, 2)]
    assert {place.trained for place in found[", seed 0"]} > {"nominal", "pairs_seen"}


def count_episodes(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[int]:
    """A list to which the number of episodes of every shard is added that is played."""
    played: list[int] = []

    def counted(shards: Sequence[Shard], workers: int) -> Iterator[Done]:
        for done in as_played(shards, workers):
            if len(played) == stop_after:
                raise KeyboardInterrupt
            played.append(len(done.results))
            yield done

    monkeypatch.setattr(play, "as_played", counted)
    return played


def test_after_an_interruption_it_goes_on_and_plays_nothing_twice(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(tmp_path / "run")
    with monkeypatch.context() as patch:
        before = count_episodes(patch, stop_after=3)
        with pytest.raises(KeyboardInterrupt):
            run_benchmark(config)
    after = count_episodes(monkeypatch)
    run_benchmark(config)
    assert len(before) == 3 and len(after) == 2 * 5 - 3
    assert (config.out / "results.json").read_bytes() == (finished / "results.json").read_bytes()
    run_benchmark(config)
    assert len(after) == 7  # nothing was left to play


@pytest.mark.slow
def test_trained_policies_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = ("slot_mlp", "expert")
    config = make_config(tmp_path / "one", policies=policies, suites=("counts", "ablations"))
    run_benchmark(config)
    said = capsys.readouterr()
    assert "left out: ablations images removed: sees no images" in said.err
    assert "slot_mlp" in said.out
    cells = read_results(config.out).cells
    learned = [cell for cell in cells if cell.policy == "slot_mlp"]
    assert {cell.training_seed for cell in learned} == {0, 1}
    assert "data:video/mp4" in (config.out / "report.html").read_text()

    run_benchmark(replace(config, out=tmp_path / "two", workers=2))
    first, second = ((tmp_path / run / "results.json").read_bytes() for run in ("one", "two"))
    assert first == second
    times = json.loads((config.out / "timings.json").read_text())
    assert {"demonstrations nominal", "training slot_mlp/nominal/seed-1"} <= set(times)


# Mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--suites", "camera"], "unknown suite 'camera': did you mean cameras?"),
        (["--policies", "atc"], "unknown policy 'atc'"),
        (["--seeds", "0", "1", "0"], "--seeds must name different seeds, got 0 1 0"),
        (["--policies", "act", "act"], "--policies must name different policies"),
        (["--seeds", "-1"], "--seeds must be 0 to"),
        (["--episodes", "0"], "--episodes must be 1 to"),
        (["--demonstrations", "1"], "--demonstrations must be 2 to"),
        (["--task", "ftech"], "unknown task 'ftech'"),
        (["--quick", "--suites", "memory"], "no suite is left to play: memory needs trainings"),
    ],
)
def test_a_mistake_is_one_clear_line(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["benchmark", *words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert complaint in said and said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_other_settings_and_other_folders_are_refused(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"begun with other settings .*episodes 2, now 3"):
        Store(make_config(finished, episodes=3))
    Store(
        make_config(finished, suites=("counts",), seeds=(5,))
    )  # more or fewer of these are welcome
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="already holds something else"):
        Store(make_config(tmp_path))
    assert names(tmp_path) == {"thesis.txt"}


def test_another_renderer_is_refused(tmp_path: Path) -> None:
    config = make_config(tmp_path / "run")
    Store(config)
    path = config.out / "benchmark.json"
    content = json.loads(path.read_text())
    content["fingerprint"]["renderer"] = "3fa2"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"cannot be compared: renderer 3fa2 there, \w+ here"):
        Store(config)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(episodes=[]),
        lambda c: c["episodes"].pop(),
        lambda c: c["episodes"][0].update(success="yes"),
        lambda c: c["episodes"][0].update(seed=1.5),
        lambda c: c["episodes"][0].update(seed=c["episodes"][0]["seed"] + 2),
        lambda c: c.update(ci95=[0.1, 0.9]),
        lambda c: c.update(n_success="x"),
        lambda c: c.update(n_success=c["n_success"] - 1),
        lambda c: c.update(failures=None),
        lambda c: c.update(failures={"timeout": 1}),
        lambda c: c.update(mean_steps=-1.0),
        lambda c: c.update(ci95=None),
        lambda c: c.update(policy="expert_blind"),
        lambda c: c.update(training_seed=3),
        lambda c: c.pop("note"),
    ],
)
def test_a_damaged_cell_is_named(change: Any, tmp_path: Path, finished: Path) -> None:
    config = make_config(tmp_path / "run")
    store = Store(config)
    cell = read_results(finished).cells[0]
    store.write_cell(cell)
    path = next((config.out / "cells").rglob("*.json"))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"fetch-02\.json is damaged: remove it"):
        store.cell(cell.key, [episode.seed for episode in cell.episodes])


@pytest.mark.parametrize(
    "text", ["{", "{}", "[]", '{"settings": 5, "fingerprint": {}}', '{"settings": {}}', "[" * 10**5]
)
def test_a_damaged_record_is_named(text: str, tmp_path: Path) -> None:
    config = make_config(tmp_path / "run")
    Store(config)
    (config.out / "benchmark.json").write_text(text)
    with pytest.raises(UserError, match=r"benchmark\.json is damaged: restore it"):
        Store(config)


@pytest.mark.parametrize("text", ['{"evaluation": "x"}', "[]", "{"])
def test_damaged_times_are_named(text: str, tmp_path: Path) -> None:
    store = Store(make_config(tmp_path / "run"))
    (store.out / "timings.json").write_text(text)
    with pytest.raises(UserError, match=r"timings\.json is damaged: remove it"):
        store.set_times({"report": 1.0})


def test_a_folder_in_which_nothing_was_finished_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "benchmark.json.partial").write_text("{")
    Store(make_config(tmp_path))


def test_a_policy_that_was_lost_is_named(tmp_path: Path) -> None:
    config = make_config(tmp_path / "run", policies=("slot_mlp",))
    store = Store(config)
    [training, *_] = trainings(config)
    assert not is_trained(store, training)
    folder = store.policy(training)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"result": {}}')
    (folder / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"seed-0 lacks model\.safetensors: remove it, and it is"):
        is_trained(store, training)
    (folder / "model.safetensors").write_bytes(b"")
    assert is_trained(store, training)


def test_a_damaged_file_is_named(tmp_path: Path, finished: Path) -> None:
    config = make_config(tmp_path / "run")
    store = Store(config)
    cell = read_results(finished).cells[0]
    seeds = [episode.seed for episode in cell.episodes]
    assert store.cell(cell.key, seeds) is None
    store.write_cell(cell)
    assert store.cell(cell.key, seeds) == cell
    path = next((config.out / "cells").rglob("*.json"))
    path.write_text(path.read_text()[:100])
    with pytest.raises(UserError, match=r"fetch-02\.json is damaged: remove it"):
        store.cell(cell.key, seeds)
