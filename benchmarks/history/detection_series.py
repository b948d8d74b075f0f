"""Made-up histories whose changes are known: the noise that benchmarks have, and what may happen to them."""

from collections.abc import Callable

import numpy as np

from harness.stats.pairing import FloatArray

Random = np.random.Generator
Noise = Callable[[Random, int], FloatArray]

APART = 0.03


def white(random: Random, size: int, *, width: float = 0.01) -> FloatArray:
    """Independent normal noise."""
    return width * random.normal(size=size)


def heavy(random: Random, size: int, *, freedom: int = 3) -> FloatArray:
    """Student's t, scaled by 1 %: with 3 degrees of freedom one of 29 values is beyond 3.5 %."""
    return np.asarray(0.01 * random.standard_t(freedom, size=size))


def slow(random: Random, size: int, *, lag_one: float) -> FloatArray:
    """Noise that remembers the run before: AR(1), 1 % wide."""
    from scipy.signal import lfilter

    warm = 200
    fresh = 0.01 * np.sqrt(1 - lag_one**2) * random.normal(size=size + warm)
    return np.asarray(lfilter([1.0], [1.0, -lag_one], fresh)[warm:], dtype=np.float64)


def two_levels(random: Random, size: int, *, share: float = 0.5, width: float = 0.01) -> FloatArray:
    """One of two levels 3 % apart, at random for each run."""
    return white(random, size, width=width) + APART * (random.random(size) < share)


def sticky_levels(random: Random, size: int, *, leave: float, width: float = 0.01) -> FloatArray:
    """Two levels 3 % apart, each left with this probability from one run to the next."""
    switches = np.cumsum(random.random(size) < leave) + random.integers(2)
    return white(random, size, width=width) + APART * (switches % 2)


def spikes(random: Random, size: int, *, together: int, at_end: bool = False, height: float = 0.2) -> FloatArray:
    """One spike of 20 %, or so many runs of it in a row."""
    noise = white(random, size)
    start = size - together if at_end else int(random.integers(size - together + 1))
    noise[start : start + together] += np.log1p(height)
    return noise


def many_spikes(
    random: Random, size: int, *, share: float = 0.05, least: float = 0.05, most: float = 0.3
) -> FloatArray:
    """Spikes in this share of the runs, anywhere between these heights (differences of logarithms)."""
    return white(random, size) + (random.random(size) < share) * random.uniform(least, most, size)


def step(size: int, index: int, share: float) -> FloatArray:
    """Log of a level that is higher by a share from a point on."""
    return np.asarray(np.log1p(share) * (np.arange(size) >= index), dtype=np.float64)


def ramp(size: int, start: int, end: int, share: float) -> FloatArray:
    """Log of a level that rises by a share between two points."""
    return np.asarray(np.log1p(share) * np.clip((np.arange(size) - start) / (end - start), 0.0, 1.0), dtype=np.float64)
