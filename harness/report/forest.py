"""Judged rows -> forest: ratios with their intervals, the largest changes first; drawn as pictures, and here as text.

rdb @ cpu
  im2col            ├──●──┤        ░│░             ▼ 0.681 [0.640, 0.725]
  pad-consumers                    ░│░ ●           ▲ 1.028 [1.026, 1.030]
                 0.6    0.8         1
"""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from rich.cells import cell_len, set_cell_size

from harness.metrics import LATENCY, TIMED
from harness.records.comparison import VERDICTS, Comparison, Row, Verdict
from harness.report.changes import figure_unit
from harness.report.comparison import headline, sides_line
from harness.report.names import ELLIPSIS, compared, middle_cut, tidy
from harness.report.ratio_axis import RatioAxis, ratio_axis
from harness.report.run_report import Report
from harness.report.run_words import run_line
from harness.report.run_words import verdict as outcome
from harness.report.units import Unit, interval_text, share
from harness.report.verdicts import (
    CHANGED,
    LOST,
    RUN_WORDS,
    Rows,
    change_size,
    figure_title,
    interval_title,
    real_rows,
)

# What a row says, whatever it is called there: how it is marked and coloured.
Tone = Literal["worse", "better", "same", "open", "lost"]
TONES: tuple[Tone, ...] = ("worse", "better", "same", "open", "lost")
_ROW_TONES: Mapping[Verdict, Tone] = {
    "regressed": "worse",
    "improved": "better",
    "unchanged": "same",
    "inconclusive": "open",
    "outputs differ": "lost",
    "failed": "lost",
    "missing": "lost",
}

# Rows that a reader takes in at one sight, and that a picture in a comment has room for.
USUAL_ROWS = 30
# Of rows without a ratio: lists of failures are elsewhere, and should not push out what can be drawn.
_MOST_LOST = 5
_NEXT_TO_NOTHING = 1e-300


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One ratio."""

    label: str
    word: str  # What it is called: a comparison's verdict, or `faster` and its like
    tone: Tone
    ratio: float | None  # None where it has none; `beyond` then says at which end it would lie
    low: float | None  # Lower end of its interval; None: no interval, as of figures that are counted
    high: float | None
    floor: float  # Relative change below which it is not called changed
    figure: str  # The ratio in digits, or why there is none
    values: str  # Both values in the block's unit
    remark: str = ""  # What else is to be known of it, in two words; "" mostly
    peer: bool = False  # Whether another engine's time is divided by IREE's
    exact: bool = False  # Whether it is counted, and needs no interval
    # Nothing became something or the other way round: no ratio on the axis is large or small enough
    beyond: Literal["left", "right"] | None = None


@dataclass(frozen=True, kw_only=True)
class ForestBlock:
    """Rows of one metric, which share an axis."""

    title: str
    interval: str  # What the brackets hold: `95 % interval`; "" where no row has any
    values: str  # What the two values are, with their unit: `base → head, ms`; "" where no row has any
    ends: tuple[str, str]  # What it means to lie to the left of 1, and to the right
    # Rows of one model on one device, under a title; "": a row's label says it all
    groups: tuple[tuple[str, tuple[ForestRow, ...]], ...]

    @property
    def rows(self) -> tuple[ForestRow, ...]:
        """The rows of all groups."""
        return tuple(row for _, rows in self.groups for row in rows)

    @property
    def floors(self) -> tuple[float, ...]:
        """The different floors of its rows, the smallest first."""
        return tuple(sorted({row.floor for row in self.rows if row.ratio is not None}))

    def axis(self, most_ticks: int = 7) -> RatioAxis:
        """An axis that serves most of its rows."""
        extents = [(row.ratio, row.low, row.high) for row in self.rows if row.ratio is not None]
        return ratio_axis(extents, max(self.floors, default=0.0), most_ticks=most_ticks)


@dataclass(frozen=True, kw_only=True)
class Forest:
    """All blocks of a picture."""

    title: str  # What is compared with what
    verdict: str  # The outcome in one sentence
    method: str  # How it was measured
    blocks: tuple[ForestBlock, ...]
    rest: str  # What is not drawn, in words; "" where everything is

    def rows(self) -> Iterator[ForestRow]:
        """The rows of all blocks."""
        return (row for block in self.blocks for row in block.rows)

    @property
    def has_ratios(self) -> bool:
        """Whether there is anything to draw."""
        return any(row.ratio is not None or row.beyond is not None for row in self.rows())


def forest_of(
    source: Comparison | Report, *, keep: Callable[[Row], bool] = lambda _: True, top: int | None = USUAL_ROWS
) -> Forest:
    """What to draw of a comparison's rows; or of a run: latencies of variants and peers against their baseline."""
    report = source if isinstance(source, Report) else None
    comparison = source.comparison if isinstance(source, Report) else source
    rows = comparison.rows
    if report is not None:
        rows = tuple(row for row in (*report.peers, *rows) if row.metric == LATENCY.name)
    usable = replace(comparison, rows=tuple(filter(keep, rows)))
    candidates = real_rows(usable)
    drawn = chosen(candidates, top)
    left = Counter(row.verdict for row in candidates)
    left.subtract(row.verdict for row in drawn)
    rest = [f"{left[verdict]:,} {_word(verdict, report)}" for verdict in VERDICTS if left[verdict]]
    sides, suite = tidy(compared(comparison.base, comparison.head)), tidy(PurePath(comparison.head.suite).stem)
    title, verdict, method = f"{suite}: {sides}" if suite else sides, headline(comparison), sides_line(usable)
    if report is not None:
        title = f"{tidy(report.header.suite_name)}: variants against {tidy(report.baseline)}"
        verdict, method = outcome(report), run_line(report)
    return Forest(
        title=title,
        verdict=verdict,
        method=tidy(method),
        blocks=tuple(_block_of(group, usable, report) for group in drawn.by_metric().values()),
        rest=f"Not drawn: {', '.join(rest)}." if rest else "",
    )


