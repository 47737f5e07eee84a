"""`fetchlab cost`: predicted, counted and measured, on screen and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.factories import make_act

from fetchlab.cli import main
from fetchlab.eval import cost as command
from fetchlab.policy.registry import POLICIES

CAMERAS = ("front", "wrist", "overhead")
LEARNED = [name for name, entry in POLICIES.items() if entry.policy_class is not None]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Latencies of a few calls are enough here."""
    monkeypatch.setattr(command, "ROUNDS", 1)
    monkeypatch.setattr(command, "CALLS", 3)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What `fetchlab cost … --json` prints."""
    assert main(["cost", *words, "--json"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def test_json_of_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "folder" / "cost.json"
    content = told(capsys, "--policy", "act", "--history", "2", "--out", str(out))
    assert json.loads(out.read_text()) == content
    assert content["env"]["history"] == 2
    assert content["tokens"]["image patches"] == 2 * 2 * 64
    assert content["flops"] == content["flops_counted"] == sum(p["flops"] for p in content["parts"])
    assert all(part["flops"] == part["flops_counted"] for part in content["parts"])
    assert content["parameters"] == sum(part["parameters"] for part in content["parts"])
    assert 0 < content["attention_share"] < 1
    assert 0 < content["latency_ms"]["p50"] <= content["latency_ms"]["p95"]
    assert content["control_period_ms"] == 100
    assert [part["part"] for part in content["parts"] if part["training_only"]] == [
        "position_queries"
    ]


def test_what_more_would_cost(capsys: pytest.CaptureFixture[str]) -> None:
    base, camera, resolution, frame = told(capsys, "--policy", "act")["what_if"]
    assert base["flops_ratio"] == base["latency_ratio"] == 1
    assert (base["tokens"], camera["tokens"]) == (141, 141 + 64)
    assert resolution["tokens"] == 141 + 3 * 128  # twice a side is four times the patches
    assert frame["tokens"] == 141 + 128
    for row in (camera, resolution, frame):
        assert row["flops"] / base["flops"] == pytest.approx(row["flops_ratio"])
        assert row["flops_ratio"] > 1.3 and row["latency_ms"]["p50"] > 0
    assert "overhead" in camera["change"] and "128 × 128" in resolution["change"]


def test_what_the_simulator_cannot_show_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--policy", "act", "--cameras", *CAMERAS, "--history", "4")
    rows = told(capsys, *words)["what_if"]
    assert [row["change"] for row in rows] == ["as it is", "double resolution (128 × 128)"]


def test_a_trained_policy_by_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_act(cameras=("front",), use_cvae=True).save_pretrained(tmp_path / "act")
    content = told(capsys, "--policy", str(tmp_path / "act"))
    assert content["env"]["cameras"] == ["front"] and content["tokens"]["style"] == 1
    more = told(capsys, "--policy", str(tmp_path / "act"), "--cameras", *CAMERAS)
    assert more["tokens"]["image patches"] == 3 * content["tokens"]["image patches"]


def test_a_registered_policy_in_the_world_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = told(capsys, "--policy", "act_pointers")
    world = ("--task", "mixed", "--shapes", "block", "mug", "--languages", "english", "chinese")
    rich = told(capsys, "--policy", "act_pointers", *world)
    assert plain["env"]["task"] == "fetch" and rich["env"]["task"] == "mixed"
    assert rich["env"]["shapes"] == ["block", "mug"]
    assert rich["n_tokens"] > plain["n_tokens"]  # longer sentences, a second name, the box
    assert rich["parameters"] > plain["parameters"]
    assert rich["flops"] == rich["flops_counted"]


def test_a_trained_policy_is_of_its_own_world(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_act().save_pretrained(tmp_path / "act")
    assert told(capsys, "--policy", str(tmp_path / "act"), "--task", "fetch")["policy"] == "act"
    assert main(["cost", "--policy", str(tmp_path / "act"), "--task", "mixed"]) == 2
    assert "was made for task" in capsys.readouterr().err


@pytest.mark.parametrize("name", LEARNED)
def test_tables_on_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--policy", name]) == 0
    shown = capsys.readouterr().out
    assert "action_head" in shown and "control period of 100 ms" in shown
    assert ("What if" in shown) == POLICIES[name].sees_images
    assert ("* position_queries" in shown) == (name in ("act", "act_objects"))
    assert "…" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "expert"], "scripted"),
        (["--policy", "actt"], "did you mean act"),
        (["--policy", "runs/nothing"], "no folder"),
        (["--policy", "slot_mlp", "--history", "2"], "sees no images: leave out --history"),
        (["--policy", "act", "--image-size", "60"], "not a multiple of patch_size"),
        (["--policy", "act", "--history", "5"], "history must be 1 to 4"),
        (["--policy", "act", "--cameras", "forward"], "forward"),
        (["--policy", "act", "--task", "fly"], "unknown task 'fly'"),
        (["--policy", "act", "--out", "."], "is a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", *words]) == 2
    assert said in capsys.readouterr().err
