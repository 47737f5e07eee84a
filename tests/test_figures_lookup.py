"""Figures 1 to 3: their numbers lie in their bounds, and what they are made of is right."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor

from fetchlab.eval.figures.base import Figure
from fetchlab.eval.figures.five_keys import KEYS, entropy, look_up, unit
from fetchlab.eval.figures.hull import beyond_hull
from fetchlab.eval.figures.registry import measure
from fetchlab.eval.figures.saturation import jacobian_norm, random_lookups, softness
from fetchlab.policy.attention import attend_with_weights

places = st.lists(st.tuples(st.floats(-40, 40), st.floats(-40, 40)), min_size=5, max_size=5)
angles = st.floats(0, 2 * math.pi)


@cache
def quick(number: int) -> Figure:
    return measure(number, quick=True)


def failed(figure: Figure) -> list[str]:
    return [f"{c.quantity}: {c.value} not in {c.low, c.high}" for c in figure.checks if not c.ok]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_number_lies_in_its_range(number: int) -> None:
    assert not failed(quick(number))


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_number_of_the_full_version_lies_in_its_range(number: int) -> None:
    assert not failed(measure(number))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_figure_is_complete(number: int) -> None:
    figure = quick(number)
    assert figure.number == number and figure.title and figure.question.endswith("?")
    assert figure.svg.startswith("<svg") and "NaN" not in figure.svg
    assert all(paragraph.endswith((".", ":")) for paragraph in figure.text)
    assert json.loads(json.dumps(dict(figure.data), allow_nan=False)) == figure.data
    assert len({check.quantity for check in figure.checks}) == len(figure.checks)
    for table in figure.tables:
        assert {len(row) for row in table.rows} == {len(table.header)}


def test_every_check_can_fail() -> None:
    for number in (1, 2, 3):
        for check in quick(number).checks:
            assert math.isfinite(check.low) or math.isfinite(check.high), check.quantity


def test_the_page_can_redo_the_lookup_from_what_figure_1_hands_over() -> None:
    data = quick(1).data
    names, keys, values = data["names"], np.array(data["keys"]), np.array(data["values"])
    assert len(names) == len(keys) == len(values) == 5 and data["d"] == 2
    assert np.abs(values).max() <= 40
    scores = keys @ (10 * keys[0]) / math.sqrt(data["d"])
    weights = np.exp(scores) / np.exp(scores).sum()
    assert weights[0] == pytest.approx(0.9851, abs=5e-5)


def test_figure_2_hands_over_its_curves() -> None:
    data = quick(2).data
    assert data["steps"][0] == 0 and data["steps"][-1] == 1_000
    blocks: dict[str, set[str]] = {}
    for curve in data["errors_cm"]:
        blocks.setdefault(curve["model"], set()).add(curve["blocks"])
        assert len(curve["mean"]) == len(data["steps"])
        if (curve["model"], curve["task"]) == ("attention, 1 head", "position"):
            assert curve["mean"][0] > 25 and curve["mean"][-1] < 4
    assert blocks.pop("MLP") == {"2–5", "6"}
    assert all(counts == {"2–5", "6", "8", "10", "20"} for counts in blocks.values())


@settings(deadline=None)
@given(places, angles, st.floats(0, 50))
def test_a_lookup_stays_in_the_hull_of_the_values(
    values: list[tuple[float, float]], angle: float, length: float
) -> None:
    corners = torch.tensor([values], dtype=torch.float64)  # (1, 5, 2)
    query = length * unit(torch.tensor([[angle]], dtype=torch.float64))  # (1, 1, 2)
    output, weights = look_up(query, corners)
    assert weights.sum() == pytest.approx(1)
    assert beyond_hull(output, corners[:, None]).item() <= 1e-12
    by_hand = torch.softmax(query[0] @ KEYS.T / math.sqrt(2), -1) @ corners[0]
    torch.testing.assert_close(output[0], by_hand)


@settings(deadline=None)
@given(angles, st.floats(0.1, 20), st.floats(1.05, 3))
def test_a_longer_query_never_spreads_more(angle: float, length: float, factor: float) -> None:
    lengths = torch.tensor([length, factor * length], dtype=torch.float64)[:, None]
    queries = lengths * unit(torch.tensor([angle], dtype=torch.float64))
    _, weights = look_up(queries[None], KEYS[None])
    shorter, longer = entropy(weights)[0].tolist()
    assert longer <= shorter + 1e-12


def test_the_hull_of_a_square() -> None:
    square = torch.tensor([[1.0, 1], [1, -1], [-1, -1], [-1, 1]]).double()
    points = torch.tensor([[0.0, 0], [1, 0], [3, 0], [0.75, 0.5]]).double()
    assert beyond_hull(points, square).tolist() == pytest.approx([-1, 0, 2, -0.25], abs=1e-9)
    triangle = torch.tensor([True, False, True, True])
    right_of_it = beyond_hull(torch.tensor([0.5, -0.5]).double(), square, triangle)
    assert right_of_it.item() == pytest.approx(math.sqrt(0.5), abs=1e-3)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 12), st.integers(0, 10_000), st.floats(0.1, 3))
def test_the_jacobians_norm_is_that_of_its_entries(n_keys: int, seed: int, scale: float) -> None:
    scores = scale * torch.randn(n_keys, generator=Generator().manual_seed(seed)).double()
    entries: Tensor = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)  # type: ignore[no-untyped-call]
    assert jacobian_norm(scores.softmax(-1)).item() == pytest.approx(entries.norm().item())


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_gradients_at_scores_and_query_are_torchs(scale: float) -> None:
    lookups = random_lookups(16, 6, 3, Generator().manual_seed(0))
    query = lookups.query.clone().requires_grad_()
    output, _ = attend_with_weights(query, lookups.key, lookups.value, scale=scale)
    (output * lookups.upstream).sum().backward()  # type: ignore[no-untyped-call]
    assert query.grad is not None
    found = softness(lookups, scale)
    torch.testing.assert_close(found.query_gradient, query.grad.norm(dim=-1).flatten())
    scores = (scale * lookups.query @ lookups.key.transpose(-2, -1)).requires_grad_()
    ((scores.softmax(-1) @ lookups.value) * lookups.upstream).sum().backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    torch.testing.assert_close(found.score_gradient, scores.grad.norm(dim=-1).flatten())
