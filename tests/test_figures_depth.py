"""Figure 5: 24 blocks with parts removed; the collapse in 400 digits; warm-up."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from fetchlab.eval.figures import precise, warm_up
from fetchlab.eval.figures.base import Figure
from fetchlab.eval.figures.collapse import COLLAPSING, collapse
from fetchlab.eval.figures.deep_blocks import VARIANTS, Trace, trace
from fetchlab.eval.figures.depth import figure
from fetchlab.eval.figures.random_blocks import blocks, random_encoder, random_tokens
from fetchlab.eval.figures.seeds import Seeds


@pytest.fixture(scope="module")
def measured() -> Figure:
    return figure(quick=True)


def test_all_numbers_lie_in_their_ranges(measured: Figure) -> None:
    assert not [check for check in measured.checks if not check.ok]
    assert len(measured.checks) > 25


def test_the_table_names_every_variant(measured: Figure) -> None:
    assert [row[0] for row in measured.tables[0].rows] == list(VARIANTS)


def test_random_weights_have_the_size_they_should() -> None:
    encoder = random_encoder(VARIANTS["Pre-LN"], 24, seed=0)
    expected = {"query": 1 / 16, "key_value": 1 / 16, "output": 1 / 16, "0": 2 / 16, "2": 2 / 64}
    for name, variance in expected.items():
        weights = [
            p.detach() for key, p in encoder.named_parameters() if key.endswith(f".{name}.weight")
        ]
        assert len(weights) == 24
        assert torch.stack(weights).var().item() == pytest.approx(variance, rel=0.1)
    assert all((p == 0).all() for key, p in encoder.named_parameters() if key.endswith(".bias"))


def test_seeds_draw_the_same_numbers_in_both_precisions() -> None:
    double = random_encoder(VARIANTS["Pre-LN"], 1, seed=3)
    single = random_encoder(VARIANTS["Pre-LN"], 1, seed=3, dtype=torch.float32)
    for one, other in zip(double.parameters(), single.parameters(), strict=True):
        assert torch.equal(one.float(), other)


def test_without_residuals_everything_is_rounding_by_layer_five() -> None:
    for name in ("no residual, no LN", "attention alone", COLLAPSING):
        assert trace(VARIANTS[name], 10).residual[:, 5].median() < 1e-14


def test_residuals_alone_do_not_keep_tokens_apart() -> None:
    last = {name: trace(VARIANTS[name], 10).cosine[:, -1] for name in ("Pre-LN", "Post-LN")}
    assert (last["Post-LN"] > 0.9995).all()
    assert last["Pre-LN"].max() < 0.95


def test_fits_of_growth() -> None:
    layers = torch.arange(25, dtype=torch.float64)
    sizes = torch.stack([3 * 2.5**layers, 2 * (layers + 1e-9).sqrt()])
    growth, fit = Trace(sizes, sizes, sizes).growth()
    assert growth[0].item() == pytest.approx(2.5) and fit[0].item() == pytest.approx(1)
    assert Trace(sizes, sizes, sizes).power()[1].item() == pytest.approx(0.5, abs=1e-6)


def test_decimal_attention_is_that_of_the_blocks() -> None:
    encoder = random_encoder(VARIANTS[COLLAPSING], 2, seed=1)
    tokens = random_tokens(8, 16, seed=2)
    with localcontext(prec=60):
        x = precise.exact(tokens[0])
        for block in blocks(encoder):
            x = precise.attention_only(block, x)
    np.testing.assert_allclose(x.astype(float), encoder(tokens)[0].numpy(), rtol=1e-12, atol=1e-13)


def test_decimals_and_doubles_agree_while_both_can_see() -> None:
    logs = collapse(3, 3)
    doubles = trace(VARIANTS[COLLAPSING], 3).residual[:, :4].log10().numpy()
    np.testing.assert_allclose(logs, doubles, rtol=1e-9)


def test_decimals_see_beyond_double_precision() -> None:
    logs = collapse(1, 6)[0]
    assert logs[6] < -50  # where a double has nothing left below -16
    assert logs[6] / logs[5] == pytest.approx(3, abs=0.1)


def test_decimal_layer_norm_by_hand() -> None:
    token = np.array([[Decimal(1), Decimal(3)]])
    assert precise.layer_norm(token, 0.0).tolist() == [[-1, 1]]


def test_stacked_seeds_answer_and_learn_like_single_models() -> None:
    torch.manual_seed(0)
    models = [warm_up.DeepLookup("post") for _ in range(2)]
    batch = warm_up.scenes(4, torch.Generator().manual_seed(0))
    seen = batch.objects[:2], batch.present[:2], batch.instruction[:2]
    together = Seeds(models)
    for seed, model in enumerate(models):
        alone = model(*(part[seed] for part in seen))
        torch.testing.assert_close(together(*seen)[seed], alone, atol=1e-5, rtol=1e-5)

    together.train(3, lambda _: together(*seen).square().mean((1, 2)), lambda _: 1e-3)
    optimizer = torch.optim.Adam(models[1].parameters(), lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        models[1](*(part[1] for part in seen)).square().mean().backward()
        optimizer.step()
    alone = models[1](*(part[1] for part in seen))
    torch.testing.assert_close(together(*seen)[1], alone, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_the_full_figure_with_warm_up() -> None:
    full = figure(quick=False)
    assert not [check for check in full.checks if not check.ok]
    stuck = {row[0]: row[-1] for row in full.tables[1].rows}
    assert stuck["Pre-LN"] == stuck["Post-LN with warm-up"] == "0 of 5"
