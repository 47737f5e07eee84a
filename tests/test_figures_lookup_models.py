"""The learned lookup of figure 2: scenes, models, and gradients by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator

from fetchlab.eval.figures import backprop
from fetchlab.eval.figures.backprop import Parameters, forward, gradient_check, score_gradient
from fetchlab.eval.figures.backprop_checks import asked_of, parameters_of, random_batch
from fetchlab.eval.figures.lookup_evidence import change_by_reordering, reordered
from fetchlab.eval.figures.lookup_models import AttentionLookup, SlotMlp
from fetchlab.eval.figures.lookup_scenes import (
    N_COLOURS,
    N_SLOTS,
    Batch,
    Question,
    ask,
    in_order,
    random_scenes,
)
from fetchlab.eval.figures.lookup_training import (
    BY_COLOUR,
    POSITION,
    SORTED,
    TRAINED_COUNTS,
    VECTOR,
    Contestant,
    TrainingConfig,
    learn,
    loss,
)

seeds = st.integers(0, 10_000)
heads = st.sampled_from([1, 2, 4])
questions = st.sampled_from([POSITION, VECTOR])


@settings(deadline=None)
@given(st.sampled_from([(2,), (6,), (10,), (2, 3, 4, 5), (20,)]), seeds)
def test_scenes_hold_what_they_say(counts: tuple[int, ...], seed: int) -> None:
    scenes = random_scenes((3, 8), counts, Generator().manual_seed(seed))
    n_blocks = scenes.present.sum(-1)
    assert set(n_blocks.flatten().tolist()) <= set(counts)
    colour, place = scenes.objects[..., :N_COLOURS], scenes.objects[..., N_COLOURS:]
    assert (colour.sum(-1) == scenes.present).all() and place.abs().max() <= 1
    assert (scenes.objects[~scenes.present] == 0).all()
    assert (scenes.first != scenes.second).all()
    for slot in (scenes.first, scenes.second):
        assert (slot < n_blocks).all()
        named = scenes.take(slot)[..., :N_COLOURS]  # (3, 8, 6)
        assert (named.sum(-1) == 1).all()
        alike = (colour * named[..., None, :]).sum((-2, -1))
        assert (alike == 1).all()  # the name says which block is meant
    if max(counts) <= N_COLOURS:
        assert (colour.sum(-2) <= 1).all()


def test_named_blocks_lie_in_every_slot() -> None:
    scenes = random_scenes((4_000,), (5,), Generator().manual_seed(0))
    for slot in (scenes.first, scenes.second):
        assert torch.bincount(slot, minlength=5).float().div(4_000).sub(0.2).abs().max() < 0.03


@settings(deadline=None)
@given(seeds, st.sampled_from([SORTED, BY_COLOUR]))
def test_a_slot_order_keeps_the_blocks(seed: int, question: Question) -> None:
    scenes = random_scenes((2, 8), TRAINED_COUNTS, Generator().manual_seed(seed))
    objects, present = in_order(scenes, question.order)
    assert (objects.sum(-2) - scenes.objects.sum(-2)).abs().max() < 1e-6
    assert (objects[..., :N_COLOURS].any(-1) == present).all()
    colour = objects[..., :N_COLOURS].argmax(-1)
    if question is BY_COLOUR:
        assert (colour == torch.arange(N_SLOTS))[present].all()
    else:
        assert (present == present.sort(dim=-1, descending=True).values).all()
        assert (colour.diff(dim=-1) > 0)[present[..., 1:]].all()
    shuffled = reordered(scenes, Generator().manual_seed(seed))
    torch.testing.assert_close(in_order(shuffled, question.order)[0], objects, atol=0, rtol=0)


def test_no_slot_a_colour_when_colours_repeat() -> None:
    scenes = random_scenes((2,), (8,), Generator().manual_seed(0))
    with pytest.raises(ValueError, match="8 objects do not fit one slot a colour"):
        in_order(scenes, "sorted")


def test_an_answer_is_what_the_instruction_asks() -> None:
    scenes = random_scenes((1, 16), TRAINED_COUNTS, Generator().manual_seed(0))
    batch = ask(scenes, [POSITION, VECTOR])
    first, second = batch.instruction.chunk(2, dim=-1)  # (2, 16, 6)
    places = batch.objects[..., N_COLOURS:]
    colours = batch.objects[..., :N_COLOURS]
    at_first, at_second = (
        ((colours @ wanted[..., None]) * places).sum(-2) for wanted in (first, second)
    )
    assert (second[0] == 0).all()
    torch.testing.assert_close(batch.answer, at_first - at_second)


@pytest.mark.parametrize(("n_heads", "count"), [(1, 182), (2, 362), (4, 722)])
def test_numbers_to_learn(n_heads: int, count: int) -> None:
    generator = Generator().manual_seed(0)
    assert sum(p.numel() for p in AttentionLookup(1, n_heads, generator).parameters()) == count
    assert sum(p.numel() for p in SlotMlp(1, generator).parameters()) == 8_194


@settings(deadline=None)
@given(heads, questions, seeds)
def test_the_order_of_blocks_and_what_is_absent_do_not_matter_to_attention(
    n_heads: int, question: Question, seed: int
) -> None:
    generator = Generator().manual_seed(seed)
    one = Contestant("", AttentionLookup(2, n_heads, generator), (question,))
    scenes = random_scenes((2, 8), (2, 3, 5, 8), generator)
    assert change_by_reordering(one, question, scenes, generator).max() < 1e-10
    batch = ask(scenes, [question])
    noise = 100 * torch.randn(batch.objects.shape, generator=generator)
    padded = batch._replace(objects=torch.where(batch.present[..., None], batch.objects, noise))
    torch.testing.assert_close(one.model(padded), one.model(batch), atol=0, rtol=0)


def test_the_order_of_blocks_matters_to_the_mlp() -> None:
    generator = Generator().manual_seed(0)
    one = Contestant("", SlotMlp(2, generator), (POSITION,))
    scenes = random_scenes((2, 8), (6,), generator)
    assert change_by_reordering(one, POSITION, scenes, generator).mean() > 1
    with pytest.raises(ValueError, match="8 objects do not fit 6 slots"):
        one.model(ask(random_scenes((2, 8), (8,), generator), [POSITION]))


def test_copies_do_not_know_of_each_other() -> None:
    generator = Generator().manual_seed(0)
    batch = ask(random_scenes((3, 8), TRAINED_COUNTS, generator), [POSITION])
    for model, alone in (
        (AttentionLookup(3, 2, generator), AttentionLookup(1, 2, generator)),
        (SlotMlp(3, generator), SlotMlp(1, generator)),
    ):
        with torch.no_grad():
            for ours, theirs in zip(alone.parameters(), model.parameters(), strict=True):
                ours.copy_(theirs[1:2])
        second = Batch(*(part[1:2] for part in batch))
        torch.testing.assert_close(model(batch)[1:2], alone(second))


def test_learning_repeats_itself() -> None:
    config = TrainingConfig(n_seeds=1, test_at=(0, 3))
    once, again = learn(config), learn(config)
    for measured, distances in once.distances_cm.items():
        assert (distances == again.distances_cm[measured]).all()
        assert (distances[0] != distances[1]).any()
    with pytest.raises(ValueError, match="rising steps"):
        TrainingConfig(n_seeds=1, test_at=(3, 0))


@settings(deadline=None, max_examples=25)
@given(heads, questions, seeds)
def test_gradients_by_hand_are_torchs(n_heads: int, question: Question, seed: int) -> None:
    generator = Generator().manual_seed(seed)
    model = AttentionLookup(1, n_heads, generator).double()
    batch = random_batch(question, generator)
    wrong = loss(model, batch)
    wrong.backward()  # type: ignore[no-untyped-call]
    parameters, asked = parameters_of(model), asked_of(batch)
    made = forward(parameters, asked)
    assert backprop.loss(made, asked) == pytest.approx(wrong.item(), abs=1e-12)
    by_hand = backprop.backward(parameters, asked, made)
    for ours, theirs in zip(by_hand, model.parameters(), strict=True):
        assert theirs.grad is not None
        np.testing.assert_allclose(ours, theirs.grad[0].numpy(), atol=1e-12)


def test_the_score_gradient_is_the_jacobians_and_that_of_differences() -> None:
    random = np.random.default_rng(0)
    scores, value, upstream = (random.normal(size=s) for s in ((5,), (5, 2), (2,)))
    weights = backprop.softmax(scores)
    found = score_gradient(weights, value, upstream)
    jacobian = np.diag(weights) - np.outer(weights, weights)
    assert np.abs(found - jacobian @ value @ upstream).max() < 2e-15
    h = 1e-5
    differences = [
        (backprop.softmax(scores + h * step) - backprop.softmax(scores - h * step))
        @ value
        @ upstream
        / (2 * h)
        for step in np.eye(5)
    ]
    assert np.abs(found - differences).max() < 1e-9


@pytest.mark.parametrize("field", Parameters._fields)
def test_the_gradient_check_finds_a_mistake(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator().manual_seed(0)
    parameters = parameters_of(AttentionLookup(1, 2, generator))
    asked = asked_of(random_batch(VECTOR, generator))
    assert gradient_check(parameters, asked, 1e-4).plain < 1e-4
    right = backprop.backward

    def mistaken(*args: object) -> Parameters:
        gradient = right(*args)  # type: ignore[arg-type]
        return gradient._replace(**{field: 1.001 * getattr(gradient, field)})

    monkeypatch.setattr(backprop, "backward", mistaken)
    errors = gradient_check(parameters, asked, 1e-4)
    assert errors.plain > 5e-4 and errors.l2 > 1e-8


def test_single_precision_does_not_pass_the_gradient_check() -> None:
    generator = Generator().manual_seed(0)
    parameters = parameters_of(AttentionLookup(1, 2, generator))
    asked = asked_of(random_batch(VECTOR, generator))
    coarse = Parameters(*(p.astype("float32") for p in parameters))
    rounded = asked._replace(**{f: getattr(asked, f).astype("float32") for f in asked._fields})
    assert gradient_check(coarse, rounded, 1e-4).plain > 1e-4
