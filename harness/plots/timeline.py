"""One series over time, run by run, with its changes: where each began, where it may have begun, and both levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.history.verdicts import Cause
from harness.plots.canvas import Canvas, foot_height, head_height
from harness.plots.look import MARGIN, SMALL, WIDTH, Format, Theme, drawing
from harness.plots.text import POINTS_PER_PIXEL, cut, cut_end, drawable, width_px
from harness.plots.timeline_points import Timeline, timeline_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from harness.stats.change_points import ChangePoint

_LEFT = 72.0
_PLOT = 320.0
_LABELS, _NO_LABELS = 40.0, 16.0  # above the plot, for what changed
_BELOW = 70.0  # days, then toolchains
_DAY = 84.0
_EDGE = 0.7  # in runs, between the axis and the first of them
_LONGEST_TOOLCHAIN = 110.0
# With more runs, dots would hide each other.
_MOST_DOTS, _MOST_SMALL_DOTS = 150, 600


def draw_timeline(
    points: pd.DataFrame,
    changes: Sequence[ChangePoint],
    theme: Theme,
    picture: Format,
    *,
    reference: pd.DataFrame | None = None,
    causes: Sequence[Cause] = (),
) -> bytes:
    """Draw a series.

    Args:
        points: In time order, at least one; the columns of harness.history.values.Point.
        changes: As `find_changes` found them in these points.
        reference: Points of the same case under a fixed toolchain.
        causes: Whose each of the changes is; () where nobody asked.

    Returns:
        A file of that format; equal values give equal bytes with the same release of matplotlib.
    """
    line = timeline_of(points, changes, reference, causes)
    lines = [line.verdict, line.method]
    with drawing(theme):
        foot = [*line.story, *_foot(line)]
        start = head_height(lines) + (_LABELS if line.shifts else _NO_LABELS)
        canvas = Canvas(theme, start + _PLOT + _BELOW + foot_height(foot) + 12)
        canvas.head(line.title, lines)
        width = WIDTH - MARGIN - _LEFT
        axes = canvas.axes(_LEFT, start, width, _PLOT)
        axes.set(xlim=(-_EDGE, len(line.moments) - 0.3), ylim=line.limits)
        axes.grid(axis="y", color=theme.grid, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines["bottom"].set(visible=True, color=theme.axis)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        name = cut(line.axis, _PLOT, SMALL)
        canvas.upright(16, start + _PLOT / 2, name)
        _draw_shifts(axes, line, theme)
        _draw_reference(axes, line, theme)
        _draw_values(axes, line, theme)
        per_run = width / (len(line.moments) + _EDGE - 0.3)
        _write_shifts(canvas, line, start, per_run)
        _write_days(axes, line, int(width // _DAY))
        _write_toolchains(canvas, line, start + _PLOT, per_run)
        canvas.foot(foot, start + _PLOT + _BELOW)
        return canvas.file(picture, drawable(line.title), drawable(line.verdict))


def _foot(line: Timeline) -> list[str]:
    parts = ["One dot a run, evenly spaced."]
    if line.band:
        parts.append(f"Pale band: {line.band}.")
    if line.shifts:
        parts.append("Shaded: where the change began, 95 % range; thick lines: levels before and after.")
    if any(value is not None for value in line.reference):
        parts.append("Grey: the reference toolchain in the same runs, which shows what the machine did.")
    if line.toolchains:
        parts.append("Ticks below: another toolchain.")
    return [" ".join(parts)]


def _draw_shifts(axes: Axes, line: Timeline, theme: Theme) -> None:
    """The range of each change, and the levels between changes."""
    begin = 0
    for number, shift in enumerate(line.shifts):
        color = theme.tones[shift.tone]
        axes.axvspan(shift.earliest - 0.5, shift.latest + 0.5, color=color, alpha=0.16, linewidth=0, zorder=1)
        axes.axvline(shift.at - 0.5, color=color, linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
        level: Any = {"color": theme.ink, "linewidth": 1.8, "zorder": 6}
        axes.plot([begin - 0.5, shift.at - 0.5], [shift.before, shift.before], **level)
        if shift.drift:
            axes.plot([shift.at - 0.5, shift.end], [shift.before, shift.after], **level)
        begin = shift.end if shift.drift else shift.at
        last = line.shifts[number + 1].at - 0.5 if number + 1 < len(line.shifts) else len(line.moments) - 0.5
        if number + 1 == len(line.shifts):
            axes.plot([begin - (0 if shift.drift else 0.5), last], [shift.after, shift.after], **level)


def _draw_reference(axes: Axes, line: Timeline, theme: Theme) -> None:
    known = [(number, value) for number, value in enumerate(line.reference) if value is not None]
    if known:
        xs, ys = zip(*known, strict=True)
        axes.plot(xs, ys, color=theme.axis, linewidth=1.1, marker=".", markersize=3, alpha=0.8, zorder=3)


def _draw_values(axes: Axes, line: Timeline, theme: Theme) -> None:
    xs = range(len(line.moments))
    values = [moment.value for moment in line.moments]
    color = theme.series[0]
    lows, highs = [moment.low for moment in line.moments], [moment.high for moment in line.moments]
    if len(values) > 1:
        axes.fill_between(xs, lows, highs, color=color, alpha=0.16, linewidth=0, zorder=2.5)
    elif lows != highs:
        axes.plot([0, 0], [lows[0], highs[0]], color=color, linewidth=1.4)
    size = 5.0 if len(values) <= _MOST_DOTS else 3.0 if len(values) <= _MOST_SMALL_DOTS else 0.0
    axes.plot(xs, values, color=color, linewidth=0.9, alpha=0.75, zorder=4)
    axes.plot(xs, values, color=color, marker="o", markersize=size * POINTS_PER_PIXEL, linestyle="none", zorder=5)
    bottom, top = line.limits
    for beyond, edge, marker in (
        ([x for x in xs if values[x] > top], top, 10),
        ([x for x in xs if values[x] < bottom], bottom, 11),
    ):
        axes.plot(
            beyond, [edge] * len(beyond), color=color, marker=marker, markersize=6, linestyle="none", clip_on=False
        )


def _write_shifts(canvas: Canvas, line: Timeline, top: float, per_run: float) -> None:
    """By how much, above each change; in two rows, and not where there is no room in either."""
    ends = [-1e9, -1e9]
    for shift in line.shifts:
        mark = "▲" if shift.tone == "worse" else "▼"
        text = f"{mark} {shift.text}{' (drift)' if shift.drift else ''}"
        half = width_px(text, SMALL, bold=True) / 2
        x = min(max(_LEFT + (shift.at + _EDGE - 0.5) * per_run, _LEFT + half), WIDTH - MARGIN - half)
        row = next((row for row in (0, 1) if ends[row] < x - half - 6), None)
        if row is None:
            continue
        ends[row] = x + half
        canvas.text(
            x, top - 9 - row * 16, text, size=SMALL, weight="bold", align="center", color=canvas.theme.tones[shift.tone]
        )


def _write_days(axes: Axes, line: Timeline, most: int) -> None:
    """Days where they change, as many as there is room for; times of day where all runs are of one day."""
    one_day = len({day[:10] for day in line.days}) == 1
    texts = [day[11:16] if one_day else day[:10] for day in line.days]
    starts = [number for number, text in enumerate(texts) if number == 0 or text != texts[number - 1]]
    apart = max(len(line.moments) / max(most, 1), 1.0)
    shown: list[int] = []
    for number in starts:
        if not shown or number - shown[-1] >= apart:
            shown.append(number)
    axes.set_xticks(shown, [drawable(texts[number]) for number in shown])


def _write_toolchains(canvas: Canvas, line: Timeline, bottom: float, per_run: float) -> None:
    end = -1e9
    y = bottom + 32
    for number, name in line.toolchains:
        x = _LEFT + (number + _EDGE) * per_run
        canvas.line([x, x], [y - 4, y + 3], canvas.theme.axis, 1.0)
        text = cut_end(name, _LONGEST_TOOLCHAIN, SMALL)
        width = width_px(text, SMALL)
        left = max(x - width / 2, _LEFT)
        if left > end and left + width < WIDTH - 4:
            canvas.text(left, y + 14, text, size=SMALL, color=canvas.theme.muted)
            end = left + width + 12
