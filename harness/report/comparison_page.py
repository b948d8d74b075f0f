"""Comparison -> page: for a terminal, as a comment of bounded length, or with everything there is.

The lists are those of IREE's old comments; verdict, advice and the table below them come as rustc-perf's do.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.compare.pairs import WHERE_ALL_IS
from harness.compare.rows import geometric_mean
from harness.compare.sides import selfcheck_of
from harness.machine.environment import describe_machine
from harness.metrics import COMPILE_TIME, LATENCY, TIMED, metric_named
from harness.records.comparison import Comparison, Row, Verdict
from harness.report.comparison import (
    CHANGED,
    LOST,
    TONES,
    Busy,
    Rows,
    busy_line,
    capital,
    change_title,
    controls,
    controls_line,
    figure_title,
    figure_unit,
    full_report_command,
    interval_title,
    is_relevant,
    list_title,
    machine_line,
    marked,
    medians_sentence,
    next_steps,
    reading,
    real_rows,
    rule_line,
    sides_line,
    verdict_line,
    warning,
)
from harness.report.explanation_page import folded_explanations
from harness.report.forest import forest_of, forest_text
from harness.report.page import (
    Bullets,
    Code,
    Column,
    Fold,
    Name,
    Page,
    Paragraph,
    Part,
    Sentence,
    Table,
    Warnings,
    filled,
    listed,
)
from harness.report.pages import View, advice, commit_name, foot, opening, pictures_of, sides_table
from harness.report.units import NOTHING, Unit, interval_text, p_text, percent, side_names
from harness.text import plural

# Names that a cell has room for; more of them are listed below the table.
_MOST_IN_A_CELL = 3
# How many rows of a list a comment shows unfolded; IREE's comments had the same cut.
MOST_SHOWN = 3
# On a terminal, above so many rows of a kind those that nobody has to act on are only counted.
_MANY = 40
_MOST_IN_FOREST = 12
_MOST_COMMANDS = _MOST_HOSTS = 20

# --- Cases without figures ---


class Fate(NamedTuple):
    """What happened to a case that has no figures."""

    case: str
    model: str
    sentence: str  # The same for all cases that it happened to
    verdict: Verdict | None = None  # None: of a run
    output: str = ""  # What a tool printed, and where all of it is
    repro: Sequence[str] = ()


def _by_cause(fates: Iterable[Fate]) -> list[list[Fate]]:
    causes: dict[tuple[str, Verdict | None], dict[str, Fate]] = {}
    for fate in fates:
        causes.setdefault((fate.sentence, fate.verdict), {}).setdefault(fate.case, fate)
    return [list(cases.values()) for cases in causes.values()]


def _who(cause: Sequence[Fate]) -> str:
    """The case, or how many: `12 cases of magika`."""
    if len(cause) == 1:
        return cause[0].case
    models = {fate.model for fate in cause}
    return f"{plural(len(cause), 'case')}{f' of {models.pop()}' if len(models) == 1 else ''}"


def cause_table(fates: Iterable[Fate], *, title: str = "", why: str = "What happened") -> list[Part]:
    """A table with a row a cause, and the names of cases that it has no room for."""
    names: list[tuple[str, ...]] = []
    below: list[Part] = []
    causes = _by_cause(fates)
    for cause in causes:
        names.append(tuple(fate.case for fate in cause))
        if len(cause) > _MOST_IN_A_CELL:
            below.append(Paragraph((f"The {_who(cause)}: ", *listed(names[-1]))))
            names[-1] = (names[-1][0], f"and {len(cause) - 1:,} more")
    verdicts = [cause[0].verdict for cause in causes]
    sentences = [f"{f'{_who(cause)}: ' if len(cause) > 1 else ''}{cause[0].sentence}" for cause in causes]
    columns = [
        Column("Benchmark Name", names, kind="name"),
        Column("Verdict", [marked(verdict) if verdict else "" for verdict in verdicts]),
        Column(why, sentences, kind="sentence"),
    ]
    tones = [TONES[verdict] if verdict else "" for verdict in verdicts]
    return [Table(title=title, columns=filled(columns), tones=tones), *below] if causes else []


def cause_details(fates: Iterable[Fate]) -> list[Part]:
    """What the tools printed of the first case of each cause, and the commands that repeat that case."""
    parts: list[Part] = []
    causes = _by_cause(fates)
    for cause in causes:
        text = next((fate.output for fate in cause if fate.output), "")
        said, _, log = text.rpartition("\n\n")
        if not log.startswith(WHERE_ALL_IS):
            said, log = text, ""
        if said.strip():
            parts.append(Code(said, "log", f"What the tools said of {_who(cause)}"))
        if log:
            parts.append(Paragraph((WHERE_ALL_IS, Name(log.removeprefix(WHERE_ALL_IS)))))
        parts.append(Code("\n".join(cause[0].repro), "sh", cause[0].case))
    return parts if len(causes) <= MOST_SHOWN else [Fold("What the tools said, and commands that repeat it", parts)]


def _lost_parts(rows: Rows) -> list[Part]:
    """Rows whose outputs differ, then those that failed or are missing, a line a cause; what the tools said of them."""

    def fates(*verdicts: Verdict) -> list[Fate]:
        return [
            Fate(
                row.case, row.model, f"{'A/A control: ' * row.control}{row.reason}", row.verdict, row.stderr, row.repro
            )
            for row in rows.of(*verdicts)
        ]

    return [
        *cause_table(fates("outputs differ"), title="Benchmarks with Different Outputs 🚨"),
        *cause_table(fates("failed", "missing"), title="Failed and Missing Benchmarks 🚨"),
        *cause_details(fates(*LOST)),
    ]


# --- Lists of rows ---


def _change_columns(rows: Sequence[Row], comparison: Comparison, *, why: bool) -> list[Column]:
    """The columns of rows of one metric, of those in which some row has something to say."""
    metric, unit = rows[0].metric, figure_unit(rows)
    brackets = any(row.ci_low is not None for row in rows)
    ratios = brackets or any(row.metric in TIMED and row.ratio is not None for row in rows)
    hosts = [", ".join(row.hosts) for row in rows]

    def number(title: str, cells: Sequence[str], unit_name: str = "", rank: int = 0) -> Column:
        return Column(title, cells, kind="number", unit=unit_name, rank=rank)

    return filled(
        [
            Column("Benchmark Name", [row.case for row in rows], kind="name"),
            number(figure_title(metric), [_value(row, unit) for row in rows], unit.name, 3),
            number(
                f"Ratio [{interval_title(comparison, metric)}]" if brackets else "Ratio",
                [interval_text(row.ratio, row.ci_low, row.ci_high) for row in rows] if ratios else [],
            ),
            number("p", [p_text(row.p) for row in rows], rank=4),
            number("Generations", [str(row.generations or NOTHING) for row in rows], rank=5),
            Column("Host", hosts if len({*hosts} - {""}) > 1 else [], rank=5),
            Column("Kind of Change", [row.change or "" for row in rows], rank=2),
            Column("Gate", [row.gate or "" for row in rows]),
            Column("Why", [row.reason if why else row.program for row in rows], kind="sentence"),
        ]
    )


def _value(row: Row, unit: Unit) -> str:
    """As IREE's comments wrote it, by the row's ratio: `84.508 (vs. 76.591, 10.34%↑)`; no percentage of an open row."""
    if row.base_value is None or row.head_value is None:
        return unit.text(row.head_value if row.base_value is None else row.base_value)
    ratio = row.ratio
    if ratio is None and row.metric not in TIMED and row.base_value > 0:
        ratio = row.head_value / row.base_value
    change = ""
    if ratio is not None and row.verdict != "inconclusive":
        change = f", {abs(ratio - 1):.2%}{'↑' if ratio > 1 else '↓' if ratio < 1 else ''}"
    return f"{unit.text(row.head_value)} (vs. {unit.text(row.base_value)}{change})"


def change_parts(rows: Rows, comparison: Comparison, titles: Callable[[str, Verdict], str]) -> list[Part]:
    """What regressed and what improved of each metric among the rows, the largest changes first."""
    return [
        part
        for metric, group in rows.of(*CHANGED).by_metric().items()
        for verdict in CHANGED
        for part in lists(titles(metric, verdict), group.of(verdict).largest_first(), comparison, why=False)
    ]


def lists(title: str, rows: Rows, comparison: Comparison, *, why: bool = True, level: int = 3) -> list[Part]:
    """A table for each metric; `{}` in the title stands for the metric's own."""
    return [
        Table(
            title=title.replace("{}", list_title(metric)),
            level=level,
            columns=_change_columns(group, comparison, why=why),
            tones=[TONES[row.verdict] for row in group],
            first=MOST_SHOWN,
        )
        for metric, group in rows.by_metric().items()
    ]


