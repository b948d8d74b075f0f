"""Report -> text for a terminal, of a given width: one table for each model on each device."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.columns import ir_columns, main_columns
from harness.report.roofline import roofline_line
from harness.report.terminal_text import (
    GAP,
    drawn,
    empty_table,
    fitting,
    print_failure,
    print_left_out,
    print_steps,
    room_beside,
)
from harness.report.values import Report, Row, Section
from harness.report.words import common_fate, correctness, legend, next_steps, run_line, sampling, trust, verdict
from harness.text import one_line


def render_terminal(report: Report, *, width: int, color: bool) -> str:
    """Lay a report out in `width` columns; colours only repeat what marks and words say."""

    def draw(console: Console) -> None:
        _print_head(console, report)
        for section in report.sections:
            _print_section(console, section)
        _print_failures(console, report)
        _print_foot(console, report)

    return drawn(draw, width=width, color=color)


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
    shown = fitting(columns, console.width)
    room = room_beside(shown, console.width)
    beside = all(cell_len(_remarks(row)) <= room for row in section.rows)
    heading = Text(one_line(f"{section.model} on {section.device}"), style="bold")
    facts = (one_line(section.device_facts), one_line(section.call), sampling((section,)))
    how = "; ".join(part for part in facts if part)
    heading.append(f"  {how}", style="not bold dim")
    console.print()
    console.print(heading)
    if bounds := roofline_line(section):
        console.print(Text(bounds, style="dim"))
    table = empty_table(shown)
    if beside and any(row.remarks for row in section.rows):
        table.add_column("remarks", overflow="fold")
    for index, row in enumerate(section.rows):
        cells = [Text(column.cells[index], style=_style(row)) for column in shown]
        table.add_row(*cells, *([Text(_remarks(row))] if len(table.columns) > len(shown) else []))
    console.print(table)
    if not beside:
        _print_remarks(console, section)
    print_left_out(console, columns, shown)
    _print_ir(console, section)


def _print_ir(console: Console, section: Section) -> None:
    """Op counts, in a table of their own, since their heads are long."""
    columns = ir_columns(section)
    if not columns:
        return
    shown = fitting(columns, console.width)
    table = empty_table(shown)
    for index, row in enumerate(section.rows):
        table.add_row(*(Text(column.cells[index], style=_style(row)) for column in shown))
    console.print()
    console.print(Text("Operations, by phase of the compiler", style="dim"))
    console.print(table)
    print_left_out(console, columns, shown)


def _print_remarks(console: Console, section: Section) -> None:
    """Each distinct remark once, under the table, with the variants that it is about."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(overflow="fold", max_width=console.width // 2)
    table.add_column(ratio=1, overflow="fold")
    sharing: dict[str, list[Row]] = {}
    for row in section.rows:
        for remark in row.remarks:
            sharing.setdefault(one_line(remark), []).append(row)
    for remark, rows in sharing.items():
        variants = Text(", ").join(Text(one_line(section.label(row)), style=_style(row)) for row in rows)
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
        print_failure(console, row.failure.stderr or row.failure.message, row.repro)


def _print_foot(console: Console, report: Report) -> None:
    console.print()
    if report.compares:
        console.print(Text(legend(report), style="dim"))
    console.print(Text(verdict(report), style="bold"))
    if checked := correctness(report):
        console.print(Text(checked))
    if trusted := trust(report):
        console.print(Text(trusted))
    print_steps(console, next_steps(report))


def _remarks(row: Row) -> str:
    return "; ".join(one_line(remark) for remark in row.remarks)


def _style(row: Row) -> str:
    if row.status in ("failed", "missing"):
        return "red"
    if row.status != "measured":
        return "dim"
    return {"faster": "green", "slower": "red", "unclear": "yellow"}.get(row.kind or "", "")
