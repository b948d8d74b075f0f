"""Comparison -> page: for a terminal, as a comment of bounded length, or with everything there is.

From top to bottom: the verdict, what to do, figures at a glance, what failed, violated gates, a picture, the largest
changes; then, folded away, what is not decided and what did not change; how it was measured and how far to trust it;
the commands that repeat it. The lists are those of IREE's old comments; verdict, advice and the table below them come
as rustc-perf's do. A run is a comparison of its variants with their baseline, and has the same lists, `changed_lists`.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

from harness.compare.rows import geometric_means
from harness.compare.sides import selfcheck_of
from harness.machine.identity import describe_machine
from harness.metrics import COMPILE_TIME, LATENCY, TIMED
from harness.records.comparison import VERDICTS, Comparison, Kind, Row
from harness.report.changes import (
    MOST_SHOWN,
    Layout,
    cause_details,
    causes_of,
    change_parts,
    fates_of,
    figure_table,
    folded_part,
    identical_part,
    lost_names,
    lost_table,
    parts_by_metric,
    row_table,
    says_something,
    tool_output,
    verdict_counts,
)
from harness.report.comparison import (
    full_report_command,
    headline,
    next_steps,
    reading,
    rule_line,
    sides_line,
    verdict_line,
    warning,
    within_floors_line,
)
from harness.report.explanation_page import folded_explanations
from harness.report.forest import forest_of, forest_text
from harness.report.names import compared, given_as, side_names
from harness.report.page import (
    Bullets,
    Choice,
    Code,
    Column,
    Fold,
    Name,
    Page,
    Paragraph,
    Part,
    Sentence,
    Steps,
    Table,
    Warnings,
)
from harness.report.pages import (
    ReportContext,
    commit_name,
    foot,
    opening,
    pictures_of,
    sides_table,
    values_table,
)
from harness.report.units import interval_text, percent
from harness.report.verdicts import (
    CHANGED,
    LOST,
    MEASURED,
    NO_METRIC_CHANGED,
    NOTHING_CHANGED,
    Busy,
    Rows,
    busy_line,
    capital,
    change_size,
    change_title,
    controls,
    controls_line,
    figure_title,
    interval_title,
    is_relevant,
    list_title,
    machine_line,
    medians_sentence,
    real_rows,
)
from harness.text import plural

# On a terminal, above so many timed rows those that nobody has to act on are only counted; and rows of one list.
_MANY, _MOST_LISTED = 40, 100
_MOST_NOTES, _NOTES_UNFOLDED = 8, 2
_MOST_IN_FOREST, _FOREST_WIDTH = 12, 96
_MOST_COMMANDS = _MOST_HOSTS = 20
# Figures that a comment names without a table; a suite may count any number of ops.
_MOST_FIGURES = 60
# What should be looked at first on a terminal, beside violated gates.
_CONCERN = ("regressed", "improved", "inconclusive", "new", "unchanged", "identical")


def terminal_page(comparison: Comparison, results: str = "") -> Page:
    """What somebody may have to act on, then the rest if it is short."""
    rows = real_rows(comparison)
    lost = Rows(Rows(comparison.rows).of(*LOST)[:_MOST_LISTED])
    timed = [row for row in rows.timed if row.verdict not in LOST]
    short = len([row for row in timed if not is_relevant(row)]) <= _MANY
    listed = Rows(
        row for row in rows if row.verdict not in LOST and (is_relevant(row) or (short and row.metric in TIMED))
    )
    tables: list[Part] = []
    hidden = [row for row in rows if row.verdict not in LOST and row not in listed]
    for metric, group in listed.by_metric().items():
        ordered = sorted(group, key=lambda row: (-_is_violated(row), _CONCERN.index(row.verdict), -change_size(row)))
        # A reason where somebody needs it; that a program is another one, and whether its outputs are, always is there.
        shown = [
            row if row.verdict in ("inconclusive", "new") or _is_violated(row) else replace(row, reason=row.program)
            for row in ordered[:_MOST_LISTED]
        ]
        tables.append(row_table(shown, Layout(comparison=comparison), title=list_title(metric)))
        hidden += ordered[_MOST_LISTED:]
    counted = verdict_counts(Rows(hidden), VERDICTS)
    steps = next_steps(comparison)
    return Page(
        title=f"{comparison.head.suite}: {compared(comparison.base, comparison.head)}",
        parts=(
            Paragraph(f"Comparison {comparison.id}: {_sides(comparison)}".replace(" :", ":"), "dim"),
            Paragraph(headline(comparison), "strong"),
            Warnings([note for note in (warning(comparison), *comparison.notes) if note]),
            *lost_table(lost),
            *_lost_details(lost),
            *tables,
            *folded_explanations(comparison, results or "results"),
            Paragraph(within_floors_line(rows), "dim"),
            Paragraph(f"Not listed: {counted} rows. --format markdown --full has every row." if counted else "", "dim"),
            *map(Paragraph, trust(comparison)),
            Steps(steps) if steps else Paragraph("No action needed."),
        ),
    )


def _sides(comparison: Comparison) -> str:
    given = f"{given_as(comparison.head)} against {given_as(comparison.base)}"
    is_named = comparison.within or given == compared(comparison.base, comparison.head)
    return sides_line(comparison) + ("" if is_named else f"; {given}")


def _is_violated(row: Row) -> bool:
    return row.gate == "violated"


def _lost_details(rows: Rows) -> list[Part]:
    first = {row.case: row for row in reversed(rows)}
    outputs = {case: row.stderr for case, row in first.items()}
    return cause_details(causes_of(fates_of(rows)), outputs, {case: row.repro for case, row in first.items()})


def github_page(comparison: Comparison, around: ReportContext, *, full: bool) -> Page:
    """A comparison for a comment, or all of it."""
    head_commit = commit_name(around.links.head_commit_url)
    base_name, head_name = side_names(comparison.base, comparison.head)
    head = ("commit ", head_commit) if head_commit else (head_name,)
    by_release = not head_commit and head_name.startswith("IREE ")
    base = commit_name(around.links.base_commit_url) or base_name
    subject = (*head, " (vs. base ", base, f"): {sides_line(comparison, releases=not by_release)}")
    everything = f"every row and setting, is printed{' where it was measured' if comparison.id else ''}"
    return Page(
        marker=("comparison", comparison.head.suite),
        title=around.title,
        verdict=verdict_line(comparison),
        parts=(
            *opening(subject, next_steps(comparison), _notes(comparison, full=full)),
            *_lists(comparison, around, full=full),
        ),
        foot=partial(foot, around.links, full_report_command(comparison), everything),
    )


def _notes(comparison: Comparison, *, full: bool) -> list[Part]:
    """Warnings at once; of other notes, those that are too many to be read at once are folded away."""
    warnings = [f"⚠️ {warning(comparison)}"] if warning(comparison) else []
    notes = list(comparison.notes)
    if full or len(notes) <= _NOTES_UNFOLDED:
        return [Warnings([*warnings, *notes])]
    listed = notes[:_MOST_NOTES]
    if len(listed) < len(notes):
        listed.append(f"... and {plural(len(notes) - len(listed), 'more note')}")
    return [Warnings(warnings), Fold(f"Notes ({len(notes):,})", (Warnings(listed),))]


def _lists(comparison: Comparison, around: ReportContext, *, full: bool) -> list[Part]:
    rows = real_rows(comparison)
    layout = Layout(comparison=comparison, full=full)
    lost = Rows(comparison.rows).of(*LOST)
    outputs = tool_output(causes_of(fates_of(lost)), {row.case: row.stderr for row in lost if row.stderr})
    gates = rows.violated.largest_first()
    return [
        Choice("the table of figures", 1, figure_table(rows, first=True)),
        Choice("what happened to each failed row", 6, lost_table(lost), lost_names(lost)),
        Choice("what the tools said of failed rows", 10, outputs),
        Choice("violated gates", 2, parts_by_metric("Violated Gates: {} 🚨", gates, layout)),
        Choice("the picture", 4, _picture(comparison, rows, around)),
        *changed_lists(layout),
        Choice("the geometric means", 9, _means(comparison)),
        Choice("how it was measured", 4, _method(comparison, full=full)),
        Choice("the commands", 11, _commands(comparison, full=full)),
    ]


def changed_lists(layout: Layout) -> list[Part]:
    """What changed, what is not decided, what is new and what did not change, a list each."""
    comparison, full = layout.comparison, layout.full
    rows = real_rows(comparison)
    compiles = rows.metric(COMPILE_TIME.name)
    open_rows, new = rows.of("inconclusive").largest_first(), rows.new
    listed = parts_by_metric("New {}", new, layout) if full else folded_part("New", new, layout, why=True)
    return [
        Choice("changed latencies", 3, _latencies(comparison, rows, layout)),
        Choice("what regressions are made of", 6, folded_explanations(comparison)),
        Choice("changed compilation times", 4, change_parts(compiles, layout)),
        Choice("other changed figures", 5, _counted(rows, compiles, layout)),
        Choice("inconclusive rows", 8, folded_part("Inconclusive", open_rows, layout, why=True)),
        Choice("new rows", 7, listed),
        Choice("unchanged rows", 12, _unchanged(rows, layout)),
    ]


def _counted(rows: Rows, compiles: Rows, layout: Layout) -> list[Part]:
    others = rows.counted.of(*CHANGED)
    parts = change_parts(others, layout)
    if not parts:
        return _no_metric_changed(rows, compiles)
    title = f"Counted figures that changed ({plural(len(others), 'row')})"
    numbers = figure_table(rows, first=False) if layout.titles is change_title else []
    return [Fold(title, [*numbers, *parts], open=layout.full)]


def _unchanged(rows: Rows, layout: Layout) -> list[Part]:
    unchanged, small, full = rows.of("unchanged"), rows.within_floor, layout.full
    equal = Rows(row for row in unchanged.counted if row not in small)
    no_change = "Counted figures without a change"
    return [
        *folded_part("Unchanged", unchanged.timed, layout, why=False),
        *folded_part("Counted figures that changed by less than their floor", small, layout, why=False),
        *(folded_part(no_change, equal, layout, why=False) if full else _unchanged_figures(equal)),
        *identical_part(rows, whole=full),
        *folded_part("A/A controls", controls(layout.comparison), layout, why=True),
    ]


def _latencies(comparison: Comparison, rows: Rows, layout: Layout) -> list[Part]:
    timed = rows.metric(LATENCY.name)
    if changes := change_parts(timed, layout):
        intervals = any(row.ci_low is not None for row in timed)
        return [*changes, *([Paragraph(reading(comparison), "dim")] if intervals else [])]
    unsure = len(timed.of("inconclusive"))
    if unsure:
        return [Paragraph(f"No improved or regressed benchmarks are known; {_are_inconclusive(unsure)}.")]
    return [Paragraph(NOTHING_CHANGED)] if timed.of(*MEASURED, "identical") else []


def _no_metric_changed(rows: Rows, compiles: Rows) -> list[Part]:
    judged = [row for row in rows if row.metric != LATENCY.name and row.verdict in ("unchanged", "inconclusive")]
    unsure = len(Rows(judged).of("inconclusive"))
    # Equal modules have equal figures, and no rows of them.
    if not (judged or rows.of("identical")) or compiles.of(*CHANGED):
        return []
    if unsure:
        return [Paragraph(f"No improved or regressed compilation metrics are known; {_are_inconclusive(unsure)}.")]
    return [Paragraph(NO_METRIC_CHANGED)]


def _are_inconclusive(rows: int) -> str:
    return f"{plural(rows, 'row')} {'is' if rows == 1 else 'are'} inconclusive"


def _unchanged_figures(rows: Rows) -> list[Part]:
    """`Dispatch Count (14), Copies (14)`, folded away: of counted figures it is enough to know which did not change."""
    if not rows:
        return []
    figures = [f"{figure_title(metric)} ({len(group):,})" for metric, group in rows.by_metric().items()]
    listed = figures[:_MOST_FIGURES]
    if len(listed) < len(figures):
        listed.append(f"and {plural(len(figures) - len(listed), 'more figure')}")
    summary = f"Counted figures without a change ({plural(len(rows), 'row')})"
    return [Fold(summary, (Paragraph(f"In so many rows: {', '.join(listed)}."),))]


def _picture(comparison: Comparison, rows: Rows, around: ReportContext) -> list[Part]:
    changed = [row for verdict in CHANGED for row in rows.timed.of(verdict).largest_first()]
    drawn = changed[:_MOST_IN_FOREST] or rows.timed.of("inconclusive")
    if published := pictures_of(around, folded=not drawn):
        return published
    text = forest_text(forest_of(comparison, drawn, top=_MOST_IN_FOREST), _FOREST_WIDTH) if drawn else ""
    return [Code(text)] if text else []


def _means(comparison: Comparison) -> list[Part]:
    latencies = real_rows(comparison).metric(LATENCY.name)
    if not latencies.of(*MEASURED):
        return []
    open_rows = latencies.of("inconclusive")
    undecided = Counter((kind, getattr(row, kind)) for row in open_rows for kind in get_args(Kind))
    every = geometric_means(comparison.rows)
    means = [mean for mean in every if says_something(mean.rows, undecided[mean.kind, mean.name])]
    if not means:
        return []
    left_out = len(every) - len(means)
    rest = f" {plural(left_out, 'mean')} left out, since most rows are inconclusive." if left_out else ""
    ratios = [interval_text(mean.ratio, mean.low, mean.high) for mean in means]
    table = Table(
        columns=(
            Column("Of decided rows of", [mean.kind for mean in means]),
            Column("Name", [mean.name for mean in means], kind="name"),
            Column(f"Latency ratio [{interval_title(comparison, LATENCY.name)}]", ratios, kind="number"),
            Column("Change", [percent(mean.ratio, decimals=1) for mean in means], kind="number"),
            Column("Rows", [str(mean.rows) for mean in means], kind="number"),
        ),
        after=(
            "Identical rows count with 1, and inconclusive ones not at all. An interval is the geometric mean of those "
            f"of its rows, which holds whatever they have in common.{rest}",
        ),
        first=MOST_SHOWN,
    )
    return [Fold("Geometric means by model, device and variant", (table,))]


def hosts_table(comparison: Comparison, title: str, counted: str, rows: Mapping[str, int]) -> list[Part]:
    """What each host is, and how much of something it measured."""
    columns = (
        Column("host", [host.name for host in comparison.hosts]),
        Column("machine", [describe_machine(host.environment) for host in comparison.hosts]),
        Column(counted, [str(rows[host.name]) for host in comparison.hosts], kind="number"),
    )
    return [Table(title=title, columns=columns, most=_MOST_HOSTS)]


def _method(comparison: Comparison, *, full: bool) -> list[Part]:
    made = "measured" if comparison.mode == "remeasured" else "made"
    name: tuple[str | Name, ...] = (" ", Name(comparison.id)) if comparison.id else ()
    by_host = Counter(host for row in Rows(comparison.rows).metric(LATENCY.name) for host in row.hosts)
    parts: list[Part] = [
        Bullets(trust(comparison)),
        sides_table(comparison.base, comparison.head),
        Paragraph(("Comparison", *name, f" of {comparison.created}, {made} on {comparison.machine.description}.")),
        *(hosts_table(comparison, "Hosts", "latencies", by_host) if len(comparison.hosts) > 1 else ()),
        Paragraph(rule_line(comparison)),
    ]
    if full and comparison.settings:
        parts.append(values_table("Setting", comparison.settings))
    return [Fold("How it was measured", parts)]


def _commands(comparison: Comparison, *, full: bool) -> list[Part]:
    """The command of the whole comparison, and those of the rows that somebody may have to act on, folded away."""
    relevant = Rows(row for row in comparison.rows if row.repro and (full or is_relevant(row)))
    wanted: dict[str, Row] = {}
    for row in relevant if full else relevant.largest_first():
        wanted.setdefault(row.case, row)
    if not full:  # one of those that fail alike is enough
        alike = {case for cause in causes_of(fates_of(relevant.of(*LOST))) for case in cause.cases[1:]}
        wanted = {case: row for case, row in wanted.items() if case not in alike}
    rows = list(wanted.values())[: None if full else _MOST_COMMANDS]
    parts: list[Part] = [Code(shlex.join(comparison.command), "sh")] if comparison.command else []
    parts += [Code("\n".join(row.repro), "sh", row.case) for row in rows]
    return [Fold("Commands that repeat it", parts)] if parts else []


def trust(comparison: Comparison, busy: Sequence[Busy] = ()) -> list[Sentence]:
    """How busy the machines were, how often their verdicts are wrong, and what the A/A controls showed.

    Args:
        comparison: Of two sides, or a run's with itself.
        busy: What was timed, where the rows do not say how busy the machine was.
    """
    latencies = Rows(comparison.rows).metric(LATENCY.name)
    timed = busy or [Busy(row.case, row.taken, row.own_time >= 0.5) for row in latencies if row.taken is not None]
    several = len({host for row in latencies for host in row.hosts}) > 1
    known = [machine_line(comparison.machine.selfcheck)]
    if comparison.hosts:
        known = [machine_line(selfcheck_of(host.environment), host.name) for host in comparison.hosts]
    rates: list[Sentence] = [capital(line) for line in known if line]
    if not rates and not (comparison.within and comparison.mode == "recorded"):
        whose, where = ("The hosts'", ", there") if comparison.hosts else ("This machine's", "")
        rates = [(f"{whose} A/A rate is not known; to measure it{where}: ", Name("harness selfcheck SUITE"))]
    busy_now, medians = busy_line(timed, several_hosts=several), medians_sentence(real_rows(comparison).timed)
    shown = controls_line(controls(comparison))
    return [
        *([capital(busy_now)] if busy_now else []),
        *([medians] if medians else []),
        *rates,
        *([capital(shown)] if shown else []),
    ]