def folded_part(summary: str, rows: Rows, comparison: Comparison, *, why: bool, aside: bool = False) -> list[Part]:
    """Rows folded away behind a summary, a table for each metric."""
    title = "{}" if len(rows.by_metric()) > 1 else ""
    tables = lists(title, rows, comparison, why=why, level=4)
    return [Fold(f"{summary} ({len(rows)})", tables, aside=aside)] if rows else []


# --- Figures at a glance ---

# Lines of the table of figures; a suite may count any number of ops.
_MOST_LINES = 30


def figure_table(rows: Rows) -> list[Part]:
    """A line for each figure of which a row changed, in numbers of rows and ranges; also for all that is timed."""
    lines: list[tuple[str, ...]] = []
    for metric, judged in rows.by_metric().items() if rows.of(*CHANGED) else ():
        group, definition = judged, metric_named(metric)
        if definition is not None and definition.exact:  # equal modules have no rows of counted figures
            group = Rows((*judged, *(row for row in rows.of("identical") if row.case not in judged.cases)))
        compared = metric in TIMED and any(row.ratio is not None or row.verdict == "identical" for row in group)
        if group.of(*CHANGED) or compared:
            identical, unchanged = len(group.of("identical")), len(group.of("unchanged"))
            both = f"{unchanged + identical:,}{f', {identical:,} identical' if identical and unchanged else ''}"
            unsure = len(group.of("inconclusive"))
            lines.append(
                (
                    LATENCY.title if metric == LATENCY.name else figure_title(metric),
                    _changed(group.of("regressed"), "worst"),
                    _changed(group.of("improved"), "best"),
                    both if unchanged + identical else "",
                    f"{unsure:,}" if unsure else "",
                    _mean(group),
                )
            )
    if not lines:
        return []
    titles = ("Regressed 🚩", "Improved 🎉", "Unchanged", "Inconclusive", "Geometric Mean")
    names, *cells = zip(*lines, strict=True)
    ranks = (0, 0, 0, 0, 1)  # the mean of all leaves a narrow terminal
    numbers = [
        Column(title, texts, kind="number", rank=rank) for title, texts, rank in zip(titles, cells, ranks, strict=True)
    ]
    return [Table(columns=(Column("", names), *numbers), most=_MOST_LINES)]


