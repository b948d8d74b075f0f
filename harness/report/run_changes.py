"""What a run's variants changed against their baseline: lists as a comparison has them, and a forest."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from harness.compare.rows import exact_verdict
from harness.compare.upstream import UPSTREAM_METRICS, judge_upstream
from harness.metrics import LATENCY, METRICS, Metric
from harness.records.case import VariantGroup
from harness.records.comparison import Row as ChangeRow
from harness.records.comparison import Verdict
from harness.report.changes import MOST_SHOWN, Layout, change_parts, list_parts, says_something
from harness.report.forest import USUAL_ROWS, Forest, Wording, blocks_of, chosen, rest_text
from harness.report.names import tidy
from harness.report.page import Column, Fold, Heading, Paragraph, Part, Table
from harness.report.run_report import Report
from harness.report.run_row import Row, side_label
from harness.report.run_words import run_line, verdict_of
from harness.report.run_words import verdict as outcome
from harness.report.units import NOTHING, Unit, change_text, share, time_unit
from harness.report.verdicts import RUN_WORDS, largest_first, list_title, of_metric, of_verdict
from harness.stats import CONFIDENCE

_INTERVAL = f"{CONFIDENCE * 100:.0f} % interval"
_RULE_OF_RATIOS = (
    "The ratio decides what is listed, and percentages are taken from it. It is that of turns that ran side by side, "
    "its median over rounds for each generation, and the mean of those; the two medians may differ by more or less."
)
_RULE_OF_METRICS = (
    "Listed against the baseline variant: compilation times that differ by more than 100 % (each case was compiled "
    "once), sizes by more than 5 %, dispatch counts by anything, and transient "
    f"memory by more than {share(METRICS['transient-memory'].floor)}."
)
# What a build is compared in.
_BUILD_METRICS = ("compile-time", "dispatch-size", "module-size", "dispatches", "transient-memory")


def side_by_side(group: VariantGroup, report: Report, *, full: bool) -> list[Part]:
    """The group's variants, the first being the one that the others are compared with; [] where none was measured."""
    first, *others = group.variants
    places: dict[str, dict[str, Row]] = {}
    for section in report.sections:
        for toolchain in section.toolchains:
            rows = {
                row.variant: row
                for row in section.rows
                if row.variant in group.variants and row.toolchain == toolchain and row.latency_ns is not None
            }
            if rows:
                places[side_label(section.group, toolchain, several=len(section.toolchains) > 1)] = rows
    if not places:
        return []
    unit = time_unit([row.latency_ns for rows in places.values() for row in rows.values()])
    means = {variant: _mean_speedup(places, variant, first) for variant in others}
    last = ["geometric mean"] if any(means.values()) else []
    columns = [Column(f"Name (latency in {unit.name})", [*places, *last], kind="name")]
    for variant in group.variants:
        cells = [_speedup_text(rows, variant, first, unit) for rows in places.values()]
        mean = [means.get(variant, "")] if last else []
        title = f"{first} (baseline)" if variant == first else variant
        columns.append(Column(title, [*cells, *mean], kind="number"))
    explained = f"X: how many times as fast as {first}, from turns that ran side by side."
    if last:
        explained += " Means are of what is decided; the ends of their intervals are the means of the rows' own."
    legend = Paragraph(explained, "dim")
    return [
        Heading(f"{group.title} Comparison Table"),
        Fold("Click to show", (Table(columns=columns), legend), open=full),
    ]


def _speedup_text(rows: Mapping[str, Row], variant: str, first: str, unit: Unit) -> str:
    """As IREE's tables had it: `30.000 (2.80X)`."""
    if variant not in rows:
        return "N/A"
    text = unit.text(rows[variant].latency_ns)
    return f"{text} ({_speedup(rows[first], rows[variant]):.2f}X)" if first in rows else text


def _mean_speedup(places: Mapping[str, Mapping[str, Row]], variant: str, first: str) -> str:
    """Over all models and devices where both are decided: `1.12X [1.08, 1.15] of 2`; "" where that is one or none."""
    both = [(rows[first], rows[variant]) for rows in places.values() if first in rows and variant in rows]
    decided = [(above, below) for above, below in both if "unclear" not in (above.kind, below.kind)]
    if len(decided) < 2 or not says_something(len(decided), len(both) - len(decided)):
        return ""
    speedups = [_speedup(above, below) for above, below in decided]
    ends = [(_ends(above), _ends(below)) for above, below in decided]
    text = f"{statistics.geometric_mean(speedups):.2f}X"
    known = [(above, below) for above, below in ends if above is not None and below is not None]
    if len(known) == len(decided):
        low = statistics.geometric_mean(above[0] / below[1] for above, below in known)
        high = statistics.geometric_mean(above[1] / below[0] for above, below in known)
        text += f" [{low:.2f}, {high:.2f}]"
    return f"{text} of {len(decided)}"


