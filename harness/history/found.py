"""A change point in its series: which points are at its edges, and which show the levels on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.history.series_values import SeriesValues
from harness.history.series_view import SeriesRow

if TYPE_CHECKING:
    from harness.stats.change_points import ChangePoint

# How far from a change a level is looked for: what was long before says little of the machine at the change.
_NEAR = 30
# The same for a step inside a drift, whose level does not stay.
_NEAR_IN_DRIFT = 6
# The last part of a drift that stands for the level it arrives at.
_END_OF_DRIFT = 0.15

Sides = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """One change point.

    Attributes:
        points: All change points of the series.
        place: Of this one among them.
    """

    row: SeriesRow
    values: SeriesValues
    points: Sequence[ChangePoint]
    place: int

    @property
    def point(self) -> ChangePoint:
        """The change point itself."""
        return self.points[self.place]

    @property
    def good(self) -> int:
        """The last point of the old level."""
        return max(self.point.index - 1, 0)

    @property
    def before(self) -> int:
        """The last point that is surely before it."""
        return max(min(self.point.low, self.point.index) - 1, 0)

    @property
    def after(self) -> int:
        """The first point that is surely after it."""
        return max(self.point.high, self.point.end)

    def run(self, point: int) -> int:
        """Place among all runs of one of the series' points."""
        return int(self.values.places[point])

    def edges(self) -> tuple[int, ...]:
        """Places among all runs of those whose toolchain and module are told."""
        return tuple(self.run(one) for one in (self.good, self.before, self.after, self.point.end))

    @cached_property
    def steps_inside(self) -> list[Found]:
        """The steps within a drift, which are changes of their own."""
        if self.point.kind == "step":
            return []
        return [
            Found(row=self.row, values=self.values, points=self.points, place=place)
            for place, one in enumerate(self.points)
            if self.point.index < one.index and one.end < self.point.end
        ]

    @cached_property
    def sides(self) -> Sides:
        """Places of the runs that show the level before it, and of those that show it after."""
        before, after = self._sides()
        return self.values.places[before.start : before.stop], self.values.places[after.start : after.stop]

    def _sides(self) -> tuple[range, range]:
        """Up to the changes beside it. They need not follow each other: a drift may have a step inside."""
        point = self.point
        others = [one for one in self.points if one is not point]
        marks = [mark for one in others for mark in (one.index, one.end)]
        earlier = max((mark for mark in marks if mark < point.index), default=0)
        later = min((mark for mark in marks if mark > point.end), default=len(self.values.values))
        if point.kind == "step":
            before, after = range(earlier, max(point.low, earlier + 1)), range(min(point.high, later - 1), later)
            drifts = any(one.index <= point.index <= one.end for one in others)
            near = _NEAR_IN_DRIFT if drifts else _NEAR
        else:
            part = int(_END_OF_DRIFT * (point.end - point.index))
            inner = [one.point for one in self.steps_inside]
            begin = min([point.index + part, *(one.index - 1 for one in inner)])
            end = max([point.end - part, *(one.end for one in inner)])
            before, after = range(min(earlier, begin), begin + 1), range(end, later)
            near = _NEAR
        return before[-near:], after[:near]
