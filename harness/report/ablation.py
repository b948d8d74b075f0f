"""A run of an ablation -> one table a section: what each option of a plugin does, alone and left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.report.columns import Column, ir_columns, main_columns
from harness.report.markdown_text import blocks, escape, name, table
from harness.report.values import Report, Row, Section
from harness.report.words import legend, run_line, sampling
from harness.text import one_line

# Of the main table; an ablation is about what the compiler does with each step, and how fast that is.
_LEFT_OUT = ("instr/call", "module", "compile")


def render_ablation(report: Report) -> str:
    """Markdown: facts of the run, then a table for each model and device, and why variants failed."""
    parts = [
        f"## {escape(report.facts.suite_description or report.facts.suite_name)}",
        escape(run_line(report.facts, report.sections)),
        *(escape(note) for note in report.notes),
        f"_{escape(legend(report))}._" if report.compares else "",
    ]
    first: dict[str, Row] = {}
    for row in report.rows():
        if row.module_sha256 is not None:
            first.setdefault(row.module_sha256, row)
    for section in report.sections:
        how = "; ".join(
            part for part in (escape(section.device_facts), name(section.call), sampling((section,))) if part
        )
        parts += [f"#### {escape(f'{section.model} on {section.device}')}", how, ablation_table(section, first)]
        parts.append("\n".join(_failures(section)))
    return blocks(*parts) + "\n"


def ablation_table(section: Section, first: Mapping[str, Row]) -> str:
    """One row a step: latency and its ratio, what the module has, and the ops at each phase.

    Args:
        first: By hash, the first row with that module.
    """
    main = [column for column in main_columns(section) if column.title not in _LEFT_OUT]
    counted = [column for column in ir_columns(section) if column.number]
    same = tuple(one_line(_same(row, first)) for row in section.rows)
    module = [Column(title="same code as", cells=same, number=False)] if any(same) else []
    columns = [*main, *counted, *module]
    rows = [[escape(cell) for cell in cells] for cells in zip(*(column.cells for column in columns), strict=True)]
    return table([escape(column.head) for column in columns], rows, numbers=[column.number for column in columns])


def _failures(section: Section) -> Iterator[str]:
    for row in section.rows:
        if row.failure is not None:
            yield f"- {escape(row.variant)}: {escape(row.remarks[0])}"


def _same(row: Row, first: Mapping[str, Row]) -> str:
    """The first row with the same module: its variant, with its model where that is another; how a row failed."""
    if row.failure is not None:
        return f"failed at {row.failure.stage}"
    if row.module_sha256 is None or first[row.module_sha256] is row:
        return ""
    other = first[row.module_sha256]
    return other.variant if other.group == row.group else other.case
