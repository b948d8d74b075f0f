"""Telling steps from a program that has two levels and goes from one to the other and back by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from harness.stats.change_points.search import Model
from harness.stats.change_points.shapes import Shape, Step
from harness.stats.pairing import FloatArray

# So many changes back and forth between the same two levels are one noise with two levels. Two are a step and its
# repair, three the same with a second try.
FLAPS = 4
# Levels that differ by less than this share of the steps between them are the same.
_SAME_LEVEL = 0.35
# Values are at a level where noise puts so many in a row on its side less often than this.
_BY_CHANCE, _FEWEST = 1e-5, 2
# Two levels describe a series where its values lie hardly further from them than from the whole model.
_DESCRIBED = 1.2


def flapping_steps(logs: FloatArray, model: Model) -> set[Shape]:
    """The steps of a model that are four or more changes back and forth between two levels.

    Either the model has as many steps between the two, or it has one, and the series shows shorter visits besides.

    Args:
        logs: The series with its spikes.
    """
    return _alternating(model) | _visited_often(logs, model)


def _alternating(model: Model) -> set[Shape]:
    pairs = zip(model.shapes, model.coefficients[1:].tolist(), strict=True)
    steps = [(shape, height) for shape, height in pairs if isinstance(shape, Step)]
    heights = [height for _, height in steps]
    found: set[Shape] = set()
    first = 0
    while first < len(steps):
        last = first + 1
        while last < len(steps) and _two_levels(heights[first : last + 1]):
            last += 1
        if last - first >= FLAPS:
            found.update(shape for shape, _ in steps[first:last])
        first = last
    return found


def _two_levels(heights: Sequence[float]) -> bool:
    """Whether these steps in a row lead to two levels only, there and back."""
    levels = np.concatenate([[0.0], np.cumsum(heights)])
    apart = _SAME_LEVEL * float(np.median(np.abs(heights)))
    turns = all(one * other < 0 for one, other in pairwise(heights))
    return turns and max(np.ptp(levels[::2]), np.ptp(levels[1::2])) <= apart


def _visited_often(logs: FloatArray, model: Model) -> set[Shape]:
    edges = [0, *(one.index for one in model.shapes if isinstance(one, Step)), logs.size]
    parts = [logs[start:end] for start, end in pairwise(edges) if end > start]
    steps = [one for one in model.shapes if isinstance(one, Step)]
    noise = float(np.median(np.abs(model.residuals)))
    return {
        step
        for step, (before, after) in zip(steps, pairwise(parts), strict=True)
        if _visits(logs, float(np.median(before)), float(np.median(after)), noise) >= FLAPS
    }


def _visits(logs: FloatArray, one: float, other: float, noise: float) -> int:
    """How often the series goes from one of two levels to the other; none where two levels do not describe it."""
    low, high = min(one, other), max(one, other)
    off = float(np.median(np.minimum(np.abs(logs - low), np.abs(logs - high))))
    if off > _DESCRIBED * noise + 1e-12:
        return 0
    width = 1.4826 * off  # of normal noise, from its median
    chance = 0.5 * math.erfc((high - low) / 2 / max(width, 1e-12) / math.sqrt(2))
    in_a_row = max(_FEWEST, math.ceil(math.log(_BY_CHANCE) / math.log(max(chance, 1e-300))))
    if in_a_row > logs.size:
        return 0
    middle, reach = (low + high) / 2, max((high - low) / 2, 3 * width)
    sides = np.where(logs > middle, 1, -1) * ((logs > low - reach) & (logs < high + reach))
    sums = np.lib.stride_tricks.sliding_window_view(sides, in_a_row).sum(axis=1)
    certain = np.sign(sums[np.abs(sums) == in_a_row])
    return int(np.count_nonzero(np.diff(certain)))
