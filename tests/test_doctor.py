"""The doctor finds what is wrong, says what to do, and never stops at the first trouble."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fetchlab.cli import main
from fetchlab.eval.doctor import installation, simulation
from fetchlab.eval.doctor.artefacts import Artefacts
from fetchlab.eval.doctor.finding import Finding, examine, ok
from fetchlab.train.collection import collect
from fetchlab.train.commands import TrainCommand, load_for, train_policy
from fetchlab.train.demonstrate import CollectConfig


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("doctor") / "data"
    collect(CollectConfig(out=out, episodes=4, counts=(2, 3), workers=1))
    return out


@pytest.fixture(scope="module")
def policy(data: Path) -> Path:
    """A policy that has hardly learned anything."""
    out = data.parent / "policy"
    command = TrainCommand(policy="act", data=data, out=out, steps=2, batch_size=4)
    train_policy(command, load_for("act", data))
    return out


def diagnose(data: Path | None, policy: Path | None = None) -> dict[str, Finding]:
    checks = Artefacts(data, policy).checks()
    return {name: examine(name, check) for name, check in checks.items()}


def test_this_machine_is_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    findings = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert {"python", "packages", "pybullet", "renderer", "determinism", "grasping"} <= set(
        findings
    )
    assert all(entry["remedy"] for entry in findings.values() if entry["status"] != "OK")


def test_lines_carry_status_and_remedy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--data", str(tmp_path / "nothing")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("OK") and "renderer" in line for line in lines)
    assert any(line.startswith("FAIL") and "no dataset" in line for line in lines)
    assert any("→" in line for line in lines)


def test_a_whole_dataset_replays(data: Path) -> None:
    findings = diagnose(data)
    assert [finding.status for finding in findings.values()] == ["OK", "OK"]
    assert "4 episodes" in findings["dataset"].detail


def test_a_damaged_dataset_is_told_and_the_rest_still_runs(data: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(data, tmp_path / "copy")
    file = next((copy / "data").rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-100])
    findings = diagnose(copy)
    assert findings["dataset"].status == "FAIL" and file.name in findings["dataset"].detail
    assert findings["replay"].status == "FAIL"


def test_an_untrained_policy_has_learned_nothing(data: Path, policy: Path) -> None:
    findings = diagnose(data, policy)
    assert findings["checkpoint"].status == "OK" and "act" in findings["checkpoint"].detail
    assert (
        findings["open loop"].status == "FAIL" and "train for more" in findings["open loop"].remedy
    )


def test_a_folder_without_a_checkpoint_is_told(tmp_path: Path) -> None:
    assert diagnose(None, tmp_path)["checkpoint"].status == "FAIL"


def test_a_check_that_breaks_is_a_finding() -> None:
    def broken() -> Finding:
        raise RuntimeError("two\nlines")

    finding = examine("thing", broken)
    assert finding.status == "FAIL" and finding.detail == "RuntimeError: two lines"
    assert examine("thing", lambda: ok("thing", "fine")).status == "OK"


def test_pybullet_without_numpy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchlab.sim.world.has_fast_images", lambda: False)
    finding = installation.pybullet_build()
    assert finding.status == "WARN" and "--no-build-isolation" in finding.remedy


def test_a_missing_and_an_old_package_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["numpy>=99.0", "nonexistent-thing>=1", "pytest>=1; extra == 'dev'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: wanted)
    finding = installation.packages()
    assert finding.status == "FAIL" and "pytest" not in finding.detail
    assert "older than 99.0" in finding.detail and "nonexistent-thing is missing" in finding.detail


def test_versions_compare_as_numbers() -> None:
    assert installation.release("2.13.0+cpu") > installation.release("2.6")
    assert installation.release("0.10") > installation.release("0.9.9")


def test_a_blank_frame_has_one_colour() -> None:
    assert simulation.count_colours(np.zeros((8, 8, 3), np.uint8)) == 1
    assert simulation.same({"a": np.zeros(2)}, {"a": np.zeros(2)})
    assert not simulation.same({"a": np.zeros(2)}, {"a": np.ones(2)})
