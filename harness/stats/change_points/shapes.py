"""Shapes that a change can have, and how well each would fit what a model leaves over.

A model is a sum of shapes. What another shape would take off its sum of squares is known in closed form from running
sums of the residuals and of the model's orthonormal columns, for all places at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.stats.pairing import FloatArray

IntArray = NDArray[np.intp]

# A level counts after so many points at an end of the series, where a change has to be seen soon; between two changes
# it has to last longer.
END_POINTS, INNER_POINTS = 3, 5
# A change that took fewer runs than this is called a step: noise hardly tells them apart.
SHORTEST_DRIFT = 20
_LEAST_NORM = 0.05


@dataclass(frozen=True, kw_only=True)
class Step:
    """0 before `index`, 1 from there on."""

    index: int

    def column(self, size: int) -> FloatArray:
        """Its values at the points of the series."""
        return (np.arange(size) >= self.index).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Drift:
    """0 up to `start`, then straight up to 1 at `end`, and 1 from there on."""

    start: int
    end: int

    def column(self, size: int) -> FloatArray:
        """Its values at the points of the series."""
        return np.clip((np.arange(size) - self.start) / (self.end - self.start), 0.0, 1.0)


Shape = Step | Drift


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Running sums of the rows of a matrix: residuals first, then the model's orthonormal columns.

    Attributes:
        plain: Sum of the values before each place; one longer than the series.
        weighted: The same of values times their place.
    """

    plain: FloatArray
    weighted: FloatArray

    @property
    def size(self) -> int:
        """Of the series."""
        return int(self.plain.shape[1]) - 1

    def steps(self, index: IntArray) -> FloatArray:
        """What steps at these places would take off the sum of squares."""
        products = self.plain[:, -1:] - self.plain[:, index]
        return _gains(products, (self.size - index).astype(np.float64))

    def plateaus(self, start: IntArray, end: IntArray) -> FloatArray:
        """Likewise of a level that holds from `start` to before `end` and goes back."""
        return _gains(self.plain[:, end] - self.plain[:, start], (end - start).astype(np.float64))

    def drifts(self, start: IntArray, end: IntArray) -> FloatArray:
        """Likewise of drifts."""
        length = (end - start).astype(np.float64)
        plain = self.plain[:, end] - self.plain[:, start]
        weighted = self.weighted[:, end] - self.weighted[:, start]
        products = (weighted - start * plain) / length + self.plain[:, -1:] - self.plain[:, end]
        return _gains(products, (length - 1) * (2 * length - 1) / (6 * length) + self.size - end)


def sums_of(residuals: FloatArray, columns: FloatArray) -> Sums:
    """The running sums of residuals (n) and orthonormal columns (k x n)."""
    rows = np.vstack([residuals, columns])
    plain = np.zeros((rows.shape[0], rows.shape[1] + 1))
    weighted = np.zeros_like(plain)
    np.cumsum(rows, axis=1, out=plain[:, 1:])
    np.cumsum(rows * np.arange(rows.shape[1]), axis=1, out=weighted[:, 1:])
    return Sums(plain=plain, weighted=weighted)


def _gains(products: FloatArray, norms: FloatArray) -> FloatArray:
    """Squared product with the residuals over the squared length of what the model does not span yet."""
    left = norms - np.einsum("ij,ij->j", products[1:], products[1:])
    return np.where(left > _LEAST_NORM, products[0] ** 2 / np.maximum(left, _LEAST_NORM), 0.0)


@lru_cache(maxsize=64)
def step_places(size: int) -> IntArray:
    """Where a step may lie in a series of this size."""
    return np.arange(END_POINTS, size - END_POINTS + 1)


@lru_cache(maxsize=64)
def plateau_places(size: int) -> tuple[IntArray, IntArray]:
    """Starts and ends of plateaus to be tried: every place for short ones, an eighth of the length apart for longer."""
    return _spans(_lengths(INNER_POINTS, size // 2, 1.25), 8, END_POINTS, size - END_POINTS)


@lru_cache(maxsize=64)
def drift_places(size: int) -> tuple[IntArray, IntArray]:
    """Starts and ends of drifts to be tried, an eighth of the length apart."""
    return _spans([*_lengths(SHORTEST_DRIFT, size - 2, 1.25), size - 1], 8, 0, size - 1)


def _lengths(least: int, most: int, factor: float) -> list[int]:
    lengths, length = [], float(least)
    while length <= most:
        lengths.append(round(length))
        length = max(length * factor, length + 1)
    return lengths


def _spans(lengths: list[int], parts: int, first: int, last: int) -> tuple[IntArray, IntArray]:
    starts, ends = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for length in lengths:
        if length < 1 or first + length > last:
            continue
        start = np.arange(first, last - length + 1, max(1, length // parts))
        starts.append(start)
        ends.append(start + length)
    return np.concatenate(starts), np.concatenate(ends)
