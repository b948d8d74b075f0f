"""Judged rows -> tables: what changed, what is open, what was lost; of a comparison, and of a run's variants."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.compare.pairs import WHERE_ALL_IS
from harness.compare.rows import geometric_mean
from harness.metrics import INSTRUCTIONS, LATENCY, TIMED, metric_named
from harness.records.comparison import Comparison, Row, Verdict
from harness.report.markdown import name as code
from harness.report.markdown import size_bytes
from harness.report.page import Code, Column, Fold, Heading, Inline, Name, Paragraph, Part, Table, Tone, filled
from harness.report.units import (
    NOTHING,
    Unit,
    change_text,
    interval_text,
    p_text,
    percent,
    unit_of,
)
from harness.report.verdicts import (
    CHANGED,
    LOST,
    TONES,
    UPSTREAM_TITLES,
    Rows,
    change_title,
    figure_title,
    interval_title,
    list_title,
    marked,
)
from harness.text import plural

# Names that a cell has room for; more of them are listed below the table.
_MOST_IN_A_CELL = 3
DIFFERENT_TITLE = "Benchmarks with Different Outputs 🚨"
LOST_TITLE = "Failed and Missing Benchmarks 🚨"


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What happened to one case, in a sentence that is the same for all cases with the same cause."""

    case: str
    model: str
    sentence: str
    verdict: str = ""
    figure: str = ""


@dataclass(frozen=True)
class Cause:
    """Fates that are alike but for the case."""

    fates: Sequence[Fate]

    @property
    def cases(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(fate.case for fate in self.fates))

    @property
    def who(self) -> str:
        """The case, or how many: `12 cases of magika`."""
        if len(self.cases) == 1:
            return self.cases[0]
        models = {fate.model for fate in self.fates}
        return f"{plural(len(self.cases), 'case')}{f' of {models.pop()}' if len(models) == 1 else ''}"


def causes_of(fates: Iterable[Fate]) -> list[Cause]:
    """Fates grouped by what they say, in the order in which causes first appear."""
    groups: dict[tuple[str, str, str], list[Fate]] = {}
    for fate in fates:
        groups.setdefault((fate.sentence, fate.verdict, fate.figure), []).append(fate)
    return [Cause(group) for group in groups.values()]


def cause_parts(
    causes: Sequence[Cause], *, title: str = "", why: str = "What happened", tones: Sequence[Tone] = ()
) -> list[Part]:
    """A table with a row a cause, and the names of cases that it has no room for; columns of nothing are left out."""
    names: list[tuple[str, ...]] = []
    sentences: list[str] = []
    listed: list[Part] = []
    for cause in causes:
        sentence, number = cause.fates[0].sentence, len(cause.cases)
        sentences.append(f"{cause.who}: {sentence}" if number > 1 else sentence)
        names.append(cause.cases)
        if number > _MOST_IN_A_CELL:
            names[-1] = (cause.cases[0], f"and {number - 1:,} more")
            listed.append(Paragraph((f"The {cause.who}: ", *_with_commas(cause.cases))))
    columns = [
        Column("Benchmark Name", names, kind="name"),
        Column("Figure", [cause.fates[0].figure for cause in causes]),
        Column("Verdict", [cause.fates[0].verdict for cause in causes]),
        Column(why, sentences, kind="sentence"),
    ]
    return [Table(title=title, columns=filled(columns), tones=tones), *listed]


def _with_commas(names: Iterable[str]) -> list[Inline]:
    pieces: list[Inline] = []
    for name in names:
        pieces += [", ", Name(name)]
    return pieces[1:]


def lost_table(rows: Rows) -> list[Part]:
    """Rows whose outputs differ, then those that failed or are missing, a line a cause: never folded, never cut."""
    different = rows.of("outputs differ")
    tones = {marked(verdict): tone for verdict, tone in TONES.items()}
    parts: list[Part] = []
    for title, titled in ((DIFFERENT_TITLE, different), (LOST_TITLE, [row for row in rows if row not in different])):
        if titled:
            causes = causes_of(fates_of(titled))
            parts += cause_parts(causes, title=title, tones=[tones[cause.fates[0].verdict] for cause in causes])
    return parts


