"""Figure 4: order is invisible without positions; the paths come from the simulator."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from fetchlab.eval.figures import offsets, shuffling
from fetchlab.eval.figures.base import Figure
from fetchlab.eval.figures.order import figure
from fetchlab.eval.figures.paths import (
    ARRIVED,
    SHORTEST,
    reaches,
    resampled,
)
from fetchlab.eval.figures.reach_retreat import ORDERS, ReachOrRetreat, noisy
from fetchlab.sim.robot import HOME
from fetchlab.sim.world import TABLE_CENTRE, TABLE_SIZE

HALF_TABLE = TABLE_SIZE / 2


@pytest.fixture(scope="module")
def measured() -> Figure:
    return figure(quick=True)


def test_all_numbers_lie_in_their_ranges(measured: Figure) -> None:
    assert not [check for check in measured.checks if not check.ok]
    assert len(measured.checks) > 35


def test_the_page_gets_paths_and_accuracies(measured: Figure) -> None:
    data = json.loads(json.dumps(measured.data))
    assert set(data["accuracy"]) == set(ORDERS)
    assert data["accuracy"]["none"] == [0.5] * len(data["accuracy"]["none"])
    for path in data["paths"]:
        last, block = path["waypoints"][-1], path["block"]
        assert len(path["waypoints"]) == 12
        assert np.linalg.norm(np.subtract(last, block)) <= 100 * ARRIVED + 0.15  # cm, rounded


def test_paths_lead_from_home_to_the_block() -> None:
    paths = reaches(5, seen=True)
    assert paths.shape == (5, 12, 4)
    home = (np.array(HOME[:2]) - TABLE_CENTRE) / HALF_TABLE
    np.testing.assert_allclose(paths[:, 0, :2], np.tile(home, (5, 1)), atol=2e-3)
    way = (paths[..., :2] - paths[..., 2:]).norm(dim=-1)  # (5, 12) to the block
    assert (way[:, -1] <= ARRIVED / HALF_TABLE).all()
    assert (way.diff(dim=1) < 0).double().mean() > 0.95  # ever closer
    assert ((paths[:, -1, :2] - paths[:, 0, :2]).norm(dim=-1) >= SHORTEST / HALF_TABLE).all()
    assert (paths[..., 2:] == paths[:, :1, 2:]).all()


def test_recording_is_deterministic_and_tests_are_other_episodes() -> None:
    seen, again, tested = (reaches(3, seen=seen) for seen in (True, True, False))
    assert torch.equal(seen, again)
    assert not (seen[:, None, 0, 2:] == tested[None, :, 0, 2:]).all(-1).any()


def test_resampled_paths_are_evenly_spaced_in_time() -> None:
    path = np.stack([np.arange(34.0) ** 2, -np.arange(34.0)], axis=1)
    waypoints = resampled(path)
    np.testing.assert_allclose(waypoints[:, 1], -3.0 * np.arange(12))
    np.testing.assert_allclose(waypoints[:, 0], 9.0 * np.arange(12) ** 2)


def test_noise_moves_waypoints_and_not_the_block() -> None:
    paths = torch.zeros(50, 12, 4, dtype=torch.float64)
    shown = noisy(paths, torch.Generator().manual_seed(0))
    assert (shown[..., 2:] == 0).all()
    assert shown[..., :2].std().item() == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("order", ORDERS)
def test_only_without_positions_are_both_directions_alike(order: str) -> None:
    torch.manual_seed(0)
    model = ReachOrRetreat(order).double().eval()
    paths = torch.randn(20, 12, 4, dtype=torch.float64)
    difference = (model(paths) - model(paths.flip(1))).abs().max().item()
    assert difference < 1e-13 if order == "none" else difference > 1e-3


def test_spread_finds_scores_that_depend_on_the_place() -> None:
    place = torch.arange(5.0)
    assert offsets.spread(place[:, None] - place) == 0
    assert offsets.spread(place[:, None] * place) == 16  # along the diagonal, from 0 · 0 to 4 · 4
    waves = offsets.codes(64, 16)
    stretched = waves * torch.linspace(1, 1.01, 64)[:, None]
    assert offsets.spread(waves @ waves.T) < 1e-13 < 1e-3 < offsets.spread(stretched @ stretched.T)


def test_likeness_of_codes_by_hand() -> None:
    # Two pairs with the frequencies 1 and 1/100, three positions apart.
    expected = (np.cos(3) + np.cos(0.03)) / 2
    assert offsets.similarity(4, (3,))[0] == pytest.approx(expected, abs=1e-12)


def test_each_way_to_know_the_order_breaks_equivariance() -> None:
    for order in ORDERS:
        token, mean = shuffling.changes(order, torch.float64)
        assert token.shape == mean.shape == (shuffling.N_SEEDS,)
        assert (token < 1e-14).all() if order == "none" else (token > 0.19).all()


@pytest.mark.slow
def test_the_full_figure() -> None:
    full = figure(quick=False)
    assert not [check for check in full.checks if not check.ok]
    accuracy = full.data["accuracy"]
    assert accuracy["none"] == [0.5] * 10
    for order in ORDERS[1:]:
        assert len(accuracy[order]) == 10 and min(accuracy[order]) > 0.97
