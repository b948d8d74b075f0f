"""A model's changes put where they fit best, and those taken out that do not pay for themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from harness.stats.change_points.levels import flapping_steps
from harness.stats.change_points.noise import lag_one, power_at
from harness.stats.change_points.search import Model, clear_of, edges, fit, gained
from harness.stats.change_points.shapes import (
    SHORTEST_DRIFT,
    Drift,
    Shape,
    Step,
    Sums,
    drift_places,
    step_places,
)
from harness.stats.pairing import FloatArray

_PASSES = 2
# A change that gains more than so many times its price is not made up for by moving the others.
_WEAK = 4.0


def refine(logs: FloatArray, values: FloatArray, model: Model, least: float) -> Model:
    """Move, convert, take out: until every change of the model gains what it has to.

    Args:
        logs: The series with its spikes.
        values: The same without them.
        least: What each change has to gain.
    """
    model = _settle(values, _moved(values, model), least)
    while flapping := flapping_steps(logs, model):
        kept = [one for one in model.shapes if one not in flapping]
        model = _settle(values, fit(values, kept), least)
    return model


def drop_gains(values: FloatArray, model: Model) -> list[float]:
    """What each change of the model gains beyond what slow noise asks for: what is lost without it."""
    without = (fit(values, _without(model.shapes, one)) for one in model.shapes)
    return [gained(values.size, one.power, model.power) - model.extra for one in without]


def _without(shapes: Sequence[Shape], left_out: Shape) -> list[Shape]:
    return [one for one in shapes if one is not left_out]


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
    for one, other in pairwise(model.shapes):
        without = fit(values, _without(_without(model.shapes, one), other))
        tried.append(fit(values, [*without.shapes, _best_single(without, one)]))
    return min(tried, key=lambda candidate: candidate.power)


def _moved(values: FloatArray, model: Model) -> Model:
    """Each shape moved to where it fits best beside the others; a step may become a drift, and the reverse."""
    for _ in range(_PASSES):
        before = model.shapes
        for one in before:
            without = fit(values, _without(model.shapes, one))
            model = fit(values, [*without.shapes, _best_single(without, one)])
        if model.shapes == before:
            break
    return model


def _best_single(without: Model, now: Shape) -> Shape:
    size = without.residuals.size
    sums = without.sums()
    steps = step_places(size)
    gains = np.where(clear_of(steps, edges(without.shapes)), sums.steps(steps), 0.0)
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
    first, last = (one.ravel() for one in np.meshgrid(starts[at] + near, ends[at] + near))
    valid = (first >= 0) & (last < sums.size) & (last - first >= SHORTEST_DRIFT)
    if not valid.any():
        return None, 0.0
    first, last = first[valid], last[valid]
    gains = sums.drifts(first, last)
    best = int(gains.argmax())
    return Drift(start=int(first[best]), end=int(last[best])), float(gains[best])
