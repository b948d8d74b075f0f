"""Steps and slow drifts in the history of one benchmark: one value a run, in time order.

Everything is done on logarithms, so a change is a ratio and no unit matters. Spikes and pairs of them are pulled in
(`model.pull_in_spikes`), changes are added one by one, the best next (`model.path`), and as many stay as the likelihood
pays for, at a price that was simulated for the best of all places (`model.least_gain`). Each is moved to where it fits
best beside the others, and what does not pay goes (`refine`). Its range holds all places that fit nearly as well
(`_place_range`), its levels are medians of the points on either side (`_sides`). Counted values need none of this
(`_exact_changes`). docs/history.md says how often it is right, and what it gives up to leave noise alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.stats.change_points.model import (
    END_POINTS,
    SHORTEST,
    SHORTEST_DRIFT,
    SMALLEST_WIDTH,
    Drift,
    IntArray,
    Model,
    Shape,
    Step,
    Sums,
    choose,
    clear_of,
    drift_places,
    fit,
    gained,
    lag_one,
    least_gain,
    p_of,
    path,
    power_at,
    pull_in_spikes,
    step_places,
    surplus,
)
from harness.stats.pairing import FloatArray

_PASSES = 2
# A change that gains more than so many times its price is not made up for by moving the others.
_WEAK = 4.0
# So many changes back and forth between the same two levels are one noise with two levels. Two are a step and its
# repair, three the same with a second try.
FLAPS = 4
# Levels that differ by less than this share of the steps between them are the same.
_SAME_LEVEL = 0.35
# Values are at a level where noise puts so many in a row on its side less often than this.
_BY_CHANCE, _FEWEST = 1e-5, 2
# Two levels describe a series where its values lie hardly further from them than from the whole model.
_DESCRIBED = 1.2


def refine(logs: FloatArray, values: FloatArray, model: Model, least: float) -> Model:
    """Move, convert, take out: until every change gains the least that it has to; `logs` still have their spikes."""
    model = _settle(values, _moved(values, model), least)
    while flapping := _alternating(model) | _visited_often(logs, model):
        kept = [shape for shape in model.shapes if shape not in flapping]
        model = _settle(values, fit(values, kept), least)
    while (pair := _drifts_in_one_place(model)) is not None:
        without = fit(values, _without(_without(model.shapes, pair[0]), pair[1]))
        model = _settle(values, fit(values, [*without.shapes, _best_single(without, pair[0])]), least)
    return model


def _drifts_in_one_place(model: Model) -> tuple[Drift, Drift] | None:
    """Two drifts over mostly the same points: a rise and a fall that cancel each other are a bend of the noise."""
    drifts = [shape for shape in model.shapes if isinstance(shape, Drift)]
    for drift, other in combinations(drifts, 2):
        shared = min(drift.end, other.end) - max(drift.start, other.start)
        if 2 * shared > min(drift.end - drift.start, other.end - other.start):
            return drift, other
    return None


def drop_gains(values: FloatArray, model: Model) -> list[float]:
    """What each change of the model gains beyond what slow noise asks for: what is lost without it."""
    without = (fit(values, _without(model.shapes, shape)) for shape in model.shapes)
    return [gained(values.size, rest.power, model.power) - model.extra for rest in without]


def _without(shapes: Sequence[Shape], left_out: Shape) -> list[Shape]:
    return [shape for shape in shapes if shape is not left_out]


def _settle(values: FloatArray, model: Model, least: float) -> Model:
    """Take out the weakest change, or put one in the place of two, while what that loses is less than its price."""
    while model.shapes:
        gains = drop_gains(values, model)
        weakest = model.shapes[int(np.argmin(gains))]
        simpler = fit(values, _without(model.shapes, weakest))
        if gains[model.shapes.index(weakest)] >= least:
            simpler = _one_for_two(values, model)
            if not _fits_as_well(simpler, model, least) and min(gains) < _WEAK * least:
                simpler = _moved(values, fit(values, _without(model.shapes, weakest)))
            if not _fits_as_well(simpler, model, least):
                break
        model = _moved(values, simpler)
    return model


def _fits_as_well(simpler: Model, model: Model, least: float) -> bool:
    """Whether a model with a change fewer loses less than a change's price, in the noise that the larger one leaves."""
    lag = lag_one(model.residuals)
    lost = gained(model.residuals.size, power_at(simpler.residuals, lag), power_at(model.residuals, lag))
    return lost - model.extra < least


