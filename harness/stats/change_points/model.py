"""A model of a series: a level with steps and drifts on top, and the path of better and better fits to it.

A model is a sum of shapes. What another shape would take off its sum of squares is known in closed form from running
sums of the residuals and of the model's orthonormal columns, for all places at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.stats.change_points.noise import SMALLEST_WIDTH, innovation_power, lag_one
from harness.stats.pairing import FloatArray

IntArray = NDArray[np.intp]

# A level counts after so many points at an end of the series, where a change has to be seen soon; between two changes
# it has to last longer.
END_POINTS, INNER_POINTS = 3, 5
# A change that took fewer runs than this is called a step: noise hardly tells them apart.
SHORTEST_DRIFT = 20
_LEAST_NORM = 0.05
# What a plateau has to gain beyond a step, in log likelihood, since there are more places to choose from: on noise
# alone each is then about as often the best. A drift is smooth and has fewer places that differ, so it costs no more.
PLATEAU_PRICE = 3.0
# And what any change has to gain beyond, for each unit of autocorrelation that is left beside it: so the price is about
# the same for white noise and for autocorrelated, where the likelihood of AR(1) alone is too easily convinced.
SLOW_PRICE = 6.0
# The path ends where nothing is left that noise alone would not give, or where so many changes in a row have not paid
# for themselves: the first of several often pays only once the others are there.
_LEAST_GAIN, _PATIENCE, _MOST = 4.0, 4, 40


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
    """Running sums of the rows of a matrix: residuals first, then the model's orthonormal columns."""

    plain: FloatArray  # Sum of the values before each place; shape (2 + shapes, 1 + points)
    weighted: FloatArray  # The same of values times their place

    @property
    def size(self) -> int:
        """Of the series."""
        return int(self.plain.shape[1]) - 1

    def steps(self, index: IntArray) -> FloatArray:
        """What steps at these places would take off the sum of squares."""
        products = self.plain[:, -1:] - self.plain[:, index]
        return _gains(products, (self.size - index).astype(np.float64))

    def plateaus(self, start: IntArray, end: IntArray) -> FloatArray:
        """What levels that hold from `start` to before `end` and go back would take off the sum of squares."""
        return _gains(self.plain[:, end] - self.plain[:, start], (end - start).astype(np.float64))

    def drifts(self, start: IntArray, end: IntArray) -> FloatArray:
        """What drifts from `start` to `end` would take off the sum of squares."""
        length = (end - start).astype(np.float64)
        plain = self.plain[:, end] - self.plain[:, start]
        weighted = self.weighted[:, end] - self.weighted[:, start]
        products = (weighted - start * plain) / length + self.plain[:, -1:] - self.plain[:, end]
        return _gains(products, (length - 1) * (2 * length - 1) / (6 * length) + self.size - end)


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


@dataclass(frozen=True, kw_only=True)
class Model:
    """A level and the shapes on top of it, fitted by least squares."""

    shapes: tuple[Shape, ...]  # In the order of their places
    coefficients: FloatArray  # The level, then each shape's height; shape (1 + shapes,)
    residuals: FloatArray  # What the model leaves of each point; shape (points,)
    design: FloatArray  # A row for the level and one for each shape; (1 + shapes, points)
    squares: FloatArray  # Products of these rows with each other; (1 + shapes, 1 + shapes)
    power: float  # Sum of squares of innovations, see `innovation_power`
    extra: float  # What each change has to gain more, since the noise is slow

    def sums(self) -> Sums:
        """What is needed to see how well more shapes would fit."""
        inverse = np.linalg.inv(np.linalg.cholesky(self.squares))
        rows = np.vstack([self.residuals, np.einsum("ij,jn->in", inverse, self.design)])
        plain = np.zeros((rows.shape[0], rows.shape[1] + 1))
        weighted = np.zeros_like(plain)
        np.cumsum(rows, axis=1, out=plain[:, 1:])
        np.cumsum(rows * np.arange(rows.shape[1]), axis=1, out=weighted[:, 1:])
        return Sums(plain=plain, weighted=weighted)


def fit(values: FloatArray, shapes: Sequence[Shape]) -> Model:
    """The least-squares fit of a level and these shapes to values of shape (points,)."""
    ordered = tuple(sorted(shapes, key=lambda shape: shape.start if isinstance(shape, Drift) else shape.index))
    design = np.vstack([np.ones(values.size), *(shape.column(values.size) for shape in ordered)])
    # Sums rather than products of matrices: BLAS would start threads for them, which takes longer than they do.
    squares = np.einsum("in,jn->ij", design, design)
    coefficients = np.linalg.solve(squares, np.einsum("in,n->i", design, values))
    residuals = values - np.einsum("i,in->n", coefficients, design)
    return Model(
        shapes=ordered,
        coefficients=coefficients,
        residuals=residuals,
        design=design,
        squares=squares,
        power=innovation_power(residuals),
        extra=SLOW_PRICE * lag_one(residuals),
    )


