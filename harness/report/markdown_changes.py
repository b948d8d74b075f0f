"""The change lists of the Markdown report: latencies and compile metrics against the baseline variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.report.markdown_text import blocks, escape, name, table, top_table
from harness.report.titles import NO_METRIC_CHANGED, NOTHING_CHANGED, UPSTREAM_TITLES, improved_title, regressed_title
from harness.report.units import NOTHING, time_unit
from harness.report.values import Report, Row
from harness.report.words import change_text, interval_text
from harness.stats import CONFIDENCE, Change


@dataclass(frozen=True, kw_only=True)
class _Metric:
    """One fact of a build, and how much it has to change to be listed.

    Attributes:
        threshold: Relative change above which it is listed. IREE's own comments listed compilation times from 100 %
            on, sizes from 5 %, and any change of the dispatch count (its benchmark_thresholds.py); transient memory,
            which they did not show, is exact like the count.
    """

    title: str
    head: str
    threshold: float
    value: Callable[[Row], float | None]


_METRICS = (
    _Metric(
        title=UPSTREAM_TITLES["compile-time"],
        head="Compilation Time (ms)",
        threshold=1.0,
        value=lambda row: None if row.compile_ns is None else row.compile_ns / 1e6,
    ),
    _Metric(
        title=UPSTREAM_TITLES["dispatch-size"],
        head="Total Dispatch Size (bytes)",
        threshold=0.05,
        value=lambda row: row.dispatch_bytes,
    ),
    _Metric(
        title=UPSTREAM_TITLES["module-size"],
        head="Total Artifact Size (bytes)",
        threshold=0.05,
        value=lambda row: row.module_bytes,
    ),
    _Metric(
        title=UPSTREAM_TITLES["dispatches"],
        head=UPSTREAM_TITLES["dispatches"],
        threshold=0.0,
        value=lambda row: row.dispatches,
    ),
    _Metric(
        title=UPSTREAM_TITLES["transient-memory"],
        head="Transient Memory (bytes)",
        threshold=0.0,
        value=lambda row: row.transient_bytes,
    ),
)

_RULE_OF_RATIOS = (
    "_Percentages compare the two medians shown. The ratio decides what is listed: it is taken between turns that ran "
    "side by side, its median over rounds for each generation, and the mean of those._"
)
_RULE_OF_METRICS = (
    "_Listed against the baseline variant: compilation times that differ by more than 100 % (each case was compiled "
    "once), sizes by more than 5 %, dispatch counts and transient memory by anything._"
)


def latency_changes(report: Report, *, full: bool) -> str:
    """Regressed and improved latencies; with `full` those that are similar, unclear, or without a baseline too."""
    pairs = [(row, base) for row, base in _pairs(report) if row.status == "measured"]
    changed = [
        _latency_table(regressed_title(UPSTREAM_TITLES["latency"]), _of_kind(pairs, "slower"), full=full),
        _latency_table(improved_title(UPSTREAM_TITLES["latency"]), _of_kind(pairs, "faster"), full=full),
    ]
    if any(changed):
        changed.append(_RULE_OF_RATIOS)
    else:
        changed = [NOTHING_CHANGED]
    if full:
        changed.append(_latency_table("Similar Latencies", _of_kind(pairs, "same"), full=True))
        changed.append(_latency_table("Unclear Latencies", _of_kind(pairs, "unclear"), full=True))
    return blocks(*changed, _raw_latencies(report, full=full))


def compile_changes(report: Report, *, full: bool) -> str:
    """Regressed and improved compile metrics; with `full` all of them."""
    pairs = [(row, base) for row, base in _pairs(report) if row.same_as is None and _built(row) and _built(base)]
    listed = [part for metric in _METRICS for part in _metric_tables(metric, pairs, full=full)]
    if any(listed):
        listed.append(_RULE_OF_METRICS)
    elif pairs:
        listed = [NO_METRIC_CHANGED]
    return blocks(*listed, _all_metrics(report) if full else "")


def _pairs(report: Report) -> Iterator[tuple[Row, Row]]:
    """Each row of IREE's that is no baseline, with its section's baseline."""
    for section in report.sections:
        base = next((row for row in section.rows if row.baseline), None)
        if base is not None:
            yield from ((row, base) for row in section.rows if not row.baseline and row.peer is None)


def _built(row: Row) -> bool:
    return row.module_sha256 is not None


def _of_kind(pairs: Sequence[tuple[Row, Row]], kind: Change) -> list[tuple[Row, Row]]:
    return sorted((pair for pair in pairs if pair[0].kind == kind), key=lambda pair: -_shift(pair[0]))


def _shift(row: Row) -> float:
    return abs(row.estimate.ratio - 1) if row.estimate is not None else 0.0


def _latency_table(title: str, pairs: Sequence[tuple[Row, Row]], *, full: bool) -> str:
    unit = time_unit([row.latency_ns for pair in pairs for row in pair])
    heads = (
        "Benchmark Name",
        f"Median Latency ({unit.name})",
        f"Ratio [{CONFIDENCE * 100:.0f} % interval]",
        f"Fastest to Slowest Generation ({unit.name})",
    )
    rows = [
        (
            name(row.case),
            change_text(
                unit.text(row.latency_ns),
                unit.text(base.latency_ns),
                row.latency_ns / base.latency_ns if row.latency_ns and base.latency_ns else None,
            ),
            escape(interval_text(row.estimate)),
            f"{unit.text(row.latency_low_ns)} to {unit.text(row.latency_high_ns)}",
        )
        for row, base in pairs
    ]
    return top_table(title, heads, rows, full=full, numbers=(False, True, True, True))


def _raw_latencies(report: Report, *, full: bool) -> str:
    """What was measured where the baseline was not."""
    rows = [
        row
        for section in report.sections
        if not any(row.baseline and row.latency_ns is not None for row in section.rows)
        for row in section.rows
        if row.latency_ns is not None
    ]
    unit = time_unit([row.latency_ns for row in rows])
    cells = [(name(row.case), unit.text(row.latency_ns)) for row in rows]
    return top_table(
        "Raw Latencies", ("Benchmark Name", f"Median Latency ({unit.name})"), cells, full=full, numbers=(False, True)
    )


def _metric_tables(metric: _Metric, pairs: Sequence[tuple[Row, Row]], *, full: bool) -> tuple[str, str]:
    """The regressed and the improved cases of one metric."""
    regressed: list[tuple[float, str, str]] = []
    improved: list[tuple[float, str, str]] = []
    for row, base in pairs:
        value, before = metric.value(row), metric.value(base)
        if value is None or before is None:
            continue
        # From nothing to something is the largest change there is.
        shift = abs(value - before) / before if before else float(value != before) and float("inf")
        if shift > metric.threshold:
            (regressed if value > before else improved).append((shift, name(row.case), _metric_text(value, before)))
    tables = []
    for title, found in ((regressed_title(metric.title), regressed), (improved_title(metric.title), improved)):
        found.sort(key=lambda one: -one[0])
        rows = [(case, text) for _, case, text in found]
        tables.append(top_table(title, ("Benchmark Name", metric.head), rows, full=full, numbers=(False, True)))
    return tables[0], tables[1]


def _metric_text(value: float, before: float) -> str:
    return change_text(f"{value:,.0f}", f"{before:,.0f}", value / before if before else None)


def _all_metrics(report: Report) -> str:
    """Every build's figures, each compared with its section's baseline."""
    bases = {row.case: base for row, base in _pairs(report)}
    rows = [row for row in report.rows() if _built(row)]
    if not rows:
        return ""
    cells = [[name(row.case), *(_metric_cell(metric, row, bases.get(row.case)) for metric in _METRICS)] for row in rows]
    heads = ["Benchmark Name", *(metric.head for metric in _METRICS)]
    return blocks("### All Compilation Metrics", table(heads, cells, numbers=(False, *[True] * len(_METRICS))))


def _metric_cell(metric: _Metric, row: Row, base: Row | None) -> str:
    value = metric.value(row)
    if value is None:
        return NOTHING
    before = metric.value(base) if base is not None else None
    return f"{value:,.0f}" if before is None else _metric_text(value, before)
