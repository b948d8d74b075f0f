"""Judged rows -> tables: what changed, what is open, what was lost; of a comparison, and of a run's variants."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.compare.pairs import WHERE_ALL_IS
from harness.compare.rows import geometric_mean
from harness.metrics import INSTRUCTIONS, LATENCY, TIMED, metric_named
from harness.records.comparison import Comparison, Row, Verdict
from harness.report.page import Code, Column, Fold, Inline, Name, Paragraph, Part, Table, Tone, filled
from harness.report.units import NOTHING, Unit, change_text, interval_text, p_text, percent, unit_of
from harness.report.verdicts import (
    CHANGED,
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
# How many rows of a list a comment shows unfolded; IREE's comments had the same cut.
MOST_SHOWN = 3

# --- Cases without figures ---


@dataclass(frozen=True)
class Cause:
    """What happened to cases, in a sentence that is the same for all of them."""

    sentence: str
    verdict: str = ""
    figure: str = ""
    cases: dict[str, str] = field(default_factory=dict)  # Names of the cases, each with its model

    @property
    def first(self) -> str:
        """The case that stands for all of them."""
        return next(iter(self.cases))

    @property
    def who(self) -> str:
        """The case, or how many: `12 cases of magika`."""
        if len(self.cases) == 1:
            return self.first
        models = set(self.cases.values())
        return f"{plural(len(self.cases), 'case')}{f' of {models.pop()}' if len(models) == 1 else ''}"


def causes_of(fates: Iterable[tuple[str, str, Cause]]) -> list[Cause]:
    """Cases grouped by cause: of each its name, its model, and what happened to it."""
    causes: dict[tuple[str, str, str], Cause] = {}
    for case, model, what in fates:
        cause = causes.setdefault((what.sentence, what.verdict, what.figure), what)
        cause.cases[case] = model
    return list(causes.values())


def lost_causes(rows: Sequence[Row]) -> list[Cause]:
    """What happened to rows without figures."""
    several = len({row.metric for row in rows}) > 1
    return causes_of(
        (
            row.case,
            row.model,
            Cause(
                f"{'A/A control: ' if row.control else ''}{row.reason}",
                marked(row.verdict),
                figure_title(row.metric) if several else "",
            ),
        )
        for row in rows
    )


def cause_parts(
    causes: Sequence[Cause], *, title: str = "", why: str = "What happened", tones: Sequence[Tone] = ()
) -> list[Part]:
    """A table with a row a cause, and the names of cases that it has no room for; columns of nothing are left out."""
    if not causes:
        return []
    names: list[tuple[str, ...]] = []
    sentences: list[str] = []
    listed: list[Part] = []
    for cause in causes:
        number = len(cause.cases)
        sentences.append(f"{cause.who}: {cause.sentence}" if number > 1 else cause.sentence)
        names.append(tuple(cause.cases))
        if number > _MOST_IN_A_CELL:
            names[-1] = (cause.first, f"and {number - 1:,} more")
            listed.append(Paragraph((f"The {cause.who}: ", *with_commas(cause.cases))))
    columns = [
        Column("Benchmark Name", names, kind="name"),
        Column("Figure", [cause.figure for cause in causes]),
        Column("Verdict", [cause.verdict for cause in causes]),
        Column(why, sentences, kind="sentence"),
    ]
    return [Table(title=title, columns=filled(columns), tones=tones), *listed]


def with_commas(names: Iterable[str]) -> list[Inline]:
    """Names in a sentence."""
    pieces: list[Inline] = []
    for name in names:
        pieces += [", ", Name(name)]
    return pieces[1:]


def lost_table(rows: Rows) -> list[Part]:
    """Rows whose outputs differ, then those that failed or are missing, a line a cause."""
    tones = {marked(verdict): tone for verdict, tone in TONES.items()}
    parts: list[Part] = []
    for title, verdicts in (
        ("Benchmarks with Different Outputs 🚨", ("outputs differ",)),
        ("Failed and Missing Benchmarks 🚨", ("failed", "missing")),
    ):
        causes = lost_causes([row for row in rows if row.verdict in verdicts])
        parts += cause_parts(causes, title=title, tones=[tones[cause.verdict] for cause in causes])
    return parts


def cause_details(
    causes: Sequence[Cause], outputs: Mapping[str, str], repro: Mapping[str, Sequence[str]]
) -> list[Part]:
    """What the tools printed of the first case of each cause, and the commands that repeat that case."""
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
        if repro.get(cause.first):
            parts.append(Code("\n".join(repro[cause.first]), "sh", cause.first))
    few = len(causes) <= MOST_SHOWN or not parts
    return parts if few else [Fold("What the tools said, and commands that repeat it", parts)]


# --- Lists of rows ---


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the lists of a page are laid out."""

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


