"""A change point and the series beside it -> what was seen around it; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.history.beside import Beside, ByKind
from harness.history.circumstances import Circumstances, Conditions, Program
from harness.history.found import Found
from harness.history.series_values import Runs, SeriesValues
from harness.history.shifts import Shift, shift_between
from harness.history.values import Role
from harness.metrics import (
    COMPILE_TIME,
    INSTRUCTIONS,
    LATENCY,
    LATENCY_VS_BASELINE,
    LATENCY_VS_REFERENCE,
    is_exact,
    shows_the_program,
)

# By series and id of the run.
Programs = Mapping[tuple[str, str], Program]
_NOBODY = np.array([], dtype=np.int64)


def needed_programs(found: Found, beside: Beside, runs: Runs) -> Iterator[tuple[str, str]]:
    """Series and run of each point of which it has to be known what it was made with."""
    for edge in found.edges():
        yield found.row.series, runs.ids[edge]
    for values in (*_of_reference(found, beside), *beside.baseline.get((LATENCY.name, "newest"), ())):
        for edge in (found.before, found.after):
            yield values.series, runs.ids[found.run(edge)]


def circumstances_of(found: Found, beside: Beside, runs: Runs, programs: Programs) -> Circumstances:
    """What the runs around a change recorded of whatever could have caused it.

    Args:
        beside: What its series is held against.
        programs: What the points of `needed_programs` were made with.
    """
    row, point = found.row, found.point
    own, baseline = beside.own, beside.baseline
    exact = is_exact(row.metric)
    timed = not exact and row.role == "newest"
    before, after = found.run(found.before), found.run(found.after)
    sides = (_NOBODY, _NOBODY) if exact else found.sides  # no machine changes a counted figure
    versus = _shift(own, (LATENCY_VS_REFERENCE, "newest"), found) if timed else None
    own_shift, baseline_shift = None, None
    if row.metric == LATENCY_VS_BASELINE:
        own_shift, baseline_shift = versus, _shift(baseline, (LATENCY_VS_REFERENCE, "newest"), found)
        if own_shift is None:  # a peer, or one toolchain alone: of both the time itself, or of neither
            own_shift = _shift(own, (LATENCY.name, "newest"), found)
            if not row.peer:
                baseline_shift = _shift(baseline, (LATENCY.name, "newest"), found)
    return Circumstances(
        metric=row.metric,
        exact=exact,
        kind=point.kind,
        ratio=point.after / point.before if point.before else math.inf,
        before=conditions(found, found.before, sides[0], runs, programs),
        after=conditions(found, found.after, sides[1], runs, programs),
        peer=row.peer,
        references=(runs.facts[before].reference, runs.facts[after].reference),
        reference_program=_programs(_of_reference(found, beside), before, after, runs, programs),
        reference_counts=_counts(own.get((row.metric, "reference"), ()), found) if exact else None,
        reference_shift=_shift(own, (LATENCY.name, "reference"), found) if timed else None,
        reference_compile_shift=_shift(own, (COMPILE_TIME.name, "reference"), found) if timed else None,
        versus_shift=versus,
        baseline_program=_programs(baseline.get((LATENCY.name, "newest"), ()), before, after, runs, programs),
        own_shift=own_shift,
        baseline_shift=baseline_shift,
        counted=_counted_changes(own, before, after) if timed else (),
    )


def conditions(found: Found, point: int, side: NDArray[np.int64], runs: Runs, programs: Programs) -> Conditions:
    """What the runs of one side recorded, and what one of its points was made with."""
    place = found.run(point)
    of_side = [runs.facts[int(one)] for one in side]
    loads = [one.load for one in of_side if one.load is not None]
    return Conditions(
        program=programs[found.row.series, runs.ids[place]],
        machines=tuple(one.machine for one in of_side if one.machine),
        kernels=tuple(one.kernel for one in of_side if one.kernel),
        drivers=tuple(driver for one in of_side if (driver := one.driver(found.row.device))),
        commit=runs.facts[place].commit,
        load=statistics.median(loads) if loads else None,
    )


def _of_reference(found: Found, beside: Beside) -> Sequence[SeriesValues]:
    """Series that tell which program the case was under the reference toolchain."""
    metric = found.row.metric if is_exact(found.row.metric) else LATENCY.name
    return beside.own.get((metric, "reference"), ()) if found.row.role == "newest" else ()


def _programs(
    of_kind: Sequence[SeriesValues], before: int, after: int, runs: Runs, programs: Programs
) -> tuple[Program, Program] | None:
    """Of the series that has points in both of two runs."""
    for values in of_kind:
        first, second = (programs.get((values.series, runs.ids[place])) for place in (before, after))
        if first is not None and second is not None:
            return first, second
    return None


def _shift(by_kind: ByKind, kind: tuple[str, Role], found: Found) -> Shift | None:
    """Under the one reference that was measured on both sides, the surest of several.

    Steps inside a drift are changes of their own, and what they did is taken off.
    """
    shifts = []
    for values in by_kind.get(kind, ()):
        whole = _shift_of(values, found)
        steps = [_shift_of(values, step) for step in found.steps_inside]
        known = [one for one in steps if one is not None]
        if whole is not None and len(known) == len(steps):
            error = math.hypot(whole.error, *(one.error for one in known))
            shifts.append(Shift(log=whole.log - sum(one.log for one in known), error=error))
    return min(shifts, key=lambda one: one.error, default=None)


def _shift_of(values: SeriesValues, found: Found) -> Shift | None:
    before, after = (values.values_at(side) for side in found.sides)
    return shift_between(before, after)


def _counts(of_kind: Sequence[SeriesValues], found: Found) -> tuple[float, float] | None:
    """A counted figure under the reference next to a change, on both sides."""
    before, after = found.sides
    for values in of_kind:
        first, second = values.values_at(before), values.values_at(after)
        if first and second:
            return first[-1], second[0]
    return None


def _counted_changes(own: ByKind, before: int, after: int) -> tuple[str, ...]:
    """Counted figures of the case that differ between two runs, by more than a loop's odd iteration."""
    changed = []
    for (metric, role), of_kind in own.items():
        if role != "newest" or not shows_the_program(metric):
            continue
        values = [of_kind[-1].values_at(np.array([place])) for place in (before, after)]
        if not (values[0] and values[1]):
            continue
        floor = INSTRUCTIONS.floor if metric == INSTRUCTIONS.name else 0.0
        if abs(values[1][0] - values[0][0]) > floor * abs(values[0][0]):
            changed.append(metric)
    return tuple(changed)
