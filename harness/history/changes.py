"""Steps and drifts of every series of a history, each with its cause."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.history.around import Programs, circumstances_of, conditions, needed_programs
from harness.history.beside import Beside, Neighbours
from harness.history.causes import explain
from harness.history.dating import step_of_ratio
from harness.history.describe import describe
from harness.history.found import Found
from harness.history.search import Values, search
from harness.history.series_values import Runs, load_programs, load_values, usable_runs
from harness.history.series_view import SeriesRow
from harness.history.values import Change
from harness.metrics import is_exact
from harness.progress import Progress, Silent

if TYPE_CHECKING:
    from harness.history.open import History

# Points of a batch: 1.6 MB of values.
_BATCH = 200_000


def find_all(
    history: History,
    *,
    metrics: Collection[str] | None = None,
    series: Collection[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Change]:
    """The changes of all series, the latest first, the largest first within a run.

    Left out are runs that are not finished and runs whose clock was wrong.

    Args:
        metrics: Only series of these (default: all).
        series: Only series of these ids (default: all); others may still explain their changes.
        jobs: Processes that search (default: one for each core, where that is worth it).
        progress: Who is told how far it is.
    """
    progress = progress or Silent()
    rows = series_rows(history)
    chosen = [
        row
        for row in rows
        if row.points > 1 and (metrics is None or row.metric in metrics) and (series is None or row.series in series)
    ]
    runs = usable_runs(history)
    progress.stage("Searching series", len(chosen))
    points = sum(row.points for row in chosen)
    searched = search(_batches(history, chosen, runs), points=points, jobs=jobs, progress=progress)
    flagged = [row for row in chosen if row.series in searched]
    neighbours = Neighbours(rows)
    needed = {one.series for row in flagged for one in (row, *neighbours.rows(row))}
    values = load_values(history, needed, runs)
    every = frozenset(row.series for row in chosen)
    events = []
    for row in flagged:
        beside, points_of = neighbours.beside(row, values), searched[row.series]
        for place in range(len(points_of)):
            found = Found(row=row, values=values[row.series], points=points_of, place=place)
            events.append((found, beside, step_of_ratio(found, beside, searched, every)))
    wanted = {
        one
        for found, beside, ratio in events
        for event in (found, ratio)
        if event is not None
        for one in needed_programs(event, beside, runs)
    }
    programs = load_programs(history, wanted)
    changes = [_change(*event, runs, programs) for event in events]
    return sorted(changes, key=lambda one: (_reversed(one.started), -_size(one.ratio), one.suite, one.case, one.metric))


def _change(found: Found, beside: Beside, ratio: Found | None, runs: Runs, programs: Programs) -> Change:
    """One change point with its cause.

    Args:
        ratio: The step of the ratio to the reference that goes with it.
    """
    around = circumstances_of(found, beside, runs, programs)
    cause, evidence = explain(around)
    dated = found
    if cause == "compiler" and ratio is not None:
        dated = ratio
        sides = (
            conditions(ratio, point, side, runs, programs)
            for point, side in zip((ratio.before, ratio.after), ratio.sides, strict=True)
        )
        around = replace(around, before=next(sides), after=next(sides))
        cause, evidence = explain(around)
    return describe(found, dated, around, cause, evidence, runs, programs)


def series_rows(history: History) -> list[SeriesRow]:
    """All series as values."""
    frame = history.series()
    return [SeriesRow(**dict(zip(frame.columns, row, strict=True))) for row in frame.itertuples(index=False, name=None)]


def _batches(history: History, rows: Sequence[SeriesRow], runs: Runs) -> Iterator[list[Values]]:
    """The values of all series, some hundred thousand points at a time."""
    ordered = sorted(rows, key=lambda row: row.series)
    start = 0
    while start < len(ordered):
        end, points = start, 0
        while end < len(ordered) and (end == start or points + ordered[end].points <= _BATCH):
            points += ordered[end].points
            end += 1
        loaded = load_values(history, [row.series for row in ordered[start:end]], runs)
        yield [
            Values(series=row.series, values=loaded[row.series].values, exact=is_exact(row.metric))
            for row in ordered[start:end]
            if row.series in loaded
        ]
        start = end


def _reversed(started: str) -> tuple[int, ...]:
    """A key that sorts later texts first."""
    return tuple(-ord(letter) for letter in started)


def _size(ratio: float) -> float:
    return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf
