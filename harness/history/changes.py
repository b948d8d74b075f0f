"""Steps and drifts of the series of a history, each with its cause.

rows -> search -> evidence of each change point -> cause -> Change
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.history.causes import (
    Cause,
    Programs,
    Related,
    Relations,
    commits_text,
    explain,
    gather_evidence,
    programs_needed,
    sides_of,
    toolchain_text,
)
from harness.history.levels import SeriesChange
from harness.history.series import (
    History,
    Runs,
    SeriesRow,
    SeriesValues,
    load_programs,
    load_values,
    series_rows,
    usable_runs,
    with_hosts,
)
from harness.metrics import LATENCY, LATENCY_VS_REFERENCE, is_exact
from harness.progress import Progress
from harness.store.schema import Role

if TYPE_CHECKING:
    from harness.stats.change_points.find import ChangePoint

Direction = Literal["slower", "faster", "more", "less"]
_DIRECTIONS: Mapping[str, tuple[Direction, Direction]] = {"time": ("slower", "faster"), "count": ("more", "less")}
# Two steps that are closer look like one; see docs/history.md on how long a level has to hold.
_NEAR_RUNS = 5
_REDRAW_EVERY = 50  # series
# Noise alone makes smaller chances, but nobody knows them that well: tables of simulated noise end long before.
_LEAST_P = 1e-9

ChangePoints = Mapping[str, "Sequence[ChangePoint]"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A step or a drift that a series shows: what `harness history --changes` prints, a row each."""

    series: str  # Where it was found
    suite: str  # Name of the suite
    case: str  # The case's, without the toolchain
    metric: str  # As in `points`
    unit: str  # Of `before` and `after`
    machine_class: str  # As in `points`
    role: Role  # Of the toolchain that was measured
    kind: Literal["step", "drift"]  # A step is there from one run to the next; a drift goes on over many
    # `slower` and `faster` for times, `more` and `less` for counted figures
    direction: Direction
    ratio: float  # The level after it, divided by that before it; infinite where that was 0
    before: float  # The level before, in `unit`
    after: float  # The level after
    first_bad: str  # The run at which it is seen first; of a drift, that at which it begins
    last_good: str  # The run before
    earliest: str  # The first of the runs that may be the one where it happened (95 % range)
    latest: str  # The last of them
    started: str  # When `first_bad` began
    # How often noise alone would show as much in this series; 1e-9 stands for that and less. See docs/history.md on how
    # many of many series are wrong.
    p: float
    # `compiler`, `machine`, `harness` or `unknown`: what else changed there, and what the reference toolchain shows
    cause: Cause
    evidence: str  # Why that is the cause, in one sentence
    toolchain_before: str  # Release and revision that the last good run had
    toolchain_after: str  # Those of the first bad one
    commits: str  # Commits of the harness before and after; "" where it is the same
    points: int  # Length of the series
    until: str = ""  # The run up to which a drift goes on; of a step, `first_bad`
    peer: str = ""  # Registered name of the engine that ran it instead of IREE; "" for IREE

    @property
    def is_worse(self) -> bool:
        """Whether it goes the wrong way; smaller is better in all figures."""
        return self.direction in ("slower", "more")


def history_changes(
    history: History,
    *,
    metrics: Collection[str] | None = None,
    series: Collection[str] | None = None,
    progress: Progress | None = None,
) -> list[Change]:
    """The changes of all series in finished runs whose clock was right: the latest first, then the largest."""
    rows, runs = series_rows(history), usable_runs(history)
    chosen = [
        row
        for row in rows
        if row.points > 1 and (metrics is None or row.metric in metrics) and (series is None or row.series in series)
    ]
    values = load_values(history, [row.series for row in chosen], runs)
    found = _search([row for row in chosen if row.series in values], values, progress or Progress())
    changed = [row for row in chosen if found.get(row.series)]
    runs = with_hosts(history, runs, [row.series for row in changed])
    relations = Relations(rows)
    others = {other.series for row in changed for _, other in relations.of(row)} - values.keys()
    values |= load_values(history, others, runs)
    dated = []
    for row in changed:
        related = relations.related(row, values)
        dated += [
            (change, related, _compiler_step(change, related, found))
            for change in _changes_of(row, values[row.series], found[row.series])
        ]
    needed = {
        point
        for change, related, step in dated
        for shown in (change, step)
        if shown is not None
        for point in programs_needed(shown, related, runs)
    }
    programs = load_programs(history, needed)
    changes = [_explained(*parts, runs, programs) for parts in dated]

    def rank(change: Change) -> tuple[float, str, str, str]:
        size = abs(math.log(change.ratio)) if 0 < change.ratio < math.inf else math.inf
        return -size, change.suite, change.case, change.metric

    changes.sort(key=rank)
    return sorted(changes, key=lambda change: change.started, reverse=True)


