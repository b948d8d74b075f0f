"""A series as a small picture: a letter a place, which static/spark.js draws, or a path for a page without scripts."""

from __future__ import annotations

import string
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_PLACES = 48
_LEVELS = string.digits + string.ascii_lowercase + string.ascii_uppercase
_LEAST_SPAN = 0.05  # of the median: noise of one percent has to look small


def sparkline(values: NDArray[np.float64]) -> str:
    """The series' course in 48 letters at most, 0 the lowest and Z the highest level."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return ""
    if finite.size > _PLACES:
        edges = np.linspace(0, finite.size, _PLACES + 1).astype(int)
        finite = np.array([np.median(finite[low:high]) for low, high in pairwise(edges.tolist())])
    low, high = float(finite.min()), float(finite.max())
    least = abs(float(np.median(finite))) * _LEAST_SPAN
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    span = high - low
    top = len(_LEVELS) - 1
    levels = np.rint((finite - low) / span * top).astype(int) if span > 0 else np.full(finite.size, top // 2)
    return "".join(_LEVELS[level] for level in levels)


def spark_path(letters: str, width: float, height: float) -> str:
    """The `d` of an SVG path over a box of that size."""
    if not letters:
        return ""
    step = width / max(len(letters) - 1, 1)
    top = len(_LEVELS) - 1
    points = [f"{at * step:.1f},{height - _LEVELS.index(one) / top * height:.1f}" for at, one in enumerate(letters)]
    return "M" + "L".join(points if len(points) > 1 else [points[0], f"{width:.1f},{points[0].split(',')[1]}"])
