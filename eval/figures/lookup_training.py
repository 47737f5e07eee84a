"""Attention and MLP learn the lookup from the same scenes, all seeds at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from fetchlab.eval.figures.lookup_models import AttentionLookup, SlotMlp
from fetchlab.eval.figures.lookup_scenes import (
    HALF_TABLE_CM,
    N_SLOTS,
    Batch,
    Question,
    Scenes,
    ask,
    random_scenes,
)
from fetchlab.eval.parallel import one_thread

TRAINED_COUNTS = (2, 3, 4, 5)
TEST_COUNTS: Mapping[str, tuple[int, ...]] = {
    "2–5": TRAINED_COUNTS,
    "6": (6,),
    "8": (8,),
    "10": (10,),
    "20": (20,),
}
TEST_SCENES = 200  # for each seed, and for each of these
BATCH, LEARNING_RATE = 32, 0.01

HEADS = {"attention, 1 head": 1, "attention, 2 heads": 2, "attention, 4 heads": 4}
WIDE, MLP = "attention, 1 wide head", "MLP"
POSITION, VECTOR = Question("position"), Question("vector")
SORTED, BY_COLOUR = Question("position", "sorted"), Question("position", "by_colour")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, how often and how many times at once the models learn."""

    n_seeds: int
    test_at: tuple[int, ...]
    """training steps after which the models are tested; the last one ends the training"""

    def __post_init__(self) -> None:
        if self.n_seeds < 1 or not self.test_at or list(self.test_at) != sorted(self.test_at):
            raise ValueError(f"seeds and rising steps are needed, got {self}")


class Contestant(NamedTuple):
    """A model with a copy for each of its questions and each seed."""

    name: str
    model: AttentionLookup | SlotMlp
    questions: tuple[Question, ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """The test sets that it can be given: an MLP has no slot for a seventh block."""
        limit = N_SLOTS if isinstance(self.model, SlotMlp) else None
        return tuple(
            name for name, counts in TEST_COUNTS.items() if limit is None or max(counts) <= limit
        )


class Trial(NamedTuple):
    """One curve: which model, which question, which test scenes."""

    contestant: str
    question: Question
    test: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The trained models, their test scenes (S, N), and each distance from the right answer."""

    test_at: tuple[int, ...]  # training steps

    contestants: Mapping[str, Contestant]
    tests: Mapping[str, Scenes]
    distances_cm: Mapping[Trial, Tensor]  # (tests in time, S, N)

    def errors(self, name: str, question: Question, test: str) -> Tensor:
        """Mean distance (tests in time, S) in cm."""
        return self.distances_cm[Trial(name, question, test)].mean(-1)


def contestants(n_seeds: int, generator: Generator) -> list[Contestant]:
    """One, two and four heads, one wide head, and the MLP, also with kinder slot orders."""
    both = (POSITION, VECTOR)
    heads = [
        Contestant(name, AttentionLookup(len(both) * n_seeds, n_heads, generator), both)
        for name, n_heads in HEADS.items()
    ]
    wide = AttentionLookup(n_seeds, 1, generator, d_key=16, d_value=8)
    asked = (*both, SORTED, BY_COLOUR)
    mlp = SlotMlp(len(asked) * n_seeds, generator)
    return [*heads, Contestant(WIDE, wide, (VECTOR,)), Contestant(MLP, mlp, asked)]


def distance_cm(answer: Tensor, batch: Batch) -> Tensor:
    """How far each answer (R, B, 2) lies from the right one (R, B)."""
    apart: Tensor = torch.linalg.vector_norm(answer - batch.answer, dim=-1)
    return HALF_TABLE_CM * apart


def learn(config: TrainingConfig) -> Outcome:
    """Adam on the mean squared distance; every model sees the same fresh scenes in every step."""
    generator = Generator().manual_seed(0)
    models = contestants(config.n_seeds, generator)
    tests = {
        name: random_scenes((config.n_seeds, TEST_SCENES), counts, generator)
        for name, counts in TEST_COUNTS.items()
    }
    found: dict[Trial, list[Tensor]] = {}
    parameters = [p for one in models for p in one.model.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True)
    with one_thread():
        for step in range(config.test_at[-1] + 1):
            if step in config.test_at:
                for trial, distance in tested(models, tests):
                    found.setdefault(trial, []).append(distance)
            if step < config.test_at[-1]:
                scenes = random_scenes((config.n_seeds, BATCH), TRAINED_COUNTS, generator)
                optimizer.zero_grad()
                total_loss(models, scenes).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
    return Outcome(
        test_at=config.test_at,
        contestants={one.name: one for one in models},
        tests=tests,
        distances_cm={trial: torch.stack(each) for trial, each in found.items()},
    )


def total_loss(models: Sequence[Contestant], scenes: Scenes) -> Tensor:
    """The losses of all models on the same scenes."""
    batches = {questions: ask(scenes, questions) for questions in {m.questions for m in models}}
    return torch.stack([loss(m.model, batches[m.questions]) for m in models]).sum()


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean squared distance of each copy, summed over the copies, which share no parameter."""
    wrong: Tensor = model(batch) - batch.answer  # (R, B, 2)
    return wrong.square().sum(-1).mean(-1).sum()


@torch.no_grad()
def tested(models: Sequence[Contestant], tests: Mapping[str, Scenes]) -> list[tuple[Trial, Tensor]]:
    """The distances (S, N) in cm of every model, question and test set."""
    found = []
    for one in models:
        for test in one.tests:
            batch = ask(tests[test], one.questions)
            distances = distance_cm(one.model(batch), batch).chunk(len(one.questions))  # (S, N)
            found += [
                (Trial(one.name, question, test), distance)
                for question, distance in zip(one.questions, distances, strict=True)
            ]
    return found
