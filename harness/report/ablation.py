"""A run of an ablation -> one table a section: what each option of a plugin does, alone and left out."""

from __future__ import annotations

from harness.report.columns import Column, ir_columns, main_columns
from harness.report.markdown_text import blocks, escape, name, table
from harness.report.values import Report, Row, Section
from harness.report.words import LEGEND, one_line, run_line, sampling

# Of the main table; an ablation is about what the compiler does with each step, and how fast that is.
_LEFT_OUT = ("instr/call", "module", "compile")


def render_ablation(report: Report) -> str:
    """Markdown: facts of the run, then a table for each model and device."""
    parts = [
        f"## {escape(report.facts.suite_description or report.facts.suite_name)}",
        escape(run_line(report.facts, report.sections)),
        *(escape(note) for note in report.notes),
        f"_{escape(LEGEND)}._" if report.compares else "",
    ]
    for section in report.sections:
        how = "; ".join(
            part for part in (escape(section.device_facts), name(section.call), sampling((section,))) if part
        )
        parts += [f"#### {escape(f'{section.model} on {section.device}')}", how, ablation_table(section)]
    return blocks(*parts) + "\n"


def ablation_table(section: Section) -> str:
    """One row a step: latency and its ratio, what the module has, and the ops at each phase."""
    main = [column for column in main_columns(section) if column.title not in _LEFT_OUT]
    counted = [column for column in ir_columns(section) if column.number]
    module = Column(
        title="same code as", cells=tuple(one_line(_same(row, section)) for row in section.rows), number=False
    )
    columns = [*main, *counted, *([module] if any(module.cells) else [])]
    rows = [[escape(cell) for cell in cells] for cells in zip(*(column.cells for column in columns), strict=True)]
    return table([escape(column.head) for column in columns], rows, numbers=[column.number for column in columns])


def _same(row: Row, section: Section) -> str:
    """The first variant with the same module; what failed says so instead."""
    if row.failure is not None:
        return f"failed at {row.failure.stage}"
    if row.module_sha256 is None:
        return ""
    first = next(one for one in section.rows if one.module_sha256 == row.module_sha256)
    return "" if first is row else first.variant
