"""Where an artefact came from: versions, the commit, and whether it may be gone on with."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fetchlab
from fetchlab.errors import UserError

SHOWN = 4
"""differences that are named; the others are counted"""


def versions(*distributions: str) -> dict[str, str]:
    """Versions of fetchlab, Python and these distributions."""
    ours = {"fetchlab": fetchlab.__version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in distributions}


def git_commit() -> str | None:
    """The commit of the source tree that fetchlab runs from, None outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def in_words(setting: Any) -> str:
    """A setting as a person would type it."""
    if isinstance(setting, (list, tuple)):
        return " ".join(map(str, setting)) or "none"
    return "unknown" if setting is None else str(setting)


def refuse_differences(out: Path, begun: Any, now: Mapping[str, Any]) -> None:
    """UserError naming settings in which an unfinished artefact and its resumption differ."""
    if not isinstance(begun, Mapping):
        raise UserError(f"{out} is damaged: the settings that it was begun with cannot be read")
    differing = _differences(begun, now)
    if differing:
        more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        raise UserError(
            f"{out} was begun with other settings ({'; '.join(differing[:SHOWN])}{more}): "
            "resume with the same ones or choose another --out"
        )


def _differences(begun: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key in sorted({*begun, *now}):
        old, new, name = begun.get(key), now.get(key), f"{prefix}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{name}.")
        elif old != new:
            found.append(f"{name} {in_words(old)}, now {in_words(new)}")
    return found