def _word(verdict: Verdict, report: Report | None) -> str:
    """What a verdict is called in a comparison, or in a run."""
    if report is None:
        return verdict
    return f"same within {share(report.floor)}" if verdict == "unchanged" else RUN_WORDS.get(verdict, verdict)


def chosen(rows: Sequence[Row], top: int | None) -> Rows:
    """Rows with something to show: timed changes first, then what is lost or open, other changes, the unchanged."""
    ranked = [(rank, row) for row in rows if (rank := _rank(row)) is not None]
    ordered = [row for _, row in sorted(ranked, key=lambda pair: (pair[0], -change_size(pair[1])))]
    lost = [row for row in ordered if row.verdict in LOST][_MOST_LOST:]
    return Rows([row for row in ordered if row not in lost][:top])


def _rank(row: Row) -> int | None:
    if row.verdict in LOST:
        return 0 if row.verdict == "outputs differ" else 1
    if _ratio(row) is None and _beyond(row) is None:
        return None
    timed = row.metric in TIMED
    if row.gate == "violated" or (timed and row.verdict in CHANGED):
        return 0
    if not timed:
        return 2 if row.verdict in CHANGED else None
    return {"inconclusive": 1, "unchanged": 3}.get(row.verdict)


def _ratio(row: Row) -> float | None:
    return row.ratio if row.ratio is not None and 0 < row.ratio < math.inf else None


def _beyond(row: Row) -> Literal["left", "right"] | None:
    """Where a row lies that no logarithmic axis has a place for."""
    base, head = row.base_value, row.head_value
    if base is None or head is None:
        return "left" if row.ratio == 0 else None
    if base == 0 and head > 0:
        return "right"
    return "left" if head == 0 and base > 0 else None


