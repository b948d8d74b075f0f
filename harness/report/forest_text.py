"""Forest -> plain text: ratios with their intervals in columns of characters, where there is no place for pictures.

rdb @ cpu
  im2col            ├──●──┤        ░│░             ▼ 0.681 [0.640, 0.725]
  pad-consumers                    ░│░ ●           ▲ 1.028 [1.026, 1.030]
                 0.6    0.8         1
"""

from __future__ import annotations

import textwrap

from rich.cells import cell_len, set_cell_size

from harness.report.forest import Forest, ForestBlock, ForestRow, Tone, floors_text
from harness.report.names import ELLIPSIS, middle_cut
from harness.report.ratio_axis import RatioAxis

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
    label = min(max(cell_len(_label(row)) for row in forest.rows()), _LONGEST_LABEL, width - figure - _LEAST_PLOT - 2)
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
    for group in block.groups:
        if group.title:
            lines.append(_fitted(group.title, label + plot).rstrip())
        lines += [f"{_named(row, label)} {_line(row, axis, plot)} {_figure(row)}".rstrip() for row in group.rows]
    return "\n".join([*lines, f"{' ' * (label + 1)}{_ticks(axis, plot)}".rstrip()])


def _label(row: ForestRow) -> str:
    return f"  {row.label}{f' ({row.remark})' if row.remark else ''}"


def _named(row: ForestRow, cells: int) -> str:
    """The label in so many columns, and what is remarked of the row where that leaves room for a name."""
    remark = f" ({row.remark})" if row.remark and cells >= 2 * _LEAST_NAME else ""
    room = cells - cell_len(remark)
    cut = row.label if cell_len(row.label) + 2 <= room else _fitted(row.label, room - 2).rstrip()
    return _fitted(f"  {cut}{remark}", cells)


def _figure(row: ForestRow) -> str:
    return f"{_MARKS[row.tone]} {row.figure}"


def _line(row: ForestRow, axis: RatioAxis, plot: int) -> str:
    """The band and 1 behind, the interval and the dot before them; arrows for what lies beyond the ends."""
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
    """Columns of the band on either side of 1; 0 where it is narrower than one."""
    return round((axis.share(1 + floor) - axis.share(1.0)) * (plot - 1))


def _cell(axis: RatioAxis, ratio: float, plot: int) -> int:
    """The column of a ratio; -1 and `plot` for all that lies beyond the ends."""
    place = round(axis.share(ratio) * (plot - 1))
    return min(max(place, -1), plot)


def _ticks(axis: RatioAxis, plot: int) -> str:
    """The scale: each figure centred below its place, left out where it would touch the one before."""
    line = ""
    for tick in axis.ticks:
        start = min(max(_cell(axis, tick.ratio, plot) - len(tick.text) // 2, 0), plot - len(tick.text))
        if start >= len(line) + bool(line):
            line = f"{line:<{start}}{tick.text}"
    return line


def _fitted(text: str, cells: int) -> str:
    """A text in exactly so many columns: cut in its middle, or followed by spaces."""
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    keep = max(cells - 1, 0)
    while keep and cell_len(middle_cut(text, keep)) > cells:
        keep -= 1
    return set_cell_size(middle_cut(text, keep) if keep else ELLIPSIS, cells)