def _changes_of(row: SeriesRow, values: SeriesValues, points: Sequence[ChangePoint]) -> Iterator[SeriesChange]:
    for place in range(len(points)):
        yield SeriesChange(row=row, values=values, points=points, place=place)


def _search(rows: Sequence[SeriesRow], values: Mapping[str, SeriesValues], progress: Progress) -> ChangePoints:
    progress.stage("Searching series", len(rows))
    found: dict[str, Sequence[ChangePoint]] = {}
    changed = 0
    for number, row in enumerate(rows, start=1):
        found[row.series] = points = _search_one(values[row.series].values, exact=is_exact(row.metric))
        changed += bool(points)
        if number % _REDRAW_EVERY == 0:  # drawing takes longer than many searches
            progress.step(f"{changed:,} with changes", _REDRAW_EVERY)
    return found


def _search_one(values: NDArray[np.float64], *, exact: bool = False) -> Sequence[ChangePoint]:
    from harness.stats.change_points.find import find_changes

    return find_changes(values, exact=exact)


def _compiler_step(change: SeriesChange, related: Related, found: ChangePoints) -> SeriesChange | None:
    """The step of the case's ratio to the reference that is the compiler's part of a change of its latency.

    Where the machine changes a few runs apart, two steps of a latency look like one; the ratio shows the compiler's.
    """
    if (change.row.metric, change.row.role) != (LATENCY.name, "newest"):
        return None
    latency = change.point
    near = []
    for values in related.get(("own", LATENCY_VS_REFERENCE, "newest"), ()):
        points = found[values.series] if values.series in found else _search_one(values.values)
        if latency.kind == "drift" and any(point.kind == "drift" for point in points):
            continue  # the compiler's drift itself
        for step in _changes_of(change.row, values, points):
            at = int(np.searchsorted(change.values.places, step.run(step.point.index)))
            away = max(latency.index - at, at - latency.end, 0)
            same_way = (step.point.after > step.point.before) == (latency.after > latency.before)
            if step.point.kind == "step" and same_way and away <= _NEAR_RUNS:
                near.append((away, step))
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _explained(
    change: SeriesChange, related: Related, step: SeriesChange | None, runs: Runs, programs: Programs
) -> Change:
    """A change with its cause."""
    evidence = gather_evidence(change, related, runs, programs)
    cause, why = explain(evidence)
    dated = change
    if cause == "compiler" and step is not None:
        dated = step
        before, after = sides_of(step, runs, programs)
        cause, why = explain(replace(evidence, before=before, after=after))
    row, point = change.row, change.point
    good, bad = dated.run(dated.last_good), dated.run(dated.point.end)
    first_bad = dated.run(dated.point.index)
    of_row = ("series", "suite", "case", "metric", "unit", "machine_class", "role", "peer")
    worse, better = _DIRECTIONS["time" if row.unit in ("ns", "ratio") else "count"]
    shared: dict[str, Any] = {name: getattr(row, name) for name in of_row}
    return Change(
        **shared,
        kind=dated.point.kind,
        direction=(worse if point.after > point.before else better),
        ratio=evidence.ratio,
        before=point.before,
        after=point.after,
        first_bad=runs.ids[first_bad],
        last_good=runs.ids[good],
        earliest=runs.ids[dated.run(dated.point.low)],
        latest=runs.ids[dated.run(dated.point.high)],
        started=runs.facts[first_bad].started,
        p=max(point.p, _LEAST_P),
        cause=cause,
        evidence=why,
        toolchain_before=toolchain_text(programs[dated.row.series, runs.ids[good]]),
        toolchain_after=toolchain_text(programs[dated.row.series, runs.ids[bad]]),
        commits=commits_text(runs.facts[good].harness_commit, runs.facts[bad].harness_commit),
        points=len(change.values.values),
        until=runs.ids[bad],
    )
