"""What the doctor says about one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The state of one thing, and what to do about it."""

    name: str
    status: Status
    detail: str
    remedy: str = ""
    """what to do; empty when nothing is wrong"""


def ok(name: str, detail: str) -> Finding:
    return Finding(name=name, status="OK", detail=detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    return Finding(name=name, status="WARN", detail=detail, remedy=remedy)


def fail(name: str, detail: str, remedy: str) -> Finding:
    return Finding(name=name, status="FAIL", detail=detail, remedy=remedy)


Check = Callable[[], Finding]


def examine(name: str, check: Check) -> Finding:
    """The check's finding; a check that breaks is a finding too, so that the others still run."""
    try:
        return check()
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return fail(name, reason, "mend what the earlier lines name first, then run this again")
