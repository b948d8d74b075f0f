"""A model's changes put where they fit best, and those taken out that are noise or do not pay for themselves."""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from harness.stats.change_points.model import (
    SHORTEST_DRIFT,
    Drift,
    Model,
    Shape,
    Step,
    Sums,
    clear_of,
    drift_places,
    fit,
    gained,
    step_places,
)
from harness.stats.change_points.noise import lag_one, power_at
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
