"""A change point in its series: the runs at its edges, its two levels, and how other figures moved between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.history.series import SeriesRow, SeriesValues

if TYPE_CHECKING:
    from harness.stats.change_points.find import ChangePoint

# A level is looked for in so many runs next to a change: earlier ones say little of the machine at the change.
_NEAR = 30
# The same for a step inside a drift, whose level does not stay.
_NEAR_IN_DRIFT = 6
# The last part of a drift that stands for the level it arrives at.
_END_OF_DRIFT = 0.15

# 1 / the third quartile of the standard normal: what makes a median distance a standard deviation.
_NORMAL = 1.4826
# The median's standard error is this much of the mean's where values are normal: the square root of pi / 2.
_MEDIAN = 1.2533
# Fewer values tell nothing of their noise: they are then taken to vary like this, about the noise of a bad machine.
_FEW, _UNKNOWN_NOISE = 4, 0.02
# No difference between two medians is surer than this, whatever the values say.
_LEAST_ERROR = 0.0005
_SURE = 3.0
# Part of a change that another figure has to share to have a part in it.
_SHARE = 0.25
_MOST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesChange:
    """One change point of a series."""

    row: SeriesRow
    values: SeriesValues  # The points in which it was found; of another series than `row` where that dates the change
    points: Sequence[ChangePoint]  # All change points that were found in them
    place: int  # Of this one among `points`

    @property
    def point(self) -> ChangePoint:
        """The change point itself; its indices count the series' points."""
        return self.points[self.place]

    @property
    def last_good(self) -> int:
        """The last point of the old level."""
        return max(self.point.index - 1, 0)

    @property
    def before(self) -> int:
        """The last point that is surely before the change."""
        return max(min(self.point.low, self.point.index) - 1, 0)

    @property
    def after(self) -> int:
        """The first point that is surely after the change."""
        return max(self.point.high, self.point.end)

    def run(self, point: int) -> int:
        """The place in `Runs` of one of the series' points."""
        return int(self.values.places[point])

    @cached_property
    def steps_inside(self) -> list[SeriesChange]:
        """The steps within a drift, which are changes of their own."""
        if self.point.kind == "step":
            return []
        return [
            SeriesChange(row=self.row, values=self.values, points=self.points, place=place)
            for place, point in enumerate(self.points)
            if self.point.index < point.index and point.end < self.point.end
        ]

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places in `Runs` of the runs that show the level before the change, and of those that show that after it.

        They reach up to the neighbouring changes, which need not follow each other: a drift may have a step inside.
        """
        point, places = self.point, self.values.places
        others = [other for other in self.points if other is not point]
        marks = [mark for other in others for mark in (other.index, other.end)]
        earlier = max((mark for mark in marks if mark < point.index), default=0)
        later = min((mark for mark in marks if mark > point.end), default=len(self.values.values))
        if point.kind == "step":
            before, after = places[earlier : max(point.low, earlier + 1)], places[min(point.high, later - 1) : later]
            drifts = any(other.index <= point.index <= other.end for other in others)
            near = _NEAR_IN_DRIFT if drifts else _NEAR
        else:
            part = int(_END_OF_DRIFT * (point.end - point.index))
            inner = [step.point for step in self.steps_inside]
            begin = min([point.index + part, *(step.index - 1 for step in inner)])
            end = max([point.end - part, *(step.end for step in inner)])
            before, after = places[min(earlier, begin) : begin + 1], places[end:later]
            near = _NEAR
        return before[-near:], after[:near]


@dataclass(frozen=True, kw_only=True)
class Movement:
    """How far a figure moved between two levels."""

    log: float  # Logarithm of the level after divided by that before
    error: float  # Its standard error

    @property
    def ratio(self) -> float:
        """The level after, divided by that before."""
        return math.exp(self.log)

    def explains(self, log_change: float) -> bool:
        """Whether it goes in the direction of a change, by more than its noise and by a good part of the change."""
        same_way = self.log * log_change > 0
        return same_way and abs(self.log) > _SURE * self.error and abs(self.log) >= _SHARE * abs(log_change)

    def is_most_of(self, log_change: float) -> bool:
        """Whether it surely goes in the direction of a change, by at least half of it."""
        return self.explains(log_change) and abs(self.log) >= _MOST * abs(log_change)

    def is_little_of(self, log_change: float) -> bool:
        """Whether it is surely less than half of a change, or goes the other way."""
        same_way = math.copysign(self.log, self.log * log_change)
        return same_way + _SURE * self.error < _MOST * abs(log_change)


def movement_between(before: Sequence[float], after: Sequence[float]) -> Movement | None:
    """From one level to the other, each the median of its values (above zero); None where either has none."""
    if not before or not after:
        return None
    first, second = np.log(np.array(before)), np.log(np.array(after))
    residuals = np.concatenate([first - np.median(first), second - np.median(second)])
    noise = float(_NORMAL * np.median(np.abs(residuals))) if residuals.size >= _FEW else _UNKNOWN_NOISE
    error = _MEDIAN * noise * math.sqrt(1 / first.size + 1 / second.size)
    return Movement(log=float(np.median(second) - np.median(first)), error=max(error, _LEAST_ERROR))


def movement_of(values: SeriesValues, change: SeriesChange) -> Movement | None:
    """How far a series moved between the levels of a change of another one, less what steps inside a drift did."""
    whole, *steps = (
        movement_between(*(values.values_at(level) for level in part.levels)) for part in (change, *change.steps_inside)
    )
    known = [step for step in steps if step is not None]
    if whole is None or len(known) < len(steps):
        return None
    error = math.hypot(whole.error, *(step.error for step in known))
    return Movement(log=whole.log - sum(step.log for step in known), error=error)
