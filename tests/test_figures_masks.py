"""Figure 6: exact zeros, a cache that changes nothing, and what it saves."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tests.lesson import settled
from torch import Tensor

from fetchlab.eval.figures import caching, tiles, visibility
from fetchlab.eval.figures.base import Figure
from fetchlab.eval.figures.generation import Speaker
from fetchlab.eval.figures.masks import figure
from fetchlab.policy.masks import causal


@pytest.fixture(scope="module")
def measured() -> Figure:
    return settled(figure, quick=True)


def test_all_numbers_lie_in_their_ranges(measured: Figure) -> None:
    assert not [check for check in measured.checks if not check.ok]
    assert len(measured.checks) > 40


def test_the_page_gets_counts_and_times(measured: Figure) -> None:
    data = json.loads(json.dumps(measured.data))
    by_length = {work["n_tokens"]: work for work in data["counts"]}
    assert by_length[64] == {"n_tokens": 64, "full": 89440, "masked": 45760, "cached": 2080}
    assert by_length[512]["full"] == 44_870_400 and by_length[512]["cached"] == 131_328
    assert {timing["n_rows"] for timing in data["timings"]} == {1, caching.N_ROWS}


@pytest.mark.parametrize(
    ("n_tokens", "full", "masked", "cached", "ratio"),
    [
        (64, 89_440, 45_760, 2_080, 43.0),
        (128, 707_264, 357_760, 8_256, 85.7),
        (256, 5_625_216, 2_829_056, 32_896, 171.0),
        (512, 44_870_400, 22_500_864, 131_328, 341.7),
    ],
)
def test_score_cells(n_tokens: int, full: int, masked: int, cached: int, ratio: float) -> None:
    counted = caching.count(n_tokens)
    assert (counted.full, counted.masked, counted.cached) == (full, masked, cached)
    assert counted.ratio == pytest.approx(ratio, abs=0.05)
    assert counted.ratio == pytest.approx((2 * n_tokens + 1) / 3)


@pytest.mark.parametrize("cached", [False, True])
def test_what_is_counted_is_what_is_computed(cached: bool) -> None:
    speaker = Speaker(n_layers=1, width=16, seed=0)
    cells = []

    def look(_: object, queries: tuple[Tensor], options: dict[str, Any]) -> None:
        n_cached = 0 if options["cache"] is None else len(options["cache"])
        cells.append(queries[0].shape[1] * (n_cached + queries[0].shape[1]))

    attention = speaker.encoder.get_submodule("blocks.0.attention")
    attention.register_forward_pre_hook(look, with_kwargs=True)
    speaker.continued(torch.zeros(1, 1, dtype=torch.long), 20, cached=cached)
    counted = caching.count(20)
    assert sum(cells) == (counted.cached if cached else counted.full)


def test_several_sequences_say_what_each_says_alone() -> None:
    speaker = Speaker(n_layers=2, width=32, seed=0, dtype=torch.float64)
    prompts = torch.tensor([[1, 2, 3], [9, 8, 7]])
    together, _ = speaker.continued(prompts, 12, cached=True)
    for row, prompt in enumerate(prompts):
        alone, _ = speaker.continued(prompt[None], 12, cached=False)
        assert torch.equal(together[row], alone[0])
        assert torch.equal(alone[0, :3], prompt)


def test_the_cache_is_as_large_as_the_formula_says() -> None:
    encoder = Speaker(n_layers=4, width=64, seed=0).encoder
    numbers = sum(cache.n_bytes for cache in encoder.empty_caches(1, 512)) // 4
    assert numbers == 2 * 4 * 512 * 64 == 262_144


@pytest.mark.parametrize("n_tokens", [1, 63, 64, 65, 300])
def test_tiles_do_not_change_the_result(n_tokens: int) -> None:
    generator = torch.Generator().manual_seed(n_tokens)
    query = torch.randn(7, 16, generator=generator, dtype=torch.float64)
    key, value = torch.randn(2, n_tokens, 16, generator=generator, dtype=torch.float64)
    scores = 30 * query @ key.T / 4  # large ones: the plain exponential would not do
    expected = scores.softmax(dim=-1) @ value
    torch.testing.assert_close(
        tiles.attend_in_tiles(30 * query, key, value), expected, atol=1e-13, rtol=1e-13
    )


def test_tiles_never_keep_all_scores() -> None:
    sizes: list[int] = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = super().__torch_function__(  # type: ignore[no-untyped-call]
                func, types, args, kwargs or {}
            )
            if isinstance(result, torch.Tensor):
                sizes.append(result.numel())
            return result

    query, key, value = (torch.randn(500, 8).as_subclass(Watched) for _ in range(3))
    tiles.attend_in_tiles(query, key, value)
    assert max(sizes) == 500 * tiles.TILE


def test_checks_of_masks_see_a_leak() -> None:
    leaking = causal(visibility.N_TOKENS)
    leaking[3, 60] = True
    assert visibility.change_before(40, leaking, 0, torch.float64) > 1e-3
    assert (visibility.change_by_appending(0, masked=False)[1:] > 0.05).all()


@pytest.mark.slow
def test_the_full_figure() -> None:
    full = settled(figure, quick=False)
    assert not [check for check in full.checks if not check.ok]
