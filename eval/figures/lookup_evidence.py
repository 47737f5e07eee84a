"""What the trained lookups do inside: where they look, what they pass on, what they mind."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Generator, Tensor

from fetchlab.eval.figures.hull import beyond_hull
from fetchlab.eval.figures.lookup_models import AttentionLookup
from fetchlab.eval.figures.lookup_scenes import (
    HALF_TABLE_CM,
    N_COLOURS,
    Batch,
    Question,
    Scenes,
    ask,
    random_scenes,
)
from fetchlab.eval.figures.lookup_training import VECTOR, Contestant


def in_double(one: Contestant) -> Contestant:
    """The same numbers in double precision, so that rounding hides nothing."""
    return one._replace(model=copy.deepcopy(one.model).double())


def asked(one: Contestant, scenes: Scenes) -> Batch:
    """The scenes in the precision of the model."""
    dtype = next(one.model.parameters()).dtype
    return ask(scenes._replace(objects=scenes.objects.to(dtype)), one.questions)


def attention(one: Contestant) -> AttentionLookup:
    """Its model; TypeError if that is no attention."""
    if not isinstance(one.model, AttentionLookup):
        raise TypeError(f"{one.name} does not attend")
    return one.model


def copies(one: Contestant, question: Question, numbers: Tensor) -> Tensor:
    """The rows (S, …) of numbers (R, …) that belong to one question."""
    return numbers.chunk(len(one.questions))[one.questions.index(question)]


@torch.no_grad()
def weights_on_named(one: Contestant, question: Question, scenes: Scenes) -> Tensor:
    """Mean weight of each head on A and on B: (S, H, 2)."""
    _, weights = attention(one).read(asked(one, scenes))  # (R, H, N, M)
    weights = copies(one, question, weights)  # (S, H, N, M)
    named = torch.stack([scenes.first, scenes.second], dim=-1)[:, None]  # (S, 1, N, 2)
    return weights.gather(-1, named.expand(*weights.shape[:-1], 2)).mean(dim=2)


@torch.no_grad()
def passed_on(one: Contestant, question: Question) -> tuple[Tensor, Tensor]:
    """What a single head makes of a block: of its place (S, 2, 2), of its colour (S, 6, 2) in cm.

    A lookup passes places on as they are, the identity, and adds nothing for the colour.
    """
    model = attention(one)
    through = (model.value @ model.output)[:, 0]  # (R, 8, 2)
    through, bias = (copies(one, question, x) for x in (through, model.bias))
    return through[:, N_COLOURS:], HALF_TABLE_CM * (through[:, :N_COLOURS] + bias)


def reordered(scenes: Scenes, generator: Generator) -> Scenes:
    """The same blocks, and the same A and B, in another order."""
    order = torch.rand(scenes.present.shape, generator=generator).argsort(-1)  # (S, N, M)
    place = order.argsort(-1)
    first, second = (
        place.gather(-1, slot[..., None])[..., 0] for slot in (scenes.first, scenes.second)
    )
    objects = scenes.objects.gather(-2, order[..., None].expand(scenes.objects.shape))
    return Scenes(objects, scenes.present.gather(-1, order), first, second)


@torch.no_grad()
def change_by_reordering(
    one: Contestant, question: Question, scenes: Scenes, generator: Generator
) -> Tensor:
    """How far the answers (S, N) move, in cm, when the blocks come in another order."""
    one, moved = in_double(one), reordered(scenes, generator)
    before, after = (one.model(asked(one, either)) for either in (scenes, moved))
    return HALF_TABLE_CM * copies(one, question, (before - after).norm(dim=-1))


@torch.no_grad()
def outside_hull_cm(one: Contestant, scenes: Scenes) -> float:
    """How far a single head's answers stick out of the hull of what it makes of each block."""
    one = in_double(one)
    batch, model = asked(one, scenes), attention(one)
    through = (model.value @ model.output)[:, 0]  # (R, 8, 2)
    mapped = batch.objects @ through[:, None] + model.bias[:, None]  # (R, N, M, 2)
    return HALF_TABLE_CM * float(beyond_hull(model(batch), mapped, batch.present).max())


def answers_in_hull(counts: Sequence[int], generator: Generator) -> float:
    """Share of 5,000 scenes where the vector from B to A lies in the hull of the blocks."""
    batch = ask(random_scenes((1, 5_000), counts, generator), [VECTOR])
    places = batch.objects[..., N_COLOURS:]  # (1, N, M, 2)
    return float((beyond_hull(batch.answer, places, batch.present) <= 0).double().mean())


def baselines(counts: Sequence[int], generator: Generator) -> Mapping[str, float]:
    """Mean distance, in cm, of answers that need no learning; over 40,000 scenes."""
    scenes = random_scenes((1, 40_000), counts, generator)
    batch = ask(scenes, [Question("position"), Question("vector")])
    n_present = batch.present.sum(-1, keepdim=True)  # (2, N, 1)
    centroid = batch.objects[..., N_COLOURS:].sum(-2) / n_present  # (2, N, 2)
    named = scenes.take(scenes.first)[0, :, N_COLOURS:]  # (N, 2)
    apart = {
        "position: the middle of the table": batch.answer[0],
        "position: the middle of the blocks": batch.answer[0] - centroid[0],
        "vector: zero": batch.answer[1],
        "vector: where A is": batch.answer[1] - named,
    }
    return {name: HALF_TABLE_CM * float(x.norm(dim=-1).mean()) for name, x in apart.items()}