def _changed(rows: Rows, word: str) -> str:
    if not rows:
        return ""
    ratio = rows.largest_first()[0].ratio
    return f"{len(rows):,},{f' {word}' if len(rows) > 1 else ''} {'from 0' if ratio is None else percent(ratio)}"


def _mean(rows: Rows) -> str:
    """Of all decided rows; nothing where most are not decided, or a change from 0 or to 0 would not be in it."""
    mean = geometric_mean(rows)
    if mean is None or len(rows.of("inconclusive")) > mean.rows:
        return ""
    if any(0 in (row.base_value, row.head_value) for row in rows.of(*CHANGED)):
        return ""
    low, high = mean.low, mean.high
    interval = f" [{percent(low)}, {percent(high)}]" if low is not None and high is not None and low < high else ""
    return f"{percent(mean.ratio)}{interval} of {mean.rows:,}"


# --- The page ---


def page(comparison: Comparison, view: View) -> Page:
    """A comparison for a terminal, for a comment, or all of it."""
    head_commit = commit_name(view.links.head_commit_url)
    base_name, head_name = side_names(comparison.base, comparison.head)
    head = ("commit ", head_commit) if head_commit else (head_name,)
    by_release = not head_commit and head_name.startswith("IREE ")
    subject = (*head, " (vs. base ", base_name, f"): {sides_line(comparison, releases=not by_release)}")
    steps = next_steps(comparison)
    rows = real_rows(comparison)
    return Page(
        marker=("comparison", comparison.head.suite),
        title=(Name(comparison.head.suite), f": {head_name} against {base_name}")
        if view.terminal
        else view.title(comparison.head.suite),
        verdict=verdict_line(comparison),
        parts=(
            *opening(subject, steps, view),
            Warnings([*(f"⚠️ {said}" for said in (warning(comparison),) if said), *comparison.notes]),
            *figure_table(rows),
            *_lost_parts(Rows(comparison.rows)),
            *lists("Violated Gates: {} 🚨", rows.violated.largest_first(), comparison),
            *_picture(comparison, rows, view),
            *changed_lists(comparison, view),
            *_method(comparison, view),
            *_commands(comparison, full=view.full),
            *(advice(steps) if view.terminal else ()),
        ),
        foot=foot(view.links, full_report_command(comparison)),
    )


