"""Films of failures: one for each reason that a policy failed for, the most frequent first."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fetchlab.eval.parallel import Role, policy_for, process_pool
from fetchlab.eval.plan import CellPlan
from fetchlab.eval.report.page import Clip
from fetchlab.eval.report.words import reason_text
from fetchlab.eval.results import Cell, CellKey
from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.eval.video import film, outcome, png, write_video
from fetchlab.policy.registry import is_scripted

MOST = 8  # films
USUAL = "counts"  # the suite that changes nothing
TRIES = 3  # scenes: a replay may end otherwise, as its batches round differently


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Scenes in which a policy failed for one reason."""

    policy: str
    reason: str
    role: Role
    title: str
    specs: tuple[EpisodeSpec, ...]


def choose_failures(plans: Sequence[CellPlan], cells: Sequence[Cell]) -> list[Failure]:
    """A policy and reason each, turn by turn: first the most frequent reason of every policy.

    Of learned policies that were told and shown everything; a reason is filmed where most episodes
    ended so, if it can be where nothing was changed.
    """
    found = {plan.key: cell for plan, cell in zip(plans, cells, strict=True)}
    told = [
        plan
        for plan in plans
        if plan.role is not None and plan.role.ablation is None and not is_scripted(plan.key.policy)
    ]
    ranked: list[tuple[int, int, str, str]] = []
    policies = list(dict.fromkeys(plan.key.policy for plan in told))
    for row, policy in enumerate(policies):
        mine = [found[plan.key] for plan in told if plan.key.policy == policy]
        reasons = sum((Counter(cell.failures) for cell in mine), Counter[str]())
        ordered = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
        ranked += [(place, row, policy, reason) for place, reason in enumerate(ordered)]
    return [
        _failure([plan for plan in told if plan.key.policy == policy], found, reason)
        for _, _, policy, reason in sorted(ranked)[:MOST]
    ]


def _failure(plans: Sequence[CellPlan], found: dict[CellKey, Cell], reason: str) -> Failure:
    def fitness(plan: CellPlan) -> tuple[bool, int]:
        n = found[plan.key].failures.get(reason, 0)
        return n > 0 and plan.key.suite == USUAL, n

    plan = max(plans, key=fitness)
    cell, key = found[plan.key], plan.key
    seeds = [episode.seed for episode in cell.episodes if episode.reason == reason]
    specs = [spec for spec in plan.specs if spec.seed in seeds[:TRIES]]
    where = f"{key.suite}: {key.arm}" if key.arm else key.suite
    assert plan.role is not None  # it was played
    return Failure(
        policy=key.policy,
        reason=reason,
        role=plan.role,
        title=f"{where}, {key.n_objects} objects".replace("_", " "),
        specs=tuple(specs),
    )


def film_failures(failures: Sequence[Failure], workers: int) -> tuple[Clip, ...]:
    """The films of those that happen again."""
    if not failures:
        return ()
    with process_pool(min(workers, len(failures))) as pool:
        return tuple(clip for clip in pool.map(_shoot, failures) if clip is not None)


def _shoot(failure: Failure) -> Clip | None:
    policy = policy_for(failure.role)
    for spec in failure.specs:
        shown = film(policy, spec, world=failure.role.world)
        if shown.result.reason == failure.reason:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "film.mp4"
                write_video(path, shown.playback(), shown.fps)
                return Clip(
                    title=f"{failure.policy} {reason_text(failure.reason)} ({failure.title})",
                    caption=f"“{shown.result.instruction}”: {outcome(shown.result)}",
                    success=False,
                    mp4=path.read_bytes(),
                    poster=png(shown.frames[len(shown.frames) // 2]),
                )
    return None
