"""Projection agrees with the renderer, and pointing rewards attention on the asked object."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fetchlab.policy.pointing import Pointing, near_cells
from fetchlab.sim.cameras import CAMERAS, projection
from fetchlab.sim.env import Tabletop


@pytest.mark.parametrize("camera", ["front", "overhead"])
def test_a_projected_block_is_where_the_renderer_draws_it(camera: str) -> None:
    env = Tabletop(n_objects=5, cameras=())
    matrix, n_seen = projection(CAMERAS[camera]), 0
    for seed in range(3):
        env.reset(seed=seed)
        picture = env.picture(camera, 256)
        for index, block in enumerate(env.scene.objects):
            drawn = np.argwhere(picture.segmentation == picture.names.index(f"object_{index}"))
            if len(drawn) < 200:  # partly hidden by the arm
                continue
            u, v, w = matrix @ [block.x, block.y, 0.02, 1]
            np.testing.assert_allclose(drawn.mean(axis=0) / 256, (v / w, u / w), atol=0.015)
            n_seen += 1
    assert n_seen > 5


@given(st.floats(0, 1), st.integers(2, 20))
def test_a_coordinate_falls_on_the_nearest_cells(coordinate: float, n_cells: int) -> None:
    weights = near_cells(torch.tensor(coordinate), n_cells)
    centres = (torch.arange(n_cells) + 0.5) / n_cells
    assert weights.sum().item() == pytest.approx(1, abs=1e-5)
    assert (weights > 1e-6).sum() <= 2
    inside = min(max(coordinate, 0.5 / n_cells), 1 - 0.5 / n_cells)
    assert (weights * centres).sum().item() == pytest.approx(inside, abs=1e-4)


@pytest.mark.parametrize("height", [0.02, 0.2])
def test_attention_on_the_object_costs_least(height: float) -> None:
    positions, known = torch.tensor([[[0.5, 0.1, height]]]), torch.tensor([[True]])
    u, v, w = projection(CAMERAS["front"]) @ [0.5, 0.1, height, 1]
    row, column = int(v / w * 8), int(u / w * 8)
    costs = np.zeros((8, 8))
    pointing = Pointing(("front", "wrist"))
    for r in range(8):
        for c in range(8):
            maps = torch.full((1, 1, 2, 8, 8), 0.001)
            maps[0, 0, 0, r, c] = 1
            costs[r, c] = pointing.loss(maps, positions, known)
    assert costs.argmin() == row * 8 + column
    nothing_asked = pointing.loss(maps, positions, ~known)
    assert nothing_asked == 0
