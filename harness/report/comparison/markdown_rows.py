"""The lists of rows of a comparison's Markdown report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.metrics import LATENCY, TIMED
from harness.records.comparison import Comparison, Row
from harness.report.comparison.form import Form, size_bytes
from harness.report.comparison.selection import CHANGED, LOST, by_metric, cases, largest_first, metrics_of, of_verdict
from harness.report.comparison.words import (
    figure_title,
    interval_title,
    list_title,
    p_text,
    quotient,
    ratio_with_interval,
    unit_of,
)
from harness.report.markdown_text import TABLE_SIZE_CUT, blocks, cut_line, details, escape, fenced, table
from harness.report.titles import improved_title, regressed_title
from harness.report.units import NOTHING, Unit
from harness.report.words import change_text

# Of a comment, what a list of nothing but names may take.
_ROOM_FOR_NAMES_BYTES = 20_000


@dataclass(frozen=True, kw_only=True)
class _Column:
    head: str
    cell: Callable[[Row], str]
    number: bool = False


def change_tables(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """What regressed and what improved of each metric among the rows, the largest changes first."""
    parts = []
    for metric, group in by_metric(of_verdict(rows, *CHANGED)).items():
        for verdict, titled in (("regressed", regressed_title), ("improved", improved_title)):
            changed = largest_first([row for row in group if row.verdict == verdict])
            parts.append(_cut_table(titled(escape(list_title(metric))), comparison, changed, form))
    return blocks(*parts)


def gate_table(comparison: Comparison, rows: Sequence[Row], form: Form, *, cut: bool) -> str:
    """Rows that violate a gate, whatever their verdict."""
    parts = []
    for metric, group in by_metric(rows).items():
        title = f"Violated Gates: {escape(list_title(metric))} 🚨"
        parts.append(_cut_table(title, comparison, largest_first(group), form, why=True, cut=cut))
    return blocks(*parts)


def folded_tables(
    summary: str, comparison: Comparison, rows: Sequence[Row], form: Form, *, why: bool, cut: bool
) -> str:
    """Rows folded away behind a summary, a table for each metric."""
    if not rows:
        return ""
    groups = by_metric(rows)
    parts = []
    for metric, group in groups.items():
        head = f"#### {escape(list_title(metric))}" if len(groups) > 1 else ""
        shown = max(form.folded, TABLE_SIZE_CUT) if cut and not form.full else len(group)
        listed = _table(_columns(comparison, group, form, why=why), group, shown)
        parts.append(blocks(head, listed))
    return details(f"{summary} ({len(rows)})", blocks(*parts))


def new_table(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """Rows that the base does not have."""
    parts = []
    for metric, group in by_metric(rows).items():
        title = "New Benchmarks" if metric == LATENCY.name else f"New {escape(list_title(metric))}"
        parts.append(_cut_table(title, comparison, group, form, why=True))
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
        details(f"What the tools said of {form.cut(row.case)}", fenced(form.log(row.stderr)))
        for row in rows
        if row.stderr.strip()
    ]
    return blocks(*logs)


def lost_names(rows: Sequence[Row], form: Form) -> str:
    """Rows that failed or are missing, by name alone."""
    named = {str(verdict): cases([row for row in rows if row.verdict == verdict]) for verdict in LOST}
    return blocks(_LOST_TITLE, names_by_fate(named, form)) if rows else ""


def names_by_fate(named: Mapping[str, Sequence[str]], form: Form) -> str:
    """Names in a paragraph for each of the fates; those that there is no room for are counted."""
    lines = []
    room_bytes = _ROOM_FOR_NAMES_BYTES
    for fate, names in named.items():
        listed = _listed(names, form, room_bytes)
        room_bytes -= size_bytes(listed)
        if names:
            lines.append(f"{fate.capitalize()} ({len(names):,}): {listed}")
    return blocks(*lines)


_LOST_TITLE = "### Failed and Missing Benchmarks 🚨"


def identical_names(rows: Sequence[Row], form: Form) -> str:
    """Rows whose modules are equal, by name, folded away."""
    names = [row.case for row in of_verdict(rows, "identical")]
    room_bytes = None if form.full else _ROOM_FOR_NAMES_BYTES
    return details(f"Identical modules ({len(names)})", _listed(names, form, room_bytes)) if names else ""


def _listed(names: Sequence[str], form: Form, room_bytes: int | None) -> str:
    """Names in a line, where a block may begin; those that there is no room for are counted."""
    shown: list[str] = []
    for name in names:
        one = form.name(name) if shown else form.first_name(name)
        if room_bytes is not None:
            room_bytes -= size_bytes(one) + 2
            if room_bytes < 0:
                break
        shown.append(one)
    if len(shown) < len(names):
        shown.append(f"and {len(names) - len(shown):,} more")
    return ", ".join(shown)


def _cut_table(
    title: str, comparison: Comparison, rows: Sequence[Row], form: Form, *, why: bool = False, cut: bool = True
) -> str:
    """Rows of one metric; a comment has the first of them, and may have more of them folded away below."""
    if not rows:
        return ""
    columns = _columns(comparison, rows, form, why=why)
    title = f"### {title}" if title else ""
    if form.full or not cut:
        return blocks(title, _table(columns, rows, len(rows)))
    below = rows[TABLE_SIZE_CUT:]
    if not below or not form.folded:
        return blocks(title, _table(columns, rows, TABLE_SIZE_CUT))
    top = _table(columns, rows[:TABLE_SIZE_CUT], TABLE_SIZE_CUT)
    return blocks(title, top, details(f"{len(below):,} more", _table(columns, below, form.folded)))


def _table(columns: Sequence[_Column], rows: Sequence[Row], most: int) -> str:
    """The first rows, and a line that says so where there are more."""
    cells = [[column.cell(row) for column in columns] for row in rows[:most]]
    listed = table([column.head for column in columns], cells, numbers=[column.number for column in columns])
    return blocks(listed, cut_line(len(cells), len(rows)) if len(cells) < len(rows) else "")


def _value(row: Row, unit: Unit, *, percentage: bool) -> str:
    if row.base_value is None or row.head_value is None:
        return unit.text(row.head_value if row.base_value is None else row.base_value)
    ratio = quotient(row) if percentage else None
    return change_text(unit.text(row.head_value), unit.text(row.base_value), ratio)


def _has_percentage(row: Row, comparison: Comparison) -> bool:
    """Whether two values make a change: of timed rows without an interval, by upstream's rule alone.

    Medians of different generations may differ the other way than turns that ran side by side.
    """
    return row.metric not in TIMED or row.ci_low is not None or comparison.rule == "upstream"


def _columns(comparison: Comparison, rows: Sequence[Row], form: Form, *, why: bool) -> list[_Column]:
    """Those in which some row has something to say."""
    unit = unit_of(list(rows))
    title = figure_title(rows[0].metric) if rows else ""

    known: dict[tuple[float | None, float | None, bool], str] = {}  # thousands of cases may have the same count

    def value(row: Row) -> str:
        key = row.base_value, row.head_value, _has_percentage(row, comparison)
        if key not in known:
            known[key] = _value(row, unit, percentage=key[-1])
        return known[key]

    columns = [_Column(head="Benchmark Name", cell=lambda row: form.name(row.case))]
    if any(row.base_value is not None or row.head_value is not None for row in rows):
        head = f"{escape(title)}{f' ({unit.name})' if unit.name else ''}"
        columns.append(_Column(head=head, cell=value, number=True))
    brackets = any(row.ci_low is not None for row in rows)
    if brackets or any(row.metric in TIMED and row.ratio is not None for row in rows):
        head = f"Ratio [{interval_title(comparison, rows[0].metric)}]" if brackets else "Ratio"
        columns.append(_Column(head=head, cell=ratio_with_interval, number=True))
    if any(row.p is not None for row in rows):
        columns.append(_Column(head="p", cell=lambda row: _unbroken(p_text(row.p)), number=True))
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


def _unbroken(figure: str) -> str:
    """A figure that no browser breaks at its hyphen."""
    return figure if figure == NOTHING else figure.replace("-", "\u2011")
