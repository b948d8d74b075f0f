"""Run -> page: for a terminal, as a comment of bounded length, or with everything there is.

What a run's variants changed is shown as a comparison within the run, in the lists of a comparison's page.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from harness.compare.pairs import WHERE_ALL_IS
from harness.errors import ExitCode
from harness.metrics import LATENCY
from harness.records.case import VariantGroup
from harness.records.comparison import Verdict
from harness.report.comparison import TONES, list_title
from harness.report.comparison_page import (
    MOST_SHOWN,
    Fate,
    cause_details,
    cause_table,
    changed_lists,
    hosts_table,
    trust,
)
from harness.report.page import (
    Bullets,
    Code,
    Column,
    Fold,
    Heading,
    Name,
    Page,
    Paragraph,
    Part,
    Sentence,
    Steps,
    Table,
    Tone,
    Warnings,
    listed,
)
from harness.report.pages import View, commit_name, foot, opening, pictures_of
from harness.report.releases import MANY, Releases, releases_of
from harness.report.releases_page import releases_parts, releases_verdict
from harness.report.run_fields import ir_columns, main_columns, roofline_line
from harness.report.run_report import (
    Report,
    correctness,
    first_look,
    legend,
    next_steps,
    notes_of,
    reference_sentence,
    run_line,
    sampling,
    verdict_of,
)
from harness.report.run_report import verdict as outcome
from harness.report.run_rows import Row, Section, Status, side_label
from harness.report.units import Unit, unit_of
from harness.store.files import log_path
from harness.text import plural

_LOST: tuple[Status, ...] = ("failed", "missing")


def page(report: Report, view: View) -> Page:
    """A run for a terminal, for a comment, or all of it."""
    return _terminal_page(report, view) if view.terminal else _github_page(report, view)


def _terminal_page(report: Report, view: View) -> Page:
    header, over = report.header, _over_releases(report)
    return Page(
        parts=(
            Heading(header.suite_name, aside=f"{header.started}, run {header.id}"),
            Paragraph(header.suite_description),
            Paragraph(run_line(report, releases=over is None), "dim"),
            *_hosts(report),
            Warnings(notes_of(report)),
            *(_sections(report) if over is None else releases_parts(over, report.floor)),
            *cause_details(_fates(report, view, *_LOST)),
            Paragraph(releases_verdict(over), "strong") if over else Paragraph(legend(report), "dim"),
            Paragraph(outcome(report, over_releases=over is not None), "strong"),
            *map(Paragraph, _closing(report)),
            Steps(next_steps(report, view.folder(report.header.id))),
        )
    )


def _github_page(report: Report, view: View) -> Page:
    header, full, folder, over = report.header, view.full, view.folder(report.header.id), _over_releases(report)
    every = full or over is None  # Of many releases a comment has no list of cases
    commit = commit_name(view.links.head_commit_url)
    of_commit = ("commit ", commit, ", ") if commit else ()
    made = f", {header.started}, with no base to compare with: {run_line(report, releases=every)}"
    subject = (*of_commit, "run ", Name(header.id), " of ", Name(header.suite), made)
    attention = "" if report.summary.exit_code is ExitCode.OK else "🚨 Needs attention: "
    lost, said = _fates(report, view, *_LOST), outcome(report, over_releases=over is not None)
    results = _sections(report)
    if over is not None or (not full and len(report.sections) > MOST_SHOWN):
        results = [Fold(f"Of {plural(len(report.sections), 'model or device', 'models and devices')}", results)]
    return Page(
        marker=("report", header.suite_name),
        title=view.title(header.suite),
        verdict=f"{attention}{f'{releases_verdict(over)} ' if over else ''}{said}",
        parts=(
            *opening(subject, next_steps(report, folder), view),
            Warnings(notes_of(report)),
            *(releases_parts(over, report.floor) if over else ()),
            *(cause_table(lost, title="Failed Cases 🚨") if every else ()),
            *cause_details(lost),
            *pictures_of(view, folded=False),
            *_hosts(report),
            *(_by_case(report, view, results) if every else (Heading("Notes"),)),
            Bullets(_closing(report)),
            *(_outputs(report) if full else ()),
            *_commands(report),
        ),
        foot=foot(view.links, f"harness report {shlex.quote(folder)} --format markdown --full"),
    )


def _over_releases(report: Report) -> Releases | None:
    return releases_of(report) if len(report.header.toolchains) >= MANY else None


def _by_case(report: Report, view: View, results: Sequence[Part]) -> list[Part]:
    """Variants side by side, what changed, and a table for each model and device."""
    return [
        *(part for group in report.header.groups for part in side_by_side(group, report, full=view.full)),
        *changed_lists(report.comparison, view, titles=partial(_title, report.baseline)),
        Heading("Results"),
        Paragraph(legend(report), "dim"),
        *results,
    ]


def _title(baseline: str, metric: str, verdict: Verdict) -> str:
    """A run has no base, so nothing in it regressed: a variant is slower than the baseline, or has more of a thing."""
    if metric == LATENCY.name:
        return f"{'Slower' if verdict == 'regressed' else 'Faster'} than {baseline}"
    return f"{list_title(metric)}: {'more' if verdict == 'regressed' else 'less'} than {baseline}"


def _closing(report: Report) -> list[Sentence]:
    own = (first_look(report), correctness(report), reference_sentence(report))
    return [*(line for line in own if line), *trust(report.comparison, report.busy)]


def _hosts(report: Report) -> list[Part]:
    groups, title = Counter(section.host for section in report.sections), "Hosts; figures of one are not another's"
    return hosts_table(report.comparison, title, "groups", groups) if report.run.environments else []


# --- The results of each model and device ---


# So many models of one case each have tables of their own, with what each is called with.
_MOST_LONE = 3


def _tables(report: Report) -> list[Section]:
    """The run's sections, but of many models that have one case on a device, one section with all of these."""
    lone = Counter((section.device, section.host) for section in report.sections if len(section.rows) == 1)
    tables: dict[object, list[Section]] = {}
    for section in report.sections:
        place = (section.device, section.host)
        joined = len(section.rows) == 1 and lone[place] > _MOST_LONE
        tables.setdefault(place if joined else section.group, []).append(section)
    return [_joined(sections) if len(sections) > 1 else sections[0] for sections in tables.values()]


