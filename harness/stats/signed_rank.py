"""Where independent samples lie, without assuming a shape: Hodges-Lehmann's estimate and Wilcoxon's signed-rank test.

The samples are log ratios, one for each generation. If two modules take equally long, base and head could be swapped in
any generation without changing what is to be expected, so each sample is as likely to be x as -x, whatever the machine
does to it: heavy tails, two modes, a generation that is off by 5 % because its buffers lie badly. That symmetry alone
makes the test exact. (Wilcoxon 1945; Hodges and Lehmann 1963; the interval as in Hollander and Wolfe, Nonparametric
Statistical Methods, section 3.3.)
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.stats.intervals import Location
from harness.stats.pairing import FloatArray

# From here on the normal approximation's error is far below what any verdict depends on, and n * n means grow large.
_EXACT_UP_TO = 400


@dataclass(frozen=True, kw_only=True)
class RankLocation(Location):
    """Where samples lie by their signed ranks."""

    p_above: float  # One-sided, small where they lie above zero
    p_below: float  # One-sided, small where they lie below zero


def locate(samples: FloatArray, *, confidence: float) -> RankLocation:
    """Estimate, interval and p-values of the centre of symmetry of independent samples.

    They are finite, and at least one; ValueError otherwise. A mean of two samples that is exactly zero counts against
    every claim that they differ from zero.
    """
    if not samples.size or not np.isfinite(samples).all():
        raise ValueError("needs at least one sample, and finite ones")
    ordered = np.sort(samples)
    rows, columns = np.triu_indices(ordered.size)
    means = np.sort((ordered[rows] + ordered[columns]) / 2)
    above, below = int((means > 0).sum()), int((means < 0).sum())
    zero = means.size - above - below
    p_above = lower_tail(below + zero, ordered.size)
    p_below = lower_tail(above + zero, ordered.size)
    cut = _critical_count((1 - confidence) / 2, ordered.size)
    return RankLocation(
        centre=float(np.median(means)),
        low=float(means[cut]) if cut is not None else -math.inf,
        high=float(means[means.size - 1 - cut]) if cut is not None else math.inf,
        p=min(1.0, 2 * min(p_above, p_below)),
        p_above=p_above,
        p_below=p_below,
        size=ordered.size,
    )


def smallest_p(size: int) -> float:
    """The smallest two-sided p-value that so many samples can give, which is when all have one sign."""
    return min(1.0, 2.0 ** (1 - size))


def lower_tail(count: int, size: int) -> float:
    """P(T <= count) of the signed-rank statistic of `size` samples that lie symmetrically around zero."""
    if count >= size * (size + 1) // 2:
        return 1.0
    if size > _EXACT_UP_TO:
        middle = size * (size + 1) / 4
        deviation = math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
        return 0.5 * math.erfc((middle - count - 0.5) / deviation / math.sqrt(2))
    return float(_cumulative(size)[count])


@lru_cache(maxsize=_EXACT_UP_TO)
def _cumulative(size: int) -> FloatArray:
    """P(T <= t) for t = 0, 1, ...: each rank joins the sum with probability one half."""
    chances = np.ones(1)
    for rank in range(1, size + 1):
        longer = np.zeros(chances.size + rank)
        longer[: chances.size] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return np.minimum(np.cumsum(chances), 1.0)


def _critical_count(tail: float, size: int) -> int | None:
    """How many means of pairs may be cut off each end; None where not even the outermost may serve as an end."""
    if size > _EXACT_UP_TO:
        return _largest_count(tail, size)
    counts = int(np.searchsorted(_cumulative(size), tail, side="right"))
    return counts - 1 if counts else None


def _largest_count(tail: float, size: int) -> int | None:
    low, high = -1, size * (size + 1) // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if lower_tail(middle, size) <= tail else (low, middle)
    return low if low >= 0 else None