def fates_of(rows: Sequence[Row]) -> list[Fate]:
    """What happened to rows without figures."""
    several = len({row.metric for row in rows}) > 1
    return [
        Fate(
            case=row.case,
            model=row.model,
            sentence=f"{'A/A control: ' if row.control else ''}{row.reason}",
            verdict=marked(row.verdict),
            figure=figure_title(row.metric) if several else "",
        )
        for row in rows
    ]


def tool_output(causes: Sequence[Cause], outputs: Mapping[str, str]) -> list[Part]:
    """What the tools printed of the first case of each cause, by the case's name."""
    parts: list[Part] = []
    for cause in causes:
        text = next((outputs[case] for case in cause.cases if outputs.get(case)), "")
        said, _, log = text.rpartition("\n\n")
        if not log.startswith(WHERE_ALL_IS):
            said, log = text, ""
        if said.strip():
            parts.append(Code(said, "log", f"What the tools said of {cause.who}"))
        if log:
            parts.append(Paragraph((WHERE_ALL_IS, Name(log.removeprefix(WHERE_ALL_IS)))))
    return parts


def cause_details(
    causes: Sequence[Cause], outputs: Mapping[str, str], repro: Mapping[str, Sequence[str]]
) -> list[Part]:
    """What the tools printed of the first case of each cause, and the commands that repeat that case."""
    parts: list[Part] = []
    for cause in causes:
        first = cause.cases[0]
        parts += tool_output([cause], outputs)
        parts += [Code("\n".join(repro[first]), "sh", first)] if repro.get(first) else []
    return parts


# --- Names alone ---

# Of a comment, what a list of nothing but names may take.
_ROOM_FOR_NAMES_BYTES = 20_000


def lost_names(rows: Rows) -> list[Part]:
    """Rows that failed or are missing, by name alone."""
    fates: dict[str, list[str]] = {fate: rows.of(fate).cases for fate in LOST}
    return [Heading(LOST_TITLE), *names_by_fate(fates)] if rows else []


def names_by_fate(fates: Mapping[str, Sequence[str]]) -> list[Part]:
    """Names in a paragraph for each fate; those that a comment has no room for are counted."""
    parts: list[Part] = []
    room_bytes = _ROOM_FOR_NAMES_BYTES
    for fate, names in fates.items():
        if names:
            listed, room_bytes = _fitting(names, room_bytes)
            parts.append(Paragraph((f"{fate.capitalize()} ({len(names):,}): ", *listed)))
    return parts


def identical_part(rows: Rows, *, whole: bool) -> list[Part]:
    """Rows whose modules are equal, by name, folded away."""
    names = [row.case for row in rows.of("identical")]
    if not names:
        return []
    listed, _ = _fitting(names, 10**9 if whole else _ROOM_FOR_NAMES_BYTES)
    return [Fold(f"Identical modules ({len(names)})", (Paragraph(tuple(listed)),))]


def _fitting(names: Sequence[str], room_bytes: int) -> tuple[list[Inline], int]:
    for place, name in enumerate(names):
        room_bytes -= size_bytes(code(name[:300])) + 2
        if room_bytes < 0:
            comma = ", " if place else ""
            return [*_with_commas(names[:place]), f"{comma}and {len(names) - place:,} more"], room_bytes
    return _with_commas(names), room_bytes


# --- Lists of rows ---

# How many rows of a list of changes a comment shows; IREE's comments had the same cut.
MOST_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the tables of a page are laid out."""

    comparison: Comparison
    full: bool = False  # Whether the page has every row of every list
    titles: Callable[[str, Verdict], str] = change_title  # The heading of changed rows of a metric
    # Latencies of the fastest and the slowest generation of a case in ns, where the page shows them
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def figure_unit(rows: Sequence[Row]) -> Unit:
    """One unit for both sides of rows of one metric; bytes stay bytes, as in IREE's comments."""
    if rows[0].unit == "bytes":
        return Unit(name="bytes", size=1.0, decimals=0)
    return unit_of(rows[0].unit, [value for row in rows for value in (row.base_value, row.head_value)])


