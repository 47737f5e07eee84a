"""What every learned policy must do, whatever is inside."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.factories import (
    make_act,
    make_act_pointers,
    make_batch,
    make_observations,
    make_slot_mlp,
    make_statistics,
)

from fetchlab.errors import UserError
from fetchlab.policy.learned import ChunkedPolicy
from fetchlab.policy.registry import POLICIES, build_policy, load_policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import ObservationBatch

Make = Callable[..., ChunkedPolicy]


def make_objects_act(**settings: Any) -> ChunkedPolicy:
    return make_act(inputs="objects", n_encoder_layers=1, name="act_objects", **settings)


def make_cvae_act(**settings: Any) -> ChunkedPolicy:
    return make_act(use_cvae=True, latent_dim=4, **settings)


VARIANTS: dict[str, Make] = {
    "act": make_act,
    "act encoder, dropout": lambda **s: make_act(n_encoder_layers=1, dropout=0.1, **s),
    "act_objects": make_objects_act,
    "act_no_position_queries": lambda **s: make_act(position_query_weight=0.0, **s),
    "act cvae": make_cvae_act,
    "act_pointers": make_act_pointers,
    "slot_mlp": make_slot_mlp,
}


@pytest.fixture(params=list(VARIANTS.values()), ids=list(VARIANTS))
def make(request: pytest.FixtureRequest) -> Make:
    torch.manual_seed(0)
    make: Make = request.param
    return make


def test_every_parameter_receives_a_gradient(make: Make) -> None:
    policy = make()
    loss, metrics = policy(make_batch(8))
    torch.autograd.backward(loss)
    assert loss.ndim == 0 and all(np.isfinite(float(value)) for value in metrics.values())
    without = [
        name
        for name, parameter in policy.named_parameters()
        if parameter.grad is None or not parameter.grad.abs().sum() > 0
    ]
    assert without == []


def test_padded_actions_cannot_change_loss_or_gradients(make: Make) -> None:
    policy, batch = make(), make_batch(4)
    spoiled = np.where(batch.actions_mask[..., None], batch.actions, np.nan).astype(np.float32)
    results = []
    for actions in (batch.actions, spoiled):
        torch.manual_seed(1)
        policy.zero_grad()
        loss, _ = policy.loss(replace(batch, actions=actions))
        torch.autograd.backward(loss)
        results.append([loss.detach(), *(p.grad for p in policy.parameters())])
    for one, other in zip(*results, strict=True):
        assert one is not None and other is not None
        torch.testing.assert_close(one, other, atol=0, rtol=0)


def test_loss_repeats_with_the_global_generator(make: Make) -> None:
    policy, batch = make(), make_batch(4)
    losses = []
    for _ in range(2):
        torch.manual_seed(3)
        losses.append(policy.loss(batch)[0].item())
    assert losses[0] == losses[1]


def test_chunk_is_absolute_actions_in_units_of_the_environment(make: Make) -> None:
    policy = make(chunk_size=5, n_action_steps=1)
    observations = make_observations(3)
    chunk = policy.chunk(observations)
    assert chunk.shape == (3, 5, 8) and chunk.dtype == np.float32
    assert policy.training and policy.chunk_size == 5
    assert set(chunk[..., -1].ravel().tolist()) <= {0.0, np.float32(0.08)}
    moved = replace(observations, proprioception=observations.proprioception + 0)
    np.testing.assert_array_equal(policy.chunk(moved), chunk)


def test_rows_of_a_batch_do_not_mix(make: Make) -> None:
    policy, observations = make(), make_observations(3)
    together = policy.chunk(observations)
    for row in range(3):
        alone = policy.chunk(observations.select([row]))
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)


def test_act_executes_the_chunk_and_slots_are_apart(make: Make) -> None:
    policy = make(n_action_steps=2)
    observations = make_observations(3)
    chunk = policy.chunk(observations)
    np.testing.assert_array_equal(
        policy.act(observations[1]), policy.chunk(observations.select([1]))[0, 0]
    )
    policy.reset()
    first = policy.act_batch(observations, [4, 0, 2])
    np.testing.assert_array_equal(first, chunk[:, 0])
    policy.reset([0])
    second = policy.act_batch(observations, [4, 0, 2])
    np.testing.assert_allclose(second, [chunk[0, 1], chunk[1, 0], chunk[2, 1]], atol=1e-5)


def test_chunks_are_asked_for_only_when_a_queue_is_empty(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, observations = make(n_action_steps=3), make_observations(2)
    asked: list[int] = []
    predict = policy.predict

    def counted(observations: ObservationBatch) -> torch.Tensor:
        asked.append(len(observations))
        return predict(observations)

    monkeypatch.setattr(policy, "predict", counted)
    for _ in range(6):
        policy.act_batch(observations, [0, 1])
    assert asked == [2, 2]


def test_temporal_ensembling_averages_overlapping_chunks(make: Make) -> None:
    policy = make(temporal_ensembling=0.01)
    before, after = make_observations(1, seed=1), make_observations(1, seed=2)
    old, new = policy.chunk(before)[0], policy.chunk(after)[0]
    policy.act(before[0])
    weights = np.exp([0, -0.01])
    expected = (weights[0] * old[1] + weights[1] * new[0]) / weights.sum()
    np.testing.assert_allclose(policy.act(after[0]), expected, atol=1e-5)


def test_saved_and_loaded_it_acts_the_same(make: Make, tmp_path: Path) -> None:
    policy, observations = make(), make_observations(3)
    policy.save_pretrained(tmp_path / "policy")
    assert {p.name for p in (tmp_path / "policy").iterdir()} == {"config.json", "model.safetensors"}
    loaded = load_policy(tmp_path / "policy")
    assert isinstance(loaded, type(policy)) and loaded.config == policy.config
    assert not loaded.training and loaded.name == policy.name
    np.testing.assert_array_equal(loaded.chunk(observations), policy.chunk(observations))


def test_a_policy_overfits_a_handful_of_frames(make: Make) -> None:
    policy, batch = make(d_model=32) if "Act" in type(make()).__name__ else make(), make_batch(4)
    policy.eval()  # without augmentation and dropout: can it express the answer at all?
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    first, _ = policy.imitation_loss(policy.predict(batch.observations), batch)
    for _ in range(150):
        loss, _ = policy.imitation_loss(policy.predict(batch.observations), batch)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    assert loss.item() < 0.25 * first.item()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda f: (f / "config.json").write_text('{"name": '), "config.json is damaged"),
        (lambda f: (f / "config.json").write_text("[]"), "has no name"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x10" * 99), "safetensors is damaged"),
        (lambda f: edit(f, lambda c: c.pop("sentences")), "other settings: missing sentences"),
        (lambda f: edit(f, lambda c: c.update(depth=3)), "other settings: unknown depth"),
        (lambda f: edit(f, lambda c: c.update(name="acd")), "unknown policy 'acd': did you mean"),
        (
            lambda f: edit(f, lambda c: c.update(chunk_size=9)),
            "action_queries is .8, 16., expected",
        ),
        (lambda f: edit(f, lambda c: c.update(n_decoder_layers=1)), "unknown decoder.1."),
        (lambda f: edit(f, lambda c: c.update(n_heads=5)), "n_heads 5"),
        (lambda f: edit(f, lambda c: c.update(n_heads="5")), "config.json holds a setting of the"),
        (lambda f: edit(f, lambda c: c.update(name=["act"])), "has no name"),
        (
            lambda f: edit(f, lambda c: c["env_config"].update(cameras=["back"])),
            "config.json holds a setting that cannot be: unknown camera 'back'",
        ),
        (
            lambda f: edit(f, lambda c: c["env_config"].update(task="fly")),
            "config.json holds a setting that cannot be: unknown task 'fly'",
        ),
        (
            lambda f: edit(f, lambda c: c["env_config"].update(variation=3)),
            "config.json holds a setting that cannot be: variation must be a name, got 3",
        ),
        (
            lambda f: edit(f, lambda c: c.update(env_config=None)),
            "config.json: env_config must hold settings by their names, got None",
        ),
        (lambda f: edit(f, lambda c: c.update(patch=[8])), "patch must hold .* got .8."),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(
    spoil: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    make_act().save_pretrained(tmp_path)
    spoil(tmp_path)
    with pytest.raises(UserError, match=message) as error:
        load_policy(tmp_path)
    assert "\n" not in str(error.value)


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def test_saving_leaves_the_old_policy_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = make_act()
    policy.save_pretrained(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("fetchlab.policy.pretrained.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        policy.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("name", [name for name, e in POLICIES.items() if e.policy_class])
def test_registered_policies_build_act_and_know_their_name(name: str) -> None:
    policy = build_policy(name, EnvConfig(image_size=16), make_statistics(), chunk_size=4)
    assert policy.name == name and policy.config.chunk_size == 4
    assert policy.chunk(make_observations(1)).shape == (1, 4, 8)
    assert POLICIES[name].training["steps"] > 0 and POLICIES[name].description


def test_the_expert_is_loaded_by_name() -> None:
    expert = load_policy("expert")
    assert expert.name == "expert"
    action = expert.act_batch(make_observations(2), [0, 1])
    assert action.shape == (2, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_policy("experd"), "unknown policy 'experd': did you mean expert"),
        (lambda: load_policy("act"), "has to be trained first"),
        (lambda: build_policy("expert", EnvConfig(), make_statistics()), "is scripted"),
        (lambda: build_policy("acd", EnvConfig(), make_statistics()), "unknown policy 'acd'"),
        (
            lambda: build_policy("act", EnvConfig(), make_statistics(), d_modle=3),
            "unknown setting of act 'd_modle': did you mean d_model",
        ),
    ],
)
def test_wrong_names_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()


def test_listing_policies_does_not_import_torch() -> None:
    code = "import sys, fetchlab.policy.registry; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
