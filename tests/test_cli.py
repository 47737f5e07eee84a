"""The command line: quick to answer, and one clear line for a person's mistake."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fetchlab
from fetchlab import cli
from fetchlab.cli import COMMANDS, main

HEAVY = ("torch", "pandas", "matplotlib", "pybullet", "pyarrow", "cv2", "scipy", "statsmodels")


def imported_by(code: str) -> list[str]:
    """Which heavy modules a fresh Python holds after running `code`."""
    report = (
        f"{code}\nimport sys\nsys.stderr.write(','.join(sorted(set({HEAVY!r}) & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", report],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent / "src",
    )
    return [name for name in done.stderr.split(",") if name]


def mistake(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a mistaken command leaves on stderr."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out.strip() and err.startswith("fetchlab: ") and err.count("\n") == 1, err
    return err


def test_importing_fetchlab_loads_nothing_heavy() -> None:
    assert imported_by("import fetchlab") == []


@pytest.mark.parametrize("words", [["--help"], [], ["--version"], ["list", "policies"]])
def test_answers_that_need_nothing_heavy_load_nothing_heavy(words: list[str]) -> None:
    assert imported_by(f"from fetchlab.cli import main\nassert main({words!r}) == 0") == []


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown and command.summary in shown for name, command in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert f"usage: fetchlab {name}" in shown
    assert f"fetchlab {name}" in shown.split("options")[0].split("\n", 1)[1], "no example"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fetchlab {fetchlab.__version__}\n"


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean collect" in mistake(capsys, "colect")


def test_unknown_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--polcy" in mistake(capsys, "eval", "--polcy", "expert")


def test_missing_option(capsys: pytest.CaptureFixture[str]) -> None:
    line = mistake(capsys, "eval")
    assert "--policy" in line and "--out" in line and "fetchlab eval --help" in line


def test_value_of_the_wrong_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--objects" in mistake(capsys, "rollout", "--policy", "expert", "--objects", "many")


def test_unknown_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cameras" in mistake(capsys, "list", "camera")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["eval", "--policy", "actt", "--out", "{}"], "did you mean act"),
        (["eval", "--policy", "expert", "--suite", "count", "--out", "{}"], "did you mean counts"),
        (["eval", "--policy", "expert", "--counts", "1", "--out", "{}"], "2 to 20"),
        (["eval", "--policy", "expert", "--task", "fly", "--out", "{}"], "fly"),
        (["train", "--policy", "actt", "--data", "{}", "--out", "{}"], "did you mean act"),
        (["train", "--policy", "expert", "--data", "{}", "--out", "{}"], "expert"),
        (["train", "--policy", "act", "--data", "{}", "--out", "{}"], "no dataset"),
        (
            ["train", "--policy", "slot_mlp", "--memory", "first", "--data", "{}", "--out", "{}"],
            "slot_mlp sees no images: leave out --history and --memory",
        ),
        (
            ["train", "--policy", "act_objects", "--history", "2", "--data", "{}", "--out", "{}"],
            "act_objects sees no images: leave out --history and --memory",
        ),
        (["collect", "--task", "fech", "--out", "{}"], "did you mean fetch"),
        (["collect", "--cameras", "forward", "--out", "{}"], "forward"),
        (["collect", "--counts", "2", "30", "--out", "{}"], "2 to 20"),
        (["collect", "--noise.kick", "2", "--out", "{}"], "noise.kick must be 0 to 1, got 2"),
        (["collect", "--noise.position", "nan", "--out", "{}"], "noise.position"),
        (["rollout", "--policy", "expert", "--instruction", "fetch the pink block"], "pink"),
        (["compare", "{}", "{}"], "results.json"),
        (["bench", "--policy", "{}", "--out", "{}"], "no folder"),
        (["eval", "--policy", "{}", "--out", "{}"], "no folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_leave_one_line_and_no_files(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    assert said in mistake(capsys, *(word.format(folder) for word in words))
    assert not folder.exists()


def test_interruption_says_how_to_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", interrupted)
    assert main(["collect", "--out", "my runs/data"]) == 130
    assert "fetchlab collect --out 'my runs/data' --resume" in capsys.readouterr().err
    assert main(["eval", "--policy", "expert"]) == 130
    assert "--resume" not in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EACCES, errno.EEXIST, errno.ENOENT, errno.EROFS])
def test_a_folder_that_may_not_be_written_is_a_mistake(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(words: list[str]) -> int:
        raise OSError(number, os.strerror(number), "/results")

    monkeypatch.setattr(cli, "run", refused)
    assert f"/results: {os.strerror(number)}" in mistake(capsys, "bench")


REGISTRIES = ["tasks", "policies", "suites", "cameras", "variations", "shapes", "languages"]


@pytest.mark.parametrize("what", REGISTRIES)
def test_list_as_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", what, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert entries and all(isinstance(text, str) and text for text in entries.values())


def test_collect_offers_nothing_that_a_dataset_cannot_keep(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["collect", "--help"])
    shown = capsys.readouterr().out
    assert "--variation" in shown and "fetchlab list variations" in " ".join(shown.split())
    assert "what sentences ask for" in shown
    assert not [name for name in ("--history", "--memory", "--depth") if name in shown]
    assert "--history" in mistake(capsys, "collect", "--history", "2", "--out", "nowhere")


def test_list_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "policies"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    learned = ["act", "act_pointers", "act_objects", "act_no_position_queries"]
    assert names == [*learned, "slot_mlp", "slot_mlp_large", "expert", "expert_blind"]


def test_a_mistake_is_one_line_also_when_the_simulator_has_been_loaded() -> None:
    command = [sys.executable, "-m", "fetchlab.cli", "rollout", "--policy", "actt"]
    source = Path(__file__).parent.parent / "src"
    done = subprocess.run(command, capture_output=True, text=True, cwd=source)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "did you mean act" in done.stderr
