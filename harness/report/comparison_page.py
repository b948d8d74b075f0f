"""Comparison -> page: for a terminal, as a comment of bounded length, or with everything there is.

From top to bottom: the verdict, what to do, figures at a glance, what failed, violated gates, a picture, the largest
changes; then, folded away, what is not decided and what did not change; how it was measured and how far to trust it;
the commands that repeat it. The lists are those of IREE's old comments; verdict, advice and the table below them come
as rustc-perf's do. A run is a comparison of its variants with their baseline, and has the same lists, `changed_lists`.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from harness.compare.rows import geometric_means
from harness.compare.sides import selfcheck_of
from harness.machine.identity import describe_machine
from harness.metrics import COMPILE_TIME, LATENCY
from harness.records.comparison import Comparison, Kind, Row
from harness.report.changes import (
    MOST_SHOWN,
    Layout,
    cause_details,
    change_parts,
    figure_table,
    folded_part,
    lists,
    lost_causes,
    lost_table,
    says_something,
    with_commas,
)
from harness.report.comparison import (
    full_report_command,
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
from harness.report.names import side_names
from harness.report.page import Bullets, Code, Column, Fold, Name, Page, Paragraph, Part, Sentence, Table, Warnings
from harness.report.pages import (
    View,
    closing,
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
    Busy,
    Rows,
    busy_line,
    capital,
    change_title,
    controls,
    controls_line,
    figure_title,
    interval_title,
    is_relevant,
    machine_line,
    medians_sentence,
    real_rows,
)
from harness.text import plural

# On a terminal, above so many rows of a kind those that nobody has to act on are only counted.
_MANY = 40
_NOTES_UNFOLDED = 2
_MOST_IN_FOREST = 12
_MOST_COMMANDS = _MOST_HOSTS = 20


def page(comparison: Comparison, view: View) -> Page:
    """A comparison for a terminal, for a comment, or all of it."""
    head_commit = commit_name(view.links.head_commit_url)
    base_name, head_name = side_names(comparison.base, comparison.head)
    head = ("commit ", head_commit) if head_commit else (head_name,)
    by_release = not head_commit and head_name.startswith("IREE ")
    base = commit_name(view.links.base_commit_url) or base_name
    subject = (*head, " (vs. base ", base, f"): {sides_line(comparison, releases=not by_release)}")
    everything = f"every row and setting, is printed{' where it was measured' if comparison.id else ''}"
    steps = next_steps(comparison)
    rows, lost = real_rows(comparison), Rows(comparison.rows).of(*LOST)
    layout = Layout(comparison=comparison, full=view.full)
    return Page(
        marker=("comparison", comparison.head.suite),
        title=(Name(comparison.head.suite), f": {head_name} against {base_name}")
        if view.terminal
        else view.title(comparison.head.suite),
        verdict=verdict_line(comparison),
        parts=(
            *opening(subject, steps, view),
            *_notes(comparison, full=view.full),
            *figure_table(rows, first=True),
            *lost_table(lost),
            *_lost_details(lost),
            *lists("Violated Gates: {} 🚨", rows.violated.largest_first(), layout),
            *_picture(comparison, rows, view),
            *changed_lists(layout, view),
            *_means(comparison),
            *_method(comparison, view),
            *_commands(comparison, full=view.full),
            *closing(steps, view),
        ),
        foot=foot(view.links, full_report_command(comparison), everything),
    )


def _notes(comparison: Comparison, *, full: bool) -> list[Part]:
    """Warnings at once; of other notes, those that are too many to be read at once are folded away."""
    warnings, notes = [f"⚠️ {said}" for said in (warning(comparison),) if said], comparison.notes
    if full or len(notes) <= _NOTES_UNFOLDED:
        return [Warnings([*warnings, *notes])]
    return [Warnings(warnings), Fold(f"Notes ({len(notes):,})", [Warnings(notes)])]


def _lost_details(rows: Rows) -> list[Part]:
    first = {row.case: row for row in reversed(rows)}
    outputs = {case: row.stderr for case, row in first.items()}
    return cause_details(lost_causes(rows), outputs, {case: row.repro for case, row in first.items()})


def changed_lists(layout: Layout, view: View) -> list[Part]:
    """What changed, what is not decided, what is new and what did not change, a list each."""
    comparison = layout.comparison
    rows = real_rows(comparison)
    compiles = rows.metric(COMPILE_TIME.name)
    new = lists("New {}", rows.new, layout) if view.full else folded_part("New", rows.new, layout, why=True)
    return [
        *_latencies(comparison, rows, layout),
        *folded_explanations(comparison, view),
        *change_parts(compiles, layout),
        *_counted(rows, compiles, layout, view),
        *folded_part("Inconclusive", rows.of("inconclusive").largest_first(), layout, why=True),
        *new,
        *_unchanged(rows, layout, view),
    ]


def _latencies(comparison: Comparison, rows: Rows, layout: Layout) -> list[Part]:
    timed = rows.metric(LATENCY.name)
    if changes := change_parts(timed, layout):
        intervals = any(row.ci_low is not None for row in timed)
        return [*changes, *([Paragraph(reading(comparison), "dim")] if intervals else [])]
    return _no_change("No improved or regressed benchmarks", timed.of(*MEASURED, "identical"))


def _counted(rows: Rows, compiles: Rows, layout: Layout, view: View) -> list[Part]:
    others = rows.counted.of(*CHANGED)
    if parts := change_parts(others, layout):
        title = f"Counted figures that changed ({plural(len(others), 'row')})"
        numbers = figure_table(rows, first=False) if layout.titles is change_title else []
        if view.terminal:
            return [Fold("Counted figures", numbers), Fold(title, parts, aside=True)]
        return [Fold(title, [*numbers, *parts], open=view.full)]
    if compiles.of(*CHANGED):
        return []
    # Equal modules have equal figures, and no rows of them.
    judged = [row for row in rows if row.metric != LATENCY.name and row.verdict in ("unchanged", "inconclusive")]
    return _no_change("No improved or regressed compilation metrics", Rows([*judged, *rows.of("identical")]))


def _no_change(none: str, judged: Rows) -> list[Part]:
    """That none of the rows changed, as far as is known."""
    if unsure := len(judged.of("inconclusive")):
        are = "is" if unsure == 1 else "are"
        return [Paragraph(f"{none} are known; {plural(unsure, 'row')} {are} inconclusive.")]
    return [Paragraph(f"{none} 🏖️")] if judged else []


def _unchanged(rows: Rows, layout: Layout, view: View) -> list[Part]:
    unchanged, small = rows.of("unchanged"), rows.within_floor
    equal = Rows(row for row in unchanged.counted if row not in small)
    if view.terminal and len(unchanged.timed) > _MANY:
        parts: list[Part] = [Paragraph(f"{len(unchanged.timed):,} unchanged; --format markdown --full lists them.")]
    else:
        parts = folded_part("Unchanged", unchanged.timed, layout, why=False)
    parts += folded_part("Counted figures that changed by less than their floor", small, layout, why=False, aside=True)
    if view.terminal:
        parts.append(Paragraph(within_floors_line(rows), "dim"))
    if view.full:
        parts += folded_part("Counted figures without a change", equal, layout, why=False)
    elif equal:  # of counted figures it is enough to know which did not change
        figures = [f"{figure_title(metric)} ({len(group):,})" for metric, group in equal.by_metric().items()]
        title = f"Counted figures without a change ({plural(len(equal), 'row')})"
        parts.append(Fold(title, (Paragraph("In so many rows:"), Bullets(figures)), aside=True))
    if identical := rows.of("identical"):
        names = Paragraph(tuple(with_commas(row.case for row in identical)))
        parts.append(Fold(f"Identical modules ({len(identical)})", [names], aside=len(identical) > _MANY))
    return [*parts, *folded_part("A/A controls", controls(layout.comparison), layout, why=True, aside=True)]


def _picture(comparison: Comparison, rows: Rows, view: View) -> list[Part]:
    changed = [row for verdict in CHANGED for row in rows.timed.of(verdict).largest_first()]
    drawn = changed[:_MOST_IN_FOREST] or rows.timed.of("inconclusive")
    if published := pictures_of(view, folded=not drawn):
        return published
    return (
        [Code(forest_text(forest_of(comparison, keep=drawn.__contains__, top=_MOST_IN_FOREST), view.width))]
        if drawn
        else []
    )


def _means(comparison: Comparison) -> list[Part]:
    latencies = real_rows(comparison).metric(LATENCY.name)
    undecided = Counter((kind, getattr(row, kind)) for row in latencies.of("inconclusive") for kind in get_args(Kind))
    every = geometric_means(comparison.rows) if latencies.of(*MEASURED) else ()
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
    return [Fold("Geometric means by model, device and variant", (table,), aside=True)]


def hosts_table(comparison: Comparison, title: str, counted: str, rows: Mapping[str, int]) -> list[Part]:
    """What each host is, and how much of something it measured."""
    columns = (
        Column("host", [host.name for host in comparison.hosts]),
        Column("machine", [describe_machine(host.environment) for host in comparison.hosts]),
        Column(counted, [str(rows[host.name]) for host in comparison.hosts], kind="number"),
    )
    return [Table(title=title, columns=columns, most=_MOST_HOSTS)]


def _method(comparison: Comparison, view: View) -> list[Part]:
    made = "measured" if comparison.mode == "remeasured" else "made"
    name: tuple[str | Name, ...] = (" ", Name(comparison.id)) if comparison.id else ()
    by_host = Counter(host for row in Rows(comparison.rows).metric(LATENCY.name) for host in row.hosts)
    trusted: Part = Bullets(trust(comparison))
    parts: list[Part] = [
        *([] if view.terminal else [trusted]),
        sides_table(comparison.base, comparison.head),
        Paragraph(("Comparison", *name, f" of {comparison.created}, {made} on {comparison.machine.description}.")),
        *(hosts_table(comparison, "Hosts", "latencies", by_host) if len(comparison.hosts) > 1 else ()),
        Paragraph(rule_line(comparison)),
    ]
    if view.full and comparison.settings:
        parts.append(values_table("Setting", comparison.settings))
    return [
        *([Fold("How far to trust it", [trusted])] if view.terminal else []),
        Fold("How it was measured", parts, aside=True),
    ]


def _commands(comparison: Comparison, *, full: bool) -> list[Part]:
    """The command of the whole comparison, and those of the rows that somebody may have to act on, folded away.

    Those of lost rows stand beside what the tools said of them.
    """
    rows = Rows(row for row in comparison.rows if row.repro and (full or is_relevant(row)))
    wanted: dict[str, Row] = {}
    for row in rows if full else Rows(row for row in rows if row.verdict not in LOST).largest_first():
        wanted.setdefault(row.case, row)
    parts: list[Part] = [Code(shlex.join(comparison.command), "sh")] if comparison.command else []
    shown = list(wanted.values())[: None if full else _MOST_COMMANDS]
    parts += [Code("\n".join(row.repro), "sh", row.case) for row in shown]
    return [Fold("Commands that repeat it", parts, aside=True)] if parts else []


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
    said: list[Sentence] = [
        capital(busy_line(timed, several_hosts=several)),
        medians_sentence(real_rows(comparison).timed),
        *rates,
        capital(controls_line(controls(comparison))),
    ]
    return [sentence for sentence in said if sentence]
