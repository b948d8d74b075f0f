"""A model of a series: a level with steps and drifts on top, and the path of better and better fits to it.

A model is a sum of shapes. What another shape would take off its sum of squares is known in closed form from running
sums of the residuals and of the model's orthonormal columns, for all places at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    """Standard deviation of the noise, from a quantile of the differences of neighbours: steps hardly count in it."""
    steps = np.abs(np.diff(values))
    return float(np.quantile(steps, share)) / (NormalDist().inv_cdf((1 + share) / 2) * math.sqrt(2))


def lag_one(residuals: FloatArray) -> float:
    """Autocorrelation of neighbours, between 0 (also where it is negative) and 0.95."""
    power = float(residuals @ residuals)
    if power <= 0:
        return 0.0
    return min(max(float(residuals[1:] @ residuals[:-1]) / power, 0.0), 0.95)


def innovation_power(residuals: FloatArray) -> float:
    """Sum of squares of what is new in each residual of AR(1) noise (Yule-Walker): slow noise is no change."""
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
    """Models with one change more each, the one that fits best (orthogonal matching pursuit, Pati et al. 1993)."""
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
    places = step_places(size)
    squares = np.where(clear_of(places, model.shapes), sums.steps(places), 0.0)
    step = Step(index=int(places[squares.argmax()]))
    candidates: list[tuple[float, float, tuple[Shape, ...]]] = [(float(squares.max()), 0.0, (step,))]
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
    best = max(candidates, key=lambda found: _white_gain(found[0], total, size) - found[1])
    if _white_gain(best[0], total, size) - best[1] <= _LEAST_GAIN:
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
