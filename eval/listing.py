"""`fetchlab list`: what is registered, a line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class ListConfig:
    """What is registered, a line each."""

    what: tyro.conf.Positional[
        Literal["tasks", "policies", "suites", "cameras", "variations", "shapes", "languages"]
    ]
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
    registries: Mapping[str, Callable[[], Mapping[str, str]]] = {
        "tasks": _tasks,
        "policies": _policies,
        "suites": _suites,
        "cameras": _cameras,
        "variations": _variations,
        "shapes": _shapes,
        "languages": _languages,
    }
    return registries[what]()


# Each imports its own registry alone, so that the light ones are listed quickly.


def _tasks() -> dict[str, str]:
    from fetchlab.sim.tasks.registry import TASKS

    return {name: task.description for name, task in TASKS.items()}


def _policies() -> dict[str, str]:
    from fetchlab.policy.registry import POLICIES

    return {name: entry.description for name, entry in POLICIES.items()}


def _suites() -> dict[str, str]:
    from fetchlab.eval.suites import SUITES

    return {name: suite.description for name, suite in SUITES.items()}


def _cameras() -> dict[str, str]:
    from fetchlab.sim.cameras import CAMERAS

    return {name: camera.description for name, camera in CAMERAS.items()}


def _variations() -> dict[str, str]:
    from fetchlab.sim.variations import VARIATIONS

    return {name: variation.description for name, variation in VARIATIONS.items()}


def _shapes() -> dict[str, str]:
    from fetchlab.sim.shapes import SHAPES

    return {name: shape.description for name, shape in SHAPES.items()}


def _languages() -> dict[str, str]:
    from fetchlab.sim.language import LANGUAGES
    from fetchlab.sim.tasks.registry import TASKS

    fetch = TASKS["fetch"]
    return {name: f"such as {fetch.examples(name)[0]!r}" for name in LANGUAGES}
