"""Intervals and paired tests against formulas and published values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetchlab.eval.statistics import (
    compare_paired,
    episodes_needed,
    mcnemar,
    paired_difference_interval,
    scenes_needed,
    seed_spread,
    wilson,
)

Z = 1.959963984540054  # 97.5 % quantile of the normal distribution


def wilson_by_hand(successes: int, trials: int) -> tuple[float, float]:
    rate = successes / trials
    centre = (rate + Z * Z / (2 * trials)) / (1 + Z * Z / trials)
    spread = math.sqrt(rate * (1 - rate) / trials + Z * Z / (4 * trials * trials))
    half = Z / (1 + Z * Z / trials) * spread
    return max(0.0, centre - half), min(1.0, centre + half)


@settings(deadline=None)  # the first example imports statsmodels
@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_the_formula(pair: tuple[int, int]) -> None:
    assert wilson(*pair) == pytest.approx(wilson_by_hand(*pair), abs=1e-9)


def test_wilson_matches_newcombes_published_examples() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3.
    published = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for pair, interval in published.items():
        assert wilson(*pair) == pytest.approx(interval, abs=5e-5)


def test_no_trials_tell_nothing_and_impossible_counts_raise() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="cannot be"):
        wilson(5, 4)


def test_paired_interval_and_test_match_a_published_example() -> None:
    # Airway hyper-responsiveness before and after a transplant: Fagerland, Lydersen and Laake,
    # Statistics in Medicine 33 (2014), 2850-2875 (Newcombe's square-and-add interval).
    low, high = paired_difference_interval(1, 1, 7, 12)
    assert (round(low, 3), round(high, 3)) == (-0.507, -0.026)
    assert mcnemar(1, 7) == pytest.approx(2 * (1 + 8) / 2**8)


@settings(deadline=None)  # the first example imports statsmodels
@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_a_sum_of_coin_tosses(only_first: int, only_second: int) -> None:
    n, few = only_first + only_second, min(only_first, only_second)
    by_hand = min(1.0, 2 * sum(math.comb(n, k) for k in range(few + 1)) / 2**n)
    assert mcnemar(only_first, only_second) == pytest.approx(by_hand)


outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)  # the first example imports statsmodels
@given(outcomes)
def test_comparison_is_antisymmetric_and_its_interval_holds_the_difference(
    pairs: list[tuple[bool, bool]],
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = compare_paired(first, second), compare_paired(second, first)
    assert there.difference == pytest.approx(-back.difference)
    assert there.ci95 == pytest.approx((-back.ci95[1], -back.ci95[0]))
    assert there.p_value == pytest.approx(back.p_value)
    assert -1 <= there.ci95[0] <= there.difference <= there.ci95[1] <= 1


def test_pairing_beats_independent_samples_when_outcomes_go_together() -> None:
    # 40 scenes: both agree on 36, and the first wins all 4 that tell them apart.
    paired = paired_difference_interval(20, 4, 0, 16)
    apart = paired_difference_interval(12, 12, 8, 8)  # the same rates, unrelated outcomes
    assert paired[1] - paired[0] < apart[1] - apart[0]


def test_unpaired_lengths_raise() -> None:
    with pytest.raises(ValueError, match="cannot pair"):
        compare_paired([True], [])


Z_POWER = 0.8416212335729143  # 80 % quantile


def test_episodes_needed_is_the_formula_of_two_proportions() -> None:
    # Fleiss, Levin and Paik (2003), without continuity correction; 199 is the textbook's number.
    assert episodes_needed(0.9, 0.8) == episodes_needed(0.8, 0.9) == 199
    for one, other in ((0.98, 0.96), (0.5, 0.6), (0.97, 0.3), (1.0, 0.9)):
        mean, spread = (one + other) / 2, one * (1 - one) + other * (1 - other)
        root = Z * math.sqrt(2 * mean * (1 - mean)) + Z_POWER * math.sqrt(spread)
        assert episodes_needed(one, other) == math.ceil((root / (one - other)) ** 2)


def test_scenes_needed_gives_mcnemars_test_its_power() -> None:
    only_first, only_second = 0.3, 0.2
    n = scenes_needed(only_first, only_second)
    assert n is not None
    generator = np.random.default_rng(0)
    shares = [only_first, only_second, 1 - only_first - only_second]
    drawn = generator.multinomial(n, shares, size=20_000)[:, :2].astype(float)
    statistic = (drawn[:, 0] - drawn[:, 1]) ** 2 / drawn.sum(axis=1)
    assert (statistic > Z * Z).mean() == pytest.approx(0.8, abs=0.02)


@given(st.integers(1, 49), st.integers(1, 49))
def test_pairing_pays_as_soon_as_outcomes_go_together(one: int, other: int) -> None:
    rate, other_rate = one / 50, other / 50
    only_first, only_second = rate * (1 - other_rate), other_rate * (1 - rate)  # unrelated
    apart, together = episodes_needed(rate, other_rate), scenes_needed(only_first, only_second)
    if one == other:
        assert apart is None and together is None
        return
    assert apart is not None and together is not None and abs(apart - together) <= 3
    common = min(only_first, only_second) / 2
    paired = scenes_needed(only_first - common, only_second - common)
    assert paired is not None and paired <= together


def test_more_power_and_confidence_take_more_episodes() -> None:
    few, many = episodes_needed(0.9, 0.8), episodes_needed(0.9, 0.8, power=0.9, confidence=0.99)
    assert few is not None and many is not None and few < many
    fewer, more = scenes_needed(0.1, 0.02), scenes_needed(0.1, 0.02, power=0.95)
    assert fewer is not None and more is not None and fewer < more


def test_the_spread_over_seeds() -> None:
    spread = seed_spread([0.90, 0.94, 0.98])
    assert (spread.n_seeds, spread.worst, spread.best) == (3, 0.90, 0.98)
    assert spread.mean == pytest.approx(0.94)
    reach = 4.302652729911275 * 0.04 / math.sqrt(3)  # t of 2 degrees of freedom, by hand
    assert spread.ci95 == pytest.approx((0.94 - reach, 1.0))  # the top is cut: 1.039
    assert seed_spread([0.5]).ci95 is None
    with pytest.raises(ValueError, match="one rate or more"):
        seed_spread([])
