"""One series over time, run by run, with its changes: where each began, where it may have begun, and both levels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.history.changes import Change
from harness.plots.canvas import MARGIN, POINTS_PER_PIXEL, WIDTH, Canvas, Drawing, Theme, cut, drawable, width_px
from harness.report.comparison import figure_title
from harness.report.units import percent, unit_of
from harness.text import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LEFT, _PLOT = 72.0, 320.0
_LENGTH = WIDTH - MARGIN - _LEFT
_LABELS = 24.0  # above the plot, for what changed
_BELOW = 70.0  # days, then toolchains
_MOST_DAYS = 9
_EDGE, _END = 0.7, 0.3  # in runs, between the edges and the first and the last of them; the last has less
_LONGEST_TOOLCHAIN = 125.0  # room for 3.14.0rc20260210
_MOST_DOTS = 600  # with more runs, dots would hide each other
# A lone value further from the middle half of them than this many times what that spans is drawn at the edge.
_OUTLYING = 8.0
_FOOT = (
    "One dot a run, evenly spaced. Pale band: a ratio's 95 % interval, or from each run's lowest generation to its "
    "highest. Shaded: where a change began, 95 % range; thick lines: levels before and after. Grey: the reference "
    "toolchain in the same runs, which shows what the machine did. Ticks below: another toolchain."
)


def draw_timeline(points: pd.DataFrame, changes: Sequence[Change], reference: pd.DataFrame | None = None) -> Drawing:
    """A series: its points, its changes, and the same series under a fixed toolchain."""
    line = Timeline(points, changes, reference)

    def paint(canvas: Canvas) -> None:
        canvas.down(_LABELS if changes else 0.0)
        top = canvas.down(_PLOT + _BELOW)
        axes = canvas.axes(_LEFT, top, _LENGTH, _PLOT, ylabel=line.axis)
        axes.set(xlim=(-_EDGE, line.size - _END), ylim=line.limits())
        axes.grid(axis="y")
        axes.spines["bottom"].set_visible(True)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        _draw_changes(axes, line, canvas.theme)
        _draw_values(axes, line, canvas.theme)
        _write_changes(canvas, line, top)
        stride = math.ceil(line.size / _MOST_DAYS)
        axes.set_xticks(range(0, line.size, stride), [drawable(day) for day in line.days[::stride]])
        _write_toolchains(canvas, line, top + _PLOT)
        canvas.foot(_FOOT)

    return Drawing(kind="History", title=line.title, lines=[line.verdict, line.method], paint=paint)


class Timeline:
    """A series run by run: figures are arrays with one value for each run, in the axis' unit."""

    def __init__(self, points: pd.DataFrame, changes: Sequence[Change], reference: pd.DataFrame | None) -> None:
        self.points = points
        self.size = len(points)
        self.places = {run: place for place, run in enumerate(points["run"])}
        self.changes = sorted(changes, key=lambda change: self.places[change.first_bad])
        self.unit = unit_of(points["unit"].iloc[0], points["value"].tolist())
        self.value, low, high = (
            points[name].to_numpy(dtype=float) / self.unit.size for name in ("value", "low", "high")
        )
        # Where a run has no interval, that is the value itself.
        self.low, self.high = np.where(np.isfinite(low), low, self.value), np.where(np.isfinite(high), high, self.value)
        fixed = {} if reference is None else dict(zip(reference["run"], reference["value"], strict=True))
        self.reference: NDArray[np.float64] = points["run"].map(fixed).to_numpy(dtype=float) / self.unit.size
        self.days = [started[:10] for started in points["started"]]
        name = figure_title(points["metric"].iloc[0]).lower()
        self.axis = f"{name}, {self.unit.name}" if self.unit.name else name
        self.title = f"{points['case'].iloc[-1]}: {name}"
        kinds = Counter(change.kind for change in self.changes)
        found = " and ".join(plural(kinds[kind], kind) for kind in ("step", "drift") if kinds[kind])
        self.verdict = f"{found or 'No step or drift'} in {plural(self.size, 'run')}."
        of = points.iloc[-1]
        self.method = f"{of['suite']}, from {self.days[0]} to {self.days[-1]}, {of['machine_class']}"

    def limits(self) -> tuple[float, float]:
        """Room for all values but lone ones far from the others, and for every level."""
        values = np.concatenate([self.value, self.reference[np.isfinite(self.reference)]])
        first, middle, third = np.percentile(values, [25, 50, 75]).tolist()
        reach = _OUTLYING * max(third - first, 0.01 * abs(middle), 1e-9)
        levels = [level / self.unit.size for change in self.changes for level in (change.before, change.after)]
        bottom = min([max(float(min(values.min(), self.low.min())), first - reach), *levels])
        top = max([min(float(max(values.max(), self.high.max())), third + reach), *levels])
        room = 0.08 * max(top - bottom, 0.02 * abs(top), 1e-9)
        return bottom - room, top + room


