"""The lists of rows of a comparison's Markdown report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.compare.metrics import LATENCY
from harness.compare.values import Comparison, Row
from harness.report.comparison.form import Form
from harness.report.comparison.selection import largest_first, metrics_of, of_metric, of_verdict
from harness.report.comparison.words import (
    figure_title,
    interval_title,
    list_title,
    p_text,
    quotient,
    ratio_with_interval,
    unit_of,
)
from harness.report.markdown_text import blocks, details, escape, fenced, table, top_table
from harness.report.titles import improved_title, regressed_title
from harness.report.units import NOTHING
from harness.report.words import change_text

# Characters of a comment that a list of nothing but names may take.
_ROOM_FOR_NAMES = 20_000


@dataclass(frozen=True, kw_only=True)
class _Column:
    head: str
    cell: Callable[[Row], str]
    number: bool = False


def change_tables(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """What regressed and what improved of each metric among the rows, the largest changes first."""
    parts = []
    for metric in metrics_of(rows):
        for verdict, titled in (("regressed", regressed_title), ("improved", improved_title)):
            changed = largest_first([row for row in of_metric(rows, metric) if row.verdict == verdict])
            parts.append(_cut_table(titled(escape(list_title(metric))), comparison, changed, form))
    return blocks(*parts)


def gate_table(comparison: Comparison, rows: Sequence[Row], form: Form, *, cut: bool) -> str:
    """Rows that violate a gate, whatever their verdict."""
    parts = []
    for metric in metrics_of(rows):
        group = largest_first(of_metric(rows, metric))
        title = f"Violated Gates: {escape(list_title(metric))} 🚨"
        parts.append(_cut_table(title, comparison, group, form, why=True, cut=cut))
    return blocks(*parts)


def folded_tables(
    summary: str, comparison: Comparison, rows: Sequence[Row], form: Form, *, why: bool, cut: bool
) -> str:
    """Rows folded away behind a summary, a table for each metric."""
    if not rows:
        return ""
    metrics = metrics_of(rows)
    parts = []
    for metric in metrics:
        head = f"#### {escape(list_title(metric))}" if len(metrics) > 1 else ""
        listed = _cut_table("", comparison, of_metric(rows, metric), form, why=why, cut=cut)
        parts.append(blocks(head, listed))
    return details(f"{summary} ({len(rows)})", blocks(*parts))


def new_table(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """Rows that the base does not have."""
    parts = []
    for metric in metrics_of(rows):
        title = "New Benchmarks" if metric == LATENCY.name else f"New {escape(list_title(metric))}"
        parts.append(_cut_table(title, comparison, of_metric(rows, metric), form, why=True))
    return blocks(*parts)


def lost_table(rows: Sequence[Row], form: Form) -> str:
    """Rows that failed or are missing: never folded, never cut."""
    if not rows:
        return ""
    several = len(metrics_of(rows)) > 1
    heads = ["Benchmark Name", *(["Figure"] if several else []), "Verdict", "What happened"]
    lines = [
        [
            form.name(row.case),
            *([escape(figure_title(row.metric))] if several else []),
            row.verdict,
            form.text(f"{'A/A control: ' if row.control else ''}{row.reason}"),
        ]
        for row in rows
    ]
    return blocks(_LOST_TITLE, table(heads, lines))


def tool_output(rows: Sequence[Row], form: Form) -> str:
    """What the tools printed of rows that failed."""
    logs = [
        details(f"What the tools said of {form.cut(row.case)}", fenced(row.stderr))
        for row in rows
        if row.stderr.strip()
    ]
    return blocks(*logs)


def lost_names(rows: Sequence[Row], form: Form) -> str:
    """Rows that failed or are missing, by name alone; those that there is no room for are counted."""
    lines = []
    room = _ROOM_FOR_NAMES
    for verdict in ("failed", "missing"):
        names = list(dict.fromkeys(form.name(row.case) for row in rows if row.verdict == verdict))
        shown = []
        for one in names:
            room -= len(one) + 2
            if room < 0:
                break
            shown.append(one)
        if len(shown) < len(names):
            shown.append(f"and {len(names) - len(shown):,} more")
        if names:
            lines.append(f"{verdict.capitalize()} ({len(names):,}): {', '.join(shown)}")
    return blocks(_LOST_TITLE, *lines)


_LOST_TITLE = "### Failed and Missing Benchmarks 🚨"


def identical_names(rows: Sequence[Row], form: Form) -> str:
    """Rows whose modules are equal, by name."""
    names = [form.name(row.case) for row in of_verdict(rows, "identical")]
    return details(f"Identical modules ({len(names)})", ", ".join(names)) if names else ""


def _cut_table(
    title: str, comparison: Comparison, rows: Sequence[Row], form: Form, *, why: bool = False, cut: bool = True
) -> str:
    """Rows of one metric; a comment has the first of them."""
    columns = _columns(comparison, rows, form, why=why)
    cells = [[column.cell(row) for column in columns] for row in rows]
    heads = [column.head for column in columns]
    numbers = [column.number for column in columns]
    return top_table(title, heads, cells, full=form.full or not cut, numbers=numbers)


def _columns(comparison: Comparison, rows: Sequence[Row], form: Form, *, why: bool) -> list[_Column]:
    """Those in which some row has something to say."""
    unit = unit_of(list(rows))
    title = figure_title(rows[0].metric) if rows else ""

    def value(row: Row) -> str:
        if row.base_value is None or row.head_value is None:
            return unit.text(row.head_value if row.base_value is None else row.base_value)
        return change_text(unit.text(row.head_value), unit.text(row.base_value), quotient(row))

    columns = [
        _Column(head="Benchmark Name", cell=lambda row: form.name(row.case)),
        _Column(head=f"{escape(title)}{f' ({unit.name})' if unit.name else ''}", cell=value, number=True),
    ]
    if any(row.ci_low is not None for row in rows):
        head = f"Ratio [{interval_title(comparison, rows[0].metric)}]"
        columns.append(_Column(head=head, cell=lambda row: escape(ratio_with_interval(row)), number=True))
    if any(row.p is not None for row in rows):
        columns.append(_Column(head="p", cell=lambda row: p_text(row.p), number=True))
    if any(row.generations for row in rows):
        columns.append(_Column(head="Generations", cell=lambda row: str(row.generations or NOTHING), number=True))
    if why and any(row.seconds for row in rows):
        columns.append(_Column(head="Took (s)", cell=lambda row: f"{row.seconds:.1f}", number=True))
    if any(row.change for row in rows):
        columns.append(_Column(head="Kind of Change", cell=lambda row: form.text(row.change or "")))
    if any(row.gate for row in rows):
        columns.append(_Column(head="Gate", cell=lambda row: row.gate or ""))
    if why and any(row.reason for row in rows):
        columns.append(_Column(head="Why", cell=lambda row: form.text(row.reason)))
    return columns
