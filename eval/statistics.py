"""How sure the counts make us: intervals of rates and means, and comparisons of two."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

CONFIDENCE = 0.95
POWER = 0.8  # chance that a difference which is there shows in the test

Interval = tuple[float, float]


def wilson(successes: float, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a success rate, as fractions; (0, 1) without a trial.

    A mean over trainings counts as one training that succeeded as often: too wide, if anything.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials cannot be")
    if trials == 0:
        return 0.0, 1.0
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, trials, alpha=1 - confidence, method="wilson")
    return float(low), float(high)


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's t interval of a mean. Raises ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError(f"an interval of a mean takes two values or more, got {len(values)}")
    from scipy.stats import t

    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    reach = float(t.ppf((1 + confidence) / 2, len(values) - 1)) * deviation / len(values) ** 0.5
    return mean - reach, mean + reach


class Outcome(Protocol):
    """How an episode ended in the scene of a seed."""

    @property
    def seed(self) -> int: ...

    @property
    def success(self) -> bool: ...


Round = tuple[Sequence[Outcome], Sequence[Outcome]]
"""episodes of a training of the first and of one of the second, scene by scene"""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two success rates; the difference is the first minus the second.

    Successes are counted in scenes. Where trainings were repeated they are means over these, and
    need not be whole.
    """

    n: int
    """scenes, however many trainings played them"""
    n_first: float
    """successes of the first"""
    n_second: float
    n_only_first: float | None
    """scenes in which the first succeeded and the second failed; None where they met others"""
    n_only_second: float | None
    difference: float
    ci95: Interval
    """how far other scenes could have moved it: Newcombe's; of means over trainings narrower, as
    these vary less from scene to scene"""
    p_value: float
    """of "both succeed equally often": exact sign flips, or the score test of other scenes"""


def compare_outcomes(rounds: Sequence[Round], *, same_scenes: bool = True) -> Comparison:
    """Compare outcomes seed by seed; a scene counts once, with its mean over the rounds.

    `same_scenes`: whether a seed gave both the same scene; without that nothing is paired.
    Raises ValueError where there is nothing to compare, or the seeds differ.
    """
    seeds = {tuple(one.seed for one in side) for pair in rounds for side in pair}
    if len(seeds) != 1 or not (n := len(next(iter(seeds)))):
        raise ValueError(f"cannot pair outcomes of {len(seeds)} different lists of seeds")
    wins = np.array([[[one.success for one in side] for side in pair] for pair in rounds])
    first, second = wins[:, 0], wins[:, 1]  # (rounds, n) bool
    k, totals = len(rounds), (int(first.sum()), int(second.sum()))
    if not same_scenes:
        return _compare_unpaired(_mean(totals[0], k), _mean(totals[1], k), n)
    both = int((first & second).sum())
    only = totals[0] - both, totals[1] - both
    differences = (first.sum(axis=0) - second.sum(axis=0)).tolist()
    low, high = paired_difference_interval(both, *only, k * n - both - sum(only), rounds=k)
    difference, share = (only[0] - only[1]) / (k * n), _deviation_left(differences, sum(only), k)
    return Comparison(
        n=n,
        n_first=_mean(totals[0], k),
        n_second=_mean(totals[1], k),
        n_only_first=_mean(only[0], k),
        n_only_second=_mean(only[1], k),
        difference=difference,
        ci95=(difference - share * (difference - low), difference + share * (high - difference)),
        p_value=sign_flip(differences),
    )


def _deviation_left(differences: Sequence[int], n_apart: int, rounds: int) -> float:
    """How much less the mean difference of a scene varies than that of one round: 1 for one.

    `differences`: of each scene, summed over the rounds; `n_apart`: how often they differed in all.
    Rounds that cancel out could seem to leave no doubt: it stays that of independent ones.
    """
    n, square = len(differences), sum(differences) ** 2
    one_round = n * rounds * n_apart - square
    of_means = n * sum(one**2 for one in differences) - square
    return math.sqrt(max(of_means / one_round, 1 / rounds)) if one_round else 1.0


def _mean(total: int, n: int) -> float:
    """Whole where it can be."""
    return total / n if total % n else total // n


def _compare_unpaired(n_first: float, n_second: float, n: int) -> Comparison:
    from statsmodels.stats.proportion import confint_proportions_2indep as interval
    from statsmodels.stats.proportion import proportions_ztest as score_test

    low, high = interval(n_first, n, n_second, n, method="newcomb", alpha=1 - CONFIDENCE)
    sure = score_test([n_first, n_second], [n, n])[1] if n_first != n_second else 1.0
    return Comparison(
        n=n,
        n_first=n_first,
        n_second=n_second,
        n_only_first=None,
        n_only_second=None,
        difference=(n_first - n_second) / n,
        ci95=(float(low), float(high)),
        p_value=float(sure),
    )


