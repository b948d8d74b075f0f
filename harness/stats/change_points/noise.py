"""The noise of a series: its width and autocorrelation, its spikes, and what a change must gain to be more than noise.

How many values must agree before a level is believed depends on how often this series has spikes: where one run in ten
is one, three of five fall together by chance every few series, and then a level needs more points than three.
"""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from harness.stats.pairing import FloatArray

# Logarithms that differ by less are equal: a part in a billion is no change.
SMALLEST_WIDTH = 1e-9
# How many noise widths a value may lie outside what its neighbours on either side have.
SPIKE_WIDTHS = 3.0
# A value inside a series is believed where most of the nine from it or up to it agree, so after five; near an end,
# where a new level has to be seen soon, most of five, so after three. Where spikes are frequent, both are longer.
_INNER_WINDOW, _END_WINDOW = 9, 5
# So rarely may most values of a window be spikes by chance. Series have two ends and about a hundred places inside.
_INNER_CHANCE, _END_CHANCE = 5e-5, 6e-4
# Spikes are counted with a window in which most are spikes only where nearly every second run is one.
_COUNTING_WINDOW = 25
_LONGEST_WINDOW = 41
# The first width is not moved by spikes in one run of five (two differences each), and taken again without them. The
# last is wider where values that far off are left, since they are the series' usual noise, for example a second level;
# so many differences may be those of steps.
_FIRST_SHARE, _SECOND_SHARE, _STEPS = 0.6, 0.95, 4
# Of series without a change, at most this share shows one.
ALPHA = 0.005
# Shorter series say nothing: their noise cannot be told from a change.
SHORTEST = 8

# What a change must gain, by the length of the series: simulated on noise alone. A change is put where it fits best,
# and the best of many places looks significant on any noise. So its price is a quantile of what the best model of noise
# alone gains for each of its changes (`model.evidence`), the highest of four kinds of noise: white, Student's t with 3
# degrees of freedom, AR(1) with 0.3 and with 0.6; 4,000 series of each length and kind (2,000 of length 1,000).
# `python -m benchmarks.history detection --prices` simulates it again. Spikes were pulled in by another rule then: with
# the present one 0.2 to 1.2 % of 1,000 series go beyond the price (most at 12 points of AR(1) noise with 0.6), before
# weak changes are taken out again.
_SIZES = np.log([8, 12, 15, 20, 30, 50, 100, 200, 400, 1000])
_PRICES = np.array([9.3, 9.5, 9.5, 9.7, 9.7, 9.4, 8.9, 10.5, 11.6, 13.4])
_FOLDS = np.array([1.3, 1.3, 1.4, 1.4, 1.4, 1.4, 1.4, 1.5, 1.6, 1.8])


