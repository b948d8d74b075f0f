"""Comparison -> text for a terminal: the verdict, what somebody may have to act on, then the rest if short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from harness.metrics import TIMED
from harness.records.comparison import Comparison, Row, Verdict
from harness.report.columns import Column
from harness.report.comparison.method import sides_line, warning
from harness.report.comparison.selection import (
    CHANGED,
    LOST,
    MOST_COUNTED,
    by_metric,
    controls,
    is_relevant,
    largest_first,
    of_verdict,
    real_rows,
)
from harness.report.comparison.steps import next_steps
from harness.report.comparison.words import (
    MARKS,
    figure_title,
    headline,
    interval_title,
    list_title,
    marked,
    p_text,
    ratio_with_interval,
    unit_of,
)
from harness.report.machine import controls_line, machine_line
from harness.report.terminal_text import drawn, empty_table, fitting, print_failure, print_left_out, print_steps
from harness.report.units import NOTHING
from harness.text import one_line

# Above this many timed rows, those that nobody has to act on are only counted.
_MANY = 40
# Nobody reads more of one list on a terminal; the others are counted.
_MOST = 100

_STYLES: dict[Verdict, str] = {
    "regressed": "red",
    "improved": "green",
    "inconclusive": "yellow",
    "failed": "red",
    "missing": "red",
    "new": "cyan",
    "unchanged": "",
    "identical": "dim",
}


def render_terminal(comparison: Comparison, *, width: int, color: bool) -> str:
    """Lay a comparison out in `width` columns; colours only repeat what marks and words say."""

    def draw(console: Console) -> None:
        _print_head(console, comparison)
        _print_lost(console, comparison)
        relevant: list[Row] = []
        rest: list[Row] = []
        for row in real_rows(comparison):
            if row.verdict not in LOST:
                (relevant if is_relevant(row) else rest).append(row)
        for group in by_metric(relevant).values():
            _print_metric(console, comparison, group)
        _print_rest(console, rest)
        _print_foot(console, comparison)

    return drawn(draw, width=width, color=color)


def _print_head(console: Console, comparison: Comparison) -> None:
    base, head = comparison.base, comparison.head
    console.print(Text(f"{one_line(head.label)} against {one_line(base.label)}", style="bold"))
    kept = f" {one_line(comparison.id)}" if comparison.id else ""
    console.print(Text(f"Comparison{kept}: {sides_line(comparison)}", style="dim"))
    console.print(Text(headline(comparison), style="bold"))
    for note in (warning(comparison), *comparison.notes):
        if note:
            console.print(Text(f"Note: {one_line(note)}", style="yellow"))


def _print_lost(console: Console, comparison: Comparison) -> None:
    """Rows that failed or are missing, with what the tools said."""
    lost = of_verdict(comparison.rows, *LOST)
    for row in lost[:_MOST]:
        what = "A/A control, " if row.control else ""
        figure = "" if row.metric == "latency" else f" ({figure_title(row.metric).lower()})"
        console.print()
        said = f"{marked(row.verdict)}  {what}{one_line(row.case)}{figure}"
        console.print(Text(said, style=f"bold {_STYLES[row.verdict]}"))
        if row.reason:
            console.print(Text(one_line(row.reason), overflow="fold"))
        print_failure(console, row.stderr, row.repro)
    _print_not_listed(console, lost[_MOST:])


def _print_metric(console: Console, comparison: Comparison, every: Sequence[Row]) -> None:
    """The rows of one metric that changed or are not decided, and why; of very many, those that matter most."""
    ordered = every if len(every) <= _MOST else sorted(largest_first(every), key=_concern)
    rows = ordered[:_MOST]
    unit = unit_of(list(rows))
    columns = [
        Column(title="verdict", cells=tuple(marked(row.verdict) for row in rows), number=False),
        Column(title="benchmark", cells=tuple(one_line(row.case) for row in rows), number=False),
        *_figures("base", [unit.text(row.base_value) for row in rows], unit=unit.name, rank=3),
        *_figures("head", [unit.text(row.head_value) for row in rows], unit=unit.name, rank=1),
        *_ratios(comparison, rows),
        *_figures("p", [p_text(row.p) for row in rows], rank=4),
        *_figures("gens", [str(row.generations or NOTHING) for row in rows], rank=5),
        *_figures("took", [f"{row.seconds:.1f}" if row.seconds else NOTHING for row in rows], unit="s", rank=6),
        *_words("gate", [row.gate or "" for row in rows], rank=0),
        *_words("kind of change", [one_line(row.change or "") for row in rows], rank=2),
    ]
    _print_table(console, list_title(rows[0].metric), columns, rows)
    for reason, sharing in _by_reason(rows).items():
        console.print(Text(f"{', '.join(sharing)}: {reason}", style="dim"))
    _print_not_listed(console, ordered[_MOST:])


def _concern(row: Row) -> int:
    """What should be looked at first comes first."""
    return 0 if row.gate == "violated" else 1 if row.verdict == "regressed" else 2 if row.verdict in CHANGED else 3


def _print_not_listed(console: Console, rows: Sequence[Row]) -> None:
    """How many rows of each verdict are only in the full report."""
    if rows:
        numbers = Counter(row.verdict for row in rows)
        said = ", ".join(f"{numbers[verdict]:,} {verdict}" for verdict in MARKS if numbers[verdict])
        console.print()
        counted = sum(row.verdict == "unchanged" and row.metric not in TIMED for row in rows)
        everything = "markdown --full" if counted <= MOST_COUNTED else "csv"
        console.print(Text(f"Not listed: {said} rows. --format {everything} has every row.", style="dim"))


def _by_reason(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Why rows are not decided, or violate a gate, and which they are: each reason once."""
    sharing: dict[str, list[str]] = {}
    for row in rows:
        if row.reason and (row.verdict == "inconclusive" or row.gate == "violated"):
            sharing.setdefault(one_line(row.reason), []).append(one_line(row.case))
    return sharing


