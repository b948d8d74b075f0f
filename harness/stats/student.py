"""Student's and Welch's intervals, for the few generations that a run records by itself.

Unlike the signed-rank test they say something of two or three samples, and in return suppose that generations vary
normally; a verdict that has to hold comes from measuring both sides again, side by side (harness.stats.rule).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.stats.pairing import FloatArray


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean, or a difference of means, of logarithms.

    Attributes:
        low: Lower end of the interval; minus infinity where one sample gives none.
        p: Two-sided, of the hypothesis that it is zero; 1 where one sample says nothing.
        samples: Behind it, on the side that has fewer.
    """

    centre: float
    low: float
    high: float
    p: float
    samples: int


def paired_mean(samples: FloatArray, *, confidence: float) -> Mean:
    """Mean of independent samples with Student's t interval (n - 1 degrees of freedom); at least one sample."""
    if samples.size < 2:
        return _unknown(float(samples.mean()), samples.size)
    error = float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return _mean(float(samples.mean()), error, samples.size - 1, confidence, samples.size)


def unpaired_difference(base: Sequence[float], head: Sequence[float], *, confidence: float) -> Mean:
    """mean(head) - mean(base) of samples that have nothing to do with each other (Welch 1947); one each at least.

    Samples are few and pairs of them may be thousands, so these are sums over lists, which are faster than arrays.
    """
    sides, fewer = (base, head), min(len(base), len(head))
    means = [math.fsum(one) / len(one) for one in sides]
    centre = means[1] - means[0]
    if fewer < 2:
        return _unknown(centre, fewer)
    squares = [
        math.fsum((value - mean) ** 2 for value in one) / (len(one) - 1) / len(one)
        for one, mean in zip(sides, means, strict=True)
    ]
    total = sum(squares)
    shares = sum(square**2 / (len(one) - 1) for square, one in zip(squares, sides, strict=True))
    freedom = total**2 / shares if shares > 0 else fewer - 1
    return _mean(centre, math.sqrt(total), freedom, confidence, fewer)


def _unknown(centre: float, samples: int) -> Mean:
    return Mean(centre=centre, low=-math.inf, high=math.inf, p=1.0, samples=samples)


def _mean(centre: float, error: float, freedom: float, confidence: float, samples: int) -> Mean:
    from scipy.special import stdtr, stdtrit  # scipy.stats takes a second to import

    margin = float(stdtrit(freedom, 0.5 + confidence / 2)) * error
    agreed = 1.0 if centre == 0 else 0.0  # samples that agree to the last bit
    p = 2 * float(stdtr(freedom, -abs(centre) / error)) if error > 0 else agreed
    return Mean(centre=centre, low=centre - margin, high=centre + margin, p=p, samples=samples)
