"""The bench measures every stage and writes what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fetchlab.cli import main
from fetchlab.eval.bench import command
from fetchlab.eval.bench.measure import Measurement, Ticks, rates

TINY = command.Effort(
    repeats=2, episodes=1, demonstrations=3, training_steps=3, calls=3, evaluation_episodes=2
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """bench.json of the smallest possible bench."""
    out = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "QUICK", TINY)
        assert main(["bench", "--quick", "--out", str(out)]) == 0
    content: dict[str, object] = json.loads((out / "bench.json").read_text())
    assert [path.name for path in out.iterdir()] == ["bench.json"]
    return content


def test_every_stage_is_measured(result: dict[str, list[dict[str, object]]]) -> None:
    names = [str(entry["name"]) for entry in result["measurements"]]
    assert names[0] == "step without cameras" and len(set(names)) == len(names)
    for size in (64, 96, 128):
        assert {f"step, 1 camera {size} × {size}"} <= set(names)
        assert {f"step, {n} cameras {size} × {size}" for n in (2, 3)} <= set(names)
    for word in ("reset", "demonstration", "training sample", "p50", "p95", "evaluation"):
        assert any(word in name for name in names), word


def test_spread_and_cost_are_told(result: dict[str, list[dict[str, float]]]) -> None:
    for entry in result["measurements"]:
        assert 0 < entry["minimum"] <= entry["median"] <= entry["maximum"]
        assert entry["cost_in_steps"] > 0
    assert result["measurements"][0]["cost_in_steps"] == 1


def test_the_machine_is_described(result: dict[str, dict[str, object]]) -> None:
    assert result["machine"]["usable_cores"] and result["machine"]["processor"]
    assert result["versions"]["torch"] and result["command"]


def test_cost_counts_in_steps_of_the_same_run() -> None:
    reference = Measurement(name="step", unit="1/s", values=(400.0, 500.0, 600.0))
    reset = Measurement(name="reset", unit="ms", values=(3.0, 4.0, 5.0))
    assert reset.summary(reference)["cost_in_steps"] == pytest.approx(2.0)


def test_rates_divide_by_the_time() -> None:
    told: list[int] = []
    measured = rates("work", 3, lambda repeat: told.append(repeat) or 10)  # type: ignore[func-returns-value]
    assert told == [0, 1, 2] and all(value > 0 for value in measured.values)


def test_ticks_leave_out_what_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, times = Ticks(), iter((10.0, 12.0, 14.0))
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    for done in (5, 6, 9):
        ticks.tell(done)
    assert ticks.rate() == 1.0


def test_a_file_in_the_way_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["bench", "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err
    assert main(["bench", "--out", str(tmp_path / "file" / "below")]) == 2
    assert f"{tmp_path / 'file'} is no folder to write in" in capsys.readouterr().err