def sign_flip(differences: Sequence[int]) -> float:
    """Two-sided exact p-value: could every scene as well have favoured the other one?

    The chance of a sum at least this far from 0 when each difference may have either sign. Where
    all are -1, 0 or 1, as of policies that were trained once, it is McNemar's exact test.
    """
    from scipy.signal import convolve
    from scipy.stats import binom

    chances = np.ones(1)  # of the sum of the differences that come out positive: 0, 1, 2, ...
    for size, n in sorted(Counter(map(abs, differences)).items()):
        if size:
            spread = np.zeros(size * n + 1)
            spread[::size] = binom.pmf(np.arange(n + 1), n, 0.5)
            chances = convolve(chances, spread)
    most = len(chances) - 1
    far = np.abs(2 * np.arange(most + 1) - most) >= abs(sum(differences))
    return min(max(float(chances[far].sum()), 0.0), 1.0)


def paired_difference_interval(
    both: int, only_first: int, only_second: int, neither: int, *, rounds: int = 1
) -> Interval:
    """Interval of a difference of paired success rates, as fractions.

    The four are numbers of scenes, each summed over so many rounds of the same scenes.

    Newcombe's square-and-add interval (Statistics in Medicine 17, 1998, method 10): the Wilson
    intervals of the two rates, put together with the correlation of the pairs. Unlike the
    textbook (Wald) interval it stays honest when nearly every episode succeeds.
    """
    n = (both + only_first + only_second + neither) // rounds
    won_1, won_2 = (both + only_first) / rounds, (both + only_second) / rounds
    rate_1, rate_2 = won_1 / n, won_2 / n
    (low_1, high_1), (low_2, high_2) = wilson(won_1, n), wilson(won_2, n)
    correlation = _correlation(both, only_first, only_second, neither, rounds)

    def distance(a: float, b: float) -> float:
        return math.sqrt(max(a * a - 2 * correlation * a * b + b * b, 0.0))

    return (
        rate_1 - rate_2 - distance(rate_1 - low_1, high_2 - rate_2),
        rate_1 - rate_2 + distance(high_1 - rate_1, rate_2 - low_2),
    )


def _correlation(both: int, only_first: int, only_second: int, neither: int, rounds: int) -> float:
    """Phi coefficient of the pairs, with Newcombe's continuity correction when positive."""
    n = both + only_first + only_second + neither
    margins = (
        (both + only_first)
        * (only_second + neither)
        * (both + only_second)
        * (only_first + neither)
    )
    if margins == 0:
        return 0.0
    determinant = both * neither - only_first * only_second
    if determinant > 0:
        return max(determinant - rounds * n / 2, 0) / math.sqrt(margins)
    return determinant / math.sqrt(margins)


def episodes_needed(
    rate: float, other_rate: float, *, power: float = POWER, confidence: float = CONFIDENCE
) -> int | None:
    """Episodes of each of two policies, on scenes of their own, that tell these rates apart.

    The normal approximation of the test of two independent proportions (Fleiss, Levin and Paik,
    Statistical Methods for Rates and Proportions, 2003, section 4.3); None for equal rates.
    """
    if rate == other_rate:
        return None
    from statsmodels.stats.proportion import samplesize_proportions_2indep_onetail

    n = samplesize_proportions_2indep_onetail(
        rate - other_rate, other_rate, power, alpha=1 - confidence, alternative="two-sided"
    )
    return max(1, math.ceil(float(n)))


def scenes_needed(
    only_first: float,
    only_second: float,
    *,
    power: float = POWER,
    confidence: float = CONFIDENCE,
) -> int | None:
    """Scenes that two policies both play, so that McNemar's test tells them apart.

    The arguments are the shares of scenes that only one of the two solves; None if they are equal.
    Connor, Biometrics 43 (1987), 207-211: normal approximation, two-sided.
    """
    discordant, difference = only_first + only_second, only_first - only_second
    if difference == 0:
        return None
    from scipy.stats import norm

    sure, strong = float(norm.ppf((1 + confidence) / 2)), float(norm.ppf(power))
    reach = sure * math.sqrt(discordant) + strong * math.sqrt(discordant - difference**2)
    return max(1, math.ceil((reach / difference) ** 2))


@dataclass(frozen=True, kw_only=True)
class SeedSpread:
    """Success rates of the same training, repeated with other seeds on the same scenes."""

    n_seeds: int
    mean: float
    worst: float
    best: float
    ci95: Interval | None
    """t interval of the mean over trainings, cut to 0 to 1; None for a single one"""


def seed_spread(rates: Sequence[float]) -> SeedSpread:
    """How much the seed of the training matters; a rate a seed. Raises ValueError without one."""
    if not rates:
        raise ValueError("a spread over seeds takes one rate or more")
    interval = None
    if len(rates) > 1:
        low, high = mean_interval(rates)
        interval = max(low, 0.0), min(high, 1.0)
    return SeedSpread(
        n_seeds=len(rates),
        mean=statistics.fmean(rates),
        worst=min(rates),
        best=max(rates),
        ci95=interval,
    )
