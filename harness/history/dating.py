"""When the compiler's part of a change happened, where the machine changed a few runs apart from it.

Two near steps of a latency look like one, which may lie where neither was, or like a drift. The ratio to the reference
shows the compiler's alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.history.beside import Beside
from harness.history.found import Found
from harness.metrics import LATENCY, LATENCY_VS_REFERENCE

if TYPE_CHECKING:
    from harness.stats.change_points import ChangePoint

# Two steps that are closer are told as one; see docs/history.md on how long a level has to hold.
NEAR_RUNS = 5


def step_of_ratio(
    found: Found, beside: Beside, searched: Mapping[str, Sequence[ChangePoint]], every: frozenset[str]
) -> Found | None:
    """The step of the case's ratio to the reference that is the compiler's part of a change of its latency.

    Args:
        searched: Change points of the series that were searched and have any.
        every: Ids of all series that were searched.

    Returns:
        The nearest in the same direction; None where there is none within five runs; of a drift, along it.
    """
    if (found.row.metric, found.row.role) != (LATENCY.name, "newest"):
        return None
    change = found.point
    near = []
    for values in beside.own.get((LATENCY_VS_REFERENCE, "newest"), ()):
        points = searched.get(values.series, ()) if values.series in every else _search(values.values)
        if change.kind == "drift" and any(point.kind == "drift" for point in points):
            continue  # the compiler's drift itself
        for place, point in enumerate(points):
            at = int(np.searchsorted(found.values.places, values.places[point.index]))
            away = max(change.index - at, at - change.end, 0)
            same_way = (point.after > point.before) == (change.after > change.before)
            if point.kind == "step" and same_way and away <= NEAR_RUNS:
                near.append((away, Found(row=found.row, values=values, points=points, place=place)))
    return min(near, key=lambda one: one[0])[1] if near else None


def _search(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Sequence[ChangePoint]:
    from harness.stats.change_points import find_changes

    return find_changes(values, exact=False)
