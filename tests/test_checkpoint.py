"""Runs on disk: a killed training goes on bit for bit, and a strange folder is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.factories import make_act, make_slot_mlp
from tests.recordings import SMALL, write_dataset

from fetchlab.errors import UserError
from fetchlab.train import commands
from fetchlab.train.commands import TrainCommand, load_for, train_policy
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.loop import Progress, TrainConfig, TrainResult, train

CONFIG = TrainConfig(
    steps=12, batch_size=8, warmup_steps=2, log_every=2, eval_every=4, save_every=3, num_threads=1
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_dataset(root, episodes=6)
    return root


@pytest.fixture(scope="module")
def demonstrations(data: Path) -> Demonstrations:
    return Demonstrations.load(data, replace(SMALL, cameras=()))


class Killed(Exception):
    pass


def kill_after(step: int) -> Callable[[Progress], None]:
    def check(progress: Progress) -> None:
        if progress.step == step:
            raise Killed

    return check


def run(
    demonstrations: Demonstrations,
    out: Path,
    config: TrainConfig = CONFIG,
    *,
    hidden: tuple[int, ...] = (32, 32),
    **options: Any,
) -> TrainResult:
    torch.manual_seed(1)
    policy = make_slot_mlp(control_hidden=hidden)  # its augmentations need the generator's state
    return train(policy, demonstrations, config, out, **options)


def interrupt(demonstrations: Demonstrations, out: Path, step: int) -> None:
    with pytest.raises(Killed):
        run(demonstrations, out, on_progress=kill_after(step))


@pytest.fixture(scope="module")
def alone(demonstrations: Demonstrations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    run(demonstrations, out)
    return out


def metrics(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


# Going on ---------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [2, 3, 5, 11])
def test_resumed_ends_like_one_left_alone(
    demonstrations: Demonstrations, alone: Path, tmp_path: Path, step: int
) -> None:
    interrupt(demonstrations, tmp_path, step)
    torch.rand(7)  # whatever happened to the generator in between
    run(demonstrations, tmp_path, resume=True)
    for name in ("model.safetensors", "config.json", "checkpoints/step-000012/model.safetensors"):
        assert (tmp_path / name).read_bytes() == (alone / name).read_bytes()
    assert metrics(tmp_path) == metrics(alone)


def test_pixel_policy_with_dropout_and_style_resumes(data: Path, tmp_path: Path) -> None:
    shown = Demonstrations.load(data)
    config = replace(CONFIG, steps=6)

    def build_and_train(out: Path, **options: Any) -> None:
        torch.manual_seed(2)
        train(make_act(dropout=0.2, use_cvae=True), shown, config, out, **options)

    build_and_train(tmp_path / "alone")
    with pytest.raises(Killed):
        build_and_train(tmp_path / "killed", on_progress=kill_after(5))
    build_and_train(tmp_path / "killed", resume=True)
    weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("alone", "killed")]
    assert weights[0] == weights[1]


SCRIPT = """
import sys
from pathlib import Path
from fetchlab.train import commands, loop
data, out = map(Path, sys.argv[1:])
recipe = loop.TrainConfig(steps=60, batch_size=8, save_every=5, num_threads=1)
commands.training_config = lambda command: recipe
command = commands.TrainCommand(data=data, out=out, policy="slot_mlp")
commands.train_policy(command, commands.load_for("slot_mlp", data))
"""


def test_killed_process_resumes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, str(data), str(tmp_path / "killed")]
    process = subprocess.Popen(command, env=environment)
    while not (tmp_path / "killed/checkpoints/step-000010").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed/model.safetensors").exists()
    recipe = TrainConfig(steps=60, batch_size=8, save_every=5, num_threads=1)
    monkeypatch.setattr(commands, "training_config", lambda command: recipe)
    for name, resume in (("alone", False), ("killed", True)):
        here = TrainCommand(data=data, out=tmp_path / name, policy="slot_mlp", resume=resume)
        train_policy(here, load_for("slot_mlp", data))
    weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("alone", "killed")]
    assert weights[0] == weights[1]


def test_a_finished_training_stays_as_it_is(demonstrations: Demonstrations, alone: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in alone.rglob("*")}
    result = run(demonstrations, alone, resume=True)
    assert result.steps == 12
    assert before == {path: path.stat().st_mtime_ns for path in alone.rglob("*")}


def test_two_checkpoints_stay(alone: Path) -> None:
    names = sorted(path.name for path in (alone / "checkpoints").iterdir())
    assert names == ["step-000009", "step-000012"]


def test_no_pickle(alone: Path) -> None:
    kinds = {path.suffix for path in (alone / "checkpoints").rglob("*") if path.is_file()}
    assert kinds == {".safetensors", ".json"}


def test_a_checkpoint_is_a_policy(alone: Path) -> None:
    from fetchlab.policy.registry import load_policy

    assert load_policy(alone / "checkpoints/step-000009").name == "slot_mlp"


def test_a_half_written_checkpoint_is_ignored(
    demonstrations: Demonstrations, alone: Path, tmp_path: Path
) -> None:
    interrupt(demonstrations, tmp_path, 5)
    (tmp_path / "checkpoints/.writing").mkdir()
    (tmp_path / "checkpoints/.writing/training.safetensors").write_text("half")
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "lo')
    run(demonstrations, tmp_path, resume=True)
    assert (tmp_path / "model.safetensors").read_bytes() == (
        alone / "model.safetensors"
    ).read_bytes()
    assert metrics(tmp_path) == metrics(alone)


# The door ---------------------------------------------------------------------------------


def test_another_config_is_refused(demonstrations: Demonstrations, tmp_path: Path) -> None:
    interrupt(demonstrations, tmp_path, 4)
    with pytest.raises(UserError, match=r"train\.learning_rate 0\.004, now 0\.1"):
        run(demonstrations, tmp_path, replace(CONFIG, learning_rate=0.1), resume=True)
    with pytest.raises(UserError, match=r"policy\.control_hidden 32 32, now 8"):
        run(demonstrations, tmp_path, hidden=(8,), resume=True)
    changes: dict[str, Any] = {
        "seed": 9,
        "weight_decay": 0.0,
        "gradient_clip": 2.0,
        "ema_decay": 0.5,
    }
    with pytest.raises(UserError, match=r"now 9; .* and 1 more\)"):
        run(demonstrations, tmp_path, replace(CONFIG, warmup_steps=1, **changes), resume=True)


def test_another_dataset_is_refused(demonstrations: Demonstrations, tmp_path: Path) -> None:
    interrupt(demonstrations, tmp_path, 4)
    write_dataset(tmp_path / "other", episodes=5)
    other = Demonstrations.load(tmp_path / "other", demonstrations.env_config)
    with pytest.raises(UserError, match=f"dataset {demonstrations.fingerprint}, now"):
        run(other, tmp_path, resume=True)


@pytest.mark.parametrize("name", ["training.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_checkpoint_is_named(
    demonstrations: Demonstrations, tmp_path: Path, name: str, damage: str
) -> None:
    interrupt(demonstrations, tmp_path, 4)
    path = tmp_path / "checkpoints/step-000003" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=f"step-000003/{name}") as caught:
        run(demonstrations, tmp_path, resume=True)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_policy_is_refused(
    demonstrations: Demonstrations, tmp_path: Path
) -> None:
    interrupt(demonstrations, tmp_path / "a", 4)
    with pytest.raises(Killed):
        run(demonstrations, tmp_path / "b", hidden=(8,), on_progress=kill_after(4))
    name = "checkpoints/step-000003/training.safetensors"
    os.replace(tmp_path / "b" / name, tmp_path / "a" / name)
    with pytest.raises(UserError, match="step-000003 does not fit this training"):
        run(demonstrations, tmp_path / "a", resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_something_else_is_left_alone(
    demonstrations: Demonstrations, tmp_path: Path, resume: bool
) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match=r"not empty|something else"):
        run(demonstrations, tmp_path, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
