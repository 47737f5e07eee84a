"""The backpropagation written by hand, held against central differences and against torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Generator

from fetchlab.eval.figures.backprop import (
    Asked,
    GradientErrors,
    Parameters,
    gradient_check,
    losses_of_training,
)
from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.lookup_models import AttentionLookup
from fetchlab.eval.figures.lookup_scenes import Batch, Question, ask, random_scenes
from fetchlab.eval.figures.lookup_training import (
    BATCH,
    LEARNING_RATE,
    POSITION,
    TRAINED_COUNTS,
    VECTOR,
    loss,
)

CURVE_STEPS = 100
# Heads and question, the step h, and the largest error allowed entry by entry. Four heads have
# entries so near zero that rounding alone is seen in them at the small step.
CASES = (
    (1, POSITION, 1e-4, 1e-4),
    (1, POSITION, 1e-5, 1e-4),
    (2, VECTOR, 1e-4, 1e-4),
    (2, VECTOR, 1e-5, 1e-4),
    (4, VECTOR, 1e-4, 1e-4),
)


def parameters_of(model: AttentionLookup) -> Parameters:
    """The first copy's numbers for numpy."""
    return Parameters(*(p[0].detach().double().numpy() for p in model.parameters()))


def asked_of(batch: Batch) -> Asked:
    """The first copy's scenes for numpy."""
    objects, present, instruction, answer = (x[0].numpy() for x in batch)
    return Asked(objects.astype(float), present, instruction.astype(float), answer.astype(float))


def random_batch(question: Question, generator: Generator) -> Batch:
    """A step's worth of scenes for one copy, in double precision."""
    scenes = random_scenes((1, BATCH), TRAINED_COUNTS, generator)
    return ask(scenes._replace(objects=scenes.objects.double()), [question])


def gradient_errors(n_heads: int, question: Question, h: float, n_seeds: int) -> GradientErrors:
    """The worst of several seeds."""
    generator = Generator().manual_seed(0)
    each = []
    for _ in range(n_seeds):
        model = AttentionLookup(1, n_heads, generator)
        batch = random_batch(question, generator)
        each.append(gradient_check(parameters_of(model), asked_of(batch), h))
    return GradientErrors(*np.max(each, axis=0).tolist())


def losses_with_torch(model: AttentionLookup, batches: Sequence[Batch]) -> list[float]:
    """The loss before each step of torch's Adam, through torch's own gradients."""
    optimizer, found = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE), []
    for batch in batches:
        optimizer.zero_grad()
        wrong = loss(model, batch)
        wrong.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        found.append(wrong.item())
    return found


def curve_difference(n_heads: int, question: Question) -> float:
    """Largest difference between the two loss curves over a hundred steps."""
    generator = Generator().manual_seed(0)
    model = AttentionLookup(1, n_heads, generator).double()
    batches = [random_batch(question, generator) for _ in range(CURVE_STEPS)]
    by_hand = losses_of_training(
        parameters_of(model), [asked_of(batch) for batch in batches], LEARNING_RATE
    )
    return float(np.abs(np.subtract(by_hand, losses_with_torch(model, batches))).max())


def backprop_checks(n_seeds: int) -> Iterator[Check]:
    """Gradient checks of one, two and four heads, and the two loss curves."""
    for n_heads, question, h, plain in CASES:
        errors = gradient_errors(n_heads, question, h, n_seeds)
        bounds = GradientErrors(plain=plain, floored=1e-6, l2=1e-8)
        for name, value, high in zip(errors._fields, errors, bounds, strict=True):
            quantity = f"gradient check, heads {n_heads}, {question.task}, h = {h:g}: {name} error"
            yield Check(quantity=quantity, value=value, high=high)
    for n_heads, question in ((1, POSITION), (2, VECTOR)):
        yield Check(
            quantity=f"numpy and torch, heads {n_heads}, {CURVE_STEPS} steps: losses differ by",
            value=curve_difference(n_heads, question),
            high=1e-6,
        )
