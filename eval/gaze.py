"""What an attention head looked at, as `results.json` holds it, and the sentence about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fetchlab.eval.statistics import Interval

WHOLE = "all"  # the phase that stands for the whole episode
FOUND = 0.5  # a head finds the named object with more than this part of its attention


@dataclass(frozen=True, kw_only=True)
class Gaze:
    """Where the action queries look through one head, in one phase: means over episodes.

    `named` to `robot_token` sum to 1. A patch counts for each thing by its part of the pixels.
    """

    policy: str
    n_objects: int
    layer: int
    """of the decoder, counted from 1"""
    head: int
    """counted from 1"""
    taught: bool
    """whether training taught this head to look where an object that is asked about is seen"""
    phase: str
    """`all`, or `approach`, `descend`, `close`, `lift`"""
    n_episodes: int
    """in which the phase occurs"""
    n_frames: int
    named: float
    """attention on the named object"""
    named_ci95: Interval | None
    """over episodes; None for a single one"""
    others: float
    """on other objects"""
    arm: float
    table: float
    background: float
    robot_token: float
    """on what is no patch: the token of the arm's readings"""
    on_named_patches: float
    """attention on all patches that show any of the named object, whatever else they show"""
    on_named_patches_ci95: Interval | None
    named_patches: float
    """share of the patches that do: what even attention over them would give"""
    area: dict[str, float]
    """share of the pixels, `named` to `background`: what even attention would give"""


def finder(gazes: Sequence[Gaze]) -> Gaze:
    """The head that looks most at the named object, over whole episodes."""
    return max((g for g in gazes if g.phase == WHOLE), key=lambda g: g.on_named_patches)


def gaze_sentence(gazes: Sequence[Gaze]) -> str:
    """Which head finds the named object, or that none does, with the chance level beside it."""
    best = finder(gazes)
    name = f"layer {best.layer}, head {best.head}"
    found = best.on_named_patches > FOUND
    who = f"{name.capitalize()} finds" if found else f"No head finds the named object; {name}"
    what = "the named object" if found else "looks most at it"
    ending = ""
    if found and best.taught:
        ending = (
            " In training, extra questions taught this head to look where an object is seen; using "
            "it for the actions was not taught."
        )
    return (
        f"{who} {what}: {_percent(best.on_named_patches)} of its attention lies on the patches "
        f"that show it, which are {_percent(best.named_patches)} of all patches "
        f"({_basis(best)}).{ending}"
    )


def _basis(gaze: Gaze) -> str:
    episodes = "one episode" if gaze.n_episodes == 1 else f"{gaze.n_episodes} episodes"
    if gaze.on_named_patches_ci95 is None:
        return f"{episodes} with {gaze.n_objects} objects"
    low, high = gaze.on_named_patches_ci95
    return (
        f"{episodes} with {gaze.n_objects} objects, 95 % interval {100 * low:.0f} to "
        f"{100 * high:.0f} %"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