def gained(size: int, without: float, power: float) -> float:
    """Log likelihood that a better fit gains, from sums of squares of innovations without and with it."""
    return 0.5 * size * math.log(without / power)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A model on the path."""

    model: Model
    gain: float  # Log likelihood beyond that of no change
    changes: int  # How many were taken on the way; a plateau is one
    extra: float  # What they have to gain beyond a step in white noise, together

    def surplus(self, least: float) -> float:
        """What is gained beyond the price of the changes."""
        return self.gain - self.extra - self.changes * (least + self.model.extra)


def path(values: FloatArray, least: float, *, drifts: bool = True) -> list[Stop]:
    """Models with one change more each, the one that fits best (orthogonal matching pursuit, Pati et al. 1993).

    Values are logarithms without spikes; `least` is what a change has to gain to pay for itself.
    """
    model = fit(values, ())
    first = model.power
    stops = [Stop(model=model, gain=0.0, changes=0, extra=0.0)]
    best, since = 0.0, 0
    while since < _PATIENCE and len(model.shapes) < _MOST:
        found = _best_addition(model, drifts=drifts)
        if found is None:
            break
        added, extra = found
        model = fit(values, (*model.shapes, *added))
        last = stops[-1]
        stop = Stop(
            model=model,
            gain=gained(values.size, first, model.power),
            changes=last.changes + 1,
            extra=last.extra + extra,
        )
        stops.append(stop)
        paid = stop.surplus(least)
        best, since = (paid, 0) if paid > best else (best, since + 1)
    return stops


def evidence(stops: Sequence[Stop]) -> float:
    """The highest price for each change at which the series has any: what is tabulated for noise alone."""
    return max((stop.surplus(0.0) / stop.changes for stop in stops[1:]), default=0.0)


def choose(stops: Sequence[Stop], least: float) -> Model:
    """The model that gains most beyond the price of its changes."""
    return max(stops, key=lambda stop: stop.surplus(least)).model


def surplus(values: FloatArray, model: Model, least: float) -> float:
    """What a model gains over no change, beyond the price of its changes."""
    return gained(values.size, fit(values, ()).power, model.power) - len(model.shapes) * (least + model.extra)


def _best_addition(model: Model, *, drifts: bool) -> tuple[tuple[Shape, ...], float] | None:
    """The shapes that would gain most, with what they cost beyond a step; None where nothing gains much."""
    size = model.residuals.size
    sums = model.sums()
    candidates: list[tuple[float, float, tuple[Shape, ...]]] = []
    places = step_places(size)
    if places.size:
        squares = np.where(clear_of(places, model.shapes), sums.steps(places), 0.0)
        at = int(squares.argmax())
        candidates.append((float(squares[at]), 0.0, (Step(index=int(places[at])),)))
    starts, ends = plateau_places(size)
    if starts.size:
        squares = np.where(
            clear_of(starts, model.shapes) & clear_of(ends, model.shapes), sums.plateaus(starts, ends), 0.0
        )
        at = int(squares.argmax())
        both = (Step(index=int(starts[at])), Step(index=int(ends[at])))
        candidates.append((float(squares[at]), PLATEAU_PRICE, both))
    starts, ends = drift_places(size)
    if drifts and starts.size:
        squares = sums.drifts(starts, ends)
        at = int(squares.argmax())
        candidates.append((float(squares[at]), 0.0, (Drift(start=int(starts[at]), end=int(ends[at])),)))
    total = max(float(model.residuals @ model.residuals), size * SMALLEST_WIDTH**2)
    best = max(candidates, key=lambda found: _white_gain(found[0], total, size) - found[1], default=None)
    if best is None or _white_gain(best[0], total, size) - best[1] <= _LEAST_GAIN:
        return None
    return best[2], best[1]


def _white_gain(squares: float, total: float, size: int) -> float:
    """Log likelihood that white noise of unknown width gains where this much is taken off its sum of squares."""
    return -0.5 * size * math.log(max(1 - squares / total, 1e-18))


def clear_of(places: IntArray, shapes: Sequence[Shape]) -> NDArray[np.bool_]:
    """Which places leave a level on either side of each step long enough to be one."""
    clear = np.ones(places.size, np.bool_)
    for shape in shapes:
        if isinstance(shape, Step):
            clear &= np.abs(places - shape.index) >= INNER_POINTS
    return clear