def _one_for_two(values: FloatArray, model: Model) -> Model:
    """The best model with one change in the place of two neighbours: steps that are a drift, a drift that is a step."""
    tried = [fit(values, ())]
    for shape, other in pairwise(model.shapes):
        without = fit(values, _without(_without(model.shapes, shape), other))
        tried.append(fit(values, [*without.shapes, _best_single(without, shape)]))
    return min(tried, key=lambda candidate: candidate.power)


def _moved(values: FloatArray, model: Model) -> Model:
    """Each shape moved to where it fits best beside the others; a step may become a drift, and the reverse."""
    for _ in range(_PASSES):
        before = model.shapes
        for shape in before:
            without = fit(values, _without(model.shapes, shape))
            model = fit(values, [*without.shapes, _best_single(without, shape)])
        if model.shapes == before:
            break
    return model


def _best_single(without: Model, now: Shape) -> Shape:
    size = without.residuals.size
    sums = without.sums()
    steps = step_places(size)
    gains = np.where(clear_of(steps, without.shapes), sums.steps(steps), 0.0)
    step = int(gains.argmax())
    drift, gain = best_drift(sums)
    if max(float(gains[step]), gain) <= 0:
        return now
    if drift is not None and gain > float(gains[step]):
        return drift
    return Step(index=int(steps[step]))


