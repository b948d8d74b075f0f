"""Steps and drifts of every series of a history, each with its cause."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.history.causes import explain
from harness.history.describe import Seen, describe, edges, sighting_of
from harness.history.search import Values, search
from harness.history.series_view import SeriesRow
from harness.history.strands import (
    CaseKey,
    Runs,
    case_key,
    explaining,
    is_exact,
    kin_of,
    load_made,
    load_strands,
    usable_runs,
)
from harness.history.values import Change
from harness.progress import Progress, Silent

if TYPE_CHECKING:
    from harness.history.open import History

# Points of a batch: 1.6 MB of values.
_BATCH = 200_000


def find_all(
    history: History,
    *,
    metrics: Collection[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Change]:
    """The changes of all series, the latest first, the largest first within a run.

    Left out are runs that are not finished and runs whose clock was wrong.

    Args:
        metrics: Only series of these (default: all).
        jobs: Processes that search (default: one for each core, where that is worth it).
        progress: Who is told how far it is.
    """
    progress = progress or Silent()
    rows = series_rows(history)
    chosen = [row for row in rows if (metrics is None or row.metric in metrics) and row.points > 1]
    runs = usable_runs(history)
    progress.stage("Searching series", len(chosen))
    points = sum(row.points for row in chosen)
    found = search(_batches(history, chosen, runs), points=points, jobs=jobs, progress=progress)
    flagged = [row for row in chosen if row.series in found]
    kin = _kin_rows(rows, flagged)
    needed = {row.series for row in flagged} | {row.series for of_case in kin.values() for row in of_case}
    strands = load_strands(history, needed, runs)
    seen = [
        Seen(row=row, strand=strands[row.series], place=place, points=found[row.series])
        for row in flagged
        for place in range(len(found[row.series]))
    ]
    made = load_made(history, {(one.row.series, runs.ids[edge]) for one in seen for edge in edges(one)})
    changes = []
    for one in seen:
        sighting = sighting_of(one, kin_of(kin.get(case_key(one.row), []), strands), runs, made)
        cause, evidence = explain(sighting)
        changes.append(describe(one, sighting, cause, evidence, runs, made))
    return sorted(changes, key=lambda one: (_reversed(one.started), -_size(one.ratio), one.suite, one.case, one.metric))


def series_rows(history: History) -> list[SeriesRow]:
    """All series as values."""
    frame = history.series()
    return [SeriesRow(**dict(zip(frame.columns, row, strict=True))) for row in frame.itertuples(index=False, name=None)]


def _kin_rows(rows: Sequence[SeriesRow], flagged: Sequence[SeriesRow]) -> dict[CaseKey, list[SeriesRow]]:
    """What times that changed are held against, by case."""
    wanted = {case_key(row) for row in flagged if not is_exact(row.metric) and row.role == "newest"}
    of_case: dict[CaseKey, list[SeriesRow]] = {key: [] for key in wanted}
    for row in rows:
        if case_key(row) in wanted:
            of_case[case_key(row)].append(row)
    return {key: explaining(members) for key, members in of_case.items()}


def _batches(history: History, rows: Sequence[SeriesRow], runs: Runs) -> Iterator[list[Values]]:
    """The values of all series, some hundred thousand points at a time."""
    ordered = sorted(rows, key=lambda row: row.series)
    start = 0
    while start < len(ordered):
        end, points = start, 0
        while end < len(ordered) and (end == start or points + ordered[end].points <= _BATCH):
            points += ordered[end].points
            end += 1
        strands = load_strands(history, [row.series for row in ordered[start:end]], runs)
        yield [
            Values(series=row.series, values=strands[row.series].values, exact=is_exact(row.metric))
            for row in ordered[start:end]
            if row.series in strands
        ]
        start = end


def _reversed(started: str) -> tuple[int, ...]:
    """A key that sorts later texts first."""
    return tuple(-ord(letter) for letter in started)


def _size(ratio: float) -> float:
    return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf
