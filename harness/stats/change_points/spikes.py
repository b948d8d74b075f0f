"""Single values far outside their neighbours, pulled in, so that no change is seen where there are only a few of them.

How many values must agree before a level is believed depends on how often this series has spikes: where one run in ten
is one, three of five fall together by chance every few series, and then a level needs more points than three.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.stats.change_points.noise import SMALLEST_WIDTH, noise_width
from harness.stats.pairing import FloatArray

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


def pull_in_spikes(values: FloatArray) -> FloatArray:
    """The series with spikes replaced by what their neighbours have.

    A spike lies more than three noise widths outside the medians of the nine values before it, around it and after it.
    It moves to the one around it, so beside a step to the side on which it lies, whichever way it points. A level that
    holds for five values, three at an end of the series, is one of these medians for each of its values and stays as it
    is; single values and pairs are not, however large. In a series with spikes in more than about one run of 25 it has
    to hold longer. (Hampel's identifier, with a median of either side so that edges stay.)
    """
    longest = min(max(_INNER_WINDOW, _odd(values.size // 3)), _LONGEST_WINDOW)
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
    """How often a value that is none is followed by one that is.

    Several in a row count once, so that a short level, such as a new one at the end, is not taken for many; and one
    alone says nothing of how often they come.
    """
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
    return sum(math.comb(window, one) * share**one * (1 - min(share, 1.0)) ** (window - one) for one in counts)


def _odd(number: int) -> int:
    return number if number % 2 else number - 1


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
