"""Judged rows -> forest: ratios with their intervals, the largest changes first, their axis, and the forest in text.

rdb @ cpu
  im2col            ───●───        ░│░             ▼ 0.681 [0.640, 0.725]
  pad-consumers                    ░│░ ●           ▲ 1.028 [1.026, 1.030]
                 0.6    0.8         1
"""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, TypeAlias

from rich.cells import cell_len, set_cell_size

from harness.metrics import LATENCY, TIMED
from harness.records.comparison import VERDICTS, Comparison, Row, Verdict
from harness.report.comparison import (
    CHANGED,
    LOST,
    RUN_WORDS,
    Rows,
    change_size,
    figure_title,
    figure_unit,
    headline,
    interval_title,
    real_rows,
    sides_line,
)
from harness.report.run_report import Report, run_line
from harness.report.run_report import verdict as outcome
from harness.report.units import Unit, compared, interval_text, middle_cut, share, tidy

# --- The axis: equal steps on it are equal factors ---

# The axis reaches so many times as far as the ratio that a quarter of the rows lie beyond: one ratio of 50 should not
# press all others into a line. What lies outside is drawn as an arrow at the edge, with its figure beside it.
_REACH = 4.0
_SMALLEST_REACH, _LARGEST_REACH = math.log(1.0001), math.log(1e12)
# Even where nothing moved the axis has some width: three floors, or what shows a counted figure's change.
_FLOORS = 3.0
_LEAST_REACH = math.log(1.05)
_MARGIN = 0.06
# Of the axis, on either side of 1: there is to be seen that nothing lies there.
_LEAST_SIDE = 0.2
# Ratios below this factor apart have evenly spaced ticks.
_LINEAR_SPAN = 2.2
# Digits that ticks have in every power of ten, from many to few.
_LADDERS: tuple[tuple[float, ...], ...] = (
    (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)


# The ratio of a row and, where it has one, its interval.
Extent: TypeAlias = tuple[float, float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class RatioAxis:
    """From `low` to `high`, both ratios; 1 lies between them."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]  # Ratios, and what is written there

    def share(self, ratio: float) -> float:
        """Where a ratio lies, from 0 at the left end to 1 at the right one; beyond them outside of 0 to 1."""
        return (math.log(ratio) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))


def ratio_axis(extents: Iterable[Extent], floor: float, *, most_ticks: int) -> RatioAxis:
    """An axis that shows 1, the floor, and as much of the rows as serves most of them."""
    logs = [_logs(extent) for extent in extents]
    least = _LEAST_REACH
    if floor > 0:
        least = min(max(_FLOORS * math.log1p(floor), _SMALLEST_REACH), _LARGEST_REACH)
    sizes = sorted(abs(centre) for centre, _, _ in logs)
    usual = sizes[int(0.75 * len(sizes))] if sizes else 0.0
    reach = max(least, min(_REACH * usual, _LARGEST_REACH))
    low = min([-least, *(max(-reach, bottom) for _, bottom, _ in logs)])
    high = max([least, *(min(reach, top) for _, _, top in logs)])
    side = _LEAST_SIDE / (1 - _LEAST_SIDE)
    low, high = min(low, -side * high), max(high, -side * low)
    room = _MARGIN * (high - low)
    left, right = math.exp(low - room), math.exp(high + room)
    places = (_even_steps if right / left < _LINEAR_SPAN else _round_figures)(left, right, most_ticks)
    return RatioAxis(low=left, high=right, ticks=tuple(places))


def _logs(extent: Extent) -> tuple[float, float, float]:
    logs = [math.log(value) for value in extent if value is not None and value > 0]
    return logs[0], min(logs), max(logs)


def _even_steps(low: float, high: float, most: int) -> list[tuple[float, str]]:
    for exponent in range(-9, 1):
        for digit in (1, 2, 5):
            step = digit * 10.0**exponent
            numbers = range(math.ceil((low - 1) / step), math.floor((high - 1) / step) + 1)
            if len(numbers) <= most:
                decimals = max(-exponent, 0)
                return [(1 + number * step, f"{1 + number * step:.{decimals}f}") for number in numbers]
    return [(1.0, "1")]


def _round_figures(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Powers of ten come before all others."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ladders = [[digit * 10.0**power for power in powers for digit in digits] for digits in _LADDERS]
    ladders += [[10.0**power for power in powers if power % stride == 0] for stride in range(2, len(powers) + 1)]
    for ladder in ladders:
        places = [ratio for ratio in ladder if low <= ratio <= high]
        if len(places) <= most:
            return [
                (ratio, f"{ratio:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")) for ratio in places
            ]
    return [(1.0, "1")]


# --- The rows ---

# What a row says, whatever it is called there: how it is marked and coloured.
Tone = Literal["worse", "better", "same", "open", "lost"]
ROW_TONES: Mapping[Verdict, Tone] = {
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

    def axis(self, most_ticks: int) -> RatioAxis:
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
                tuple(_row_of(row, unit, _label_of(row), report) for row in group),
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


def _label_of(row: Row) -> str:
    """Its variant, and its toolchain where there are several."""
    name = row.case.removeprefix(f"{row.model}/{row.variant}@{row.device}")
    return tidy(row.case if name == row.case or not row.variant else f"{row.variant}{name}")


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
        tone=ROW_TONES.get(row.verdict, "open"),
        ratio=None if lost else ratio,
        low=low,
        high=high,
        floor=max(row.floor, 0.0),
        figure=row.verdict if lost else figure,
        values=f"{unit.text(row.base_value)} → {unit.text(row.head_value)}" if valued else "",
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


WIDEST = 100
_NARROWEST = 60
_LEAST_PLOT, _MOST_PLOT = 20, 48
_LONGEST_LABEL = 44
_TICK_ROOM = 8
# The same marks as in tables, and dots that show where there is no verdict to give.
_MARKS: dict[Tone, str] = {"worse": "▲", "better": "▼", "same": "=", "open": "?", "lost": "✗"}


def forest_text(forest: Forest, width: int = WIDEST) -> str:
    """A forest in lines of at most `width` columns, 60 to 100; "" where no row has a ratio."""
    if not forest.has_ratios:
        return ""
    width = min(max(width, _NARROWEST), WIDEST)
    figure = max(cell_len(_figure(row)) for row in forest.rows())
    widest = max(cell_len(f"  {row.label}") for row in forest.rows())
    label = min(widest, _LONGEST_LABEL, width - figure - _LEAST_PLOT - 2)
    plot = min(width - figure - label - 2, _MOST_PLOT)
    blocks = ["\n".join(_block(block, label, plot, width)) for block in forest.blocks]
    return "\n\n".join([*blocks, *([textwrap.fill(forest.rest, width)] if forest.rest else [])])


def _block(block: ForestBlock, label: int, plot: int, width: int) -> Iterator[str]:
    axis = block.axis(most_ticks=max(3, plot // _TICK_ROOM))
    floors = floors_text([floor for floor in block.floors if _half_band(axis, floor, plot)])
    ends = f"{block.ends[0]} ◂ 1 ▸ {block.ends[1]}{f'; ░ below the floor ({floors})' if floors else ''}"
    yield _fitted(f"{block.title}: {ends}", width).rstrip()
    for title, rows in block.groups:
        if title:
            yield _fitted(title, label + plot).rstrip()
        for row in rows:
            yield f"  {_fitted(row.label, label - 2)} {_line(row, axis, plot)} {_figure(row)}".rstrip()
    yield f"{' ' * (label + 1)}{_ticks(axis, plot)}".rstrip()


def _figure(row: ForestRow) -> str:
    return f"{_MARKS[row.tone]} {row.figure}"


def _line(row: ForestRow, axis: RatioAxis, plot: int) -> str:
    cells = [" "] * plot

    def paint(first: int, last: int, mark: str) -> None:
        for at in range(max(first, 0), min(last, plot - 1) + 1):
            cells[at] = mark

    one, half = _cell(axis, 1.0, plot), _half_band(axis, row.floor, plot)
    paint(one - half, one + half, "░")
    paint(one, one, "│")
    places = [_cell(axis, value, plot) for value in (row.low, row.ratio, row.high) if value is not None]
    if places:
        paint(places[0], places[-1], "─")
        middle = places[len(places) // 2]
        paint(middle, middle, "○" if row.tone == "open" else "●")
    if row.beyond == "left" or (places and places[0] < 0):
        cells[0] = "◄"
    if row.beyond == "right" or (places and places[-1] >= plot):
        cells[-1] = "►"
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
    return set_cell_size(text if cell_len(text) <= cells else middle_cut(text, cells - 1), cells)
