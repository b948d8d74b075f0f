"""Steps in counted values, where any difference is one."""

from __future__ import annotations

import numpy as np

from harness.stats.change_points.levels import FLAPS
from harness.stats.change_points.values import ChangePoint
from harness.stats.pairing import FloatArray

# A value that is left again after fewer points was a slip: another build, a failed measurement.
_SLIP_BELOW = 3
# With more changes than one in so many points they are noise, whatever the series is called.
_POINTS_A_CHANGE, _ALWAYS_CHANGES = 4, 3


def find_exact_changes(values: FloatArray) -> tuple[ChangePoint, ...] | None:
    """Every change of value that lasts, a new last value included; None where the values vary like noise.

    A value that is left for another and taken up again within two points counts as one that stayed. Four or more
    changes back and forth between two values are none: the program has two outcomes by chance. Such a series is quiet
    until it shows a third value.
    """
    starts, levels = _runs(values)
    starts, levels = _without_slips(starts, levels)
    if len(starts) - 1 > max(_ALWAYS_CHANGES, values.size / _POINTS_A_CHANGE):
        return None
    flapping = _flapping(levels)
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
        if number not in flapping
    )


def _runs(values: FloatArray) -> tuple[list[int], list[float]]:
    """Where each run of equal values starts, and its value."""
    if not values.size:
        return [], []
    starts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist()]
    return starts, values[starts].tolist()


def _without_slips(starts: list[int], levels: list[float]) -> tuple[list[int], list[float]]:
    kept_starts: list[int] = []
    kept_levels: list[float] = []
    for start, level in zip(starts, levels, strict=True):
        while len(kept_levels) >= 2 and kept_levels[-2] == level and start - kept_starts[-1] < _SLIP_BELOW:
            kept_starts.pop()
            kept_levels.pop()
        if not kept_levels or kept_levels[-1] != level:
            kept_starts.append(start)
            kept_levels.append(level)
    return kept_starts, kept_levels


def _flapping(levels: list[float]) -> set[int]:
    """Numbers of the runs whose start is one of four or more changes back and forth in a row."""
    found: set[int] = set()
    first = 1
    for number in range(2, len(levels) + 1):
        if number < len(levels) and levels[number] == levels[number - 2]:
            continue
        if number - first >= FLAPS:
            found.update(range(first, number))
        first = number
    return found
