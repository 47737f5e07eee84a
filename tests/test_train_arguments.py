"""Every setting of a policy can be given on the command line of `fetchlab train`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fetchlab.cli import COMMANDS, main, parse
from fetchlab.policy.registry import POLICIES
from fetchlab.train.arguments import train_arguments
from fetchlab.train.collection import collect
from fetchlab.train.demonstrate import CollectConfig

FOLDERS = ["--data", "data", "--out", "out"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("train-arguments") / "data"
    collect(CollectConfig(out=out, episodes=3, counts=(2, 3), workers=1))
    return out


@pytest.mark.parametrize("name", [n for n, entry in POLICIES.items() if entry.policy_class])
def test_defaults_are_those_registered(name: str) -> None:
    words = [f"--policy={name}", *FOLDERS]
    arguments = parse(train_arguments(words), "train", words)
    assert arguments.policy_config.name == name
    for setting, value in POLICIES[name].settings.items():
        assert getattr(arguments.policy_config, setting) == value


def test_help_shows_the_settings_of_the_policy_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--policy", "slot_mlp", "--help"])
    shown = capsys.readouterr().out
    assert "--policy-config.lookup-hidden" in shown and "--policy-config.n-heads" not in shown
    assert "--policy-config.name" not in shown and "--policy-config.env-config" not in shown
    assert "--policy-settings" not in shown


def test_a_setting_reaches_the_trained_policy(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small"
    words = f"train --policy act --policy-config.d-model 16 --steps 1 --data {data} --out {out}"
    assert main(words.split()) == 0
    assert str(out) in capsys.readouterr().out.replace("\n", "")
    config = json.loads((out / "config.json").read_text())
    assert config["d_model"] == 16 and config["env_config"]["cameras"] == ["front", "wrist"]
    again = words.replace("d-model 16", "d-model 32") + " --resume"
    assert main(again.split()) == 2
    assert "d_model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "said"),
    [("--policy-config.d-model=7", "7"), ("--policy-config.d-modal=8", "d-modal")],
)
def test_a_setting_that_cannot_be_is_a_mistake(
    setting: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--policy", "act", setting, *FOLDERS]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_command_without_choices_has_a_fixed_config() -> None:
    assert COMMANDS["collect"].load()[1] is CollectConfig
