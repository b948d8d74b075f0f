"""Report -> text for a terminal, of a given width: one table for each model on each device."""

from __future__ import annotations

from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.report.columns import Column, main_columns
from harness.report.values import Report, Row, Section
from harness.report.words import (
    LEGEND,
    common_fate,
    correctness,
    next_steps,
    one_line,
    printable,
    run_line,
    sampling,
    verdict,
)

_GAP = 2
_LOG_LINES = 8


def render_terminal(report: Report, *, width: int, color: bool) -> str:
    """Lay a report out in `width` columns; colours only repeat what marks and words say."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        _print_head(console, report)
        for section in report.sections:
            _print_section(console, section)
        _print_failures(console, report)
        _print_foot(console, report)
    text = capture.get()
    return text if color else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _print_head(console: Console, report: Report) -> None:
    facts = report.facts
    title = Text(one_line(facts.suite_name), style="bold")
    title.append(f"  {one_line(facts.started)}  run {one_line(facts.id)}", style="not bold")
    console.print(title)
    if facts.suite_description:
        console.print(Text(one_line(facts.suite_description)))
    console.print(Text(run_line(facts, report.sections), style="dim"))
    for note in report.notes:
        console.print(Text(f"Note: {one_line(note)}", style="yellow"))


def _print_section(console: Console, section: Section) -> None:
    if fate := common_fate(section):
        console.print()
        console.print(Text(one_line(f"{section.model} on {section.device}"), style="bold"))
        console.print(Text(fate, style="dim"))
        return
    columns = main_columns(section)
    shown = _fitting(columns, console.width)
    room = console.width - sum(_width(column) + _GAP for column in shown)
    beside = all(cell_len(_remarks(row)) <= room for row in section.rows)
    heading = Text(one_line(f"{section.model} on {section.device}"), style="bold")
    facts = (one_line(section.device_facts), one_line(section.call), sampling((section,)))
    how = "; ".join(part for part in facts if part)
    heading.append(f"  {how}", style="not bold dim")
    console.print()
    console.print(heading)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="bold")
    for column in shown:
        table.add_column(_head(column), justify="right" if column.number else "left", overflow="fold")
    if beside and any(row.remarks for row in section.rows):
        table.add_column("remarks", overflow="fold")
    for index, row in enumerate(section.rows):
        cells = [Text(column.cells[index], style=_style(row)) for column in shown]
        table.add_row(*cells, *([Text(_remarks(row))] if len(table.columns) > len(shown) else []))
    console.print(table)
    if not beside:
        _print_remarks(console, section)
    if left_out := [column.head for column in columns if column not in shown]:
        console.print(Text(f"No room at this width for {', '.join(left_out)}.", style="dim"))


def _print_remarks(console: Console, section: Section) -> None:
    """Each distinct remark once, under the table, with the variants that it is about."""
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(overflow="fold", max_width=console.width // 2)
    table.add_column(ratio=1, overflow="fold")
    sharing: dict[str, list[Row]] = {}
    for row in section.rows:
        for remark in row.remarks:
            sharing.setdefault(one_line(remark), []).append(row)
    for remark, rows in sharing.items():
        variants = Text(", ").join(Text(one_line(row.variant), style=_style(row)) for row in rows)
        table.add_row(variants, Text(remark))
    console.print()
    console.print(table)


def _print_failures(console: Console, report: Report) -> None:
    """What the tools said of cases that failed unexpectedly, and how to repeat them."""
    for row in report.rows():
        if row.status != "failed" or row.failure is None:
            continue
        console.print()
        console.print(Text(f"{one_line(row.case)} failed at {row.failure.stage}", style="bold red"))
        lines = [line for line in printable(row.failure.stderr).splitlines() if line.strip()][-_LOG_LINES:]
        for line in lines or [one_line(row.failure.message)]:
            console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))
        for command in row.repro:
            # One long line each: a wrapped command cannot be copied.
            console.print(Text(f"  {one_line(command)}"), soft_wrap=True)


def _print_foot(console: Console, report: Report) -> None:
    console.print()
    if report.compares:
        console.print(Text(LEGEND, style="dim"))
    console.print(Text(verdict(report), style="bold"))
    if checked := correctness(report):
        console.print(Text(checked))
    for step in next_steps(report):
        console.print(Text(f"- {step.text}{': ' if step.command else ''}{step.command}"), soft_wrap=True)


def _fitting(columns: list[Column], width: int) -> list[Column]:
    """As many columns as fit side by side, those of the highest rank left out first."""
    shown = list(columns)
    while sum(_width(column) + _GAP for column in shown) - _GAP > width and any(column.rank for column in shown):
        shown.remove(max(shown, key=lambda column: column.rank))
    return shown


def _head(column: Column) -> Text:
    """Title over unit, which keeps columns of short figures narrow."""
    return Text(f"{column.title}\n({column.unit})" if column.unit else column.title)


def _width(column: Column) -> int:
    return max(cell_len(text) for text in (*_head(column).plain.splitlines(), *column.cells))


def _remarks(row: Row) -> str:
    return "; ".join(one_line(remark) for remark in row.remarks)


def _style(row: Row) -> str:
    if row.status in ("failed", "missing"):
        return "red"
    if row.status != "measured":
        return "dim"
    return {"faster": "green", "slower": "red", "unclear": "yellow"}.get(row.kind or "", "")
