"""Run -> page: for a terminal, as a comment of bounded length, or with everything there is; and that of an ablation.

The lists of changes are those of a comparison, with the baseline variant as the base.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from harness.compare.pairs import WHERE_ALL_IS
from harness.errors import ExitCode
from harness.machine.identity import describe_machine
from harness.report.changes import MOST_SHOWN, Cause, Fate, cause_parts, causes_of, names_by_fate, tool_output
from harness.report.page import (
    Bullets,
    Code,
    Column,
    Fold,
    Heading,
    Inline,
    Name,
    Page,
    Paragraph,
    Part,
    Sentence,
    Steps,
    Table,
    Tone,
    Warnings,
)
from harness.report.pages import Content, ReportContext, choice, commit_name, pictures_of, values_table
from harness.report.run_changes import latency_changes, metric_changes, side_by_side
from harness.report.run_fields import ir_columns, main_columns, roofline_columns, roofline_line
from harness.report.run_report import Report, exit_code
from harness.report.run_row import Row, Section, Status
from harness.report.run_rows import reference_sentence
from harness.report.run_words import (
    common_fate,
    correctness,
    first_look,
    legend,
    next_steps,
    run_line,
    sampling,
    trust,
    verdict_of,
)
from harness.report.run_words import verdict as outcome
from harness.report.verdicts import LOST, TONES, medians_sentence
from harness.store.files import log_path

_MOST_NOTES = 8
_MOST_HOSTS = 20
# Columns of the main table that an ablation leaves out: it is about what each step does to code and latency.
_NOT_ABLATED = ("instr/call", "module", "compile")


def terminal_page(report: Report) -> Page:
    """A table for each model on each device, what the tools said of failures, and the verdict."""
    facts = report.facts
    return Page(
        parts=(
            Heading(facts.suite_name, aside=f"{facts.started}, run {facts.id}"),
            Paragraph(facts.suite_description),
            Paragraph(run_line(facts, report.sections), "dim"),
            *_hosts(report),
            Warnings(report.notes),
            *(part for section in report.sections for part in _terminal_section(section)),
            *_failures(report),
            Paragraph(legend(report), "dim"),
            Paragraph(outcome(report), "strong"),
            *map(Paragraph, _closing(report)),
            Steps(next_steps(report)),
        )
    )


def _closing(report: Report) -> list[Sentence]:
    """How far to trust the figures."""
    medians = medians_sentence(
        (f"{row.variant} ({_title(section)})", base.latency_ns, row.latency_ns, row.estimate.ratio)
        for section in report.sections
        for base in section.rows
        for row in section.rows
        if base.baseline and row.status == "measured" and row.estimate is not None
    )
    lines = (
        first_look(report),
        correctness(report),
        medians,
        reference_sentence(report.rows()),
        trust(report),
    )
    return [line for line in lines if line]


def _title(section: Section) -> str:
    """`net on cpu`, and where there are several hosts, which of them measured it."""
    return f"{section.model} on {section.device}{f' of {section.host}' if section.host else ''}"


def _hosts(report: Report) -> list[Part]:
    """What each host is, where several measured the run; their figures do not compare."""
    hosts = report.facts.hosts
    if not hosts:
        return []
    groups = Counter(section.host for section in report.sections)
    columns = (
        Column("host", list(hosts)),
        Column("machine", [describe_machine(environment) for environment in hosts.values()]),
        Column("groups", [str(groups[host]) for host in hosts], kind="number"),
    )
    return [Table(title="Hosts; figures of one do not compare with another's", columns=columns, most=_MOST_HOSTS)]


def _terminal_section(section: Section) -> list[Part]:
    title = _title(section)
    if fate := common_fate(section):
        return [Heading(title), Paragraph(fate, "dim")]
    facts = (section.device_facts, section.call, sampling((section,)))
    ops = ir_columns(section)
    tones = [_tone(row) for row in section.rows]
    return [
        Heading(title, aside="; ".join(fact for fact in facts if fact)),
        Paragraph(roofline_line(section), "dim"),
        Paragraph(section.against),
        _main_table(section),
        *([Table(title="Operations, by phase of the compiler", columns=ops, tones=tones)] if ops else []),
    ]


def _main_table(section: Section) -> Table:
    columns = [*main_columns(section), Column("remarks", [row.remarks for row in section.rows], kind="sentence")]
    if not any(row.remarks for row in section.rows):
        columns.pop()
    return Table(columns=columns, tones=[_tone(row) for row in section.rows])


def _tone(row: Row) -> Tone:
    if row.status in LOST:
        return "bad"
    verdict = verdict_of(row)
    if verdict is None:
        return "" if row.status == "measured" else "dim"
    return TONES[verdict]


def _failures(report: Report) -> list[Part]:
    """A cause once: its cases, what the tools said of the first, and the commands that repeat that one."""
    rows = {row.case: row for row in report.rows() if row.status == "failed"}
    parts: list[Part] = []
    for cause in _causes(rows.values()):
        row = rows[cause.cases[0]]
        if row.failure is not None:
            others = f"{', '.join(cause.cases)}; of the first:" if len(cause.cases) > 1 else ""
            parts += [
                Heading(f"{cause.who} failed at {row.failure.stage}"),
                Paragraph(others, "dim"),
                Code(row.failure.stderr or row.failure.message, "log"),
                Paragraph(_log_line(row, report), "dim"),
                Code("\n".join(row.repro), "sh"),
            ]
    return parts


def _causes(rows: Iterable[Row]) -> list[Cause]:
    """Rows without figures by what happened; what else there is to say of them stands beside their figures."""
    return causes_of(Fate(case=row.case, model=row.model, sentence=next(iter(row.remarks), "")) for row in rows)


def _log_line(row: Row, report: Report) -> str:
    """Where all is that iree-compile said of a case; "" where it said nothing, or was not asked."""
    if row.build is None or row.build.failure is None or not row.failure or row.failure.stage != "compile":
        return ""
    if not row.build.command:
        return ""
    return f"{WHERE_ALL_IS}{report.facts.folder}/{log_path(row.case)}"


def content_of(report: Report, around: ReportContext, *, full: bool) -> Content:
    """What a run says, for a comment, or all of it."""
    facts = report.facts
    commit = commit_name(around.links.head_commit_url)
    of_commit: tuple[Inline, ...] = ("commit ", commit, ", ") if commit else ()
    attention = "" if exit_code(report.summary) is ExitCode.OK else "🚨 Needs attention: "
    made = f", {facts.started}, with no base to compare with: {run_line(facts, report.sections)}"
    return Content(
        marker=("report", facts.suite_name),
        verdict=f"{attention}{outcome(report)}",
        subject=(*of_commit, "run ", Name(facts.id), " of ", Name(facts.suite), made),
        steps=next_steps(report),
        notes=[Warnings(report.notes if full else report.notes[:_MOST_NOTES])],
        lists=_lists(report, around, full=full),
        command=f"harness report {shlex.quote(facts.folder)} --format markdown --full",
        everything="every case and the environment, is printed where it was measured",
    )


def _lists(report: Report, around: ReportContext, *, full: bool) -> list[Part]:
    """The parts in order; where room is short, those of the highest rank are shortened first."""
    metrics = metric_changes(report, full=full)
    folded = metrics if full or not metrics else [Fold("Compilation metrics against the baseline variant", metrics)]
    fates: dict[str, list[str]] = {fate: [row.case for row in report.rows() if row.status == fate] for fate in LOST}
    lost = _failed_cases(report)
    groups = [part for group in report.comparisons for part in side_by_side(group, report, full=full)]
    return [
        choice("what happened to each failed case", 5, lost, [*lost[:1], *names_by_fate(fates)] if lost else ()),
        choice("the pictures", 1, pictures_of(around, folded=False)),
        choice("the hosts", 3, _hosts(report)),
        choice("variants side by side", 6, groups),
        choice("changed latencies", 2, latency_changes(report, full=full)),
        choice("compilation metrics", 4, folded),
        choice("the table of each model and device", 7, _results(report, full=full)),
        choice(
            "expected failures and skipped cases",
            8,
            [
                *_folded_cases("Expected Failures", report, "expected failure"),
                *_folded_cases("Skipped Cases", report, "skipped"),
            ],
        ),
        Bullets(_closing(report)),
        *(_outputs(report) if full else []),
        choice("the commands", 9, _commands(report)),
        *(_environment(report) if full else []),
    ]


def _failed_cases(report: Report) -> list[Part]:
    """Cases that have no figures though they should: first, and never folded."""
    rows = [row for row in report.rows() if row.status in LOST]
    if not rows:
        return []
    outputs = {
        row.case: "\n\n".join(text for text in (row.failure.stderr, _log_line(row, report)) if text)
        for row in rows
        if row.failure is not None
    }
    causes = _causes(rows)
    return [Heading("Failed Cases 🚨"), *cause_parts(causes), *tool_output(causes, outputs)]


def _folded_cases(title: str, report: Report, status: Status) -> list[Part]:
    rows = [row for row in report.rows() if row.status == status]
    return [Fold(f"{title} ({len(rows)})", cause_parts(_causes(rows), why="Why"))] if rows else []


def _results(report: Report, *, full: bool) -> list[Part]:
    """The main table of each section; folded in a comment that would otherwise be tables from end to end."""
    folded = not full and len(report.sections) > MOST_SHOWN
    parts: list[Part] = [Heading("Results"), Paragraph(legend(report), "dim")]
    for section in report.sections:
        title = _title(section)
        if fate := common_fate(section):
            parts += [Heading(title, level=4), Paragraph(f"{fate}.")]
            continue
        body = _section(section, roofline=full)
        parts += [Fold(title, body)] if folded else [Heading(title, level=4), *body]
    return parts


def _section(section: Section, *, roofline: bool) -> list[Part]:
    parts: list[Part] = [Paragraph(_how(section)), Paragraph(section.against), _main_table(section)]
    if roofline:
        parts += [Paragraph(roofline_line(section)), Table(columns=roofline_columns(section))]
    ops = ir_columns(section)
    return [*parts, *([Table(title="Operations, by phase of the compiler", columns=ops, folded=True)] if ops else [])]


def _how(section: Section) -> Sentence:
    """On what device, with what call, and how often a section was measured."""
    facts = f"{section.device_facts}; " if section.device_facts else ""
    return (
        (facts, Name(section.call), f"; {sampling((section,))}") if section.call else f"{facts}{sampling((section,))}"
    )


def _outputs(report: Report) -> list[Part]:
    """What the outputs of each case were held against, folded away."""
    rows = [row for row in report.rows() if row.check is not None and row.checked_against]
    if not rows:
        return []
    differences = [row.check.max_relative if row.check is not None else None for row in rows]
    table = Table(
        columns=(
            Column("Benchmark Name", [row.case for row in rows], kind="name"),
            Column("Held against", [row.held_against for row in rows]),
            Column("Largest Relative Difference", ["" if one is None else f"{one:.1e}" for one in differences]),
            Column("Other Inputs Too", ["yes" if row.check and row.check.other_inputs else "" for row in rows]),
        )
    )
    return [Heading("Outputs"), Fold("What each case was held against", (table,))]


def _commands(report: Report) -> list[Part]:
    """The commands that repeat each case with plain tools, folded away."""
    commands = [Code("\n".join(row.repro), "sh", row.case) for row in report.rows() if row.repro]
    return [Heading("Reproduce"), Fold("Commands of each case", commands)] if commands else []


def _environment(report: Report) -> list[Part]:
    facts = report.facts
    groups = {**facts.environment, "settings": facts.settings, "run": {"command": shlex.join(facts.command)}}
    hosts = [Fold(host, (_known(environment),)) for host, environment in facts.hosts.items()]
    return [Heading("Environment"), Fold("Click to show", (_known(groups), *hosts))]


def _known(environment: Mapping[str, Mapping[str, Any]]) -> Table:
    values = {f"{section}.{key}": value for section, known in environment.items() for key, value in known.items()}
    return values_table("Fact", values)


def ablation_page(report: Report) -> Page:
    """Facts of the run, then a table a section: what each option of a plugin does, alone and left out."""
    first: dict[str, Row] = {}
    for row in report.rows():
        if row.module_sha256 is not None:
            first.setdefault(row.module_sha256, row)
    parts: list[Part] = [
        Paragraph(run_line(report.facts, report.sections)),
        Warnings(report.notes),
        Paragraph(legend(report), "dim"),
    ]
    for section in report.sections:
        main = [column for column in main_columns(section) if column.title not in _NOT_ABLATED]
        counted = [column for column in ir_columns(section) if column.kind == "number"]
        same = [_same_code(row, first) for row in section.rows]
        module = [Column("same code as", same)] if any(same) else []
        failures = [f"{row.variant}: {row.remarks[0]}" for row in section.rows if row.failure is not None]
        parts += [
            Heading(_title(section), level=4),
            Paragraph(_how(section)),
            Paragraph(section.against),
            Table(columns=(*main, *counted, *module)),
            Bullets(failures),
        ]
    return Page(title=report.facts.suite_description or report.facts.suite_name, parts=parts)


def _same_code(row: Row, first: Mapping[str, Row]) -> str:
    """The first row with the same module: its variant, with its model where that is another; how a row failed."""
    if row.failure is not None:
        return f"failed at {row.failure.stage}"
    if row.module_sha256 is None or first[row.module_sha256] is row:
        return ""
    other = first[row.module_sha256]
    return other.variant if other.group == row.group else other.case
