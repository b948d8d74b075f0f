"""A forest plot: one line for each ratio, with its interval; left of 1 is better, right of it worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.plots.canvas import Canvas, foot_height, head_height, mark_of
from harness.plots.look import BODY, MARGIN, SMALL, WIDTH, Format, Theme, drawing
from harness.plots.text import cut, drawable, width_px
from harness.report.forest import TONES, Forest, ForestBlock, ForestRow, Tone, floors_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
_CAPS_FROM = 28.0  # shorter intervals are hidden by their mark anyway


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where the columns of all blocks stand; a column that has no room has no width."""

    label: float
    plot: float
    plot_width: float
    figure: float
    values: float


def draw_forest(forest: Forest, theme: Theme, picture: Format) -> bytes:
    """Draw ratios with their intervals on logarithmic axes, a block for each metric.

    Returns:
        A file of that format; equal values give equal bytes with the same release of matplotlib.
    """
    with drawing(theme):
        lines = [forest.verdict, forest.method]
        foot = _foot(forest)
        top = head_height(lines) + 34
        body = sum(_block_height(block) for block in forest.blocks) + _BETWEEN * (len(forest.blocks) - 1)
        canvas = Canvas(theme, top + body + 24 + foot_height(foot) + 8)
        columns = _columns(forest)
        canvas.head(forest.title, lines)
        canvas.legend(_legend(forest), MARGIN, top - 10)
        y = top
        for block in forest.blocks:
            _draw_block(canvas, block, columns, y)
            y += _block_height(block) + _BETWEEN
        canvas.foot(foot, y - _BETWEEN + 24)
        title = drawable(forest.title)
        return canvas.file(picture, f"Ratios: {title}", drawable(forest.verdict))


def _legend(forest: Forest) -> list[tuple[Tone, str]]:
    words: dict[Tone, dict[str, None]] = {tone: {} for tone in TONES}
    for row in forest.rows():
        words[row.tone][row.word] = None
    return [(tone, " or ".join(found)) for tone, found in words.items() if found]


def _foot(forest: Forest) -> list[str]:
    floors = floors_text([floor for block in forest.blocks for floor in block.floors])
    band = f" Shaded: changes below the floor ({floors})." if floors else ""
    peers = " Hollow: other engines." if any(row.peer for row in forest.rows()) else ""
    single = [row for row in forest.rows() if row.ratio is not None and _interval(row) is None]
    counted = " Dotted from 1: counted, which has no interval." if any(row.exact for row in single) else ""
    early = " A mark alone: no interval yet." if any(not row.exact for row in single) else ""
    said = f"Ratios on a logarithmic axis.{band}{counted}{early}{peers}"
    return [text for text in (said, forest.rest) if text]


def _columns(forest: Forest) -> _Columns:
    labels = [width_px(drawable(row.label), BODY) + _INDENT + (_remark_width(row)) for row in forest.rows()]
    figures = [width_px(row.figure, SMALL) for row in forest.rows()]
    figures += [width_px(_figure_head(block), SMALL) for block in forest.blocks]
    values = [width_px(row.values, SMALL) for row in forest.rows()]
    values += [width_px(block.values, SMALL) for block in forest.blocks]
    label, figure, value = (
        min(max(labels), WIDTH - 2 * MARGIN - max(figures) - 2 * _GAP - _LEAST_PLOT),
        max(figures),
        max(values),
    )
    room = WIDTH - 2 * MARGIN - label - figure - 2 * _GAP
    shown = value + _GAP if value and room - value - _GAP >= _LEAST_PLOT else 0.0
    plot = MARGIN + label + _GAP
    return _Columns(
        label=label,
        plot=plot,
        plot_width=room - shown,
        figure=WIDTH - MARGIN - shown,
        values=WIDTH - MARGIN if shown else 0.0,
    )


def _figure_head(block: ForestBlock) -> str:
    return f"ratio [{block.interval}]" if block.interval else "ratio"


def _remark_width(row: ForestRow) -> float:
    return width_px(row.remark, SMALL, bold=True) + 8 if row.remark else 0.0


def _block_height(block: ForestBlock) -> float:
    titles = sum(1 for group in block.groups if group.title)
    return _BLOCK_HEAD + titles * _GROUP + len(block.rows) * _ROW + _AXIS