def _block_of(rows: Rows, comparison: Comparison, report: Report | None) -> ForestBlock:
    metric, unit = rows[0].metric, figure_unit(rows)
    valued = any(row.base_value is not None or row.head_value is not None for row in rows)
    places = {(section.model, section.device): section.place for section in report.sections} if report else {}
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.model, row.device), []).append(row)
    if len(rows) < 2 * len(groups):  # most would stand alone
        drawn = [("", tuple(_row_of(row, unit, tidy(row.case), report) for row in rows))]
    else:
        drawn = [
            (
                tidy(places.get(place) or " @ ".join(place)),
                tuple(_row_of(row, unit, _label_of(row, group), report) for row in group),
            )
            for place, group in groups.items()
        ]
    sides = "base → head" if report is None else "baseline → variant"
    return ForestBlock(
        title=tidy(figure_title(metric)),
        interval=interval_title(comparison, metric) if any(row.ci_low is not None for row in rows) else "",
        values=f"{sides}{f', {unit.name}' if unit.name else ''}" if valued else "",
        ends=("faster", "slower") if metric in TIMED else ("less", "more"),
        groups=tuple(drawn),
    )


def _label_of(row: Row, group: Sequence[Row]) -> str:
    """Its variant, with its toolchain where that alone tells it from others of its group."""
    release = row.case.removeprefix(f"{row.model}/{row.variant}@{row.device}")
    alike = sum(other.variant == row.variant for other in group)
    if alike == 1 and row.variant:
        return tidy(row.variant)
    return tidy(row.case if release == row.case else f"{row.variant}{release}")


def _row_of(row: Row, unit: Unit, label: str, report: Report | None) -> ForestRow:
    ratio, lost = _ratio(row), row.verdict in LOST
    beyond = _beyond(row) if ratio is None and not lost else None
    figure = {"left": "0", "right": "from nothing", None: interval_text(row.ratio, row.ci_low, row.ci_high)}[beyond]
    low, high = row.ci_low, row.ci_high
    if lost or ratio is None or low is None or high is None:
        low = high = None
    else:  # an end at 0 or below lies beyond the left end of any logarithmic axis
        low, high = max(low, _NEXT_TO_NOTHING), max(high, _NEXT_TO_NOTHING)
    valued = not lost and (row.base_value is not None or row.head_value is not None)
    return ForestRow(
        label=label,
        word=_word(row.verdict, report),
        tone=_ROW_TONES.get(row.verdict, "open"),
        ratio=None if lost else ratio,
        low=low,
        high=high,
        floor=max(row.floor, 0.0),
        figure=row.verdict if lost else figure,
        values=f"{unit.text(row.base_value)} → {unit.text(row.head_value)}" if valued else "",
        remark="gate violated" if row.gate == "violated" else "",
        exact=row.metric not in TIMED,
        beyond=beyond,
        peer=report is not None and row in report.peers,
    )


def floors_text(floors: Sequence[float]) -> str:
    """`1 %`, `1 % or 5 %`, and of many the smallest and the largest; "" where none is above 0."""
    above = sorted({floor for floor in floors if floor > 0})
    if len(above) > 2:
        return f"{share(above[0])} to {share(above[-1])}"
    return " or ".join(share(floor) for floor in above)


# --- As text ---

WIDEST = 100
_NARROWEST = 60
_LEAST_PLOT, _MOST_PLOT = 20, 48
_LONGEST_LABEL = 44
_LEAST_NAME = 16
_TICK_ROOM = 8
# The same marks as in tables, and dots that show where there is no verdict to give.
_MARKS: dict[Tone, str] = {"worse": "▲", "better": "▼", "same": "=", "open": "?", "lost": "✗"}
_DOTS: dict[Tone, str] = {"worse": "●", "better": "●", "same": "●", "open": "○", "lost": " "}


def forest_text(forest: Forest, width: int = WIDEST) -> str:
    """A forest in lines of at most `width` columns, 60 to 100; "" where no row has a ratio.

    Names in it are on one line each, and nothing in it is escaped.
    """
    if not forest.has_ratios:
        return ""
    width = min(max(width, _NARROWEST), WIDEST)
    figure = max(cell_len(_figure(row)) for row in forest.rows())
    widest = max(cell_len(f"  {row.label}{f' ({row.remark})' if row.remark else ''}") for row in forest.rows())
    label = min(widest, _LONGEST_LABEL, width - figure - _LEAST_PLOT - 2)
    plot = min(width - figure - label - 2, _MOST_PLOT)
    blocks = [_block(block, label, plot, width) for block in forest.blocks]
    parts = ["\n\n".join(blocks), textwrap.fill(forest.rest, width)]
    return "\n\n".join(part for part in parts if part)


