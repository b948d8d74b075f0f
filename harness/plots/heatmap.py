"""Every line of a run over its releases: the stronger a shade, the longer it takes than under the line's best release.

Beside the best release whatever was lost is shaded, also where the first one was slow; and shades need no colours.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from harness.plots.canvas import LONGEST_NAME, MARGIN, SMALL, WIDTH, Canvas, Drawing, Theme, cut, widest
from harness.plots.releases import MARKS
from harness.report.releases import Line, Releases, releases_of
from harness.report.releases_page import releases_verdict, short_ratio, short_release
from harness.report.run_report import Report, run_line
from harness.text import plural

_MOST_LINES = 200
_MANY = 30  # From so many lines on, rows are low
_NUMBERED = 1.05  # Cells beyond this have their ratio written in them
_DARKEST = 16.0  # Ratios beyond it look alike
_STRONGEST = 0.58  # How much of the tone the darkest cell has: texts on it stay readable
_SCALE = "times as long as under the line's best release:"
_FOOT = (
    f"Each cell: its time divided by that of the line's best release, written and shaded from {_NUMBERED:g} on. "
    f"{MARKS['fails']}: fails. {MARKS['wrong']}: wrong outputs. Hatched: not measured, mostly since the release lacks "
    "what it needs. Lines are in the order of the release at which they change most."
)


def draw_heatmap(report: Report, top: int | None = None) -> Drawing:
    """A row for each line, by device; with `top` only those that change most."""
    title = f"{report.header.suite_name}: time under each release of IREE, beside the best one"
    return heatmap_of(releases_of(report), title, [run_line(report, releases=False)], top)


def heatmap_of(found: Releases, title: str, about: Sequence[str], top: int | None = None) -> Drawing:
    """The same of lines from anywhere; `about` says where they were measured, a line each."""
    moves = {line.name: _largest_move(line) for line in found.lines}
    lines = [line for line in found.lines if any(point.state != "not available" for point in line.points)]
    shown = sorted(lines, key=lambda line: -abs(moves[line.name][1]))[: top or _MOST_LINES]
    shown.sort(key=lambda line: (line.device, moves[line.name][0], -moves[line.name][1]))

    def paint(canvas: Canvas) -> None:
        _scale(canvas)
        for device, of_device in groupby(shown, key=lambda line: line.device):
            canvas.heading(f"on {device}")
            _draw_lines(canvas, found, list(of_device), low=len(shown) >= _MANY)
        rest = len(lines) - len(shown)
        canvas.foot(_FOOT, f"Not drawn: {plural(rest, 'more line')}, which change less." if rest else "")

    return Drawing(kind="Heat map", title=title, lines=[releases_verdict(found), *about], paint=paint)


def beside_best(line: Line) -> list[float | None]:
    """The line's time under each release, divided by the least."""
    best = min((point.ratio for point in line.points if point.ratio), default=1.0)
    return [point.ratio / best if point.ratio else None for point in line.points]


def _largest_move(line: Line) -> tuple[int, float]:
    """Where the line changes most, and by how much, in the logarithm; of what does not change beyond its end."""
    measured = [(place, math.log(ratio)) for place, ratio in enumerate(beside_best(line)) if ratio]
    moves = [(place, after - before) for (_, before), (place, after) in pairwise(measured)]
    place, size = max(moves, key=lambda move: abs(move[1]), default=(0, 0.0))
    if abs(size) >= math.log(_NUMBERED):
        return place, size
    states = {point.state for point in line.points}
    return len(line.points) + (not states & {"fails", "wrong"}), size


def shade(theme: Theme, ratio: float) -> str:
    """The colour of a cell; texts in the theme's ink can be read on it."""
    from matplotlib.colors import to_hex, to_rgb

    depth = min(1.0, math.log2(max(ratio, 1.0)) / math.log2(_DARKEST)) ** 0.6 * _STRONGEST
    (r, g, b), (red, green, blue) = to_rgb(theme.ground), to_rgb(theme.tones["worse"])
    return to_hex((r + (red - r) * depth, g + (green - g) * depth, b + (blue - b) * depth))


def _scale(canvas: Canvas) -> None:
    """What the shades mean."""
    y, width = canvas.down(26), 46.0
    canvas.note(MARGIN, y + 8, _SCALE)
    x = MARGIN + widest([_SCALE]) + 12
    for ratio in (1.0, 1.1, 1.5, 2.0, 4.0, 8.0, _DARKEST):
        canvas.box(x, y, width, 16, facecolor=shade(canvas.theme, ratio), edgecolor=canvas.theme.grid, linewidth=0.6)
        canvas.text(x + width / 2, y + 8, f"{ratio:g}", size=SMALL, align="center")
        x += width


def _draw_lines(canvas: Canvas, found: Releases, lines: Sequence[Line], *, low: bool) -> None:
    theme, height, size = canvas.theme, 13.0 if low else 22.0, 9.5 if low else SMALL
    names: Mapping[str, str] = {line.name: cut(f"{line.model}/{line.variant}", LONGEST_NAME, size) for line in lines}
    left = MARGIN + widest(names.values(), size) + 10
    width = (WIDTH - MARGIN - left) / len(found.names)
    heads = [short_release(release) for release in found.names]
    for texts in zip(*heads, strict=True):  # what is special about some stands below
        y = canvas.down(18 if any(texts) else 0) + 9
        for place, text in enumerate(texts):
            canvas.note(left + width * (place + 0.5), y, cut(text, width - 2), align="center")
    for line in lines:
        y = canvas.down(height)
        canvas.text(left - 8, y + height / 2, names[line.name], size=size, align="right")
        for place, (point, ratio) in enumerate(zip(line.points, beside_best(line), strict=True)):
            if ratio is not None and ratio < _NUMBERED:
                continue
            color = shade(theme, ratio) if ratio else theme.band
            is_hatched = point.state in ("not available", "not measured")
            canvas.box(left + width * place, y, width, height, facecolor=color, hatch="////" if is_hatched else None)
            if not is_hatched:
                mark = short_ratio(ratio) if ratio else MARKS[point.state]
                canvas.text(left + width * (place + 0.5), y + height / 2, mark, size=size, align="center")
        canvas.box(left, y, width * len(line.points), height, facecolor="none", edgecolor=theme.grid, linewidth=0.6)
    canvas.down(12)
