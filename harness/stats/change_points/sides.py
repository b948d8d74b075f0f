"""The levels before and after a change: medians, which spikes hardly move."""

from __future__ import annotations

import numpy as np

from harness.stats.change_points.search import Model
from harness.stats.change_points.shapes import END_POINTS, Shape, Step
from harness.stats.pairing import FloatArray

# Points of either side that tell its level: no more than the last ones before it and the first after it.
SIDE_POINTS = 30


def sides(logs: FloatArray, cleaned: FloatArray, model: Model, shape: Shape) -> tuple[float, float]:
    """Logarithms of the level before a change and after it.

    Each is the median of the points between the change and its neighbours, up to 30 of them. Where a drift passes under
    them, they are taken as if it stood still at the change. A side of fewer than three points (a drift that goes on to
    the last one) has the level that was fitted.

    Args:
        logs: The series with its spikes.
        cleaned: The same without them, which the model was fitted to.
    """
    fitted = cleaned - model.residuals
    height = float(model.coefficients[1 + [one is shape for one in model.shapes].index(True)])
    # Last point of the level before it, and first of that after it.
    last, first = (shape.index - 1, shape.index) if isinstance(shape, Step) else (shape.start, shape.end)
    edges = [edge for one in model.shapes if one is not shape for edge in _edges(one)]
    since = max((edge for edge in edges if edge <= last), default=0)
    until = min((edge for edge in edges if edge > first), default=logs.size)
    before = slice(max(since, last + 1 - SIDE_POINTS), last + 1)
    after = slice(first, min(until, first + SIDE_POINTS))
    off = logs - fitted
    return float(fitted[last]) + _median(off[before]), float(fitted[last]) + height + _median(off[after])


def _edges(shape: Shape) -> tuple[int, ...]:
    """Points from which on another level or slope may hold."""
    return (shape.index,) if isinstance(shape, Step) else (shape.start + 1, shape.end)


def _median(off: FloatArray) -> float:
    """Of what the points lie off their fit; none where they are too few to tell."""
    return float(np.median(off)) if off.size >= END_POINTS else 0.0
