"""Textbook intervals: Student's and Welch's of the few generations that a run records, and of rates that were counted.

Unlike the signed-rank test the first two say something of two or three samples, and in return suppose that generations
vary normally; a verdict that has to hold comes from measuring both sides again, side by side (harness.stats.rule).

Samples that agree to the last bit come from a clock too coarse to show how they vary, so they have no interval either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.stats.pairing import FloatArray

# Logarithms of equal times may differ by as much, and no time that is measured repeats to a part in a trillion.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Location:
    """Where the logarithms of ratios lie."""

    centre: float  # Their mean, a difference of means, or Hodges-Lehmann's estimate
    low: float  # Lower end of the interval; minus infinity where so few samples, or such without spread, have none
    high: float  # Upper end; infinity likewise
    p: float  # Two-sided, of the hypothesis that they lie around zero; 1 where a mean has no interval
    size: int  # Samples behind it, on the side that has fewer

    @property
    def lowest(self) -> float:
        """The centre of what lies lowest, where the samples come from several places (see harness.stats.hosts)."""
        return self.centre

    @property
    def highest(self) -> float:
        """That of what lies highest."""
        return self.centre

    @property
    def differ(self) -> bool:
        """Whether these places are shown to differ."""
        return False


def paired_mean(samples: FloatArray, *, confidence: float) -> Location:
    """Mean of independent samples, at least one, with Student's t interval (n - 1 degrees of freedom)."""
    if samples.size < 2:
        return _unknown(float(samples.mean()), samples.size)
    error = float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return _mean(float(samples.mean()), error, samples.size - 1, confidence, samples.size)


def unpaired_difference(base: FloatArray, head: FloatArray, *, confidence: float) -> Location:
    """mean(head) - mean(base) of logarithms that have nothing to do with each other, at least one each (Welch 1947)."""
    centre, fewer = float(head.mean() - base.mean()), min(base.size, head.size)
    if fewer < 2:
        return _unknown(centre, fewer)
    squares = [float(side.var(ddof=1)) / side.size for side in (base, head)]
    total = sum(squares)
    shares = sum(square**2 / (side.size - 1) for square, side in zip(squares, (base, head), strict=True))
    freedom = total**2 / shares if shares > 0 else fewer - 1
    return _mean(centre, math.sqrt(total), freedom, confidence, fewer)


def _unknown(centre: float, size: int) -> Location:
    return Location(centre=centre, low=-math.inf, high=math.inf, p=1.0, size=size)


def _mean(centre: float, error: float, freedom: float, confidence: float, size: int) -> Location:
    from scipy.special import stdtr, stdtrit  # scipy.stats takes a second to import

    if error <= _ROUNDING:
        return _unknown(centre, size)
    margin = float(stdtrit(freedom, 0.5 + confidence / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(centre) / error))
    return Location(centre=centre, low=centre - margin, high=centre + margin, p=p, size=size)


def rate_bounds(hits: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's exact binomial interval (1934) of a rate; (0, 1) without trials.

    With no hit or nothing but hits the whole error goes to the one open side, so that 0 of 300 has the upper bound
    1 - 0.05 ** (1 / 300) = 0.99 %.
    """
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    if trials <= 0:
        return 0.0, 1.0
    tail = 1 - confidence if hits in (0, trials) else (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high
