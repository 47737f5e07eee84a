"""`fetchlab train --policy-config.*`: the settings of the named policy become options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, make_dataclass
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import tyro

from fetchlab.policy.learned import PolicyConfig
from fetchlab.policy.registry import build_config
from fetchlab.sim.config import EnvConfig
from fetchlab.train import commands
from fetchlab.train.commands import TrainCommand

FROM_ELSEWHERE = ("name", "env_config", "sentences", "phrases")
"""settings that follow from the policy's name and the dataset, and are no options"""


def train_arguments(words: Sequence[str]) -> type[TrainCommand]:
    """TrainCommand with the settings of the policy that the words name, and their defaults."""
    registered = build_config(_named_policy(words), EnvConfig())
    shown = _without_options_for(type(registered), FROM_ELSEWHERE)
    default = shown(**_values(registered))
    return make_dataclass(
        "TrainArguments",
        [("policy_config", shown, default)],
        bases=(TrainCommand,),
        namespace={"__doc__": TrainCommand.__doc__},
        frozen=True,
        kw_only=True,
    )


def run_train(arguments: TrainCommand) -> None:
    """`fetchlab train`."""
    given = {f.name: getattr(arguments, f.name) for f in fields(TrainCommand)}
    chosen = _values(arguments.policy_config)  # type: ignore[attr-defined]
    registered = _values(build_config(arguments.policy, EnvConfig()))
    changed = tuple((key, value) for key, value in chosen.items() if value != registered[key])
    commands.run_train(TrainCommand(**{**given, "policy_settings": changed}))


def _named_policy(words: Sequence[str]) -> str:
    """What follows --policy, or the default."""
    joined = [word.split("=", 1)[1] for word in words if word.startswith("--policy=")]
    following = [after for word, after in pairwise(words) if word == "--policy"]
    return [TrainCommand.policy, *joined, *following][-1]


def _without_options_for(
    config_class: type[PolicyConfig], names: Sequence[str]
) -> type[PolicyConfig]:
    hints = get_type_hints(config_class)
    hidden = {name: Annotated[hints[name], tyro.conf.Suppress] for name in names}
    namespace = {"__annotations__": hidden, "__doc__": config_class.__doc__}
    return type(config_class.__name__, (config_class,), namespace)


def _values(config: Any) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(config)}