def _draw_block(canvas: Canvas, block: ForestBlock, columns: _Columns, top: float) -> None:
    theme = canvas.theme
    middle = top + 16
    canvas.text(columns.figure, middle, _figure_head(block), size=SMALL, color=theme.muted, align="right")
    if columns.values:
        canvas.text(columns.values, middle, block.values, size=SMALL, color=theme.muted, align="right")
    first = top + _BLOCK_HEAD
    height = _block_height(block) - _BLOCK_HEAD - _AXIS
    axis = block.axis(most_ticks=max(3, int(columns.plot_width // 55)))
    axes = canvas.axes(columns.plot, first, columns.plot_width, height)
    axes.set(xlim=(math.log(axis.low), math.log(axis.high)), ylim=(height, 0))
    axes.set_xticks([math.log(tick.ratio) for tick in axis.ticks], [tick.text for tick in axis.ticks])
    axes.set_yticks([])
    for tick in axis.ticks:
        axes.axvline(math.log(tick.ratio), color=theme.grid, linewidth=0.8, zorder=0)
    at_one = columns.plot + axis.share(1.0) * columns.plot_width
    title = cut(block.title, at_one - _ENDS_ROOM - MARGIN, BODY + 1, bold=True)
    canvas.text(MARGIN, middle, title, size=BODY + 1, weight="bold")
    for text, side, align in ((f"◂ {block.ends[0]}", -8, "right"), (f"{block.ends[1]} ▸", 8, "left")):
        canvas.text(at_one + side, middle, text, size=SMALL, color=theme.muted, align=align)
    y = first
    for group in block.groups:
        if group.title:
            canvas.text(
                MARGIN, y + _GROUP * 0.6, cut(group.title, WIDTH / 2, SMALL, bold=True), size=SMALL, weight="bold"
            )
            y += _GROUP
        for number, row in enumerate(group.rows):
            if number % 2 == 0:
                canvas.box(MARGIN - 8, y, WIDTH - 2 * MARGIN + 16, _ROW, theme.stripe)
            _write_row(canvas, row, columns, y + _ROW / 2, indent=_INDENT if group.title else 0.0)
            _draw_row(axes, theme, row, y - first, (axis.low, axis.high), columns.plot_width)
            y += _ROW
    _draw_floors(axes, block, theme, height)
    axes.axvline(0.0, color=theme.ink, linewidth=1.0, zorder=2)


def _draw_floors(axes: Axes, block: ForestBlock, theme: Theme, height: float) -> None:
    """One band where all rows have one floor, else each row its own."""
    from matplotlib.patches import Rectangle

    def band(floor: float, top: float, bottom: float) -> None:
        edge = math.log1p(floor)
        axes.add_patch(Rectangle((-edge, top), 2 * edge, bottom - top, color=theme.band, linewidth=0, zorder=0.5))

    if len(block.floors) == 1:
        band(block.floors[0], 0.0, height)
        return
    y = 0.0
    for group in block.groups:
        y += _GROUP if group.title else 0.0
        for row in group.rows:
            band(row.floor, y, y + _ROW)
            y += _ROW


def _write_row(canvas: Canvas, row: ForestRow, columns: _Columns, y: float, *, indent: float) -> None:
    theme = canvas.theme
    color = theme.tones[row.tone]
    room = columns.label - indent - _remark_width(row)
    label = cut(row.label, room, BODY)
    canvas.text(MARGIN + indent, y, label, size=BODY)
    if row.remark:
        x = MARGIN + indent + width_px(label, BODY) + 8
        canvas.text(x, y, row.remark, size=SMALL, color=theme.tones["worse"], weight="bold")
    quiet = row.tone in ("same", "open")
    canvas.text(columns.figure, y, row.figure, size=SMALL, color=theme.ink if quiet else color, align="right")
    if row.tone == "lost":
        canvas.mark(columns.figure - width_px(row.figure, SMALL) - _MARK, y, row.tone)
    if columns.values:
        canvas.text(columns.values, y, row.values, size=SMALL, color=theme.muted, align="right")


def _draw_row(axes: Axes, theme: Theme, row: ForestRow, top: float, ends: tuple[float, float], width: float) -> None:
    """Interval and mark; an arrow at the edge for what lies beyond it."""
    low, high = math.log(ends[0]), math.log(ends[1])
    per_pixel = (high - low) / width
    y = top + _ROW / 2
    color = theme.tones[row.tone]
    if row.beyond is not None:
        _arrow(axes, low if row.beyond == "left" else high, y, color, right=row.beyond == "right")
        return
    if row.ratio is None:
        return
    at = math.log(row.ratio)
    first, last = _interval(row) or (at, at)
    left, right = min(max(first, low), high), max(min(last, high), low)
    if _interval(row):
        axes.plot([left, right], [y, y], color=color, linewidth=1.8, zorder=3, solid_capstyle="butt")
    elif row.exact:
        axes.plot([0.0, min(max(at, low), high)], [y, y], color=theme.axis, linewidth=1.0, linestyle=_DOTS, zorder=2)
    if right - left > _CAPS_FROM * per_pixel:
        for end in {first, last} & {left, right}:
            axes.plot([end, end], [y - 4, y + 4], color=color, linewidth=1.4, zorder=3)
    for beyond, edge, to_right in ((first < low, low, False), (last > high, high, True)):
        if beyond:
            _arrow(axes, edge, y, color, right=to_right)
    if low <= at <= high:
        axes.plot([at], [y], **mark_of(theme, row.tone, hollow=row.peer))


def _interval(row: ForestRow) -> tuple[float, float] | None:
    """Both ends in the logarithm."""
    return None if row.low is None or row.high is None else (math.log(row.low), math.log(row.high))


def _arrow(axes: Axes, x: float, y: float, color: str, *, right: bool) -> None:
    axes.plot([x], [y], marker=9 if right else 8, markersize=8, color=color, linestyle="none", clip_on=False, zorder=4)