def noise_width(values: FloatArray, share: float) -> float:
    """Standard deviation of the noise, from the differences of neighbours, in which steps and drifts hardly count.

    `share` is the quantile of the differences that tells; what is rarer than the others is not seen.
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
    """Sum of squares of what is new in each residual of autoregressive noise of order 1: slow noise is no change.

    The profile likelihood of an AR(1) model (Yule-Walker's estimate) is half the size times the logarithm of it.
    """
    floor = residuals.size * SMALLEST_WIDTH**2
    return max(float(residuals @ residuals) * (1 - lag_one(residuals) ** 2), floor)


def power_at(residuals: FloatArray, lag: float) -> float:
    """Sum of squares of innovations at a given autocorrelation: a worse fit cannot pass for slower noise."""
    powers = float(residuals @ residuals) * (1 + lag**2) - 2 * lag * float(residuals[1:] @ residuals[:-1])
    return max(powers, residuals.size * SMALLEST_WIDTH**2)


def pull_in_spikes(values: FloatArray) -> FloatArray:
    """The series with spikes replaced by what their neighbours have.

    A spike lies more than three noise widths outside the medians of the nine values before it, around it and after it,
    and moves to the one around it: Hampel's identifier, with a median of either side so that edges stay. A level that
    holds for five values (three at an end, more in a series of many spikes) stays as it is; pairs do not.
    """
    third = values.size // 3
    longest = min(max(_INNER_WINDOW, third if third % 2 else third - 1), _LONGEST_WINDOW)
    counting = min(_COUNTING_WINDOW, longest)
    width = noise_width(values, _FIRST_SHARE)
    width = noise_width(_pulled_in(values, width, counting, counting), _FIRST_SHARE)
    second = max(min(_SECOND_SHARE, 1 - _STEPS / values.size), _FIRST_SHARE)
    width = noise_width(_pulled_in(values, width, counting, counting), second)
    share = _share_of_spikes(_pulled_in(values, width, counting, counting) != values)
    end = min(_window(share, _END_WINDOW, _END_CHANCE), longest)
    inner = max(min(_window(share, _INNER_WINDOW, _INNER_CHANCE), longest), end)
    return _pulled_in(values, width, inner, end)


def _share_of_spikes(spiked: NDArray[np.bool_]) -> float:
    """How often a value that is none is followed by one that is; a single stretch of them says nothing of that."""
    starts = int(np.count_nonzero(spiked[1:] & ~spiked[:-1])) + int(spiked[0])
    return max(starts - 1, 0) / max(int(np.count_nonzero(~spiked)), 1)


@lru_cache(maxsize=4096)
def _window(share: float, least: int, chance: float) -> int:
    """The shortest odd window, at least so long, of which most values are spikes less often than by this chance."""
    window = least
    while window < _LONGEST_WINDOW and _most(share, window) > chance:
        window += 2
    return window


def _most(share: float, window: int) -> float:
    """The chance that more than half of so many independent values are spikes (binomial tail)."""
    counts = range(window // 2 + 1, window + 1)
    return sum(math.comb(window, count) * share**count * (1 - min(share, 1.0)) ** (window - count) for count in counts)


def _pulled_in(values: FloatArray, width: float, inner: int, end: int) -> FloatArray:
    reach = SPIKE_WIDTHS * max(width, SMALLEST_WIDTH)
    before = _medians_up_to_each(values, inner, end)
    after = _medians_up_to_each(values[::-1], inner, end)[::-1]
    half = inner // 2
    around = np.full(values.size, np.median(values))
    if values.size >= inner:
        around[:half] = before[:half]
        around[half : values.size - half] = before[2 * half :]
        around[values.size - half :] = after[values.size - half :]
    low = np.minimum(np.minimum(before, after), around)
    high = np.maximum(np.maximum(before, after), around)
    spiked = (values < low - reach) | (values > high + reach)
    return np.where(spiked, around, values)


def _medians_up_to_each(values: FloatArray, inner: int, end: int) -> FloatArray:
    """Median of the `inner` values that end at each one; of the first `end` for those, then of all so far."""
    medians = np.empty(values.size)
    first = min(end, values.size)
    medians[:first] = np.median(values[:first])
    for size in range(first + 1, min(inner, values.size + 1)):
        medians[size - 1] = np.median(values[:size])
    if values.size >= inner:
        windows = np.lib.stride_tricks.sliding_window_view(values, inner)
        middle = inner // 2
        medians[inner - 1 :] = np.partition(windows, middle, axis=1)[:, middle]
    return medians


def least_gain(size: int) -> float:
    """Log likelihood that each change has to gain, so that 0.5 % of series of noise show any."""
    return float(np.interp(math.log(size), _SIZES, _PRICES))


def p_of(gain: float, size: int) -> float:
    """How often noise alone gains as much somewhere in such a series: exponential beyond what was simulated."""
    fold = float(np.interp(math.log(size), _SIZES, _FOLDS))
    return min(1.0, ALPHA * math.exp((least_gain(size) - gain) / fold))
