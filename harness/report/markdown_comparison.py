"""The comparison tables of the Markdown report: a suite's variants side by side, for every model and device."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from harness.records.case import VariantGroup
from harness.report.markdown_text import blocks, details, escape, name, table
from harness.report.units import Unit, time_unit
from harness.report.values import Report, Row, side_label


def comparison_table(group: VariantGroup, report: Report, *, full: bool) -> str:
    """The group's variants, the first being the one that the others are compared with; "" where none was measured."""
    first, *others = group.variants
    measured: dict[str, dict[str, Row]] = {}
    for section in report.sections:
        for toolchain in section.toolchains:
            rows = {
                row.variant: row
                for row in section.rows
                if row.variant in group.variants and row.toolchain == toolchain and row.latency_ns is not None
            }
            if rows:
                measured[side_label(section.group, toolchain, several=len(section.toolchains) > 1)] = rows
    if not measured:
        return ""
    unit = time_unit([row.latency_ns for rows in measured.values() for row in rows.values()])
    lines = [
        [name(place), *(_cell(rows, variant, first, unit) for variant in group.variants)]
        for place, rows in measured.items()
    ]
    means = [_mean_speedup(measured, variant, first) for variant in others]
    if any(means):
        lines.append(["geometric mean", "", *means])
    heads = [f"Name (latency in {unit.name})", f"{escape(first)} (baseline)", *map(escape, others)]
    legend = f"_X: how many times as fast as {escape(first)}, from turns that ran side by side._"
    body = blocks(table(heads, lines, numbers=(False, *[True] * len(group.variants))), legend)
    return blocks(f"### {escape(group.title)} Comparison Table", details("Click to show", body, folded=not full))


def _cell(rows: Mapping[str, Row], variant: str, first: str, unit: Unit) -> str:
    """As IREE's tables had it: `30.000 (2.80X)`."""
    if variant not in rows:
        return "N/A"
    text = unit.text(rows[variant].latency_ns)
    return f"{text} ({_speedup(rows[first], rows[variant]):.2f}X)" if first in rows else text


def _mean_speedup(measured: Mapping[str, Mapping[str, Row]], variant: str, first: str) -> str:
    """Over all models and devices that have both; "" where that is one or none."""
    speedups = [_speedup(rows[first], rows[variant]) for rows in measured.values() if first in rows and variant in rows]
    return f"{statistics.geometric_mean(speedups):.2f}X of {len(speedups)}" if len(speedups) > 1 else ""


def _speedup(first: Row, row: Row) -> float:
    """How many times faster a row is: by the ratios of both to the run's baseline, which were taken round by round."""
    above, below = _ratio_to_baseline(first), _ratio_to_baseline(row)
    if above is not None and below is not None:
        return above / below
    return (first.latency_ns or 1.0) / (row.latency_ns or 1.0)


def _ratio_to_baseline(row: Row) -> float | None:
    if row.estimate is not None:
        return row.estimate.ratio
    return 1.0 if row.baseline or row.kind == "same" else None
