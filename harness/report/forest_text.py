"""A forest of ratios in plain text, for terminals and for comments without pictures.

rdb @ cpu
  im2col            ───●───        ░│░             ▼ 0.681 [0.640, 0.725]
  pad-consumers                    ░│░ ●           ▲ 1.028 [1.026, 1.030]
                 0.6    0.8         1
"""

import textwrap
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

from harness.report.forest import Forest, ForestBlock, ForestRow, RatioAxis, Tone, floors_text
from harness.report.units import middle_cut

WIDEST = 100
_NARROWEST = 60
_LEAST_PLOT, _MOST_PLOT = 20, 48
_LONGEST_LABEL = 44
_TICK_ROOM = 8
# The same marks as in tables, and dots that show where there is no verdict to give.
_MARKS: dict[Tone, str] = {"worse": "▲", "better": "▼", "same": "=", "open": "?", "lost": "✗"}


def forest_text(forest: Forest, width: int = WIDEST) -> str:
    """A forest in lines of at most `width` columns, 60 to 100; "" where no row has a ratio.

    Names in it are on one line each, and nothing in it is escaped.
    """
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