def change_columns(rows: Sequence[Row], layout: Layout, *, why: bool, verdicts: bool = False) -> list[Column]:
    """The columns of rows of one metric, of those in which some row has something to say."""
    metric, unit = rows[0].metric, figure_unit(rows)
    brackets = any(row.ci_low is not None for row in rows)
    ratios = brackets or any(row.metric in TIMED and row.ratio is not None for row in rows)
    hosts = [", ".join(row.hosts) for row in rows]
    spans = [layout.spans.get(row.case) if metric == LATENCY.name else None for row in rows]

    def number(title: str, cells: Sequence[str], unit_name: str = "", rank: int = 0) -> Column:
        return Column(title, cells, kind="number", unit=unit_name, rank=rank)

    return filled(
        [
            Column("Verdict", [marked(row.verdict) for row in rows] if verdicts else []),
            Column("Benchmark Name", [row.case for row in rows], kind="name"),
            number(figure_title(metric), [_value(row, unit) for row in rows], unit.name, 3),
            number(
                f"Ratio [{interval_title(layout.comparison, metric)}]" if brackets else "Ratio",
                [interval_text(row.ratio, row.ci_low, row.ci_high) for row in rows] if ratios else [],
            ),
            number(
                "Fastest to Slowest Generation",
                ["" if span is None else f"{unit.text(span[0])} to {unit.text(span[1])}" for span in spans],
                unit.name,
            ),
            number("p", [p_text(row.p) for row in rows], rank=4),
            number("Generations", [str(row.generations or NOTHING) for row in rows], rank=5),
            Column("Host", hosts if len({*hosts} - {""}) > 1 else [], rank=5),
            number("Took", [f"{row.seconds:.1f}" if why and row.seconds else NOTHING for row in rows], "s", 6),
            Column("Kind of Change", [row.change or "" for row in rows], rank=2),
            Column("Gate", [row.gate or "" for row in rows]),
            Column("Why", [row.reason if why else row.program for row in rows], kind="sentence"),
        ]
    )


def _value(row: Row, unit: Unit) -> str:
    """Both figures and by how much they differ: by the row's ratio, which stands beside them and decides.

    A row that is open has not decided anything: its ratio may lie on the other side of 1 than its two figures do.
    """
    if row.base_value is None or row.head_value is None:
        return unit.text(row.head_value if row.base_value is None else row.base_value)
    ratio = row.ratio
    if ratio is None and row.metric not in TIMED and row.base_value > 0:
        ratio = row.head_value / row.base_value
    told = None if row.verdict == "inconclusive" else ratio
    return change_text(unit.text(row.head_value), unit.text(row.base_value), told)


def row_table(rows: Sequence[Row], layout: Layout, *, title: str) -> Table:
    """Rows of one metric and of any verdict."""
    columns = change_columns(rows, layout, why=True, verdicts=True)
    return Table(title=title, columns=columns, tones=[TONES[row.verdict] for row in rows])


def change_parts(rows: Rows, layout: Layout) -> list[Part]:
    """What regressed and what improved of each metric among the rows, the largest changes first."""
    parts: list[Part] = []
    for metric, group in rows.of(*CHANGED).by_metric().items():
        for verdict in CHANGED:
            changed = group.of(verdict).largest_first()
            parts += list_parts(layout.titles(metric, verdict), changed, layout)
    return parts


def parts_by_metric(title: str, rows: Rows, layout: Layout) -> list[Part]:
    """A list for each metric, with why; `{}` in the title stands for the metric's own."""
    parts: list[Part] = []
    for metric, group in rows.by_metric().items():
        parts += list_parts(title.format(list_title(metric)), group, layout, why=True)
    return parts


def list_parts(title: str, rows: Rows, layout: Layout, *, why: bool = False) -> list[Part]:
    """Rows of one metric under a title."""
    return [Table(title=title, columns=change_columns(rows, layout, why=why), first=MOST_SHOWN)] if rows else []


def folded_part(summary: str, rows: Rows, layout: Layout, *, why: bool) -> list[Part]:
    """Rows folded away behind a summary, a table for each metric."""
    if not rows:
        return []
    groups = rows.by_metric()
    tables = [
        Table(
            title=list_title(metric) if len(groups) > 1 else "",
            level=4,
            columns=change_columns(group, layout, why=why),
            first=MOST_SHOWN,
        )
        for metric, group in groups.items()
    ]
    return [Fold(f"{summary} ({len(rows)})", tables)]


