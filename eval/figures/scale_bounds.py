"""What figure 3 must measure, by the width of queries and keys."""

from __future__ import annotations

from typing import NamedTuple

WIDTHS = (8, 64, 128, 512)


class Expected(NamedTuple):
    """A number for each of the widths, and how closely the measured one must match."""

    quantity: str
    raw: tuple[float, float, float, float]
    raw_within: tuple[float, float, float, float]
    scaled: tuple[float, float, float, float]
    scaled_within: float


EXPECTED = (
    Expected(
        "variance of the scores",
        (7.995, 63.9, 127.5, 509.5),
        (0.155, 0.8, 2.5, 5.5),
        (1.0,) * 4,
        0.02,
    ),
    Expected(
        "mean largest weight",
        (0.563, 0.846, 0.890, 0.947),
        (0.008, 0.008, 0.006, 0.003),
        (0.240, 0.247, 0.246, 0.246),
        0.005,
    ),
    Expected(
        "share of weights above 0.99",
        (0.013, 0.30, 0.43, 0.68),
        (0.006, 0.025, 0.025, 0.02),
        (0.0,) * 4,
        0.001,
    ),
    Expected(
        "median Jacobian",
        (0.349, 0.110, 0.036, 0.0005),
        (0.01, 0.008, 0.005, 0.0002),
        (0.299, 0.304, 0.304, 0.304),
        0.005,
    ),
    Expected(
        "mean Jacobian",
        (0.314, 0.175, 0.135, 0.071),
        (0.008, 0.008, 0.008, 0.006),
        (0.301, 0.305, 0.305, 0.305),
        0.005,
    ),
    Expected(
        "median score gradient",
        (0.261, 0.057, 0.019, 0.00032),
        (0.012, 0.006, 0.004, 0.00012),
        (0.307, 0.308, 0.309, 0.307),
        0.009,
    ),
    Expected(
        "mean query gradient",
        (0.91, 1.45, 1.56, 1.61),
        (0.04, 0.06, 0.07, 0.1),
        (0.344, 0.356, 0.360, 0.357),
        0.01,
    ),
    Expected(
        "median query gradient",
        (0.66, 0.45, 0.22, 0.0073),
        (0.04, 0.03, 0.03, 0.0025),
        (0.282, 0.305, 0.307, 0.308),
        0.009,
    ),
)