def _joined(sections: Sequence[Section]) -> Section:
    rows = tuple(row for section in sections for row in section.rows)
    return replace(sections[0], model=f"{len(sections):,} models", call="", work=None, rows=rows)


def _sections(report: Report) -> list[Part]:
    parts: list[Part] = []
    for section in _tables(report):
        fates = {(row.status, row.remarks) for row in section.rows}
        if len(fates) == 1 and section.rows[0].status == "skipped":
            who = "The only case was" if len(section.rows) == 1 else f"All {len(section.rows)} cases were"
            parts += [Heading(section.title, level=4), Paragraph(f"{who} {section.rows[0].remarks[0]}.")]
            continue
        tones = [_tone(row) for row in section.rows]
        columns, operations = main_columns(section), ir_columns(section)
        if any(row.remarks for row in section.rows):
            columns.append(Column("remarks", [row.remarks for row in section.rows], kind="sentence"))
        facts = f"{section.device_facts}; " if section.device_facts else ""
        call = (Name(section.call), "; ") if section.call else ()
        parts += [
            Heading(section.title, level=4, aside=(facts, *call, sampling((section,)))),
            Paragraph(section.against),
            Table(columns=columns, tones=tones),
            Paragraph(roofline_line(section)),
        ]
        if operations:
            title = "Operations, by phase of the compiler"
            parts.append(Table(title=title, columns=operations, tones=tones, folded=True))
    return parts


def _tone(row: Row) -> Tone:
    if row.status in _LOST:
        return "bad"
    verdict = verdict_of(row)
    if verdict is None:
        return "" if row.status == "measured" else "dim"
    return TONES[verdict]


# --- Cases without figures ---


def _fates(report: Report, view: View, *statuses: Status) -> list[Fate]:
    """What happened to rows without figures, with what a tool said, and where all is that iree-compile said of it."""
    fates = []
    for row in report.rows():
        if row.status in statuses:
            failure, build = row.failure, row.build
            is_logged = failure is not None and failure.stage == "compile" and build and build.failure and build.command
            log = f"\n\n{WHERE_ALL_IS}{view.folder(report.header.id)}/{log_path(row.case)}" if is_logged else ""
            output = f"{failure.stderr or failure.message}{log}" if failure is not None else ""
            fates.append(Fate(row.case, row.model, next(iter(row.remarks), ""), output=output, repro=row.repro))
    return fates


# --- At the end ---


def _outputs(report: Report) -> list[Part]:
    """What each case's outputs were held against, a line for all that have the same."""
    sources: dict[str, list[str]] = {}
    for row in report.rows():
        if row.check is not None and row.check.against:
            why, also = row.check.no_second_opinion, row.check.also_against
            against = f"not checked ({row.check.against}): {why}" if why else row.check.against
            sources.setdefault(f"{against}{f' and {also}' if also and not why else ''}", []).append(row.case)
    lines = [(f"{source}: ", *listed(cases)) for source, cases in sources.items()]
    return [Heading("Outputs"), Fold("What each case was held against", [Bullets(lines)])] if lines else []


def _commands(report: Report) -> list[Part]:
    commands = [Code("\n".join(row.repro), "sh", row.case) for row in report.rows() if row.repro]
    return [Heading("Reproduce"), Fold("Commands of each case", commands)] if commands else []


# --- Variants side by side ---


def side_by_side(group: VariantGroup, report: Report, *, full: bool) -> list[Part]:
    """The group's variants, the first being the one that the others are compared with; [] where none was measured."""
    first = group.variants[0]
    places: dict[str, dict[str, Row]] = {}
    for section in report.sections:
        for row in section.rows:
            if row.variant in group.variants and row.latency_ns is not None and row.peer is None:
                place = side_label(section.group, row.toolchain, several=len(section.toolchains) > 1)
                places.setdefault(place, {})[row.variant] = row
    if not places:
        return []
    unit = unit_of("ns", [row.latency_ns for rows in places.values() for row in rows.values()])
    columns = [Column(f"Name (latency in {unit.name})", list(places), kind="name")]
    for variant in group.variants:
        cells = [_speedup_text(rows, variant, first, unit) for rows in places.values()]
        columns.append(Column(f"{first} (baseline)" if variant == first else variant, cells, kind="number"))
    explained = f"X: how many times as fast as {first}, from turns that ran side by side."
    table = Table(columns=columns, after=(explained,))
    return [Heading(f"{group.title} Comparison Table"), Fold("Click to show", (table,), open=full)]


def _speedup_text(rows: Mapping[str, Row], variant: str, first: str, unit: Unit) -> str:
    """As IREE's tables had it: `30.000 (2.80X)`; by both ratios to the run's baseline, round by round."""
    if variant not in rows:
        return "N/A"
    row, other = rows[variant], rows.get(first)
    text = unit.text(row.latency_ns)
    if other is None:
        return text
    above, below = _to_baseline(other), _to_baseline(row)
    times = above / below if above and below else (other.latency_ns or 1.0) / (row.latency_ns or 1.0)
    return f"{text} ({times:.2f}X)"


def _to_baseline(row: Row) -> float | None:
    if row.estimate is not None:
        return row.estimate.ratio
    return 1.0 if row.baseline or row.kind == "same" else None
