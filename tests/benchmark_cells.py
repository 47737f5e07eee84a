"""Made-up cells of a whole benchmark: every suite, three tasks, and policies of known strength."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fetchlab.eval.arms import NOMINAL, Arm, Suite
from fetchlab.eval.results import Cell, CellKey
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.suites import SUITES

TASKS = ("fetch", "place_in_box", "place_beside")
LEARNED = {"act": (0, 1, 2), "slot_mlp": (0, 1)}  # trainings
SCRIPTED = ("expert", "expert_blind")
SENTENCES = {  # the first of each says colour and shape
    "fetch": ("fetch the red block", "fetch the mug"),
    "place_in_box": ("put the red block in the box", "put the mug in the box"),
    "place_beside": ("put the red block left of the mug", "put the mug left of the red block"),
    "remember": ("fetch the red block", "fetch the mug"),
}
SLOTS = 6
REASONS = ("wrong_object", "no_grasp", "missed_box")


def make_cells(n: int = 40) -> tuple[Cell, ...]:
    """Every cell, n episodes each."""
    return tuple(
        make_cell(policy, seed, trained, suite, arm, task, count, n)
        for policy, seed, trained, suite in _roles()
        for arm in suite.arms
        for task in (suite.tasks or TASKS)
        for count in suite.counts
    )


def _roles() -> Iterator[tuple[str, int | None, str, Suite]]:
    for policy, seeds in LEARNED.items():
        for suite in SUITES.values():
            for condition in suite.trained:
                for seed in seeds:
                    if policy == "act" or "images" not in suite.needs or condition.name == NOMINAL:
                        yield policy, seed, condition.name, suite
    for policy in SCRIPTED:
        yield from ((policy, None, NOMINAL, suite) for suite in SUITES.values())


def make_cell(
    policy: str,
    seed: int | None,
    trained: str,
    suite: Suite,
    arm: Arm,
    task: str,
    n_objects: int,
    n: int,
) -> Cell:
    key = CellKey(
        policy=policy,
        suite=suite.name,
        n_objects=n_objects,
        arm=arm.name,
        control=any(other.control == arm.name for other in suite.arms if other.control),
        task=task,
        trained=trained,
        training_seed=seed,
    )
    note = refusal(policy, suite, n_objects)
    if note:
        return Cell.refused(key, note)
    generator = np.random.default_rng([n_objects, 0 if seed is None else 1 + seed, len(task)])
    luck = generator.random(n)  # the same for every arm and policy: they are paired
    reached = luck < strength(policy, trained, arm, n_objects)
    return Cell.count(
        key,
        [
            EpisodeResult(
                seed=2 * row + 1,
                n_objects=n_objects,
                success=bool(won),
                steps=18 if won else 40,
                reason="" if won else REASONS[row % len(REASONS)],
                instruction=SENTENCES[task][row % 2],
                target=0,
            )
            for row, won in enumerate(reached)
        ],
    )


def refusal(policy: str, suite: Suite, n_objects: int) -> str:
    if policy == "slot_mlp" and n_objects > SLOTS:
        return f"cannot take {n_objects} objects ({SLOTS} slots)"
    return "needs images" if policy == "slot_mlp" and "images" in suite.needs else ""


def strength(policy: str, trained: str, arm: Arm, n_objects: int) -> float:
    """The success rate that the episodes are drawn with."""
    if policy == "expert":
        return 1.0
    if policy == "expert_blind":
        return 1 / n_objects
    if trained == "remember" and arm.control:
        return 0.2
    base = 1.0 - 0.012 * n_objects if policy == "act" else 0.95 - 0.5 * (n_objects > 5)
    if trained.startswith("demonstrations_"):
        base *= 1 - 8 / int(trained.rsplit("_", 1)[1])
    return base * (0.7 if arm.control else 1.0)
