"""The noise of a series: spikes pulled in, and how much of what is left is autocorrelation."""

from __future__ import annotations

import math

import numpy as np

from harness.stats.pairing import FloatArray

# How many noise widths a value may lie outside what its neighbours on either side have.
SPIKE_WIDTHS = 3.0
# A value inside a series is believed where most of the nine from it or up to it agree, so after five; near an end,
# where a new level has to be seen soon, most of five, so after three.
_INNER_WINDOW, _END_WINDOW = 9, 5
# Normal differences are below 1.645 deviations in 90 of 100 cases. A tenth of them may be spikes' and steps'.
_SHARE, _SHARE_WIDTH = 0.9, 1.6448536269514722
# Logarithms that differ by less are equal: a part in a billion is no change.
SMALLEST_WIDTH = 1e-9


def noise_width(values: FloatArray) -> float:
    """Standard deviation of the noise, from the differences of neighbours.

    Levels drop out of differences, so steps and drifts hardly count: one difference for each step. The 90 % quantile
    rather than the median, since a series that jumps between two levels in one run of ten has that as its noise.

    Args:
        values: Logarithms in time order, at least two.
    """
    steps = np.abs(np.diff(values))
    return float(np.quantile(steps, _SHARE)) / (_SHARE_WIDTH * math.sqrt(2))


def pull_in_spikes(values: FloatArray) -> FloatArray:
    """The series with spikes replaced by what their neighbours have.

    A spike lies more than three noise widths outside the medians of the nine values before it, around it and after it.
    It moves to the nearest of them. A level that holds for five values, three at an end of the series, is one of these
    medians for each of its values and stays as it is; single values and pairs are not, however large. (Hampel's
    identifier, with a median of either side so that edges stay.)
    """
    reach = SPIKE_WIDTHS * max(noise_width(values), SMALLEST_WIDTH)
    before = _medians_up_to_each(values)
    after = _medians_up_to_each(values[::-1])[::-1]
    around = before.copy()
    half = _INNER_WINDOW // 2
    around[half : values.size - half] = before[2 * half :]
    around[max(half, values.size - half) :] = after[max(half, values.size - half) :]
    low = np.minimum(np.minimum(before, after), around)
    high = np.maximum(np.maximum(before, after), around)
    spiked = (values < low - reach) | (values > high + reach)
    return np.where(spiked, np.clip(values, low, high), values)


def _medians_up_to_each(values: FloatArray) -> FloatArray:
    """Median of the nine values that end at each one; of the first five for the first five, then of all so far."""
    medians = np.empty(values.size)
    end = min(_END_WINDOW, values.size)
    medians[:end] = np.median(values[:end])
    for size in range(end + 1, min(_INNER_WINDOW, values.size + 1)):
        medians[size - 1] = np.median(values[:size])
    if values.size >= _INNER_WINDOW:
        windows = np.lib.stride_tricks.sliding_window_view(values, _INNER_WINDOW)
        middle = _INNER_WINDOW // 2
        medians[_INNER_WINDOW - 1 :] = np.partition(windows, middle, axis=1)[:, middle]
    return medians


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
