"""Figures that may be quoted: ratios with their intervals, latencies with their spread, and rates.

The generation (a fresh set of processes) is the independent sample. Student's and Welch's intervals say something of
the two or three that a run records, and suppose that they vary normally; the signed-rank test, which a verdict that has
to hold rests on (harness.stats.rule), supposes symmetry alone. Samples that agree to the last bit come from a clock too
coarse to show how they vary, so they have no interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.stats.pairing import FloatArray, Ratios

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
    """Clopper and Pearson's exact binomial interval (1934) of a rate; (0, 1) without trials."""
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    if trials <= 0:
        return 0.0, 1.0
    # With no hit or nothing but hits the whole error is on the open side, so that 0 of 300 is "below 1 %".
    tail = 1 - confidence if hits in (0, trials) else (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high


# --- Of ratios and latencies ---

CONFIDENCE = 0.95

# The logarithm of a ratio is kept within this, so that even the interval of absurd timings stays a finite number.
_LARGEST_LOG = 700.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How one case's time relates to another's."""

    where: Location  # Where log(time of the case / time of the other) lies, with one sample for each generation
    confidence: float  # Of the interval, two-sided
    rounds: int  # Pairs of turns behind it, over all generations

    @property
    def ratio(self) -> float:
        """Time of the case divided by time of the other; below 1: the case is faster."""
        return ratio_of(self.where.centre)

    @property
    def low(self) -> float | None:
        """Lower end of the interval; None where there is none: of one generation, or where the clock is too coarse."""
        return ratio_of(self.where.low) if math.isfinite(self.where.low) else None

    @property
    def high(self) -> float | None:
        """Upper end, likewise."""
        return ratio_of(self.where.high) if math.isfinite(self.where.high) else None

    @property
    def generations(self) -> int:
        """Independent samples behind it."""
        return self.where.size


# 1 / the third quartile of the standard normal: what makes a median distance a standard deviation.
_NORMAL = 1.4826


@dataclass(frozen=True, kw_only=True)
class Latency:
    """What one call takes: the median over generations of each one's median over rounds, and where those lie."""

    median_ns: float
    low_ns: float  # Median of the fastest generation
    high_ns: float  # Median of the slowest generation
    # Of the generations' medians, in the logarithm: 1.4826 times their median distance from their middle, which is a
    # standard deviation where they are normal and which one odd generation does not move
    spread: float
    generations: int
    rounds: int


def estimate_ratio(generations: Sequence[Ratios], *, confidence: float = CONFIDENCE) -> Estimate | None:
    """Mean over generations of each one's centre, with Student's t interval; None of none."""
    centres = np.array([generation.centre for generation in generations], dtype=np.float64)
    if not centres.size:
        return None
    return Estimate(
        where=paired_mean(centres, confidence=confidence),
        confidence=confidence,
        rounds=sum(generation.logs.size for generation in generations),
    )


def ratio_of(log_ratio: float) -> float:
    """exp, kept finite."""
    return math.exp(min(max(log_ratio, -_LARGEST_LOG), _LARGEST_LOG))


def summarise_latency(ns_per_call: Sequence[FloatArray]) -> Latency | None:
    """What one call takes, from one array of finite nanoseconds per call for each generation; None without any."""
    medians = np.array([np.median(values) for values in ns_per_call if values.size], dtype=np.float64)
    if not medians.size:
        return None
    return Latency(
        median_ns=float(np.median(medians)),
        low_ns=float(medians.min()),
        high_ns=float(medians.max()),
        spread=float(_NORMAL * np.median(np.abs(np.log(medians / np.median(medians))))),
        generations=medians.size,
        rounds=sum(values.size for values in ns_per_call),
    )


# From here on the normal approximation's error is far below what any verdict depends on, and n * n means grow large.
_EXACT_UP_TO = 400


@dataclass(frozen=True, kw_only=True)
class RankLocation(Location):
    """Where samples lie by their signed ranks."""

    p_above: float  # One-sided, small where they lie above zero
    p_below: float  # One-sided, small where they lie below zero


def locate(samples: FloatArray, *, confidence: float) -> RankLocation:
    """Estimate, interval and p-values of the centre of symmetry of independent samples."""
    if not samples.size or not np.isfinite(samples).all():
        raise ValueError("needs at least one sample, and finite ones")
    ordered = np.sort(samples)
    rows, columns = np.triu_indices(ordered.size)
    means = np.sort((ordered[rows] + ordered[columns]) / 2)
    above, below = int((means > 0).sum()), int((means < 0).sum())
    zero = means.size - above - below  # which counts against every claim that they differ from zero
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
    low, high = -1, size * (size + 1) // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if lower_tail(middle, size) <= tail else (low, middle)
    return low if low >= 0 else None