def _block(block: ForestBlock, label: int, plot: int, width: int) -> str:
    axis = block.axis(most_ticks=max(3, plot // _TICK_ROOM))
    ends = f"{block.ends[0]} ◂ 1 ▸ {block.ends[1]}"
    floors = floors_text([floor for floor in block.floors if _half_band(axis, floor, plot)])
    ends_text = f": {ends}{f'; ░ below the floor ({floors})' if floors else ''}"
    if cell_len(block.title) + cell_len(ends_text) > width:
        ends_text = f": {ends}"
    lines = [f"{_fitted(block.title, max(width - cell_len(ends_text), 1)).rstrip()}{ends_text}"]
    for title, rows in block.groups:
        if title:
            lines.append(_fitted(title, label + plot).rstrip())
        lines += [f"{_named(row, label)} {_line(row, axis, plot)} {_figure(row)}".rstrip() for row in rows]
    return "\n".join([*lines, f"{' ' * (label + 1)}{_ticks(axis, plot)}".rstrip()])


def _named(row: ForestRow, cells: int) -> str:
    remark = f" ({row.remark})" if row.remark and cells >= 2 * _LEAST_NAME else ""
    room = cells - cell_len(remark) - 2
    cut = row.label if cell_len(row.label) <= room else _fitted(row.label, room).rstrip()
    return _fitted(f"  {cut}{remark}", cells)


def _figure(row: ForestRow) -> str:
    return f"{_MARKS[row.tone]} {row.figure}"


def _line(row: ForestRow, axis: RatioAxis, plot: int) -> str:
    cells = [" "] * plot
    one, half = _cell(axis, 1.0, plot), _half_band(axis, row.floor, plot)
    for at in range(max(one - half, 0), min(one + half, plot - 1) + 1):
        cells[at] = "░"
    cells[one] = "│"
    if row.beyond is not None:
        cells[0 if row.beyond == "left" else -1] = "◄" if row.beyond == "left" else "►"
    if row.ratio is None:
        return "".join(cells)
    at = _cell(axis, row.ratio, plot)
    if row.low is not None and row.high is not None:
        first, last = _cell(axis, row.low, plot), _cell(axis, row.high, plot)
        for cell in range(max(first, 0), min(last, plot - 1) + 1):
            cells[cell] = "─"
        if 0 <= first < at:
            cells[first] = "├"
        if at < last < plot:
            cells[last] = "┤"
        if first < 0:
            cells[0] = "◄"
        if last >= plot:
            cells[-1] = "►"
    if 0 <= at < plot:
        cells[at] = _DOTS[row.tone]
    else:
        cells[0 if at < 0 else -1] = "◄" if at < 0 else "►"
    return "".join(cells)


def _half_band(axis: RatioAxis, floor: float, plot: int) -> int:
    return round((axis.share(1 + floor) - axis.share(1.0)) * (plot - 1))


def _cell(axis: RatioAxis, ratio: float, plot: int) -> int:
    """The column of a ratio; -1 and `plot` for all that lies beyond the ends."""
    place = round(axis.share(ratio) * (plot - 1))
    return min(max(place, -1), plot)


def _ticks(axis: RatioAxis, plot: int) -> str:
    line = ""
    for ratio, text in axis.ticks:
        start = min(max(_cell(axis, ratio, plot) - len(text) // 2, 0), plot - len(text))
        if start >= len(line) + bool(line):
            line = f"{line:<{start}}{text}"
    return line


def _fitted(text: str, cells: int) -> str:
    """A text in exactly so many columns: cut in its middle, or followed by spaces."""
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    keep = max(cells - 1, 0)
    while keep and cell_len(middle_cut(text, keep)) > cells:
        keep -= 1
    return set_cell_size(middle_cut(text, keep) if keep else ELLIPSIS, cells)