def changed_lists(
    comparison: Comparison, view: View, titles: Callable[[str, Verdict], str] = change_title
) -> list[Part]:
    """What changed, what is not decided, what is new and what did not change; `titles` head what changed."""
    rows = real_rows(comparison)
    latencies, others = rows.metric(LATENCY.name), rows.counted.of(*CHANGED)
    changes = change_parts(latencies, comparison, titles)
    has_intervals = changes and any(row.ci_low is not None for row in latencies)
    new = rows.of("new")
    title = f"Counted figures that changed ({plural(len(others), 'row')})"
    return [
        *changes,
        *([Paragraph(reading(comparison), "dim")] if has_intervals else []),
        *folded_explanations(comparison, view),
        *change_parts(rows.metric(COMPILE_TIME.name), comparison, titles),
        Fold(title, change_parts(others, comparison, titles), open=view.full, aside=True),
        *folded_part("Inconclusive", rows.of("inconclusive").largest_first(), comparison, why=True),
        *folded_part("New", new.metric(LATENCY.name) or new, comparison, why=True),
        *_unchanged(rows, comparison, view),
    ]


def _unchanged(rows: Rows, comparison: Comparison, view: View) -> list[Part]:
    unchanged, identical = rows.of("unchanged"), rows.of("identical")
    if view.terminal and len(unchanged.timed) > _MANY:
        parts: list[Part] = [Paragraph(f"{len(unchanged.timed):,} unchanged; --format markdown --full lists them.")]
    else:
        parts = folded_part("Unchanged", unchanged.timed, comparison, why=False)
    if view.full:
        parts += folded_part("Counted figures without a change", unchanged.counted, comparison, why=False)
    if identical:
        names = Paragraph(listed([row.case for row in identical]))
        parts.append(Fold(f"Identical modules ({len(identical)})", [names], aside=len(identical) > _MANY))
    return [*parts, *folded_part("A/A controls", controls(comparison), comparison, why=True, aside=True)]


def _picture(comparison: Comparison, rows: Rows, view: View) -> list[Part]:
    """The published pictures, or in text the rows that changed, else those that are not decided."""
    changed = [row for verdict in CHANGED for row in rows.timed.of(verdict).largest_first()]
    drawn = changed[:_MOST_IN_FOREST] or rows.timed.of("inconclusive")
    if (published := pictures_of(view, folded=not drawn)) or not drawn:
        return published
    forest = forest_of(comparison, keep=drawn.__contains__, top=_MOST_IN_FOREST)
    return [Code(forest_text(forest, view.width))]


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
    return [
        *([Fold("How far to trust it", [trusted])] if view.terminal else []),
        Fold("How it was measured", parts, aside=True),
    ]


def _commands(comparison: Comparison, *, full: bool) -> list[Part]:
    rows = [row for row in comparison.rows if row.repro and (full or (is_relevant(row) and row.verdict not in LOST))]
    wanted: dict[str, Row] = {}
    for row in rows if full else Rows(rows).largest_first():
        wanted.setdefault(row.case, row)
    parts: list[Part] = [Code(shlex.join(comparison.command), "sh")] if comparison.command else []
    shown = list(wanted.values())[: None if full else _MOST_COMMANDS]
    parts += [Code("\n".join(row.repro), "sh", row.case) for row in shown]
    return [Fold("Commands that repeat it", parts, aside=True)] if parts else []


def trust(comparison: Comparison, busy: Sequence[Busy] = ()) -> list[Sentence]:
    """How busy the machines were (`busy`: of a run), how often they are wrong, and what the A/A controls showed."""
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
