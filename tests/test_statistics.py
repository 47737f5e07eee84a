"""Intervals and paired tests against formulas and published values."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetchlab.eval.statistics import (
    compare_paired,
    mcnemar,
    paired_difference_interval,
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
