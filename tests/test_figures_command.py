"""`fetchlab figures`: what it measures, writes and keeps, and what it says about mistakes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lesson import made_up, measured

from fetchlab.cli import main
from fetchlab.errors import UserError
from fetchlab.eval.figures import command, folder
from fetchlab.eval.figures.base import Check, Figure
from fetchlab.eval.figures.registry import FIGURES, measure


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Made-up figures in place of measured ones; figure 3 fails a check. Which were asked for."""
    asked: list[tuple[int, bool]] = []

    def made(number: int, *, quick: bool) -> Figure:
        asked.append((number, quick))
        return made_up(number, wrong=number == 3, data={"seen": number})

    monkeypatch.setattr(command, "measure", made)
    return asked


def figures(*words: object) -> int:
    return main(["figures", *map(str, words), "--workers", "1"])


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir())


def test_one_figure_leaves_drawing_numbers_and_page(tmp_path: Path) -> None:
    assert figures(2, "--out", tmp_path / "new") == 0
    wanted = ["figure-2.json", "figure-2.svg", "figures.html", "figures.json"]
    assert names(tmp_path / "new") == wanted
    assert (tmp_path / "new" / "figure-2.svg").read_text().startswith("<svg")


def test_all_figures_are_measured_unless_some_are_named(
    tmp_path: Path, fake: list[tuple[int, bool]]
) -> None:
    figures("--out", tmp_path, "--quick")
    assert fake == [(number, True) for number in FIGURES]
    fake.clear()
    figures(5, 2, 5, "--out", tmp_path)
    assert fake == [(2, False), (5, False)]


def test_checks_are_written_as_standard_json(tmp_path: Path) -> None:
    figures(1, 3, "--out", tmp_path)
    text = (tmp_path / "figures.json").read_text()
    assert "Infinity" not in text and "NaN" not in text
    rows = json.loads(text)
    assert [row["figure"] for row in rows] == [1] * 4 + [3] * 5
    assert set(rows[0]) == {"figure", "quantity", "value", "low", "high", "ok"}
    error = {"figure": 1, "quantity": "error, cm", "value": 0.25}
    assert rows[1] == {**error, "low": None, "high": 0.3, "ok": True}
    assert rows[-1]["ok"] is False


def test_a_failed_check_is_told_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figures(2, 3, "--out", tmp_path) == 1
    out, err = capsys.readouterr()
    assert "not ok: figure 3, far <off>: 5, must be 0 to 1" in out
    assert "4/4" in out and "4/5" in out
    assert "figure 3" in err and "measuring" in err


def test_another_run_keeps_the_other_figures(tmp_path: Path) -> None:
    figures(1, 3, "--out", tmp_path)
    before = (tmp_path / "figure-3.json").read_bytes()
    assert figures(2, "--out", tmp_path) == 0  # about what it measured, not what lay there
    assert (tmp_path / "figure-3.json").read_bytes() == before
    rows = json.loads((tmp_path / "figures.json").read_text())
    assert sorted({row["figure"] for row in rows}) == [1, 2, 3]
    page = (tmp_path / "figures.html").read_text()
    assert all(f'id="figure-{number}"' in page for number in (1, 2, 3))
    assert 'id="figure-4"' not in page and "figures 4, 5, 6, 7" in page


def test_a_figure_read_again_is_the_one_that_was_written(tmp_path: Path) -> None:
    checks = (Check(quantity="nothing", value=math.nan, low=0.0), *made_up(4).checks)
    one = measured(4, data={"image": "data:", "rows": [[1, 2.5]]})
    one = replace(one, figure=replace(one.figure, checks=checks))
    folder.write(tmp_path, one)
    (again,) = folder.read(tmp_path, without=())
    assert math.isnan(again.figure.checks[0].value) and not again.figure.checks[0].ok
    assert again.figure.checks[1:] == checks[1:]
    for name in ("number", "title", "question", "text", "tables", "data"):
        assert getattr(again.figure, name) == getattr(one.figure, name)
    assert replace(again, figure=one.figure) == one


def test_drawings_that_stand_alone_have_real_colours(tmp_path: Path) -> None:
    figures(2, "--out", tmp_path)
    svg = (tmp_path / "figure-2.svg").read_text()
    assert "#1f5fbf" in svg and "#676d74" in svg and "#0a0a00" not in svg


def test_a_figure_of_another_version_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures(1, "--out", tmp_path)
    (tmp_path / "figure-1.json").write_text('{"format": 0}')
    assert figures(2, "--out", tmp_path) == 2
    assert f"fetchlab figures 1 --out {tmp_path}" in capsys.readouterr().err
    assert figures(1, "--out", tmp_path) == 0  # measured again, it is whole again


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["8", "--out", "{}/new"], "there is no figure 8: choose from 1 to 7"),
        (["one", "--out", "{}/new"], "one"),
        (["--out", "{}/file"], "is a file"),
        (["--out", "{}/other"], "holds something else than figures (results.json)"),
        (["--out", "{}/new", "--workers", "-1"], "--workers"),
        (["3"], "--out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_leave_one_line_and_no_files(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.json").write_text("{}")
    assert main(["figures", *(word.format(tmp_path) for word in words)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert names(tmp_path) == ["file", "other"] and names(tmp_path / "other") == ["results.json"]


def test_the_registry_refuses_numbers_that_there_are_not() -> None:
    with pytest.raises(UserError, match="no figure 0"):
        measure(0)


def test_several_are_measured_in_several_processes() -> None:
    done = list(command.measure_all((1, 3), quick=True, workers=2))  # the real ones
    assert sorted(one.figure.number for one in done) == [1, 3]
    assert all(one.quick and one.seconds > 0 and one.n_ok > 4 for one in done)
