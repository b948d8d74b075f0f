"""Arrays -> figures that may be quoted: a ratio with its interval, and a latency with its spread.

The generation (a fresh set of processes) is the independent sample. Rounds within one share their memory layout and
their stretch of machine weather, so a thousand of them narrow a generation's median, and never the interval: with one
generation there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.intervals import Location, paired_mean
from harness.stats.pairing import FloatArray, Ratios

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
