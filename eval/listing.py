"""`fetchlab list`: what is registered, a line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class ListConfig:
    """What is registered, a line each."""

    what: tyro.conf.Positional[Literal["tasks", "policies", "suites", "cameras"]]
    """which registry"""
    json: bool = False
    """print a JSON object, name to description, instead of lines"""


def run_list(config: ListConfig) -> None:
    """`fetchlab list`."""
    entries = registered(config.what)
    if config.json:
        sys.stdout.write(json.dumps(entries, indent=1) + "\n")
        return
    width = max(map(len, entries))
    for name, description in entries.items():
        sys.stdout.write(f"{name:<{width}}  {description}\n")


def registered(what: str) -> Mapping[str, str]:
    """Names and descriptions of a registry, in its order."""
    from fetchlab.eval.suites import SUITES
    from fetchlab.policy.registry import POLICIES
    from fetchlab.sim.cameras import CAMERAS
    from fetchlab.sim.tasks.registry import TASKS

    registries: dict[str, dict[str, str]] = {
        "tasks": {name: task.description for name, task in TASKS.items()},
        "policies": {name: entry.description for name, entry in POLICIES.items()},
        "suites": {name: suite.description for name, suite in SUITES.items()},
        "cameras": {name: camera.description for name, camera in CAMERAS.items()},
    }
    return registries[what]