def _speedup(first: Row, row: Row) -> float:
    """How many times faster a row is: by the ratios of both to the run's baseline, which were taken round by round."""
    above, below = _ratio_to_baseline(first), _ratio_to_baseline(row)
    if above is not None and below is not None:
        return above / below
    return (first.latency_ns or 1.0) / (row.latency_ns or 1.0)


def _ends(row: Row) -> tuple[float, float] | None:
    """The interval of a row's ratio to the baseline; None where it has none."""
    if row.estimate is not None:
        low, high = row.estimate.low, row.estimate.high
        return None if low is None or high is None else (low, high)
    return (1.0, 1.0) if row.baseline or row.kind == "same" else None


def _ratio_to_baseline(row: Row) -> float | None:
    if row.estimate is not None:
        return row.estimate.ratio
    return 1.0 if row.baseline or row.kind == "same" else None


def _pairs(report: Report) -> Iterator[tuple[Row, Row]]:
    """Each row of IREE's that is no baseline, with its section's baseline."""
    for section in report.sections:
        base = next((row for row in section.rows if row.baseline), None)
        if base is not None:
            yield from ((row, base) for row in section.rows if not row.baseline and row.peer is None)


def _change(row: Row, metric: Metric, verdict: Verdict, **facts: Any) -> ChangeRow:
    """A row as a comparison has it, with the baseline variant as the base."""
    places: dict[str, Any] = {name: getattr(row, name) for name in ("case", "model", "variant", "device")}
    return ChangeRow(**places, metric=metric.name, unit=metric.unit, verdict=verdict, **facts)


def _latency_change(row: Row, base: Row | None, verdict: Verdict, floor: float) -> ChangeRow:
    estimate = row.estimate
    ratio, low, high = (estimate.ratio, estimate.low, estimate.high) if estimate is not None else (None, None, None)
    return _change(
        row,
        LATENCY,
        verdict,
        ratio=ratio,
        ci_low=low,
        ci_high=high,
        floor=floor,
        base_value=base.latency_ns if base is not None else None,
        head_value=row.latency_ns,
    )


def _title(baseline: str, metric: str, verdict: Verdict) -> str:
    """A run has no base, so nothing in it regressed: a variant is slower than the baseline, or has more of a thing."""
    if metric == LATENCY.name:
        return f"{'Slower' if verdict == 'regressed' else 'Faster'} than {baseline}"
    return f"{list_title(metric)}: {'more' if verdict == 'regressed' else 'less'} than {baseline}"


def latency_changes(report: Report, *, full: bool) -> list[Part]:
    """Slower and faster latencies; with `full` those that are similar, unclear, or without a baseline too."""
    rows = [
        _latency_change(row, base, verdict, report.floor)
        for row, base in _pairs(report)
        if (verdict := verdict_of(row)) is not None
    ]
    layout = Layout(
        intervals=lambda _: _INTERVAL,
        folded=None if full else 0,
        titles=partial(_title, report.facts.baseline),
        spans={row.case: (row.latency.low_ns, row.latency.high_ns) for row in report.rows() if row.latency is not None},
    )
    changes = change_parts(rows, layout)
    if changes:
        parts = [*changes, Paragraph(_RULE_OF_RATIOS, "dim")]
    else:
        nothing = f"No case is known to be faster or slower than {report.facts.baseline}."
        parts = [Paragraph(nothing)] if report.compares else []
    if full:
        parts += list_parts("Similar Latencies", largest_first(of_verdict(rows, "unchanged")), layout)
        parts += list_parts("Unclear Latencies", largest_first(of_verdict(rows, "inconclusive")), layout)
    return [*parts, *_raw_latencies(report, full=full)]


def _raw_latencies(report: Report, *, full: bool) -> list[Part]:
    """What was measured where the baseline was not."""
    rows = [
        row
        for section in report.sections
        if not any(row.baseline and row.latency_ns is not None for row in section.rows)
        for row in section.rows
        if row.latency_ns is not None
    ]
    if not rows:
        return []
    unit = time_unit([row.latency_ns for row in rows])
    columns = (
        Column("Benchmark Name", [row.case for row in rows], kind="name"),
        Column("Median Latency", [unit.text(row.latency_ns) for row in rows], kind="number", unit=unit.name),
    )
    return [Table(title="Raw Latencies", columns=columns, most=None if full else MOST_SHOWN)]


