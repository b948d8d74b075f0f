"""Steps and slow drifts in the history of one benchmark: one value a run, in time order.

How it works:

1. Everything is done on logarithms, so a change is a ratio and no unit matters.
2. Single spikes and pairs are pulled in (`change_points.spikes`), so that a new level counts after its third point and
   not before; later where spikes are frequent.
3. Changes are added one by one, the one that fits best next: a step, a level that is left again, or a straight drift
   (`change_points.shapes`, `change_points.search`).
4. How many the series pays for is decided by likelihood, with autocorrelated noise as the other explanation. The price
   of a change was simulated for the best of all places, on white, heavy-tailed and autocorrelated noise
   (`change_points.table`), since the best of many splits looks significant on any noise.
5. Each is put where it fits best beside the others, those that do not pay are taken out, weakest first, and changes
   back and forth between two levels are the noise that they are (`change_points.refine`).
6. Its range holds all places that fit nearly as well (`change_points.where`), and its levels are medians of the points
   on either side (`change_points.sides`).

How often it is right is measured in docs/history.md. Counted values need none of this (`change_points.exact`).
"""

from __future__ import annotations

import math

import numpy as np

from harness.stats.change_points.exact import find_exact_changes
from harness.stats.change_points.refine import drop_gains, refine
from harness.stats.change_points.search import choose, path, surplus
from harness.stats.change_points.shapes import Drift, Step
from harness.stats.change_points.sides import sides
from harness.stats.change_points.spikes import pull_in_spikes
from harness.stats.change_points.table import SHORTEST, least_gain, p_of
from harness.stats.change_points.values import ChangePoint
from harness.stats.change_points.where import first_point, place_range
from harness.stats.pairing import FloatArray

__all__ = ["ChangePoint", "find_changes"]


def find_changes(values: FloatArray, *, exact: bool = False) -> tuple[ChangePoint, ...]:
    """The lasting changes of a series, in time order.

    Args:
        values: One a run, in time order, in any unit; positive, or at least 0 where they are exact.
        exact: They are counted (bytes, operations), so equal programs give equal values, and any difference is one.

    Raises:
        ValueError: Values are not one row of finite numbers, or not positive.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("a series is one row of finite numbers")
    if (values < 0).any() or (not exact and (values == 0).any()):
        raise ValueError("the values of a series are positive")
    if exact:
        changes = find_exact_changes(values)
        if changes is not None:
            return changes
    return _find_noisy_changes(values)


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
    if any(isinstance(one, Drift) for one in model.shapes):
        steps = refine(logs, cleaned, choose(path(cleaned, least, drifts=False), least), least)
        model = max(model, steps, key=lambda one: surplus(cleaned, one, least))
    changes = []
    gains = drop_gains(cleaned, model)
    for shape, gain in zip(model.shapes, gains, strict=True):
        index = first_point(shape)
        low, high = place_range(cleaned, cleaned != logs, model, shape)
        before, after = sides(logs, cleaned, model, shape)
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
    return tuple(sorted(changes, key=lambda one: one.index))
