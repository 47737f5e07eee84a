"""Intervals and paired tests against formulas and published values."""

import math
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetchlab.eval.statistics import (
    Comparison,
    compare_outcomes,
    episodes_needed,
    paired_difference_interval,
    scenes_needed,
    seed_spread,
    sign_flip,
    wilson,
)

Z = 1.959963984540054  # 97.5 % quantile of the normal distribution


class Played(NamedTuple):
    """An episode, as far as a comparison wants to know."""

    seed: int
    success: bool


def episodes(outcomes: list[bool] | str, first: int = 0) -> list[Played]:
    """One a seed; `+` is a success."""
    return [Played(first + row, outcome in (True, "+")) for row, outcome in enumerate(outcomes)]


def compared(first: list[bool] | str, second: list[bool] | str) -> Comparison:
    return compare_outcomes([(episodes(first), episodes(second))])


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
    assert sign_flip([1] + 7 * [-1] + 13 * [0]) == pytest.approx(2 * (1 + 8) / 2**8)


@settings(deadline=None)  # the first example imports statsmodels
@given(st.integers(0, 40), st.integers(0, 40))
def test_sign_flips_of_ones_are_mcnemars_coin_tosses(only_first: int, only_second: int) -> None:
    n, few = only_first + only_second, min(only_first, only_second)
    by_hand = min(1.0, 2 * sum(math.comb(n, k) for k in range(few + 1)) / 2**n)
    differences = [1] * only_first + [-1] * only_second
    assert sign_flip([0, *differences]) == pytest.approx(by_hand)
    assert sign_flip([3 * one for one in differences]) == pytest.approx(by_hand)


@settings(deadline=None)  # the first example imports scipy
@given(st.lists(st.integers(-4, 4), max_size=9))
def test_sign_flips_are_all_the_ways_to_put_the_signs(differences: list[int]) -> None:
    sums = [
        sum(map(math.prod, zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    far = sum(abs(one) >= abs(sum(differences)) for one in sums)
    assert sign_flip(differences) == pytest.approx(far / len(sums))


outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)  # the first example imports statsmodels
@given(outcomes)
def test_comparison_is_antisymmetric_and_its_interval_holds_the_difference(
    pairs: list[tuple[bool, bool]],
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = compared(first, second), compared(second, first)
    assert there.difference == pytest.approx(-back.difference)
    assert there.ci95 == pytest.approx((-back.ci95[1], -back.ci95[0]))
    assert there.p_value == pytest.approx(back.p_value)
    assert -1 <= there.ci95[0] <= there.difference <= there.ci95[1] <= 1


def test_pairing_beats_independent_samples_when_outcomes_go_together() -> None:
    # 40 scenes: both agree on 36, and the first wins all 4 that tell them apart.
    paired = paired_difference_interval(20, 4, 0, 16)
    apart = paired_difference_interval(12, 12, 8, 8)  # the same rates, unrelated outcomes
    assert paired[1] - paired[0] < apart[1] - apart[0]


def test_other_seeds_and_nothing_raise() -> None:
    for rounds in (
        [(episodes("+"), episodes(""))],
        [(episodes("+-"), episodes("+-", first=1))],
        [(episodes("+-"), episodes("+-")), (episodes("+-", first=2), episodes("+-", first=2))],
        [(episodes(""), episodes(""))],
        [],
    ):
        with pytest.raises(ValueError, match="cannot pair"):
            compare_outcomes(rounds)


@settings(deadline=None)  # the first example imports statsmodels
@given(outcomes, st.integers(2, 4), st.booleans())
def test_the_same_training_again_makes_nothing_surer(
    pairs: list[tuple[bool, bool]], times: int, same_scenes: bool
) -> None:
    once = episodes([a for a, _ in pairs]), episodes([b for _, b in pairs])
    first, again = (compare_outcomes([once] * n, same_scenes=same_scenes) for n in (1, times))
    assert replace(again, p_value=first.p_value, ci95=first.ci95) == first
    assert again.ci95 == pytest.approx(first.ci95)
    assert again.p_value == pytest.approx(first.p_value)


def test_a_scene_counts_once_with_its_mean_over_trainings() -> None:
    # Trainings "++-+" and "+--+" against one that is not trained: the differences of their sums
    # are 0, 1, -2 and 2, and every way to put the signs leads at least as far from 0 as 1.
    second = episodes("+-+-")
    one = compare_outcomes([(episodes("++-+"), second), (episodes("+--+"), second)])
    assert (one.n, one.n_first, one.n_second) == (4, 2.5, 2)
    assert (one.n_only_first, one.n_only_second) == (1.5, 1)
    assert one.difference == 1 / 8 and one.ci95[0] < 1 / 8 < one.ci95[1]
    assert one.p_value == 1.0


def test_other_scenes_of_the_same_seeds_are_not_paired() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10, has 56 of 70 and 48 of 80:
    # (0.0524, 0.3339). Of equal numbers its square-and-add is that of pairs without correlation.
    first, second = 40 * "+" + 20 * "-", 30 * "-" + 30 * "+"
    one = compare_outcomes([(episodes(first), episodes(second))], same_scenes=False)
    assert one.n_only_first is one.n_only_second is None
    low_1, high_1 = wilson_by_hand(40, 60)
    low_2, high_2 = wilson_by_hand(30, 60)
    reach = math.hypot(40 / 60 - low_1, high_2 - 0.5), math.hypot(high_1 - 40 / 60, 0.5 - low_2)
    assert one.ci95 == pytest.approx((1 / 6 - reach[0], 1 / 6 + reach[1]))
    score = (1 / 6) / math.sqrt(7 / 12 * 5 / 12 * 2 / 60)
    assert one.p_value == pytest.approx(math.erfc(score / math.sqrt(2)))
    same = compare_outcomes([(episodes("++"), episodes("++"))], same_scenes=False)
    assert (same.difference, same.p_value) == (0, 1)


def test_pairing_tells_more_than_the_same_seeds_alone() -> None:
    first, second = episodes(30 * "+" + 10 * "-"), episodes(24 * "+" + 16 * "-")
    paired, apart = (
        compare_outcomes([(first, second)], same_scenes=same) for same in (True, False)
    )
    assert paired.difference == apart.difference
    assert paired.p_value < 0.05 < apart.p_value
    assert paired.ci95[0] > apart.ci95[0] and paired.ci95[1] < apart.ci95[1]


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


def test_the_interval_of_repeated_trainings_holds_the_truth_as_often_as_it_says() -> None:
    # Scenes of different difficulty, three trainings of each: the same scene is not three.
    generator = np.random.default_rng(0)
    n, held, times = 100, 0, 300
    truth = 2 / 2.7 - 2 * 3 / (2.7 * 3.7)  # the means of a beta distribution and of its square
    for _ in range(times):
        ease = generator.beta(2, 0.7, n)
        chances = np.stack([ease, ease**2])  # of the first policy, of the second
        drawn = generator.random((3, 2, n)) < chances
        rounds = [(episodes(list(a)), episodes(list(b))) for a in drawn[:, 0] for b in drawn[:, 1]]
        low, high = compare_outcomes(rounds).ci95
        held += low <= truth <= high
    assert held / times == pytest.approx(0.95, abs=0.03)