def verdict_counts(rows: Rows, verdicts: Sequence[Verdict]) -> str:
    """`12 unchanged, 6 identical`; "" without rows."""
    counts = [(len(rows.of(verdict)), verdict) for verdict in verdicts]
    return ", ".join(f"{count:,} {verdict}" for count, verdict in counts if count)


# --- Figures at a glance ---

# Lines of the table of figures; a suite may count any number of ops.
_MOST_LINES = 30
# What it shows unfolded: what is timed, and the figures that IREE's own comments had.
_FIRST = (*TIMED, INSTRUCTIONS.name, *UPSTREAM_TITLES)
# Beyond this a ratio is no percentage that anybody reads.
_LARGEST_RATIO = 1e6


def figure_table(rows: Rows, *, first: bool) -> list[Part]:
    """A line for each figure of which a row changed, in numbers of rows and ranges; also for all that is timed."""
    if not rows.of(*CHANGED):
        return []
    groups = {
        metric: _standing_for(metric, group, rows)
        for metric, group in rows.by_metric().items()
        if (metric in _FIRST) == first and (group.of(*CHANGED) or (metric in TIMED and _has_ratios(group)))
    }
    if not groups:
        return []
    lines = [
        (
            _changed(group.of("regressed"), "worst"),
            _changed(group.of("improved"), "best"),
            _unchanged(group),
            _number(len(group.of("inconclusive"))),
            _mean(group),
        )
        for group in groups.values()
    ]
    titles = ("Regressed 🚩", "Improved 🎉", "Unchanged", "Inconclusive", "Geometric Mean")
    names = [LATENCY.title if metric == LATENCY.name else figure_title(metric) for metric in groups]
    numbers = [
        Column(title, cells, kind="number") for title, cells in zip(titles, zip(*lines, strict=True), strict=True)
    ]
    return [Table(columns=(Column("", names), *numbers), most=_MOST_LINES)]


def _has_ratios(rows: Sequence[Row]) -> bool:
    return any(row.ratio is not None or row.verdict == "identical" for row in rows)


def _standing_for(metric: str, group: Rows, rows: Rows) -> Rows:
    definition = metric_named(metric)
    if definition is None or not definition.exact:
        return group
    there = set(group.cases)
    return Rows((*group, *(row for row in rows.of("identical") if row.case not in there)))


def _changed(rows: Rows, word: str) -> str:
    """`3, worst +10.3 %`; what came from nothing has no percentage."""
    if not rows:
        return ""
    if all(row.base_value == 0 for row in rows):
        return f"{len(rows):,}, from 0"
    readable = Rows(
        row for row in rows if row.base_value == 0 or (row.ratio is not None and row.ratio < _LARGEST_RATIO)
    )
    if not readable:
        return f"{len(rows):,}"
    largest = readable.largest_first()[0]
    figure = "from 0" if largest.ratio is None else _percent(largest.ratio)
    return f"{len(rows):,}{f', {word}' if len(rows) > 1 else ','} {figure}"


def _unchanged(rows: Rows) -> str:
    identical = len(rows.of("identical"))
    unchanged = len(rows.of("unchanged"))
    return _number(unchanged + identical) + (f", {identical:,} identical" if identical and unchanged else "")


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def _mean(rows: Rows) -> str:
    """Of all decided rows, not only those that changed: `+2.1 % [+1.9 %, +2.3 %] of 12`.

    Nothing where it would mislead: most rows are not decided, or a change from 0 or to 0 would not be in it.
    """
    mean = geometric_mean(rows)
    if mean is None or not says_something(mean.rows, len(rows.of("inconclusive"))):
        return ""
    if any(0 in (row.base_value, row.head_value) for row in rows.of(*CHANGED)):
        return ""
    ratio, low, high = mean.ratio, mean.low, mean.high
    interval = f" [{_percent(low)}, {_percent(high)}]" if low is not None and high is not None and low < high else ""
    return f"{_percent(ratio)}{interval} of {mean.rows:,}" if ratio < _LARGEST_RATIO else ""


def _percent(ratio: float) -> str:
    return percent(ratio, decimals=1).replace(" ", "\u00a0")


def says_something(decided: int, undecided: int) -> bool:
    """Whether a mean of decided rows does: where most are not decided, these are not like the others."""
    return undecided <= decided
