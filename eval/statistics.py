"""How sure the counts make us: intervals of rates and means, a paired comparison of two."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
POWER = 0.8  # chance that a difference which is there shows in the test

Interval = tuple[float, float]


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a success rate, as fractions; (0, 1) without a trial."""
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


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Two policies on the same scenes; the difference is the first minus the second."""

    n: int
    n_first: int
    """successes of the first policy"""
    n_second: int
    n_only_first: int
    """scenes in which the first succeeded and the second failed"""
    n_only_second: int
    difference: float
    ci95: Interval
    p_value: float
    """exact McNemar test of "both succeed equally often" """


def compare_paired(first: Sequence[bool], second: Sequence[bool]) -> PairedComparison:
    """Compare outcomes scene by scene.

    Raises ValueError if the sequences are empty or differ in length.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"cannot pair {len(first)} with {len(second)} outcomes")
    both = sum(a and b for a, b in zip(first, second, strict=True))
    only_first, only_second = sum(first) - both, sum(second) - both
    return PairedComparison(
        n=len(first),
        n_first=sum(first),
        n_second=sum(second),
        n_only_first=only_first,
        n_only_second=only_second,
        difference=(only_first - only_second) / len(first),
        ci95=paired_difference_interval(
            both, only_first, only_second, len(first) - both - only_first - only_second
        ),
        p_value=mcnemar(only_first, only_second),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value: could the scenes that tell them apart be coin tosses?"""
    if only_first + only_second == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_first, only_first + only_second).pvalue)


def paired_difference_interval(
    both: int, only_first: int, only_second: int, neither: int, confidence: float = CONFIDENCE
) -> Interval:
    """Interval of a difference of paired success rates, as fractions.

    Newcombe's square-and-add interval (Statistics in Medicine 17, 1998, method 10): the Wilson
    intervals of the two rates, put together with the correlation of the pairs. Unlike the
    textbook (Wald) interval it stays honest when nearly every episode succeeds.
    """
    n = both + only_first + only_second + neither
    rate_1, rate_2 = (both + only_first) / n, (both + only_second) / n
    low_1, high_1 = wilson(both + only_first, n, confidence)
    low_2, high_2 = wilson(both + only_second, n, confidence)
    correlation = _correlation(both, only_first, only_second, neither)

    def distance(a: float, b: float) -> float:
        return math.sqrt(max(a * a - 2 * correlation * a * b + b * b, 0.0))

    return (
        rate_1 - rate_2 - distance(rate_1 - low_1, high_2 - rate_2),
        rate_1 - rate_2 + distance(high_1 - rate_1, rate_2 - low_2),
    )


def _correlation(both: int, only_first: int, only_second: int, neither: int) -> float:
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
        return max(determinant - n / 2, 0) / math.sqrt(margins)
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
