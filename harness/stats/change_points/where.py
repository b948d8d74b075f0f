"""Where a change may lie: the places that fit nearly as well."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from harness.stats.change_points.noise import SMALLEST_WIDTH, lag_one
from harness.stats.change_points.search import Model, fit
from harness.stats.change_points.shapes import SHORTEST_DRIFT, Drift, IntArray, Shape, Step
from harness.stats.pairing import FloatArray

# 95 % quantile of the likelihood ratio of a step's true place: -2 log(1 - sqrt(0.95)). The limit is the maximum of a
# two-sided random walk with drift (Yao 1987, Annals of Statistics 15; Hansen 2000, Econometrica 68, table 1).
_STEP_CUT = -2 * math.log(1 - math.sqrt(0.95))
# Chi-squared with two degrees of freedom, since a drift has two places (Feder 1975, Annals of Statistics 3: kinks).
_DRIFT_CUT = -2 * math.log(0.05)
# A step that fits nearly as well as a drift, or the reverse, may be the truth as well: chi-squared with one degree.
_OTHER_CUT = 3.841458820694124
_PLACES = 64


def place_range(values: FloatArray, spiked: NDArray[np.bool_], model: Model, shape: Shape) -> tuple[int, int]:
    """First and last point that may be the first of the new level, with 95 % confidence.

    Autocorrelated noise tells less of a place, so the likelihood ratio is divided by the noise's long-run variance over
    its variance (as in Bai 1997, Review of Economics and Statistics 79). A spike tells of no level, so those next to
    the range are in it too.

    Args:
        values: The series without spikes.
        spiked: Where they were.
    """
    without = fit(values, [one for one in model.shapes if one is not shape])
    sums = without.sums()
    total = float(without.residuals @ without.residuals)
    best = max(float(model.residuals @ model.residuals), values.size * SMALLEST_WIDTH**2)
    lag = lag_one(model.residuals)
    longer = (1 + lag) / (1 - lag)

    def fits(gains: FloatArray, cut: float) -> FloatArray:
        left = np.maximum(total - gains, best * 1e-9)
        return np.asarray(values.size * np.log(left / best) <= cut * longer)

    steps = _steps_between_others(model, shape, values.size)
    starts, ends = _drifts(shape, values.size)
    is_step = isinstance(shape, Step)
    as_steps = steps[fits(sums.steps(steps), _STEP_CUT if is_step else _OTHER_CUT)]
    as_drifts = starts[fits(sums.drifts(starts, ends), _OTHER_CUT if is_step else _DRIFT_CUT)] + 1
    index = first_point(shape)
    inside = np.concatenate([as_steps, as_drifts, [index]])
    low, high = int(inside.min()), int(inside.max())
    while low > 1 and spiked[low - 1]:
        low -= 1
    while high < values.size - 1 and spiked[high]:
        high += 1
    return low, high


def first_point(shape: Shape) -> int:
    """The first point that differs from the level before."""
    return shape.index if isinstance(shape, Step) else shape.start + 1


def _steps_between_others(model: Model, shape: Shape, size: int) -> IntArray:
    here = first_point(shape)
    others = [one.index for one in model.shapes if isinstance(one, Step) and one is not shape]
    low = max((one + 1 for one in others if one < here), default=1)
    high = min((one for one in others if one > here), default=size)
    return np.arange(low, high)


def _drifts(shape: Shape, size: int) -> tuple[IntArray, IntArray]:
    """Starts and ends over the whole series, no more of either than is quick."""
    apart = max(1, size // _PLACES)
    own = (shape.start, shape.end) if isinstance(shape, Drift) else (0, size - 1)
    starts = np.unique(np.append(np.arange(0, size, apart), own[0]))
    ends = np.unique(np.append(np.arange(0, size, apart), (own[1], size - 1)))
    first, last = (one.ravel() for one in np.meshgrid(starts, ends))
    valid = last - first >= SHORTEST_DRIFT
    return first[valid], last[valid]
