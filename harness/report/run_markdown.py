"""Report -> Markdown for a pull request or an issue, in the layout of the comments that IREE's benchmarks used to post.

The abbreviated form is a comment: a verdict, what went wrong, the largest changes. The full form has every row of every
list, and the environment. Neither hides a failure.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from harness.report.columns import Column, ir_columns, main_columns
from harness.report.markdown_changes import compile_changes, latency_changes
from harness.report.markdown_comparison import comparison_table
from harness.report.markdown_text import (
    COMMENT_LIMIT,
    TABLE_SIZE_CUT,
    blocks,
    details,
    escape,
    fenced,
    marker,
    name,
    paragraph,
    table,
    what_next,
)
from harness.report.roofline import roofline_columns, roofline_line
from harness.report.values import Report, Row, Section, Status
from harness.report.words import Step, common_fate, correctness, legend, next_steps, run_line, sampling, trust, verdict

# What a comment that would be too long does without, one more each time.
_COMMANDS, _TABLES = "the commands of each case", "the table of each model and device"
_DISPENSABLE: tuple[tuple[str, ...], ...] = ((), (_COMMANDS,), (_COMMANDS, _TABLES))


def render_markdown(report: Report, *, full: bool) -> str:
    """Lay a report out for GitHub: abbreviated for a comment, or everything there is."""
    if full:
        return _page(report, full=True)
    pages = [_page(report, full=False, left_out=left_out) for left_out in _DISPENSABLE]
    return next((page for page in pages if len(page) <= COMMENT_LIMIT), pages[-1])


def _page(report: Report, *, full: bool, left_out: Sequence[str] = ()) -> str:
    facts = report.facts
    return (
        blocks(
            marker(facts.suite_name),
            f"## {'Full' if full else 'Abbreviated'} Benchmark Summary",
            f"**{escape(verdict(report))}**",
            f"@ {name(facts.suite)}, run {name(facts.id)} of {escape(facts.started)}: "
            f"{escape(run_line(facts, report.sections))}",
            "\n".join(f"> {paragraph(note)}" for note in report.notes),
            escape(correctness(report)),
            escape(trust(report)),
            failures(report),
            *(comparison_table(group, report, full=full) for group in report.comparisons),
            latency_changes(report, full=full),
            "" if _TABLES in left_out else results(report, full=full),
            compile_changes(report, full=full),
            folded_cases("Expected Failures", report, "expected failure"),
            folded_cases("Skipped Cases", report, "skipped"),
            "" if _COMMANDS in left_out else reproduce(report),
            _environment(report) if full else "",
            _more(report, full=full, left_out=left_out),
        )
        + "\n"
    )


def failures(report: Report) -> str:
    """Cases that have no figures though they should: first, and never folded."""
    rows = [row for row in report.rows() if row.status in ("failed", "missing")]
    if not rows:
        return ""
    logs = [
        details(f"What the tools said of {row.case}", fenced(row.failure.stderr))
        for row in rows
        if row.failure is not None and row.failure.stderr.strip()
    ]
    return blocks(
        "### Failed Cases 🚨",
        table(("Benchmark Name", "What happened"), [(name(row.case), _remarks(row)) for row in rows]),
        *logs,
    )


def results(report: Report, *, full: bool) -> str:
    """The main table of each section; folded in a comment that would otherwise be tables from end to end."""
    folded = not full and len(report.sections) > TABLE_SIZE_CUT
    parts = []
    for section in report.sections:
        title = f"{section.model} on {section.device}"
        facts = (paragraph(section.device_facts), name(section.call), sampling((section,)))
        how = "; ".join(part for part in facts if part)
        if fate := common_fate(section):
            parts.append(blocks(f"#### {escape(title)}", f"{escape(fate)}."))
        elif folded:
            parts.append(details(title, blocks(how, _main_table(section), _ir_table(section))))
        else:
            roofline = _roofline(section) if full else ""
            parts.append(blocks(f"#### {escape(title)}", how, _main_table(section), roofline, _ir_table(section)))
    return blocks("### Results", f"_{escape(legend(report))}._" if report.compares else "", *parts)


def _main_table(section: Section) -> str:
    remarks = [_remarks(row) for row in section.rows] if any(row.remarks for row in section.rows) else []
    return _table_of(main_columns(section), remarks)


def _roofline(section: Section) -> str:
    """What a call has to do, what the machine could, and what each case reaches; "" where nothing is known."""
    columns = roofline_columns(section)
    return blocks(escape(roofline_line(section)), _table_of(columns) if columns else "")


def _ir_table(section: Section) -> str:
    """Op counts, folded away; "" where the suite names no ops, or no case has any."""
    columns = ir_columns(section)
    return details("Operations, by phase of the compiler", _table_of(columns)) if columns else ""


def _table_of(columns: Sequence[Column], remarks: Sequence[str] = ()) -> str:
    rows = [
        [*map(escape, cells), *remarks[index : index + 1]]
        for index, cells in enumerate(zip(*(column.cells for column in columns), strict=True))
    ]
    heads = [*(escape(column.head) for column in columns), *(["remarks"] if remarks else [])]
    return table(heads, rows, numbers=[column.number for column in columns])


def folded_cases(title: str, report: Report, status: Status) -> str:
    """Cases with one status and why they have it, folded away."""
    rows = [(name(row.case), _remarks(row)) for row in report.rows() if row.status == status]
    return details(f"{title} ({len(rows)})", table(("Benchmark Name", "Why"), rows)) if rows else ""


def reproduce(report: Report) -> str:
    """The commands that repeat each case with plain tools, folded away."""
    commands = [details(row.case, fenced("\n".join(row.repro), "sh")) for row in report.rows() if row.repro]
    return blocks("### Reproduce", details("Commands of each case", blocks(*commands))) if commands else ""


def _environment(report: Report) -> str:
    facts = report.facts
    sections = {**facts.environment, "settings": facts.settings, "run": {"command": shlex.join(facts.command)}}
    rows = [
        (name(f"{section}.{key}"), escape(value if isinstance(value, str) else json.dumps(value, default=str)))
        for section, values in sections.items()
        for key, value in values.items()
    ]
    return blocks("### Environment", details("Click to show", table(("Fact", "Value"), rows)))


def _more(report: Report, *, full: bool, left_out: Sequence[str]) -> str:
    steps = next_steps(report)
    if not full:
        command = f"harness report results/{report.facts.id} --format markdown --full"
        more = ", ".join(("every row of every list", "the environment", *left_out))
        steps.append(Step(text=f"what this comment leaves out ({more})", command=command))
    return what_next(steps)


def _remarks(row: Row) -> str:
    return "<br>".join(escape(remark) for remark in row.remarks)
