"""A forest plot: one line for each ratio, with its interval; left of 1 is better, right of it worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.plots.canvas import (
    BODY,
    MARGIN,
    ROOM,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    Theme,
    cut,
    mark_of,
    widest,
    width_px,
)
from harness.records.comparison import Comparison
from harness.report.forest import USUAL_ROWS, Forest, ForestBlock, ForestRow, floors_text, forest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from harness.report.run_report import Report

_ROW = 22.0
_GROUP = 25.0
_BLOCK_HEAD = 30.0
_AXIS = 26.0
_BETWEEN = 14.0
_GAP = 18.0
_INDENT = 12.0
_LEAST_PLOT = 230.0
_ENDS_ROOM = 70.0  # of what is written beside 1
_MARK = 12.0
_DOTS = (0.0, (1.0, 2.5))
_FOOT = (
    "Ratios on a logarithmic axis. Dotted from 1: counted, which has no interval. A mark alone: no interval yet. "
    "Hollow: unclear, or another engine."
)


def draw_forest(
    source: Comparison | Report, top: int | None = None, keep: Callable[[str], bool] = lambda _: True
) -> Drawing:
    """The ratios of a comparison, or of a run's variants to its baseline."""
    forest = forest_of(source, keep=lambda row: keep(row.case), top=USUAL_ROWS if top is None else top)
    if not forest.has_ratios:
        why = f" ({forest.rest[:1].lower()}{forest.rest[1:].rstrip('.')})" if forest.rest else ""
        raise RunError(f"has no ratio to draw{why}")

    def paint(canvas: Canvas) -> None:
        tones = canvas.theme.tones
        words = {tone: dict.fromkeys(row.word for row in forest.rows() if row.tone == tone) for tone in tones}
        canvas.tones((tone, ", ".join(names)) for tone, names in words.items() if names)
        columns = _columns(forest)
        for block in forest.blocks:
            _draw_block(canvas, block, columns)
            canvas.down(_BETWEEN)
        floors = floors_text([floor for block in forest.blocks for floor in block.floors])
        shaded = f" Shaded: changes below the floor ({floors})." if floors else ""
        canvas.foot(f"{_FOOT}{shaded}", forest.rest)

    return Drawing(kind="Ratios", title=forest.title, lines=[forest.verdict, forest.method], paint=paint)


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where the columns of all blocks stand; a column that has no room has no width."""

    label: float
    plot: float
    plot_width: float
    figure: float
    values: float


def _columns(forest: Forest) -> _Columns:
    figure = widest([row.figure for row in forest.rows()] + [_figure_head(block) for block in forest.blocks])
    value = widest([row.values for row in forest.rows()] + [block.values for block in forest.blocks])
    most = max(width_px(row.label, BODY) + _INDENT for row in forest.rows())
    label = min(most, ROOM - figure - 2 * _GAP - _LEAST_PLOT)
    room = ROOM - label - figure - 2 * _GAP
    taken = value + _GAP if value and room - value - _GAP >= _LEAST_PLOT else 0.0
    return _Columns(
        label=label,
        plot=MARGIN + label + _GAP,
        plot_width=room - taken,
        figure=WIDTH - MARGIN - taken,
        values=WIDTH - MARGIN if taken else 0.0,
    )


def _figure_head(block: ForestBlock) -> str:
    return f"ratio [{block.interval}]" if block.interval else "ratio"


def _draw_block(canvas: Canvas, block: ForestBlock, columns: _Columns) -> None:
    theme = canvas.theme
    middle = canvas.down(_BLOCK_HEAD) + 16
    canvas.note(columns.figure, middle, _figure_head(block), align="right")
    if columns.values:
        canvas.note(columns.values, middle, block.values, align="right")
    # Titles of groups and rows below each other, each at the middle of its own line.
    first, places = canvas.y, list[tuple[ForestRow, float]]()
    for heading, rows in block.groups:
        if heading:
            title = cut(heading, WIDTH / 2, SMALL, bold=True)
            canvas.text(MARGIN, canvas.down(_GROUP) + _GROUP * 0.6, title, size=SMALL, bold=True)
        for number, row in enumerate(rows):
            if number % 2 == 0:
                canvas.stripe(canvas.y, _ROW)
            places.append((row, canvas.down(_ROW) + _ROW / 2))
            _write_row(canvas, row, columns, places[-1][1], indent=_INDENT if heading else 0.0)
    height = canvas.y - first
    axes = canvas.axes(columns.plot, first, columns.plot_width, height)
    canvas.down(_AXIS)
    axis = block.axis(most_ticks=max(3, int(columns.plot_width // 55)))
    axes.set(xlim=(math.log(axis.low), math.log(axis.high)), ylim=(height, 0), yticks=[])
    axes.set_xticks([math.log(ratio) for ratio, _ in axis.ticks], [text for _, text in axis.ticks])
    axes.grid(axis="x")
    axes.axvline(0.0, color=theme.ink, linewidth=1.0, zorder=2)
    at_one = columns.plot + axis.share(1.0) * columns.plot_width
    title = cut(block.title, at_one - _ENDS_ROOM - MARGIN, BODY + 1, bold=True)
    canvas.text(MARGIN, middle, title, size=BODY + 1, bold=True)
    canvas.note(at_one - 8, middle, f"◂ {block.ends[0]}", align="right")
    canvas.note(at_one + 8, middle, f"{block.ends[1]} ▸")
    # One band where all rows have one floor, else each row its own.
    bands = [(row.floor, y - first - _ROW / 2, _ROW) for row, y in places]
    for floor, upper, size in [(block.floors[0], 0.0, height)] if len(block.floors) == 1 else bands:
        edge = math.log1p(floor)
        axes.barh(upper + size / 2, 2 * edge, size, left=-edge, color=theme.band, linewidth=0, zorder=0.5)
    for row, y in places:
        _draw_row(axes, theme, row, y - first)


def _write_row(canvas: Canvas, row: ForestRow, columns: _Columns, y: float, *, indent: float) -> None:
    theme, left = canvas.theme, MARGIN + indent
    label = cut(row.label, columns.label - indent, BODY)
    canvas.text(left, y, label)
    color = theme.ink if row.tone in ("same", "open") else theme.tones[row.tone]
    canvas.text(columns.figure, y, row.figure, size=SMALL, color=color, align="right")
    if row.tone == "lost":
        canvas.points([columns.figure - width_px(row.figure) - _MARK], [y], **mark_of(theme, row.tone))
    if columns.values:
        canvas.note(columns.values, y, row.values, align="right")


def _draw_row(axes: Axes, theme: Theme, row: ForestRow, y: float) -> None:
    """Interval and mark; an arrow at the edge for what lies beyond it."""
    low, high = axes.get_xlim()
    color = theme.tones[row.tone]
    at = math.log(row.ratio) if row.ratio is not None else None
    interval = None if row.low is None or row.high is None else (math.log(row.low), math.log(row.high))
    first, last = interval or (at, at)
    for edge, marker, is_beyond in (
        (low, 8, row.beyond == "left" or (first is not None and first < low)),
        (high, 9, row.beyond == "right" or (last is not None and last > high)),
    ):
        if is_beyond:
            axes.plot([edge], [y], marker=marker, markersize=8, color=color, linestyle="", clip_on=False, zorder=4)
    if row.beyond is not None or at is None or first is None or last is None:
        return
    left, right = min(max(first, low), high), max(min(last, high), low)
    if interval:
        axes.plot([left, right], [y, y], color=color, linewidth=1.8, zorder=3, solid_capstyle="butt")
    elif row.exact:
        axes.plot([0.0, min(max(at, low), high)], [y, y], color=theme.axis, linewidth=1.0, linestyle=_DOTS, zorder=2)
    if low <= at <= high:
        axes.plot([at], [y], **mark_of(theme, row.tone, hollow=row.peer))
