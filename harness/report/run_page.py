"""Run -> page: for a terminal, as a comment of bounded length, or with everything there is.

What a run's variants changed is shown as a comparison within the run, in the lists of a comparison's page.
"""

import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from harness.compare.pairs import WHERE_ALL_IS
from harness.errors import ExitCode
from harness.metrics import LATENCY
from harness.records.case import VariantGroup
from harness.records.comparison import Verdict
from harness.report.changes import (
    MOST_SHOWN,
    Cause,
    Fate,
    Layout,
    cause_details,
    cause_parts,
    causes_of,
    names_by_fate,
    says_something,
    tool_output,
)
from harness.report.comparison_page import changed_lists, hosts_table, trust
from harness.report.data import tabulate
from harness.report.page import (
    Bullets,
    Choice,
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
from harness.report.pages import ReportContext, commit_name, foot, opening, pictures_of, values_table
from harness.report.run_fields import ROOFLINE, ir_columns, main_columns, roofline_line
from harness.report.run_report import Report, busy_sections
from harness.report.run_rows import Row, Section, Status, side_label
from harness.report.run_words import (
    common_fate,
    correctness,
    first_look,
    legend,
    next_steps,
    reference_sentence,
    run_line,
    sampling,
    verdict_of,
)
from harness.report.run_words import verdict as outcome
from harness.report.units import Unit, unit_of
from harness.report.verdicts import LOST, TONES, list_title
from harness.store.files import log_path

_MOST_NOTES = 8


def terminal_page(report: Report, results: str = "") -> Page:
    """A table for each model on each device, what the tools said of failures, and the verdict."""
    report = replace(report, facts=replace(report.facts, results=results or report.facts.results))
    facts = report.facts
    return Page(
        parts=(
            Heading(facts.suite_name, aside=f"{facts.started}, run {facts.id}"),
            Paragraph(facts.suite_description),
            Paragraph(run_line(facts, report.sections), "dim"),
            *_hosts(report),
            Warnings(report.notes),
            *_sections(report, full=False),
            *cause_details(*_told_failures(report), {row.case: row.repro for row in report.rows()}),
            Paragraph(legend(report), "dim"),
            Paragraph(outcome(report), "strong"),
            *map(Paragraph, _closing(report)),
            Steps(next_steps(report)),
        )
    )


def _closing(report: Report) -> list[Sentence]:
    own = (first_look(report), correctness(report), reference_sentence(report))
    return [*(line for line in own if line), *trust(report.comparison, busy_sections(report.sections))]


def _hosts(report: Report) -> list[Part]:
    if not report.facts.hosts:
        return []
    groups = Counter(section.host for section in report.sections)
    title = "Hosts; figures of one do not compare with another's"
    return hosts_table(report.comparison, title, "groups", groups)


def _sections(report: Report, *, full: bool, folded: bool = False) -> list[Part]:
    """What is known of each group that was measured together, and its rows."""
    parts: list[Part] = []
    for section in report.sections:
        if fate := common_fate(section):
            parts += [Heading(section.title, level=4), Paragraph(f"{fate}.")]
            continue
        body: list[Part] = [
            Paragraph(section.against),
            _main_table(section),
            Paragraph(roofline_line(section)),
        ]
        figures = tabulate(ROOFLINE, section.rows) if full else []
        if figures:
            body.append(Table(columns=[Column("variant", [section.label(row) for row in section.rows]), *figures]))
        body += _operations(section)
        if folded:
            parts.append(Fold(section.title, [Paragraph(_how(section)), *body]))
        else:
            parts += [Heading(section.title, level=4, aside=_how(section)), *body]
    return parts


def _how(section: Section) -> Sentence:
    facts = f"{section.device_facts}; " if section.device_facts else ""
    how = sampling((section,))
    return (facts, Name(section.call), f"; {how}") if section.call else f"{facts}{how}"


def _main_table(section: Section) -> Table:
    columns = main_columns(section)
    if any(row.remarks for row in section.rows):
        columns.append(Column("remarks", [row.remarks for row in section.rows], kind="sentence"))
    return Table(columns=columns, tones=[_tone(row) for row in section.rows])


def _operations(section: Section) -> list[Part]:
    columns, tones = ir_columns(section), [_tone(row) for row in section.rows]
    title = "Operations, by phase of the compiler"
    return [Table(title=title, columns=columns, tones=tones, folded=True)] if columns else []


def _tone(row: Row) -> Tone:
    if row.status in LOST:
        return "bad"
    verdict = verdict_of(row)
    if verdict is None:
        return "" if row.status == "measured" else "dim"
    return TONES[verdict]


# --- Cases without figures ---


def _causes(rows: Iterable[Row]) -> list[Cause]:
    """Rows without figures by what happened; what else there is to say of them stands beside their figures."""
    return causes_of(Fate(case=row.case, model=row.model, sentence=next(iter(row.remarks), "")) for row in rows)


def _log_line(row: Row, report: Report) -> str:
    """Where all is that iree-compile said of a case; "" where it said nothing, or was not asked."""
    build, failure = row.build, row.failure
    if build is None or build.failure is None or not build.command or failure is None or failure.stage != "compile":
        return ""
    return f"{WHERE_ALL_IS}{report.facts.folder}/{log_path(row.case)}"


def _told_failures(report: Report) -> tuple[list[Cause], dict[str, str]]:
    """What rows without figures have in common, and by case what a tool said."""
    rows = [row for row in report.rows() if row.status in LOST]
    outputs = {
        row.case: "\n\n".join(filter(None, (row.failure.stderr or row.failure.message, _log_line(row, report))))
        for row in rows
        if row.failure is not None
    }
    return _causes(rows), outputs


def _failed_cases(report: Report) -> list[Part]:
    causes, outputs = _told_failures(report)
    return [Heading("Failed Cases 🚨"), *cause_parts(causes), *tool_output(causes, outputs)] if causes else []


def _folded_cases(title: str, report: Report, status: Status) -> list[Part]:
    rows = [row for row in report.rows() if row.status == status]
    return [Fold(f"{title} ({len(rows)})", cause_parts(_causes(rows), why="Why"))] if rows else []


# --- Markdown ---


def github_page(report: Report, around: ReportContext, *, full: bool) -> Page:
    """A run for a comment, or all of it."""
    facts = report.facts
    commit = commit_name(around.links.head_commit_url)
    of_commit: tuple[Inline, ...] = ("commit ", commit, ", ") if commit else ()
    attention = "" if report.summary.exit_code is ExitCode.OK else "🚨 Needs attention: "
    made = f", {facts.started}, with no base to compare with: {run_line(facts, report.sections)}"
    subject = (*of_commit, "run ", Name(facts.id), " of ", Name(facts.suite), made)
    notes = [Warnings(report.notes if full else report.notes[:_MOST_NOTES])]
    command = f"harness report {shlex.quote(facts.folder)} --format markdown --full"
    return Page(
        marker=("report", facts.suite_name),
        title=around.title,
        verdict=f"{attention}{outcome(report)}",
        parts=(*opening(subject, next_steps(report), notes), *_lists(report, around, full=full)),
        foot=partial(foot, around.links, command, "every case and the environment, is printed where it was measured"),
    )


def _lists(report: Report, around: ReportContext, *, full: bool) -> list[Part]:
    fates: dict[str, list[str]] = {fate: [row.case for row in report.rows() if row.status == fate] for fate in LOST}
    lost = _failed_cases(report)
    groups = [part for group in report.groups for part in side_by_side(group, report, full=full)]
    spans = {row.case: (row.latency.low_ns, row.latency.high_ns) for row in report.rows() if row.latency is not None}
    layout = Layout(
        comparison=report.comparison,
        full=full,
        titles=partial(_title, report.facts.baseline),
        spans=spans,
    )
    return [
        Choice("what happened to each failed case", 5, lost, [*lost[:1], *names_by_fate(fates)] if lost else ()),
        Choice("the pictures", 1, pictures_of(around, folded=False)),
        Choice("the hosts", 3, _hosts(report)),
        Choice("variants side by side", 6, groups),
        *changed_lists(layout),
        Choice("the table of each model and device", 7, _results(report, full=full)),
        Choice(
            "expected failures and skipped cases",
            8,
            [
                *_folded_cases("Expected Failures", report, "expected failure"),
                *_folded_cases("Skipped Cases", report, "skipped"),
            ],
        ),
        Bullets(_closing(report)),
        *(_outputs(report) if full else []),
        Choice("the commands", 9, _commands(report)),
        *(_environment(report) if full else []),
    ]


def _title(baseline: str, metric: str, verdict: Verdict) -> str:
    """A run has no base, so nothing in it regressed: a variant is slower than the baseline, or has more of a thing."""
    if metric == LATENCY.name:
        return f"{'Slower' if verdict == 'regressed' else 'Faster'} than {baseline}"
    return f"{list_title(metric)}: {'more' if verdict == 'regressed' else 'less'} than {baseline}"


def _results(report: Report, *, full: bool) -> list[Part]:
    folded = not full and len(report.sections) > MOST_SHOWN
    return [Heading("Results"), Paragraph(legend(report), "dim"), *_sections(report, full=full, folded=folded)]


def _outputs(report: Report) -> list[Part]:
    rows = [(row, row.check) for row in report.rows() if row.check is not None and row.checked_against]
    if not rows:
        return []
    errors = ["" if check.max_relative is None else f"{check.max_relative:.1e}" for _, check in rows]
    table = Table(
        columns=(
            Column("Benchmark Name", [row.case for row, _ in rows], kind="name"),
            Column("Held against", [row.held_against for row, _ in rows]),
            Column("Largest Relative Difference", errors),
            Column("Other Inputs Too", ["yes" if check.other_inputs else "" for _, check in rows]),
        )
    )
    return [Heading("Outputs"), Fold("What each case was held against", (table,))]


def _commands(report: Report) -> list[Part]:
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


# --- Variants side by side ---


def side_by_side(group: VariantGroup, report: Report, *, full: bool) -> list[Part]:
    """The group's variants, the first being the one that the others are compared with; [] where none was measured."""
    first, *others = group.variants
    places: dict[str, dict[str, Row]] = {}
    for section in report.sections:
        for row in section.rows:
            if row.variant in group.variants and row.latency_ns is not None and row.peer is None:
                place = side_label(section.group, row.toolchain, several=len(section.toolchains) > 1)
                places.setdefault(place, {})[row.variant] = row
    if not places:
        return []
    unit = unit_of("ns", [row.latency_ns for rows in places.values() for row in rows.values()])
    means = {variant: _mean_speedup(places, variant, first) for variant in others}
    has_means = any(means.values())
    names = [*places, *(["geometric mean"] if has_means else [])]
    columns = [Column(f"Name (latency in {unit.name})", names, kind="name")]
    for variant in group.variants:
        cells = [_speedup_text(rows, variant, first, unit) for rows in places.values()]
        cells += [means.get(variant, "")] if has_means else []
        title = f"{first} (baseline)" if variant == first else variant
        columns.append(Column(title, cells, kind="number"))
    explained = f"X: how many times as fast as {first}, from turns that ran side by side."
    if has_means:
        explained += " Means are of what is decided; the ends of their intervals are the means of the rows' own."
    table = Table(columns=columns, after=(explained,))
    return [Heading(f"{group.title} Comparison Table"), Fold("Click to show", (table,), open=full)]


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
    text = f"{statistics.geometric_mean(_speedup(above, below) for above, below in decided):.2f}X"
    ends = [(_ends(above), _ends(below)) for above, below in decided]
    known = [(above, below) for above, below in ends if above is not None and below is not None]
    if len(known) == len(decided):
        low = statistics.geometric_mean(above[0] / below[1] for above, below in known)
        high = statistics.geometric_mean(above[1] / below[0] for above, below in known)
        text += f" [{low:.2f}, {high:.2f}]"
    return f"{text} of {len(decided)}"


def _speedup(first: Row, row: Row) -> float:
    """How many times faster a row is: by the ratios of both to the run's baseline, which were taken round by round."""
    both = [each for each in (first, row) if each.estimate is not None or _is_baseline(each)]
    if len(both) < 2:
        return (first.latency_ns or 1.0) / (row.latency_ns or 1.0)
    above, below = (each.estimate.ratio if each.estimate is not None else 1.0 for each in both)
    return above / below


def _ends(row: Row) -> tuple[float, float] | None:
    if row.estimate is not None and row.estimate.low is not None and row.estimate.high is not None:
        return row.estimate.low, row.estimate.high
    return (1.0, 1.0) if row.estimate is None and _is_baseline(row) else None


def _is_baseline(row: Row) -> bool:
    return row.baseline or row.kind == "same"