def _print_rest(console: Console, others: Sequence[Row]) -> None:
    """Timed rows that nobody has to act on, one line each; where these are many, and of exact figures, their number."""
    timed = [row for row in others if row.metric in TIMED]
    if timed and len(timed) <= _MANY:
        _print_others(console, timed)
        others = [row for row in others if row.metric not in TIMED]
    _print_not_listed(console, others)


def _print_others(console: Console, rows: Sequence[Row]) -> None:
    units = {metric: unit_of(group) for metric, group in by_metric(rows).items()}

    def value(row: Row) -> str:
        unit = units[row.metric]
        known = row.head_value if row.head_value is not None else row.base_value
        return NOTHING if known is None else f"{unit.text(known)} {unit.name}".strip()

    columns = [
        Column(title="verdict", cells=tuple(marked(row.verdict) for row in rows), number=False),
        Column(title="benchmark", cells=tuple(one_line(row.case) for row in rows), number=False),
        Column(title="figure", cells=tuple(figure_title(row.metric).lower() for row in rows), number=False, rank=1),
        *_figures("head", [value(row) for row in rows], rank=2),
        *_figures("ratio", [ratio_with_interval(row) for row in rows], rank=3),
    ]
    _print_table(console, "Rows that need no action", columns, rows)


def _print_table(console: Console, title: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    shown = fitting(columns, console.width)
    table = empty_table(shown)
    for index, row in enumerate(rows):
        table.add_row(*(Text(column.cells[index], style=_STYLES[row.verdict]) for column in shown))
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)
    print_left_out(console, columns, shown)


def _figures(title: str, cells: Sequence[str], *, unit: str = "", rank: int) -> list[Column]:
    """A column of figures; none where nobody has one."""
    if all(cell == NOTHING for cell in cells):
        return []
    return [Column(title=title, cells=tuple(cells), unit=unit, rank=rank)]


def _words(title: str, cells: Sequence[str], *, rank: int) -> list[Column]:
    """A column of words; none where nobody has any."""
    return [Column(title=title, cells=tuple(cells), number=False, rank=rank)] if any(cells) else []


def _ratios(comparison: Comparison, rows: Sequence[Row]) -> list[Column]:
    """Ratios, which a reader needs more than anything beside them."""
    title = interval_title(comparison, rows[0].metric).removesuffix(" interval")
    interval = f" [{title}]" if any(row.ci_low is not None for row in rows) else ""
    return _figures(f"ratio{interval}", [ratio_with_interval(row) for row in rows], rank=0)


def _print_foot(console: Console, comparison: Comparison) -> None:
    console.print()
    for line in (machine_line(comparison.machine.selfcheck), controls_line(controls(comparison))):
        if line:
            console.print(Text(f"{line[0].upper()}{line[1:]}."))
    print_steps(console, next_steps(comparison))
