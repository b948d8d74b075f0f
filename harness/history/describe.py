"""A change point of a series -> what was seen around it, and the row that tells it; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from harness.compare.metrics import INSTRUCTIONS, LATENCY
from harness.history.causes import Cause, Moment, Sighting, commits_text, toolchain_text
from harness.history.series import LATENCY_VS_REFERENCE
from harness.history.series_view import SeriesRow
from harness.history.shifts import Shift, shift_between
from harness.history.strands import Kin, Made, Runs, Strand, is_counted, is_exact
from harness.history.values import Change

if TYPE_CHECKING:
    from harness.stats.change_points import ChangePoint

# How far from a change a level is looked for: what was long before says little of the machine at the change.
_NEAR = 30
# The last part of a drift that stands for the level it arrives at.
_END_OF_DRIFT = 0.15

MadeBy = Mapping[tuple[str, str], Made]


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """One change point.

    Attributes:
        points: All change points of the series.
        place: Of this one among them.
    """

    row: SeriesRow
    strand: Strand
    points: Sequence[ChangePoint]
    place: int

    @property
    def point(self) -> ChangePoint:
        """The change point itself."""
        return self.points[self.place]

    def run(self, point: int) -> int:
        """Place among all runs of one of the series' points."""
        return int(self.strand.places[point])


@dataclass(frozen=True, kw_only=True)
class _Edges:
    """Points of the series: the last good, the first bad, the last that is surely before, the first surely after."""

    good: int
    bad: int
    before: int
    after: int


def _edges(seen: Seen) -> _Edges:
    point = seen.point
    return _Edges(
        good=max(point.index - 1, 0),
        bad=point.index,
        before=max(min(point.low, point.index) - 1, 0),
        after=max(point.high, point.end),
    )


def edges(seen: Seen) -> tuple[int, ...]:
    """Places among all runs of those whose toolchain and module are told."""
    found = _edges(seen)
    return tuple(seen.run(one) for one in (found.good, found.before, found.after, seen.point.end))


def sighting_of(seen: Seen, kin: Kin, runs: Runs, made: MadeBy) -> Sighting:
    """What the runs around a change recorded of whatever could have caused it.

    Args:
        kin: Series of the same case that it is held against.
        made: What the points at its edges were made with.
    """
    row, point, found = seen.row, seen.point, _edges(seen)
    sides = tuple(seen.strand.places[side.start : side.stop] for side in _sides(seen))
    exact = is_exact(row.metric)
    beside = not exact and row.role == "newest"
    last = seen.run(found.after)
    return Sighting(
        metric=row.metric,
        exact=exact,
        kind=point.kind,
        ratio=point.after / point.before if point.before else math.inf,
        before=_moment(seen, found.before, sides[0], runs, made),
        after=_moment(seen, found.after, sides[1], runs, made),
        reference=runs.facts[last].reference,
        reference_shift=_shift(kin.get((LATENCY.name, "reference")), sides) if beside else None,
        versus_shift=_shift(kin.get((LATENCY_VS_REFERENCE, "newest")), sides) if beside else None,
        counted=_counted_changes(kin, seen.run(found.before), last) if beside else (),
    )


def describe(seen: Seen, sighting: Sighting, cause: Cause, evidence: str, runs: Runs, made: MadeBy) -> Change:
    """The row that tells a change."""
    row, point, found = seen.row, seen.point, _edges(seen)
    nobody = np.array([], dtype=np.int64)
    before, after = (_moment(seen, one, nobody, runs, made) for one in (found.good, point.end))

    def run(place: int) -> str:
        return runs.ids[seen.run(place)]

    return Change(
        series=row.series,
        suite=row.suite,
        case=row.case,
        metric=row.metric,
        unit=row.unit,
        machine_class=row.machine_class,
        role=row.role,
        kind=point.kind,
        direction=_direction(row.unit, up=point.after > point.before),
        ratio=sighting.ratio,
        before=point.before,
        after=point.after,
        first_bad=run(found.bad),
        last_good=run(found.good),
        earliest=run(point.low),
        latest=run(point.high),
        started=runs.facts[seen.run(found.bad)].started,
        p=point.p,
        cause=cause,
        evidence=evidence,
        toolchain_before=toolchain_text(before),
        toolchain_after=toolchain_text(after),
        commits=commits_text(before.commit, after.commit),
        points=len(seen.strand.values),
        until=run(point.end),
    )


def _sides(seen: Seen) -> tuple[range, range]:
    """Points that show the level before a change, and those that show it after, up to the changes beside it."""
    point, count = seen.point, len(seen.strand.values)
    earlier = seen.points[seen.place - 1].end if seen.place else 0
    later = seen.points[seen.place + 1].index if seen.place + 1 < len(seen.points) else count
    if point.kind == "step":
        before, after = range(earlier, max(point.low, earlier + 1)), range(min(point.high, later - 1), later)
    else:
        part = int(_END_OF_DRIFT * (point.end - point.index))
        begin = point.index + part
        before, after = range(min(earlier, begin), begin + 1), range(point.end - part, later)
    return before[-_NEAR:], after[:_NEAR]


def _moment(seen: Seen, point: int, side: NDArray[np.int64], runs: Runs, made: MadeBy) -> Moment:
    place = seen.run(point)
    facts, by = runs.facts[place], made[seen.row.series, runs.ids[place]]
    loads = [load for one in side if (load := runs.facts[int(one)].load) is not None]
    return Moment(
        toolchain=by.toolchain,
        revision=by.revision,
        module_sha256=by.module_sha256,
        machine=facts.machine,
        kernel=facts.kernel,
        devices=facts.devices,
        commit=facts.commit,
        load=statistics.median(loads) if loads else None,
    )


def _shift(strand: Strand | None, sides: tuple[NDArray[np.int64], ...]) -> Shift | None:
    if strand is None:
        return None
    before, after = (strand.values_at(side) for side in sides)
    return shift_between(before, after)


def _counted_changes(kin: Kin, before: int, after: int) -> tuple[str, ...]:
    """Counted figures of the case that differ between two runs, by more than a loop's odd iteration."""
    changed = []
    for (metric, role), strand in kin.items():
        if role != "newest" or not is_counted(metric):
            continue
        values = [strand.values_at(np.array([place])) for place in (before, after)]
        if not (values[0] and values[1]):
            continue
        floor = INSTRUCTIONS.floor if metric == INSTRUCTIONS.name else 0.0
        if abs(values[1][0] - values[0][0]) > floor * abs(values[0][0]):
            changed.append(metric)
    return tuple(changed)


def _direction(unit: str, *, up: bool) -> Literal["slower", "faster", "more", "less"]:
    if unit in ("ns", "ratio"):
        return "slower" if up else "faster"
    return "more" if up else "less"