def best_drift(sums: Sums) -> tuple[Drift | None, float]:
    """The best drift and what it takes off the sum of squares: on the coarse grid, then on every place around it."""
    starts, ends = drift_places(sums.size)
    if not starts.size:
        return None, 0.0
    at = int(sums.drifts(starts, ends).argmax())
    reach = max(1, int(ends[at] - starts[at]) // 8)
    near = np.arange(-reach, reach + 1)[:: max(1, reach // 8)]
    first, last = (grid.ravel() for grid in np.meshgrid(starts[at] + near, ends[at] + near))
    valid = (first >= 0) & (last < sums.size) & (last - first >= SHORTEST_DRIFT)
    if not valid.any():
        return None, 0.0
    first, last = first[valid], last[valid]
    gains = sums.drifts(first, last)
    best = int(gains.argmax())
    return Drift(start=int(first[best]), end=int(last[best])), float(gains[best])


def _alternating(model: Model) -> set[Shape]:
    """Steps of the model that are four or more changes back and forth between two levels."""
    pairs = zip(model.shapes, model.coefficients[1:].tolist(), strict=True)
    steps = [(shape, height) for shape, height in pairs if isinstance(shape, Step)]
    heights = [height for _, height in steps]
    flapping = _flapping(len(steps), lambda first, last: _two_levels(heights[first : last + 1]))
    return {steps[number][0] for number in flapping}


def _flapping(changes: int, goes_on: Callable[[int, int], bool]) -> set[int]:
    """Numbers of the changes, from 0, that are four or more back and forth in a row: from one on to another one."""
    found: set[int] = set()
    first = 0
    while first < changes:
        last = first + 1
        while last < changes and goes_on(first, last):
            last += 1
        if last - first >= FLAPS:
            found.update(range(first, last))
        first = last
    return found


def _two_levels(heights: Sequence[float]) -> bool:
    """Whether these steps in a row lead to two levels only, there and back."""
    levels = np.concatenate([[0.0], np.cumsum(heights)])
    apart = _SAME_LEVEL * float(np.median(np.abs(heights)))
    turns = all(height * following < 0 for height, following in pairwise(heights))
    return turns and max(np.ptp(levels[::2]), np.ptp(levels[1::2])) <= apart


def _visited_often(logs: FloatArray, model: Model) -> set[Shape]:
    """Steps between levels between which the series itself goes back and forth as often."""
    edges = [0, *(shape.index for shape in model.shapes if isinstance(shape, Step)), logs.size]
    parts = [logs[start:end] for start, end in pairwise(edges) if end > start]
    steps = [shape for shape in model.shapes if isinstance(shape, Step)]
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


# Points of either side that tell its level: no more than the last ones before it and the first after it.
SIDE_POINTS = 30
# 95 % quantile of the likelihood ratio of a step's true place: -2 log(1 - sqrt(0.95)). The limit is the maximum of a
# two-sided random walk with drift (Yao 1987, Annals of Statistics 15; Hansen 2000, Econometrica 68, table 1).
_STEP_CUT = -2 * math.log(1 - math.sqrt(0.95))
# Chi-squared with two degrees of freedom, since a drift has two places (Feder 1975, Annals of Statistics 3: kinks).
_DRIFT_CUT = -2 * math.log(0.05)
# A step that fits nearly as well as a drift, or the reverse, may be the truth as well: chi-squared with one degree.
_OTHER_CUT = 3.841458820694124
_PLACES = 64
# A value that is left again after fewer points was a slip: another build, a failed measurement.
_SLIP_BELOW = 3
# With more changes than one in so many points they are noise, whatever the series is called.
_POINTS_A_CHANGE, _ALWAYS_CHANGES = 4, 3


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A lasting change in a series."""

    kind: Literal["step", "drift"]  # A step is there from one point to the next, a drift goes on over ten or more
    index: int  # The first point of the new level; of a drift, the first that has left the old one
    low: int  # First of the points that may be `index` (95 % range)
    high: int  # Last of them
    end: int  # Last point of a drift; `index` for a step
    before: float  # Level before it, in the series' unit: the median of up to 30 points since the change before
    after: float  # Level after it, likewise up to the next change; of a drift, at its end
    p: float  # How often noise alone would show as much anywhere in a series of this length; 0 for exact values

    @property
    def ratio(self) -> float:
        """The level after it, divided by that before it; infinite where that was 0."""
        return self.after / self.before if self.before else float("inf")


def find_changes(values: FloatArray, *, exact: bool = False) -> tuple[ChangePoint, ...]:
    """The lasting changes of a series of one value a run, in time order and in any unit, positive and finite.

    Exact values are counted (bytes, operations) and may be 0: equal programs give equal ones, so any difference is one.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("a series is one row of finite numbers")
    if (values < 0).any() or (not exact and (values == 0).any()):
        raise ValueError("the values of a series are positive")
    changes = _exact_changes(values) if exact else None
    return _find_noisy_changes(values) if changes is None else changes


def _find_noisy_changes(values: FloatArray) -> tuple[ChangePoint, ...]:
    if values.size < SHORTEST:
        return ()
    # Only counted values can be 0, and only those that vary like noise come here.
    offset = 0.0 if (values > 0).all() else 1.0
    logs = np.log(values + offset)
    middle = float(np.median(logs))
    logs = logs - middle
    cleaned = pull_in_spikes(logs)
    least = least_gain(values.size)
    model = refine(logs, cleaned, choose(path(cleaned, least), least), least)
    if any(isinstance(shape, Drift) for shape in model.shapes):
        steps = refine(logs, cleaned, choose(path(cleaned, least, drifts=False), least), least)
        model = max(model, steps, key=lambda tried: surplus(cleaned, tried, least))
    changes = []
    gains = drop_gains(cleaned, model)
    for shape, gain in zip(model.shapes, gains, strict=True):
        index = _first_point(shape)
        low, high = _place_range(cleaned, cleaned != logs, model, shape)
        before, after = _sides(logs, cleaned, model, shape)
        changes.append(
            ChangePoint(
                kind="step" if isinstance(shape, Step) else "drift",
                index=index,
                low=low,
                high=high,
                end=index if isinstance(shape, Step) else shape.end,
                before=max(math.exp(middle + before) - offset, 0.0),
                after=max(math.exp(middle + after) - offset, 0.0),
                p=p_of(gain, values.size),
            )
        )
    return tuple(sorted(changes, key=lambda change: change.index))


def _sides(logs: FloatArray, cleaned: FloatArray, model: Model, shape: Shape) -> tuple[float, float]:
    """Logarithms of the levels before and after a change: medians of points; of too few, what the model fits."""
    fitted = cleaned - model.residuals
    height = float(model.coefficients[1 + [other is shape for other in model.shapes].index(True)])
    # Last point of the level before it, and first of that after it.
    last, first = (shape.index - 1, shape.index) if isinstance(shape, Step) else (shape.start, shape.end)
    edges = [edge for other in model.shapes if other is not shape for edge in _edges(other)]
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


def _place_range(values: FloatArray, spiked: NDArray[np.bool_], model: Model, shape: Shape) -> tuple[int, int]:
    """First and last point that may be the first of the new level, with 95 % confidence.

    Autocorrelated noise tells less, so the likelihood ratio is divided by its long-run variance over its variance (as
    in Bai 1997, Review of Economics and Statistics 79). Spikes next to the range are in it, for they tell of no level.
    """
    without = fit(values, [other for other in model.shapes if other is not shape])
    sums = without.sums()
    total = float(without.residuals @ without.residuals)
    best = max(float(model.residuals @ model.residuals), values.size * SMALLEST_WIDTH**2)
    lag = lag_one(model.residuals)
    longer = (1 + lag) / (1 - lag)

    def fits(gains: FloatArray, cut: float) -> FloatArray:
        left = np.maximum(total - gains, best * 1e-9)
        return np.asarray(values.size * np.log(left / best) <= cut * longer)

    steps = _steps_between_others(model, shape, values.size)
    starts, ends = _drift_places(shape, values.size)
    is_step = isinstance(shape, Step)
    as_steps = steps[fits(sums.steps(steps), _STEP_CUT if is_step else _OTHER_CUT)]
    as_drifts = starts[fits(sums.drifts(starts, ends), _OTHER_CUT if is_step else _DRIFT_CUT)] + 1
    index = _first_point(shape)
    inside = np.concatenate([as_steps, as_drifts, [index]])
    low, high = int(inside.min()), int(inside.max())
    while low > 1 and spiked[low - 1]:
        low -= 1
    while high < values.size - 1 and spiked[high]:
        high += 1
    return low, high


def _first_point(shape: Shape) -> int:
    """The first point that differs from the level before."""
    return shape.index if isinstance(shape, Step) else shape.start + 1


def _steps_between_others(model: Model, shape: Shape, size: int) -> IntArray:
    here = _first_point(shape)
    others = [other.index for other in model.shapes if isinstance(other, Step) and other is not shape]
    low = max((place + 1 for place in others if place < here), default=1)
    high = min((place for place in others if place > here), default=size)
    return np.arange(low, high)


def _drift_places(shape: Shape, size: int) -> tuple[IntArray, IntArray]:
    """Starts and ends over the whole series, no more of either than is quick."""
    apart = max(1, size // _PLACES)
    own = (shape.start, shape.end) if isinstance(shape, Drift) else (0, size - 1)
    starts = np.unique(np.append(np.arange(0, size, apart), own[0]))
    ends = np.unique(np.append(np.arange(0, size, apart), (own[1], size - 1)))
    first, last = (grid.ravel() for grid in np.meshgrid(starts, ends))
    valid = last - first >= SHORTEST_DRIFT
    return first[valid], last[valid]


def _exact_changes(values: FloatArray) -> tuple[ChangePoint, ...] | None:
    """Every change of value that lasts, a new last value included; None where the values vary like noise."""
    starts: list[int] = []
    levels: list[float] = []
    for start in np.flatnonzero(np.diff(values, prepend=np.nan)).tolist():
        level = float(values[start])
        while len(levels) >= 2 and levels[-2] == level and start - starts[-1] < _SLIP_BELOW:
            starts.pop()
            levels.pop()
        if not levels or levels[-1] != level:
            starts.append(start)
            levels.append(level)
    if len(starts) - 1 > max(_ALWAYS_CHANGES, values.size / _POINTS_A_CHANGE):
        return None
    flapping = _flapping(len(levels) - 1, lambda _, last: levels[last + 1] == levels[last - 1])
    return tuple(
        ChangePoint(
            kind="step",
            index=starts[number],
            low=starts[number],
            high=starts[number],
            end=starts[number],
            before=levels[number - 1],
            after=levels[number],
            p=0.0,
        )
        for number in range(1, len(starts))
        if number - 1 not in flapping
    )
