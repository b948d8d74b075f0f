"""One series over time, run by run, with its changes: where each began, where it may have begun, and both levels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.history.changes import Change
from harness.metrics import is_exact
from harness.plots.canvas import MARGIN, POINTS_PER_PIXEL, WIDTH, Canvas, Drawing, Theme, cut_end, drawable, width_px
from harness.report.units import percent, unit_of
from harness.report.verdicts import figure_title
from harness.text import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LEFT, _PLOT = 72.0, 320.0
_LENGTH = WIDTH - MARGIN - _LEFT
_LABELS = 24.0  # above the plot, for what changed
_BELOW = 70.0  # days, then toolchains
_DAY = 84.0
_EDGE = 0.7  # in runs, between the axis and the first of them
_END = 0.3  # in runs, between the last of them and the edge, less
_LONGEST_TOOLCHAIN = 125.0  # room for 3.14.0rc20260210
# With more runs, dots would hide each other.
_MOST_DOTS, _MOST_SMALL_DOTS = 150, 600
# A lone value further from the middle half of them than this many times what that spans is drawn at the edge.
_OUTLYING = 8.0
_MOST_IN_WORDS = 6  # changes


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
        _write_days(axes, line)
        _write_toolchains(canvas, line, top + _PLOT)
        canvas.foot(*line.story(), line.foot())

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
        self.started = [started[:16].replace("T", " ") for started in points["started"]]
        self.name = figure_title(points["metric"].iloc[0]).lower()
        self.axis = f"{self.name}, {self.unit.name}" if self.unit.name else self.name
        self.title = f"{points['case'].iloc[-1]}: {self.name}"
        kinds = Counter(change.kind for change in self.changes)
        found = " and ".join(plural(kinds[kind], kind) for kind in ("step", "drift") if kinds[kind])
        self.verdict = f"{found or 'No step or drift'} in {plural(self.size, 'run')}."
        first, last = self.started[0][:10], self.started[-1][:10]
        period, of = f"on {first}" if first == last else f"from {first} to {last}", points.iloc[-1]
        self.method = f"{of['suite']}, {plural(self.size, 'run')} {period}, {of['machine_class']}"

    def level(self, value: float) -> float:
        """A level of a change, in the axis' unit."""
        return value / self.unit.size

    def amount(self, change: Change) -> str:
        """By how much it moved: `▲ +5.1 %`."""
        text = percent(change.ratio, decimals=1) if math.isfinite(change.ratio) else "from nothing"
        difference = f" ({self.level(change.after - change.before):+,.6g})" if is_exact(change.metric) else ""
        return f"{'▲' if change.is_worse else '▼'} {text}{difference}"

    def toolchains(self) -> Iterator[tuple[int, str]]:
        """Where another one, or another build of it, begins; the revision is named where the release stays the same."""
        before = ("", "")
        for number, (release, revision) in enumerate(
            zip(self.points["toolchain"], self.points["revision"], strict=True)
        ):
            if (release, revision) != before and release:
                yield number, release if release != before[0] else revision[:8] or release
            before = release, revision

    def limits(self) -> tuple[float, float]:
        """Room for all values but lone ones far from the others, and for every level."""
        values = np.concatenate([self.value, self.reference[np.isfinite(self.reference)]])
        first, middle, third = np.percentile(values, [25, 50, 75]).tolist()
        reach = _OUTLYING * max(third - first, 0.01 * abs(middle), 1e-9)
        levels = [self.level(level) for change in self.changes for level in (change.before, change.after)]
        bottom = min([max(float(min(values.min(), self.low.min())), first - reach), *levels])
        top = max([min(float(max(values.max(), self.high.max())), third + reach), *levels])
        room = 0.08 * max(top - bottom, 0.02 * abs(top), 1e-9)
        return bottom - room, top + room

    def story(self) -> Iterator[str]:
        """The changes in words, the latest first."""
        days = {run: started[:10] for run, started in zip(self.points["run"], self.started, strict=True)}
        for change in self.changes[::-1][:_MOST_IN_WORDS]:
            levels = f"{self.unit.text(change.before)} to {self.unit.text(change.after)} {self.unit.name}".rstrip()
            begin, end = days[change.first_bad], days[change.until or change.first_bad]
            when = f"drifting from {begin} to {end}" if change.kind == "drift" else f"from {begin} on"
            span = f"95 % range {days[change.earliest]} to {days[change.latest]}"
            place = f"first in run {change.first_bad}; {span}"
            yield f"{self.amount(change)}, {levels}, {when} ({place}); cause: {change.cause}."
        if len(self.changes) > _MOST_IN_WORDS:
            yield f"And {len(self.changes) - _MOST_IN_WORDS} more before."

    def foot(self) -> str:
        """What the picture's parts are."""
        is_ratio = self.points["unit"].iloc[0] == "ratio"
        band = "the 95 % interval" if is_ratio else "from each run's lowest generation to its highest"
        texts = {
            "One dot a run, evenly spaced.": True,
            f"Pale band: {band}.": bool((self.low < self.high).any()),
            "Shaded: where the change began, 95 % range; thick lines: levels before and after.": bool(self.changes),
            "Grey: the reference toolchain in the same runs, which shows what the machine did.": bool(
                np.isfinite(self.reference).any()
            ),
            "Ticks below: another toolchain.": any(self.toolchains()),
        }
        return " ".join(text for text, is_there in texts.items() if is_there)


