"""The whole way, in miniature: demonstrations, four trainings, evaluation, report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fetchlab.errors import UserError
from fetchlab.eval import quickstart
from fetchlab.eval.highlights import choose, read_curve
from fetchlab.eval.quickstart import FULL, QuickstartConfig, Record, run_quickstart, steps_done
from fetchlab.eval.results import read_results
from fetchlab.policy.registry import POLICIES

TINY = replace(FULL, demonstrations=8, steps=0.01, episodes=1)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quickstart, "FULL", TINY)
    monkeypatch.setattr(quickstart, "COUNTS", (2, 7))
    monkeypatch.setattr(quickstart, "SWAP_PAIRS", 3)


@pytest.mark.slow
def test_from_nothing_to_a_report_and_again_without_repeating(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = QuickstartConfig(out=tmp_path / "run", workers=2)
    run_quickstart(config)
    first = read_results(config.out)
    assert set(first.timings_s) == {"demonstrations", "training", "evaluation", "report"}
    cells = {(cell.policy, cell.n_objects): cell for cell in first.cells}
    assert {policy for policy, _ in cells} == {*TINY.policies, "expert"}
    assert cells["slot_mlp", 7].note == "cannot take 7 objects (6 slots)"
    assert cells["expert", 7].n_success == 1
    assert first.instruction_swap is not None and first.instruction_swap.n == 3
    page = (config.out / "report.html").read_text()
    assert "var(--series-0)" in page and "data:video/mp4" in page

    page_time = (config.out / "report.html").stat().st_mtime_ns
    run_quickstart(config)
    assert read_results(config.out) == first
    assert (config.out / "report.html").stat().st_mtime_ns == page_time
    assert "slot_mlp" in capsys.readouterr().out


def test_other_settings_are_refused(tmp_path: Path) -> None:
    Record(QuickstartConfig(out=tmp_path))
    with pytest.raises(UserError, match="begun with seed 0, not 1"):
        Record(QuickstartConfig(out=tmp_path, seed=1))
    with pytest.raises(UserError, match="begun with demonstrations 8"):
        Record(QuickstartConfig(out=tmp_path, quick=True))


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "quickstart.json").write_text("{}")
    with pytest.raises(UserError, match="begun with demonstrations None"):
        run_quickstart(QuickstartConfig(out=tmp_path))
    (tmp_path / "quickstart.json").write_text("{")
    with pytest.raises(UserError, match=r"quickstart\.json is damaged"):
        run_quickstart(QuickstartConfig(out=tmp_path))


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="already holds something else"):
        run_quickstart(QuickstartConfig(out=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_finished_stage_is_not_done_again(tmp_path: Path) -> None:
    done: list[str] = []
    for _ in range(2):
        record = Record(QuickstartConfig(out=tmp_path))
        record.run("training", lambda: done.append("training"))
    assert done == ["training"]

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record.run("evaluation", interrupted)
    assert set(Record(QuickstartConfig(out=tmp_path)).timings) == {"training"}


def test_progress_is_read_from_a_log_that_is_being_written(tmp_path: Path) -> None:
    assert steps_done(tmp_path) == 0
    lines = [{"step": 10, "loss": 1.0}, {"step": 20, "loss": 0.5}, {"step": 20, "held_out_loss": 2}]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text + '\n{"step": 3')
    assert steps_done(tmp_path) == 20
    (tmp_path / "metrics.jsonl").write_text(text + "\n")
    curve = read_curve("act", tmp_path)
    assert (curve.steps, curve.loss, curve.held_out_loss) == ([10, 20], [1.0, 0.5], [2])


def test_the_films_show_successes_at_few_and_many_blocks_and_failures() -> None:
    from tests.test_report import make_results

    chosen = choose(make_results())
    shown = [(scene.policy, scene.n_objects, scene.success) for scene in chosen]
    assert shown[:4] == [
        ("act", 2, True),
        ("act", 5, True),
        ("act", 10, True),
        ("act", 10, False),
    ]
    assert ("slot_mlp", 6, False) in shown
    assert all(scene.policy != "expert" for scene in chosen)


def test_every_machine_trains_the_same(tmp_path: Path) -> None:
    config = QuickstartConfig(out=tmp_path)
    command = config.training("act")
    registered = POLICIES["act"].training["steps"]
    assert command.num_threads == 1 and command.steps == round(0.01 * registered)
    assert replace(config, workers=7).training("act") == command
