"""Which rows of a comparison go where."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from harness.metrics import COMPILE_TIME, LATENCY, TIMED
from harness.records.comparison import Comparison, Row, Verdict

CHANGED: tuple[Verdict, ...] = ("regressed", "improved")
LOST: tuple[Verdict, ...] = ("failed", "missing")
_RELEVANT: frozenset[Verdict] = frozenset({*CHANGED, *LOST, "inconclusive"})
# A full report lists as many unchanged rows of counted figures: ten thousand cases have eight times as many of them.
MOST_COUNTED = 1_000
MEASURED: tuple[Verdict, ...] = (*CHANGED, "unchanged", "inconclusive")


def real_rows(comparison: Comparison) -> list[Row]:
    """All rows but the A/A controls."""
    return [row for row in comparison.rows if not row.control]


def controls(comparison: Comparison) -> list[Row]:
    """Rows of equal modules that were measured all the same."""
    return [row for row in comparison.rows if row.control]


def of_verdict(rows: Iterable[Row], *verdicts: Verdict) -> list[Row]:
    """Those with one of the verdicts."""
    return [row for row in rows if row.verdict in verdicts]


def of_metric(rows: Iterable[Row], metric: str) -> list[Row]:
    """Those of one metric."""
    return [row for row in rows if row.metric == metric]


def by_metric(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each metric, in the order of `metrics_of`."""
    found: dict[str, list[Row]] = {LATENCY.name: [], COMPILE_TIME.name: []}
    for row in rows:
        found.setdefault(row.metric, []).append(row)
    return {metric: group for metric, group in found.items() if group}


def metrics_of(rows: Iterable[Row]) -> list[str]:
    """Names of the metrics: latency and compile time first, then as they come."""
    return list(by_metric(rows))


def other_figures(rows: Iterable[Row]) -> list[Row]:
    """Rows of figures that are counted, not timed."""
    return [row for row in rows if row.metric not in TIMED]


def violated(comparison: Comparison) -> list[Row]:
    """Rows that break a gate of the suite."""
    return [row for row in real_rows(comparison) if row.gate == "violated"]


def cases(rows: Iterable[Row]) -> list[str]:
    """Names of their cases, each once."""
    return list(dict.fromkeys(row.case for row in rows))


def is_relevant(row: Row) -> bool:
    """Whether somebody may have to act on it."""
    return row.verdict in _RELEVANT or row.gate == "violated"


def largest_first(rows: Collection[Row]) -> list[Row]:
    """By how much they changed; from nothing to something is the largest change there is."""
    return sorted(rows, key=lambda row: -_size(row))


def new_ones(rows: Sequence[Row]) -> list[Row]:
    """New rows, for each case its latency where it has one, else everything."""
    new = of_verdict(rows, "new")
    timed = set(cases(of_metric(new, LATENCY.name)))
    return [row for row in new if row.metric == LATENCY.name or row.case not in timed]


def _size(row: Row) -> float:
    return abs(math.log(row.ratio)) if row.ratio is not None and row.ratio > 0 else math.inf
