"""The noise of a series: how wide it is, and how much of it is autocorrelation."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from harness.stats.pairing import FloatArray

# Logarithms that differ by less are equal: a part in a billion is no change.
SMALLEST_WIDTH = 1e-9


def noise_width(values: FloatArray, share: float) -> float:
    """Standard deviation of the noise, from the differences of neighbours.

    Levels drop out of differences, so steps and drifts hardly count: one difference for each step. A spike counts
    twice.

    Args:
        values: Logarithms in time order, at least two.
        share: The quantile of the differences that tells. What is rarer than the others is not seen.
    """
    steps = np.abs(np.diff(values))
    return float(np.quantile(steps, share)) / (NormalDist().inv_cdf((1 + share) / 2) * math.sqrt(2))


def lag_one(residuals: FloatArray) -> float:
    """Autocorrelation of neighbours, between 0 (also where it is negative) and 0.95."""
    power = float(residuals @ residuals)
    if power <= 0:
        return 0.0
    return min(max(float(residuals[1:] @ residuals[:-1]) / power, 0.0), 0.95)


def innovation_power(residuals: FloatArray) -> float:
    """Sum of squares of what is new in each residual, where the noise is autoregressive of order 1.

    What half the size of the series times its logarithm loses is the gain in likelihood of a better fit, with the
    autocorrelation fitted anew for each fit (the profile likelihood of an AR(1) model, Yule-Walker's estimate). So slow
    noise explains itself and needs no change.
    """
    floor = residuals.size * SMALLEST_WIDTH**2
    return max(float(residuals @ residuals) * (1 - lag_one(residuals) ** 2), floor)


def power_at(residuals: FloatArray, lag: float) -> float:
    """The same where the autocorrelation is known: a worse fit cannot pass for slower noise."""
    powers = float(residuals @ residuals) * (1 + lag**2) - 2 * lag * float(residuals[1:] @ residuals[:-1])
    return max(powers, residuals.size * SMALLEST_WIDTH**2)
