"""The table on top of a comment: what changed, figure by figure, in numbers of rows and ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.metrics import INSTRUCTIONS, LATENCY, TIMED, metric_named
from harness.records.comparison import Comparison, Row
from harness.report.comparison.markdown_parts import says_something
from harness.report.comparison.selection import (
    CHANGED,
    cases,
    largest_first,
    metrics_of,
    of_metric,
    of_verdict,
    real_rows,
)
from harness.report.comparison.words import figure_title
from harness.report.markdown_text import escape, table
from harness.report.titles import UPSTREAM_TITLES
from harness.report.units import percent

# What a comment shows unfolded: what is timed, and the figures that IREE's own comments had.
_FIRST = (*TIMED, INSTRUCTIONS.name, *UPSTREAM_TITLES)
# Of the other figures; a suite may count any number of ops.
_MOST = 30
# Beyond this a ratio is no percentage that anybody reads.
_LARGEST_RATIO = 1e6


def overview(comparison: Comparison) -> str:
    """One line for each timed figure, and for each other known one of which a row changed; "" where nothing changed."""
    rows = real_rows(comparison)
    if not of_verdict(rows, *CHANGED):
        return ""
    return _table([metric for metric in _changed_metrics(rows) if metric in _FIRST], rows)


def overview_of_others(comparison: Comparison) -> str:
    """The same for all other figures; "" where none changed."""
    rows = real_rows(comparison)
    return _table([metric for metric in _changed_metrics(rows) if metric not in _FIRST], rows)


def _changed_metrics(rows: Sequence[Row]) -> list[str]:
    return [
        metric
        for metric in metrics_of(rows)
        if of_verdict(of_metric(rows, metric), *CHANGED) or (metric in TIMED and _compared(of_metric(rows, metric)))
    ]


def _table(metrics: Sequence[str], rows: Sequence[Row]) -> str:
    if not metrics:
        return ""
    lines = [_line(metric, _standing_for(metric, rows)) for metric in metrics[:_MOST]]
    if len(lines) < len(metrics):
        lines.append((f"... {len(metrics) - len(lines)} more figures changed", "", "", "", "", ""))
    heads = ("", "Regressed 🚩", "Improved 🎉", "Unchanged", "Inconclusive", "Geometric Mean")
    return table(heads, lines, numbers=(False, True, True, True, True, True))


def _standing_for(metric: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of a metric; of one that is counted also the identical ones, since equal modules have no others."""
    found = of_metric(rows, metric)
    known = metric_named(metric)
    if known is None or not known.exact:
        return found
    there = set(cases(found))
    return [*found, *(row for row in of_verdict(rows, "identical") if row.case not in there)]


def _line(metric: str, rows: Sequence[Row]) -> tuple[str, ...]:
    title = LATENCY.title if metric == LATENCY.name else figure_title(metric)
    return (
        escape(title[:100]),
        _changed(of_verdict(rows, "regressed"), "worst"),
        _changed(of_verdict(rows, "improved"), "best"),
        _unchanged(rows),
        _number(len(of_verdict(rows, "inconclusive"))),
        _mean(rows),
    )


def _changed(rows: Sequence[Row], word: str) -> str:
    """`3, worst +10.3 %`; what came from nothing has no percentage."""
    if not rows:
        return ""
    if all(row.base_value == 0 for row in rows):
        return f"{len(rows):,}, from 0"
    known = [row for row in rows if row.base_value == 0 or (row.ratio is not None and row.ratio < _LARGEST_RATIO)]
    if not known:
        return f"{len(rows):,}"
    largest = largest_first(known)[0]
    figure = "from 0" if largest.ratio is None else _percent(largest.ratio)
    return f"{len(rows):,}{f', {word}' if len(rows) > 1 else ','} {figure}"


def _unchanged(rows: Sequence[Row]) -> str:
    identical = len(of_verdict(rows, "identical"))
    unchanged = len(of_verdict(rows, "unchanged"))
    return _number(unchanged + identical) + (f", {identical:,} identical" if identical and unchanged else "")


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def _compared(rows: Sequence[Row]) -> list[float]:
    """Their ratios; equal modules have 1."""
    ratios = [1.0 if row.verdict == "identical" else row.ratio for row in rows if row.verdict != "failed"]
    return [ratio for ratio in ratios if ratio is not None and ratio > 0]


def _mean(rows: Sequence[Row]) -> str:
    """Of all rows that were compared, not only those that changed.

    Nothing where it would mislead: most rows are not decided, or a change from 0 or to 0 would not be in it.
    """
    ratios = _compared(rows)
    if not ratios or not says_something(len(ratios), len(of_verdict(rows, "inconclusive"))):
        return ""
    if any(0 in (row.base_value, row.head_value) for row in of_verdict(rows, *CHANGED)):
        return ""
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return f"{_percent(mean)} of {len(ratios):,}" if mean < _LARGEST_RATIO else ""


def _percent(ratio: float) -> str:
    """A signed change that no browser breaks before its sign."""
    return percent(ratio, decimals=1).replace(" ", "\u00a0")
