"""The learned lookup's numbers beside their bounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Generator, Tensor

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.lookup_bounds import BOUNDS, FOUR, ONE, TWO
from fetchlab.eval.figures.lookup_evidence import (
    answers_in_hull,
    baselines,
    change_by_reordering,
    outside_hull_cm,
    passed_on,
    weights_on_named,
)
from fetchlab.eval.figures.lookup_scenes import HALF_TABLE_CM, N_COLOURS
from fetchlab.eval.figures.lookup_training import (
    MLP,
    POSITION,
    TRAINED_COUNTS,
    VECTOR,
    WIDE,
    Outcome,
    Trial,
)

PARAMETERS = {ONE: 182, TWO: 362, FOUR: 722, WIDE: 402, MLP: 8_194}
STUCK_CM = 15.0  # far more than two heads that share the work, far less than one head
OVER_SEEDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "best": min,
    "worst": max,
}
# Mean distances in cm of answers that need no learning: with 2 to 5 blocks, and by their number.
GUESSES_CM = {
    "position: the middle of the table": 30.6,
    "position: the middle of the blocks": 24.4,
    "vector: zero": 41.7,
    "vector: where A is": 30.6,
}
MIDDLE_OF_BLOCKS_CM = {2: 20.9, 3: 24.1, 4: 25.9, 5: 26.8, 6: 27.5}


def parameter_checks(outcome: Outcome) -> Iterator[Check]:
    """Numbers to learn in one copy of each model."""
    for name, one in outcome.contestants.items():
        n_copies = len(next(one.model.parameters()))
        count = sum(p.numel() for p in one.model.parameters()) / n_copies
        expected = PARAMETERS[name]
        yield Check(quantity=f"{name}: parameters", value=count, low=expected, high=expected)


def error_checks(outcome: Outcome, quick: bool) -> Iterator[Check]:
    """How far off each model is at the end of its training."""
    for bound in BOUNDS:
        low, high = bound.quick if quick else bound.full
        errors = outcome.errors(bound.contestant, bound.question, bound.test)[-1]
        slots = "" if bound.question.order == "random" else f" (slots {bound.question.order})"
        yield Check(
            quantity=f"{bound.contestant}{slots}, {bound.question.task}, {bound.test} blocks: "
            f"error in cm, {bound.seeds} of the seeds",
            value=OVER_SEEDS[bound.seeds](errors.tolist()),
            low=low,
            high=high,
        )


def position_checks(outcome: Outcome, quick: bool) -> Iterator[Check]:
    """What a single head has learned to tell a position."""
    one = outcome.contestants[ONE]
    weight = weights_on_named(one, POSITION, outcome.tests["2–5"])[..., 0].min()
    places, colours = passed_on(one, POSITION)
    yield Check(
        quantity="1 head, position: weight on the named block, worst seed",
        value=float(weight),
        low=0.97 if quick else 0.99,
    )
    yield Check(
        quantity="1 head, position: W_V · W_O differs from the identity by",
        value=float((places - torch.eye(2)).abs().max()),
        high=0.05 if quick else 0.02,
    )
    yield Check(
        quantity="1 head, position: cm that a colour adds to the answer",
        value=float(colours.abs().max()),
        high=0.5 if quick else 0.23,
    )
    for test in ("2–5", "6"):
        near = outcome.distances_cm[Trial(ONE, POSITION, test)][-1] < 2  # (S, N)
        yield Check(
            quantity=f"1 head, position, {test} blocks: share within 2 cm, worst seed",
            value=float(near.double().mean(-1).min()),
            low=0.95 if quick else 1.0,
        )


def vector_checks(outcome: Outcome, quick: bool) -> Iterator[Check]:
    """Why one head cannot tell a vector, and how two do."""
    one, two = outcome.contestants[ONE], outcome.contestants[TWO]
    weights = weights_on_named(one, VECTOR, outcome.tests["2–5"])[:, 0]  # (S, 2)
    sign = torch.where(weights[:, 0] > weights[:, 1], 1.0, -1.0)  # + for A, - for B
    expected = sign[:, None, None] * torch.eye(2)
    yield Check(
        quantity="1 head, vector: weight on either A or B alone, worst seed",
        value=float(weights.amax(-1).min()),
        low=0.98 if quick else 0.99,
    )
    yield Check(
        quantity="1 head, vector: W_V · W_O differs from +identity (A) or -identity (B) by",
        value=float((passed_on(one, VECTOR)[0] - expected).abs().max()),
        high=0.25 if quick else 0.15,
    )
    yield Check(
        quantity="1 head, vector: cm from the error of one block read and the other ignored",
        value=float((one_error(outcome) - ignored_cm(outcome, weights)).abs().max()),
        high=2.0 if quick else 1.0,
    )
    yield Check(
        quantity="1 head, vector: cm by which answers leave the hull of the mapped blocks",
        value=max(outside_hull_cm(one, outcome.tests[test]) for test in ("2–5", "6")),
        high=7e-6,
    )
    shared = weights_on_named(two, VECTOR, outcome.tests["2–5"])  # (S, H, 2)
    yield Check(
        quantity="2 heads, vector: one head on A, the other on B; weight, median of the seeds",
        value=float(both_named(shared).median()),
        low=0.85 if quick else 0.98,
    )
    yield from stuck_checks(outcome, quick)
    for counts, low, high in ((TRAINED_COUNTS, 0.03, 0.075), ((6,), 0.15, 0.25)):
        yield Check(
            quantity=f"{counted(counts)} blocks: share of vectors in their hull",
            value=answers_in_hull(counts, Generator().manual_seed(0)),
            low=low,
            high=high,
        )


def one_error(outcome: Outcome) -> Tensor:
    """Mean distances (S,) of a single head at the end."""
    return outcome.errors(ONE, VECTOR, "2–5")[-1]


def ignored_cm(outcome: Outcome, weights: Tensor) -> Tensor:
    """Mean distance (S,) from the table's middle of the block that a seed's head ignores.

    It follows from the weights (S, A and B) of the head.
    """
    scenes = outcome.tests["2–5"]
    reads_first = (weights[:, 0] > weights[:, 1])[:, None]  # (S, 1)
    ignored = scenes.take(torch.where(reads_first, scenes.second, scenes.first))  # (S, N, 8)
    away: Tensor = torch.linalg.vector_norm(ignored[..., N_COLOURS:], dim=-1)
    return HALF_TABLE_CM * away.mean(-1)


def counted(counts: Sequence[int]) -> str:
    """ "2–5" or "6"."""
    return "–".join(str(count) for count in sorted({counts[0], counts[-1]}))


def both_named(weights: Tensor) -> Tensor:
    """Weights (S, 2 heads, A and B): the lesser one if each head reads its own block, (S,)."""
    straight = torch.minimum(weights[:, 0, 0], weights[:, 1, 1])
    crossed = torch.minimum(weights[:, 0, 1], weights[:, 1, 0])
    return torch.maximum(straight, crossed)


def stuck_checks(outcome: Outcome, quick: bool) -> Iterator[Check]:
    """Seeds in which all heads read the same block, and stay at the error of one."""
    for name, allowed in ((TWO, 1 if quick else 2), (FOUR, 0)):
        stuck = outcome.errors(name, VECTOR, "2–5")[-1] > STUCK_CM
        yield Check(
            quantity=f"{name}, vector: seeds of {len(stuck)} that stay where one head is",
            value=int(stuck.sum()),
            high=allowed,
        )


def reordering_checks(outcome: Outcome) -> Iterator[Check]:
    """What another order of the same six blocks changes."""
    generator = Generator().manual_seed(0)
    for name in (ONE, TWO, FOUR, MLP):
        one = outcome.contestants[name]
        moved = change_by_reordering(one, POSITION, outcome.tests["6"], generator)
        attends = name != MLP
        yield Check(
            quantity=f"{name}: cm that another order of six blocks moves the answer, "
            + ("at most" if attends else "mean"),
            value=float(moved.max() if attends else moved.mean()),
            low=0.0 if attends else 7.7,
            high=1.6e-5 if attends else 30.0,
        )


def guess_checks() -> Iterator[Check]:
    """What can be had without learning."""
    generator = Generator().manual_seed(0)
    middle = "position: the middle of the blocks"
    expected: list[tuple[tuple[int, ...], str, float]] = [
        *((TRAINED_COUNTS, name, cm) for name, cm in GUESSES_CM.items()),
        *(((count,), middle, cm) for count, cm in MIDDLE_OF_BLOCKS_CM.items()),
    ]
    for counts, name, cm in expected:
        yield Check(
            quantity=f"guess for the {name}, {counted(counts)} blocks: error in cm",
            value=baselines(counts, generator)[name],
            low=cm - 0.4,
            high=cm + 0.4,
        )