def metric_changes(report: Report, *, full: bool) -> list[Part]:
    """Larger and smaller figures of builds, by IREE's old thresholds; with `full` all of them."""
    pairs = [
        (row, base)
        for row, base in _pairs(report)
        if row.same_as is None and row.module_sha256 is not None and base.module_sha256 is not None
    ]
    rows = [
        judged
        for metric in _BUILD_METRICS
        for row, base in pairs
        if (judged := _metric_row(metric, row, base)) is not None
    ]
    baseline = report.facts.baseline
    layout = Layout(intervals=lambda _: _INTERVAL, folded=None if full else 0, titles=partial(_title, baseline))
    parts = change_parts(rows, layout)
    if parts:
        parts.append(Paragraph(_RULE_OF_METRICS, "dim"))
    elif pairs:
        parts = [Paragraph(f"No compilation metric differs much from {baseline}'s.")]
    return [*parts, *(_all_metrics(report) if full else [])]


def _metric_row(metric: str, row: Row, base: Row) -> ChangeRow | None:
    """One figure of a build against the baseline's; None where one of them has none."""
    before, value = base.figure(metric), row.figure(metric)
    if before is None or value is None:
        return None
    if metric in UPSTREAM_METRICS:
        judged = judge_upstream(metric, row.case, before, value).verdict
    else:
        judged = exact_verdict(before, value, METRICS[metric].floor)
    ratio = value / before if before else None
    return _change(row, METRICS[metric], judged, ratio=ratio, base_value=before, head_value=value)


def _all_metrics(report: Report) -> list[Part]:
    """Every build's figures, each compared with its section's baseline."""
    bases = {row.case: base for row, base in _pairs(report)}
    rows = [row for row in report.rows() if row.module_sha256 is not None]
    if not rows:
        return []
    columns = [Column("Benchmark Name", [row.case for row in rows], kind="name")]
    for metric in _BUILD_METRICS:
        size, unit = (1e6, "ms") if metric == "compile-time" else (1, METRICS[metric].unit.replace("count", ""))
        before = [bases[row.case].figure(metric) if row.case in bases else None for row in rows]
        cells = [_metric_text(row.figure(metric), base, size) for row, base in zip(rows, before, strict=True)]
        columns.append(Column(METRICS[metric].title, cells, kind="number", unit=unit))
    return [Table(title="All Compilation Metrics", columns=columns)]


def _metric_text(value: float | None, before: float | None, size: float) -> str:
    if value is None:
        return NOTHING
    if before is None:
        return f"{value / size:,.0f}"
    return change_text(f"{value / size:,.0f}", f"{before / size:,.0f}", value / before if before else None)


def forest_of_run(
    report: Report, *, keep: Callable[[str], bool] = lambda _: True, top: int | None = USUAL_ROWS
) -> Forest:
    """What to draw of a run: variants and peers against the baseline of their model and device."""
    rows: list[ChangeRow] = []
    labels: dict[str, str] = {}
    words: Counter[str] = Counter()
    for section in report.sections:
        base = next((row for row in section.rows if row.baseline), None)
        for row in section.rows:
            if not keep(row.case) or (row.baseline and row.status == "measured"):
                continue
            labels[row.case] = section.label(row)
            verdict = verdict_of(row) if row.estimate is not None else None
            drawn: Verdict | None = verdict or ("failed" if row.status == "failed" else None)
            drawn = drawn or ("missing" if row.status == "missing" else None)
            if drawn is not None:
                rows.append(_latency_change(row, base, drawn, report.floor))
            words[_word(row, report.floor)] += 1
    drawn_rows = chosen(rows, top)
    by_case = {row.case: row for row in report.rows()}
    words.subtract(_word(by_case[row.case], report.floor) for row in drawn_rows)
    facts = report.facts
    wording = Wording(
        words={**RUN_WORDS, "unchanged": f"same within {share(report.floor)}"},
        sides="baseline → variant",
        intervals=lambda _: _INTERVAL,
        labels=labels,
        peers={row.case for row in report.rows() if row.peer is not None},
        places={(section.model, section.device): section.place for section in report.sections},
    )
    return Forest(
        title=f"{tidy(facts.suite_name)}: variants against {tidy(facts.baseline)}",
        verdict=outcome(report),
        method=tidy(run_line(facts, report.sections)),
        blocks=blocks_of(of_metric(drawn_rows, LATENCY.name), wording),
        rest=rest_text(words),
    )


def _word(row: Row, floor: float) -> str:
    if row.status == "same":
        return "identical to another variant"
    verdict = verdict_of(row)
    if verdict is None:
        return row.status
    return f"same within {share(floor)}" if verdict == "unchanged" else RUN_WORDS[verdict]