def label(change: Change) -> str:
    """By how much it moved, and by what: `▲ +5.1 %, compiler`."""
    text = percent(change.ratio) if math.isfinite(change.ratio) else "from nothing"
    kind = " drift" if change.kind == "drift" else ""
    return f"{'▲' if change.is_worse else '▼'} {text}{kind}, {change.cause}"


def _draw_changes(axes: Axes, line: Timeline, theme: Theme) -> None:
    level: Any = {"color": theme.ink, "linewidth": 1.8, "zorder": 6}
    begin = -0.5
    for change in line.changes:
        first, last = (line.places[run] for run in (change.earliest, change.latest))
        color, edge = _color(change, theme), line.places[change.first_bad] - 0.5
        axes.axvspan(first - 0.5, last + 0.5, color=color, alpha=0.16, linewidth=0, zorder=1)
        axes.axvline(edge, color=color, linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
        before, after = change.before / line.unit.size, change.after / line.unit.size
        axes.plot([begin, edge], [before, before], **level)
        begin = edge
        if change.kind == "drift":
            begin = line.places[change.until]
            axes.plot([edge, begin], [before, after], **level)
        if change is line.changes[-1]:
            axes.plot([begin, line.size - 0.5], [after, after], **level)


def _color(change: Change, theme: Theme) -> str:
    return theme.tones["worse" if change.is_worse else "better"]


def _draw_values(axes: Axes, line: Timeline, theme: Theme) -> None:
    runs, color = np.arange(line.size), theme.series[0]
    known = np.flatnonzero(np.isfinite(line.reference))
    look: Any = {"color": theme.axis, "linewidth": 1.1, "marker": ".", "markersize": 3, "alpha": 0.8, "zorder": 3}
    axes.plot(known, line.reference[known], **look)
    axes.fill_between(runs, line.low, line.high, color=color, alpha=0.16, linewidth=0, zorder=2.5)
    size = 4.0 * POINTS_PER_PIXEL if line.size <= _MOST_DOTS else 0.0
    axes.plot(runs, line.value, color=color, linewidth=0.9, marker="o", markersize=size, zorder=4)
    bottom, top = axes.get_ylim()
    for beyond, edge, marker in ((line.value > top, top, 10), (line.value < bottom, bottom, 11)):
        edges = np.full(int(beyond.sum()), edge)
        axes.plot(runs[beyond], edges, color=color, marker=marker, markersize=6, linestyle="none", clip_on=False)


def _x(line: Timeline, run: float) -> float:
    return _LEFT + (run + _EDGE) * _LENGTH / (line.size + _EDGE - _END)


def _write_changes(canvas: Canvas, line: Timeline, top: float) -> None:
    """By how much and by what, above each change; in two rows, and not where there is no room in either."""
    ends = [-1e9, -1e9]
    for change in line.changes:
        text = label(change)
        half = width_px(text, bold=True) / 2
        x = min(max(_x(line, line.places[change.first_bad] - 0.5), _LEFT + half), WIDTH - MARGIN - half)
        row = next((row for row in (0, 1) if ends[row] < x - half - 6), None)
        if row is not None:
            ends[row] = x + half
            canvas.note(x, top - 9 - row * 16, text, bold=True, align="center", color=_color(change, canvas.theme))


def _write_toolchains(canvas: Canvas, line: Timeline, bottom: float) -> None:
    """A tick where another release begins, with its name where there is room."""
    end, y, before = -1e9, bottom + 32, ""
    for number, name in enumerate(line.points["toolchain"]):
        if not name or name == before:
            continue
        before, x = name, _x(line, number)
        canvas.points([x, x], [y - 4, y + 3], color=canvas.theme.axis, linewidth=1.0)
        text = cut(name, _LONGEST_TOOLCHAIN)
        width = width_px(text)
        left = max(x - width / 2, _LEFT)
        if left > end and left + width < WIDTH - 4:
            canvas.note(left, y + 14, text)
            end = left + width + 12
