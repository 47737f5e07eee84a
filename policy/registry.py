"""The policies there are: one line each. Listing them imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchlab.errors import UserError, unknown
from fetchlab.policy.base import Policy, Statistics
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.tasks.registry import TASKS

if TYPE_CHECKING:
    from fetchlab.policy.expert import Expert
    from fetchlab.policy.learned import ChunkedPolicy, PolicyConfig


@dataclass(frozen=True, kw_only=True)
class PolicyEntry:
    """How a policy is built; `policy_class` and `build_config` import on demand."""

    description: str
    policy_class: Callable[[], type[ChunkedPolicy]] | None
    """None for a policy that is not learned"""
    scripted: Callable[[], type[Expert]] | None = None
    """None for a learned policy"""
    sees_images: bool = True
    """whether it looks through cameras; the others know the object list"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """of its configuration, where they differ from the defaults"""
    training: Mapping[str, Any] = field(default_factory=dict)
    """of the training loop, where they differ from the defaults"""
    past: Mapping[str, Any] = field(default_factory=dict)
    """which frames it sees, unless others are asked for: history and memory, as in EnvConfig"""


def _act() -> type[ChunkedPolicy]:
    from fetchlab.policy.act import ActPolicy

    return ActPolicy


def _act_pointers() -> type[ChunkedPolicy]:
    from fetchlab.policy.act_pointers import ActPointersPolicy

    return ActPointersPolicy


def _slot_mlp() -> type[ChunkedPolicy]:
    from fetchlab.policy.slot_mlp import SlotMlpPolicy

    return SlotMlpPolicy


def _expert() -> type[Expert]:
    from fetchlab.policy.expert import Expert

    return Expert


def _blind_expert() -> type[Expert]:
    from fetchlab.policy.blind import BlindExpert

    return BlindExpert


SLOT_TRAINING = {"batch_size": 256, "learning_rate": 2e-3, "eval_every": 1000}
POLICIES: Mapping[str, PolicyEntry] = {
    "act": PolicyEntry(
        description="transformer on camera pixels",
        policy_class=_act,
        training={"steps": 1800, "batch_size": 32, "learning_rate": 4e-3},
    ),
    "act_pointers": PolicyEntry(
        description="act with a pointer to each named object: for tasks that name two",
        policy_class=_act_pointers,
        settings={"n_action_steps": 4},
        training={
            "steps": 12_000,
            "batch_size": 16,
            "learning_rate": 2.5e-3,
            "ema_decay": 0.99,
            "eval_every": 1000,
            "save_every": 1000,
        },
        past={"history": 2, "memory": "first"},
    ),
    "act_objects": PolicyEntry(
        description="the same transformer on the simulator's object list",
        policy_class=_act,
        sees_images=False,
        settings={"inputs": "objects"},
        training={"steps": 2000, "batch_size": 64, "learning_rate": 4e-3},
    ),
    "act_no_position_queries": PolicyEntry(
        description="act trained from the demonstrated actions alone",
        policy_class=_act,
        settings={"position_query_weight": 0.0},
        training={"steps": 1800, "batch_size": 32, "learning_rate": 4e-3},
    ),
    "slot_mlp": PolicyEntry(
        description="baseline: object list in six fixed slots, MLP",
        policy_class=_slot_mlp,
        sees_images=False,
        training={"steps": 5000, **SLOT_TRAINING},
    ),
    "slot_mlp_large": PolicyEntry(
        description="slot_mlp, wider and trained longer: for several shapes and tasks",
        policy_class=_slot_mlp,
        sees_images=False,
        settings={"lookup_hidden": (512, 512, 512)},
        training={"steps": 20_000, **SLOT_TRAINING},
    ),
    "expert": PolicyEntry(
        description="scripted expert on the simulator's object list",
        policy_class=None,
        scripted=_expert,
        sees_images=False,
    ),
    "expert_blind": PolicyEntry(
        description="the expert on any object, whatever the sentence names: the chance level",
        policy_class=None,
        scripted=_blind_expert,
        sees_images=False,
    ),
}


def entry(name: str) -> PolicyEntry:
    """The registered policy of this name. Raises UserError if there is none."""
    if name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    return POLICIES[name]


def is_scripted(name: str) -> bool:
    """Whether a policy of this name needs no training."""
    return name in POLICIES and POLICIES[name].scripted is not None


def learned_class(name: str) -> type[ChunkedPolicy]:
    """The class of a learned policy. Raises UserError for scripted ones and unknown names."""
    load_class = entry(name).policy_class
    if load_class is None:
        raise UserError(f"policy {name} is scripted: it has nothing to train or load")
    return load_class()


def build_config(name: str, env_config: EnvConfig, **overrides: Any) -> PolicyConfig:
    """The registered configuration for a world, with some settings changed."""
    config_class = learned_class(name).config_class
    task = TASKS[env_config.task]
    words = {"sentences": task.sentences(env_config), "phrases": task.phrases(env_config)}
    settings = {"name": name, "env_config": env_config, **words, **entry(name).settings}
    known = [field.name for field in fields(config_class)]
    for setting in overrides:
        if setting not in known:
            raise unknown(f"setting of {name}", setting, known)
    return config_class(**{**settings, **overrides})


def build_policy(
    name: str, env_config: EnvConfig, statistics: Statistics, **overrides: Any
) -> ChunkedPolicy:
    """A fresh learned policy, to be trained."""
    policy_class = learned_class(name)
    return policy_class(build_config(name, env_config, **overrides), statistics)


def load_policy(source: Path | str, env_config: EnvConfig | None = None) -> Policy:
    """A trained policy from its folder, or a scripted one by its name, in the given world.

    Raises UserError when there is no such folder, or nothing that fits inside.
    """
    scripted = POLICIES[str(source)].scripted if is_scripted(str(source)) else None
    if scripted is not None:
        return scripted()(env_config or EnvConfig(cameras=()))
    folder = Path(source)
    if not folder.is_dir():
        if len(folder.parts) > 1:
            raise UserError(f"{source} is no folder: give the folder of a trained policy")
        entry(str(source))  # an unknown name
        raise UserError(
            f"policy {source} has to be trained first: give the folder of a trained one"
        )
    from fetchlab.policy.pretrained import read_config

    name = read_config(folder)["name"]
    return learned_class(name).from_pretrained(folder)
