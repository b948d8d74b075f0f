"""What a change has to gain, by the length of the series: simulated on noise alone.

A change is put where it fits best, and the best of many places looks significant on any noise. So its price is a
quantile of what the best model of noise alone gains for each of its changes (`change_points.search.evidence`), the
highest of four kinds of noise: white, Student's t with 3 degrees of freedom, AR(1) with 0.3 and with 0.6; 4,000 series
of each length and kind (2,000 of length 1,000). `python -m benchmarks.history detection --prices` simulates it again.

Spikes were pulled in by another rule then. With the present one 0.2 to 1.2 % of 1,000 series go beyond the price
(most at 12 points of AR(1) noise with 0.6), before weak changes are taken out again.
"""

from __future__ import annotations

import math

import numpy as np

# Of series without a change, at most this share shows one.
ALPHA = 0.005
# Shorter series say nothing: their noise cannot be told from a change.
SHORTEST = 8
_SIZES = np.log([8, 12, 15, 20, 30, 50, 100, 200, 400, 1000])
_PRICES = np.array([9.3, 9.5, 9.5, 9.7, 9.7, 9.4, 8.9, 10.5, 11.6, 13.4])
_FOLDS = np.array([1.3, 1.3, 1.4, 1.4, 1.4, 1.4, 1.4, 1.5, 1.6, 1.8])


def least_gain(size: int) -> float:
    """Log likelihood that each change has to gain, so that 0.5 % of series of noise show any."""
    return float(np.interp(math.log(size), _SIZES, _PRICES))


def p_of(gain: float, size: int) -> float:
    """How often noise alone gains as much somewhere in such a series: exponential beyond what was simulated."""
    fold = float(np.interp(math.log(size), _SIZES, _FOLDS))
    return min(1.0, ALPHA * math.exp((least_gain(size) - gain) / fold))