def _draw_changes(axes: Axes, line: Timeline, theme: Theme) -> None:
    """The range of each change, and the levels between changes."""
    level: Any = {"color": theme.ink, "linewidth": 1.8, "zorder": 6}
    begin = -0.5
    for change in line.changes:
        first, last = (line.places[run] for run in (change.earliest, change.latest))
        color, edge = _color(change, theme), line.places[change.first_bad] - 0.5
        axes.axvspan(first - 0.5, last + 0.5, color=color, alpha=0.16, linewidth=0, zorder=1)
        axes.axvline(edge, color=color, linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
        before, after = line.level(change.before), line.level(change.after)
        axes.plot([begin, edge], [before, before], **level)
        begin = edge
        if change.kind == "drift":
            begin = line.places[change.until]
            axes.plot([edge, begin], [before, after], **level)
    if line.changes:
        axes.plot([begin, line.size - 0.5], [line.level(line.changes[-1].after)] * 2, **level)


def _color(change: Change, theme: Theme) -> str:
    return theme.tones["worse" if change.is_worse else "better"]


def _draw_values(axes: Axes, line: Timeline, theme: Theme) -> None:
    runs = np.arange(line.size)
    color, pixel = theme.series[0], POINTS_PER_PIXEL
    known = np.flatnonzero(np.isfinite(line.reference))
    axes.plot(
        known, line.reference[known], color=theme.axis, linewidth=1.1, marker=".", markersize=3, alpha=0.8, zorder=3
    )
    if line.size > 1:
        axes.fill_between(runs, line.low, line.high, color=color, alpha=0.16, linewidth=0, zorder=2.5)
    else:
        axes.plot([0, 0], [line.low[0], line.high[0]], color=color, linewidth=1.4)
    size = 5.0 if line.size <= _MOST_DOTS else 3.0 if line.size <= _MOST_SMALL_DOTS else 0.0
    axes.plot(runs, line.value, color=color, linewidth=0.9, alpha=0.75, zorder=4)
    axes.plot(runs, line.value, color=color, marker="o", markersize=size * pixel, linestyle="none", zorder=5)
    bottom, top = axes.get_ylim()
    for beyond, edge, marker in ((line.value > top, top, 10), (line.value < bottom, bottom, 11)):
        edges = np.full(int(beyond.sum()), edge)
        axes.plot(runs[beyond], edges, color=color, marker=marker, markersize=6, linestyle="none", clip_on=False)


def _x(line: Timeline, run: float) -> float:
    return _LEFT + (run + _EDGE) * _LENGTH / (line.size + _EDGE - _END)


def _write_changes(canvas: Canvas, line: Timeline, top: float) -> None:
    """By how much, above each change; in two rows, and not where there is no room in either."""
    ends = [-1e9, -1e9]
    for change in line.changes:
        text = f"{line.amount(change)}{' (drift)' if change.kind == 'drift' else ''}"
        half = width_px(text, bold=True) / 2
        x = min(max(_x(line, line.places[change.first_bad] - 0.5), _LEFT + half), WIDTH - MARGIN - half)
        row = next((row for row in (0, 1) if ends[row] < x - half - 6), None)
        if row is not None:
            ends[row] = x + half
            canvas.note(x, top - 9 - row * 16, text, bold=True, align="center", color=_color(change, canvas.theme))


def _write_days(axes: Axes, line: Timeline) -> None:
    """Days where they change, as many as there is room for; times of day where all runs are of one day."""
    one_day = len({started[:10] for started in line.started}) == 1
    texts = [started[11:16] if one_day else started[:10] for started in line.started]
    apart = max(line.size / (_LENGTH // _DAY), 1.0)
    ticks: list[int] = []
    for number, text in enumerate(texts):
        begins = number == 0 or text != texts[number - 1]
        if begins and (not ticks or number - ticks[-1] >= apart):
            ticks.append(number)
    axes.set_xticks(ticks, [drawable(texts[number]) for number in ticks])


def _write_toolchains(canvas: Canvas, line: Timeline, bottom: float) -> None:
    end, y = -1e9, bottom + 32
    for number, name in line.toolchains():
        x = _x(line, number)
        canvas.points([x, x], [y - 4, y + 3], color=canvas.theme.axis, linewidth=1.0)
        text = cut_end(name, _LONGEST_TOOLCHAIN)
        width = width_px(text)
        left = max(x - width / 2, _LEFT)
        if left > end and left + width < WIDTH - 4:
            canvas.note(left, y + 14, text)
            end = left + width + 12
