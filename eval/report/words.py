"""How the benchmark's page calls things, in words of every day."""

from __future__ import annotations

from collections.abc import Sequence

from fetchlab.eval.arms import Suite
from fetchlab.eval.report.page import LABELS
from fetchlab.eval.tables import percent
from fetchlab.policy.registry import POLICIES

TASK_TEXTS = {
    "fetch": "Fetch",
    "reach": "Reach",
    "place_in_box": "Put in the box",
    "place_beside": "Put beside another",
    "remember": "Fetch what has turned grey",
}
DONE = {
    "fetch": "the named object was lifted and held",
    "reach": "the hand stood still above the named object",
    "place_in_box": "the named object lay in the box, let go of",
    "place_beside": "the named object lay on the right side of the other, let go of",
    "remember": "the named object was lifted and held",
}
REASON_TEXTS = {
    "wrong_object": "took or pushed another object",
    "no_reach": "never came near the object",
    "no_grasp": "came near, did not grasp it",
    "dropped": "lost the object again",
    "timeout": "ran out of time",
    "missed_box": "let go beside the box",
    "not_released": "did not let go",
    "wrong_side": "put it on the wrong side",
    "misplaced": "put it too near or too far",
    "moved_reference": "moved the other object",
    "not_steady": "did not hold still above it",
}

SAME_SEEDS = "the control has the same seeds, but other scenes: the difference is not paired"


def policy_text(policy: str) -> str:
    """What a policy is, for a legend."""
    if policy in LABELS:
        return LABELS[policy]
    known = POLICIES[policy].description if policy in POLICIES else policy
    return known[:1].upper() + known[1:]


def task_text(task: str) -> str:
    return TASK_TEXTS.get(task, task.replace("_", " ").capitalize())


def reason_text(reason: str) -> str:
    return REASON_TEXTS.get(reason, reason.replace("_", " "))


def arm_text(arm: str) -> str:
    return arm.replace("_", " ") or "as in training"


def points(difference: float) -> str:
    """A difference of rates, in percentage points."""
    return f"{100 * difference:+.1f}"


def between(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{points(low)} to {points(high)}"


def counts_text(counts: Sequence[int]) -> str:
    """ "6 to 20", whatever was played in between; "6 and 8" for two."""
    return " and ".join(map(str, counts)) if len(counts) < 3 else f"{counts[0]} to {counts[-1]}"


def objects(counts: Sequence[int]) -> str:
    return f"{counts_text(counts)} objects"


def chance(p_value: float) -> str:
    return f"{p_value:.3f}" if p_value >= 0.001 else "< 0.001"


def rate(value: float | None) -> str:
    return "–" if value is None else percent(value)


def number(n: int, thing: str, things: str = "") -> str:
    """ "1 suite", "2 suites", "3 policies", "1,200 episodes"."""
    return f"{n:,} {thing if n == 1 else things or f'{thing}s'}"


def remark(suite: Suite) -> str:
    """What to bear in mind when its arms are measured against its control; may be empty."""
    return suite.remark or ("" if suite.same_scenes else SAME_SEEDS)
