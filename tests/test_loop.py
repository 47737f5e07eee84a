"""The training loop: its schedule, its batches, its averages, and that it learns."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from tests.factories import make_act, make_slot_mlp
from tests.recordings import SMALL, write_dataset
from torch import Tensor

from fetchlab.errors import UserError
from fetchlab.policy.registry import load_policy
from fetchlab.train.commands import TrainCommand, load_for, run_train, training_config
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.loop import Progress, TrainConfig, _all_batches, train


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset")
    write_dataset(root, episodes=6)
    return root


@pytest.fixture(scope="module")
def demonstrations(dataset: Path) -> Demonstrations:
    return Demonstrations.load(dataset)


@pytest.fixture(scope="module")
def blind(dataset: Path) -> Demonstrations:
    return Demonstrations.load(dataset, replace(SMALL, cameras=()))


def short(**changes: Any) -> TrainConfig:
    settings = {"steps": 6, "batch_size": 8, "log_every": 2, "eval_every": 3, "save_every": 3}
    return TrainConfig(num_threads=1, **{**settings, **changes})


def lines(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


# Schedule and batches ---------------------------------------------------------------------


def test_learning_rate_warms_up_and_follows_a_cosine() -> None:
    config = TrainConfig(steps=1000, warmup_steps=100, learning_rate=2e-3)
    assert config.learning_rate_at(0) == pytest.approx(2e-5)
    assert config.learning_rate_at(49) == pytest.approx(1e-3)
    assert config.learning_rate_at(99) == config.learning_rate_at(100) == pytest.approx(2e-3)
    assert config.learning_rate_at(325) == pytest.approx(1e-3 * (1 + math.cos(math.pi / 4)))
    assert config.learning_rate_at(550) == pytest.approx(1e-3)
    assert 0 < config.learning_rate_at(999) < 1e-7


def test_warm_up_leaves_room_in_a_short_training() -> None:
    config = TrainConfig(steps=8, warmup_steps=200)
    rates = [config.learning_rate_at(step) for step in range(8)]
    assert rates[1] == max(rates) == config.learning_rate
    assert TrainConfig(steps=1).learning_rate_at(0) == config.learning_rate


def test_every_epoch_shows_every_frame_once() -> None:
    frames = np.arange(100, 110)
    batches = _all_batches(frames, 4, seed=3)
    seen = np.concatenate([next(batches) for _ in range(5)])
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(frames)
    assert seen[:10].tolist() != seen[10:].tolist()
    again = _all_batches(frames, 4, seed=3)
    np.testing.assert_array_equal(seen, np.concatenate([next(again) for _ in range(5)]))
    assert next(_all_batches(frames, 4, seed=4)).tolist() != seen[:4].tolist()


def test_batches_may_be_larger_than_the_dataset() -> None:
    batch = next(_all_batches(np.arange(3), 10, seed=0))
    assert sorted(np.bincount(batch)) == [3, 3, 4]


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": math.nan},
        {"gradient_clip": -1.0},
        {"warmup_steps": -1},
        {"ema_decay": 1.0},
        {"save_every": 0},
        {"seed": 2**32},
    ],
)
def test_settings_are_checked(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(changes))):
        TrainConfig(**changes)


# The loop ---------------------------------------------------------------------------------


def test_training_learns_and_reports(blind: Demonstrations, tmp_path: Path) -> None:
    torch.manual_seed(0)
    policy = make_slot_mlp(permute_colours=False, resample_distractors=False)
    told: list[Progress] = []
    config = short(steps=60, learning_rate=1e-2, warmup_steps=5, ema_decay=0.5, log_every=1)
    result = train(policy, blind, config, tmp_path / "run", on_progress=told.append)
    logged = [line["loss"] for line in lines(tmp_path / "run") if "loss" in line]
    assert len(logged) == 60 and np.mean(logged[-5:]) < 0.7 * np.mean(logged[:5])
    assert result.loss == pytest.approx(logged[-1]) and result.steps == 60
    assert math.isfinite(result.held_out_loss)
    assert [progress.step for progress in told] == list(range(1, 61))
    assert told[-1].seconds_left == 0 and told[-1].samples_per_second > 0
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["settings"]["train"]["seed"] == 0
    assert record["settings"]["dataset"] == blind.fingerprint
    assert record["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert record["result"]["parameters"] == result.parameters
    assert list((tmp_path / "run/tensorboard").iterdir())


def test_the_saved_policy_holds_the_averaged_weights(blind: Demonstrations, tmp_path: Path) -> None:
    """Against the plain formula: average ← decay · average + (1 - decay) · weights."""
    torch.manual_seed(0)
    policy = make_slot_mlp()
    history: list[dict[str, Tensor]] = []

    def remember(_: Progress) -> None:
        history.append({n: p.detach().clone() for n, p in policy.named_parameters()})

    train(policy, blind, short(ema_decay=0.8), tmp_path, on_progress=remember)
    expected = history[0]
    for weights in history[1:]:
        expected = {n: 0.8 * expected[n] + 0.2 * weights[n] for n in expected}
    saved = load_policy(tmp_path)
    assert isinstance(saved, torch.nn.Module)
    for name, parameter in saved.named_parameters():
        torch.testing.assert_close(parameter.detach(), expected[name], rtol=1e-5, atol=1e-6)


def test_pixel_policy_trains(demonstrations: Demonstrations, tmp_path: Path) -> None:
    policy = make_act()
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    train(policy, demonstrations, short(steps=2), tmp_path)
    assert all(not torch.equal(before[name], p) for name, p in policy.named_parameters())
    assert lines(tmp_path)[-1]["step"] == 2


def test_gradients_are_clipped_and_matrices_decay(blind: Demonstrations, tmp_path: Path) -> None:
    policy = make_slot_mlp()
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    frozen = short(steps=1, gradient_clip=1e-20, weight_decay=10.0, learning_rate=1e-2)
    train(policy, blind, frozen, tmp_path)
    for name, parameter in policy.named_parameters():
        factor = 0.9 if parameter.ndim > 1 else 1.0
        torch.testing.assert_close(parameter.detach(), factor * before[name], atol=1e-6, rtol=1e-5)


def test_a_lost_loss_stops_the_training(blind: Demonstrations, tmp_path: Path) -> None:
    policy = make_slot_mlp()
    with torch.no_grad():
        next(policy.parameters()).fill_(math.nan)
    with pytest.raises(UserError, match="loss became nan at step 2"):
        train(policy, blind, short(), tmp_path)


def test_the_same_seed_gives_the_same_weights(blind: Demonstrations, tmp_path: Path) -> None:
    finals = []
    for name in "ab":
        torch.manual_seed(5)
        policy = make_slot_mlp()  # its augmentations draw random numbers
        train(policy, blind, short(), tmp_path / name)
        finals.append((tmp_path / name / "model.safetensors").read_bytes())
    assert finals[0] == finals[1]


# The command ------------------------------------------------------------------------------


def test_command_trains_a_registered_policy(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, width=200)
    monkeypatch.setattr("fetchlab.train.commands.Console", lambda: console)
    run_train(TrainCommand(data=dataset, out=tmp_path / "act", policy="act", steps=2, batch_size=4))
    assert "held-out loss" in console.export_text()
    policy = load_policy(tmp_path / "act")
    assert policy.name == "act" and policy.env_config == SMALL


def test_a_training_that_cannot_begin_leaves_no_bar(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, width=200, force_terminal=True, file=io.StringIO())
    monkeypatch.setattr("fetchlab.train.commands.Console", lambda: console)
    (tmp_path / "other").touch()
    with pytest.raises(UserError, match="is not empty"):
        run_train(TrainCommand(data=dataset, out=tmp_path, policy="slot_mlp", steps=2))
    assert "training" not in console.export_text()


@pytest.mark.parametrize("changes", [{"history": 2}, {"memory": "first"}])
def test_settings_that_a_policy_would_not_heed_are_refused(
    changes: dict[str, Any], dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="slot_mlp sees no images: leave out --history"):
        run_train(TrainCommand(data=dataset, out=tmp_path, policy="slot_mlp", **changes))


def test_state_policies_read_no_images(dataset: Path) -> None:
    assert load_for("slot_mlp", dataset).images.shape[1] == 0
    assert load_for("act", dataset).images.shape[1] == 2
    with pytest.raises(UserError, match="scripted"):
        load_for("expert", dataset)


def test_command_changes_the_registered_recipe() -> None:
    command = TrainCommand(data=Path(), out=Path(), policy="slot_mlp", steps=7, seed=3)
    config = training_config(command)
    assert (config.steps, config.seed, config.batch_size) == (7, 3, 256)