def _change_columns(rows: Sequence[Row], layout: Layout, *, why: bool) -> list[Column]:
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
                1,
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


def change_parts(rows: Rows, layout: Layout) -> list[Part]:
    """What regressed and what improved of each metric among the rows, the largest changes first."""
    return [
        part
        for metric, group in rows.of(*CHANGED).by_metric().items()
        for verdict in CHANGED
        for part in lists(layout.titles(metric, verdict), group.of(verdict).largest_first(), layout, why=False)
    ]


def lists(title: str, rows: Rows, layout: Layout, *, why: bool = True, level: int = 3) -> list[Part]:
    """A table for each metric; `{}` in the title stands for the metric's own."""
    return [
        Table(
            title=title.replace("{}", list_title(metric)),
            level=level,
            columns=_change_columns(group, layout, why=why),
            tones=[TONES[row.verdict] for row in group],
            first=MOST_SHOWN,
        )
        for metric, group in rows.by_metric().items()
    ]


def folded_part(summary: str, rows: Rows, layout: Layout, *, why: bool, aside: bool = False) -> list[Part]:
    """Rows folded away behind a summary, a table for each metric."""
    title = "{}" if len(rows.by_metric()) > 1 else ""
    tables = lists(title, rows, layout, why=why, level=4)
    return [Fold(f"{summary} ({len(rows)})", tables, aside=aside)] if rows else []


# --- Figures at a glance ---

# Lines of the table of figures; a suite may count any number of ops.
_MOST_LINES = 30
# What it shows unfolded: what is timed, and the figures that IREE's own comments had.
_FIRST = (*TIMED, INSTRUCTIONS.name, *UPSTREAM_TITLES)
# Beyond this a ratio is no percentage that anybody reads.
_LARGEST_RATIO = 1e6


def figure_table(rows: Rows, *, first: bool) -> list[Part]:
    """A line for each figure of which a row changed, in numbers of rows and ranges; also for all that is timed."""
    lines: list[tuple[str, ...]] = []
    for metric, judged in rows.by_metric().items() if rows.of(*CHANGED) else ():
        group, definition = judged, metric_named(metric)
        if definition is not None and definition.exact:  # equal modules have no rows of counted figures
            group = Rows((*judged, *(row for row in rows.of("identical") if row.case not in judged.cases)))
        compared = metric in TIMED and any(row.ratio is not None or row.verdict == "identical" for row in group)
        if (metric in _FIRST) == first and (group.of(*CHANGED) or compared):
            identical, unchanged = len(group.of("identical")), len(group.of("unchanged"))
            both = f"{unchanged + identical:,}{f', {identical:,} identical' if identical and unchanged else ''}"
            lines.append(
                (
                    LATENCY.title if metric == LATENCY.name else figure_title(metric),
                    _changed(group.of("regressed"), "worst"),
                    _changed(group.of("improved"), "best"),
                    both if unchanged + identical else "",
                    _number(len(group.of("inconclusive"))),
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
    """`3, worst +10.3 %`; what came from nothing has no percentage."""
    readable = Rows(
        row for row in rows if row.base_value == 0 or (row.ratio is not None and row.ratio < _LARGEST_RATIO)
    )
    if not readable:
        return _number(len(rows))
    ratio = readable.largest_first()[0].ratio
    more = f", {word}" if len(rows) > 1 and any(row.base_value != 0 for row in rows) else ","
    return f"{len(rows):,}{more} {'from 0' if ratio is None else _percent(ratio)}"


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
