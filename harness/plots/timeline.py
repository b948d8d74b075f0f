"""One series over time, run by run, with its changes: where each began, where it may have begun, and both levels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.history.changes import Change
from harness.metrics import is_exact
from harness.plots.canvas import (
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Format,
    Theme,
    blank,
    cut_end,
    drawable,
    width_px,
)
from harness.report.units import Unit, percent, unit_of
from harness.report.verdicts import figure_title
from harness.text import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LEFT = 72.0
_PLOT = 320.0
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


@dataclass(frozen=True, kw_only=True)
class ChangeMark:
    """A change at its place in the picture; places count the series' runs from 0."""

    change: Change  # As the history has it
    begin: int  # The first run with it
    end: int  # The run up to which a drift goes on; of a step, `begin`
    low: int  # The first of the runs with which it may have begun
    high: int  # The last of them
    before: float  # The level before it, in the axis' unit
    after: float  # The level after it
    amount: str  # By how much it moved: `▲ +5.1 %`


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One series, run by run; figures are arrays with one value for each run, in the axis' unit."""

    title: str
    verdict: str
    method: str
    axis: str  # Name and unit of the figure
    started: tuple[str, ...]  # When each run was started, to the minute
    value: NDArray[np.float64]
    low: NDArray[np.float64]  # The value itself where it has no interval
    high: NDArray[np.float64]  # Likewise
    reference: NDArray[np.float64]  # What a fixed toolchain took in the same runs; NaN where it has no figure
    marks: tuple[ChangeMark, ...]  # The changes in order of time
    # Where another toolchain, or another build of it, begins: the run and its name
    toolchains: tuple[tuple[int, str], ...]
    limits: tuple[float, float]  # Of the axis of values
    band: str  # What lies between low and high; "" where no run has both
    story: tuple[str, ...]  # The changes in words, one a line


def draw_timeline(
    points: pd.DataFrame,
    changes: Sequence[Change],
    theme: Theme,
    picture: Format,
    *,
    reference: pd.DataFrame | None = None,
) -> bytes:
    """Draw a series as a file of that format; the arguments are those of `timeline_of`."""
    line = timeline_of(points, changes, reference)
    width = WIDTH - MARGIN - _LEFT
    per_run = width / (len(line.value) + _EDGE - _END)
    with blank(theme, line.title, [line.verdict, line.method]) as canvas:
        canvas.down(_LABELS if line.marks else 0.0)
        top = canvas.down(_PLOT + _BELOW)
        axes = canvas.axes(_LEFT, top, width, _PLOT, ylabel=line.axis)
        axes.set(xlim=(-_EDGE, len(line.value) - _END), ylim=line.limits)
        axes.grid(axis="y", color=theme.grid, linewidth=0.8)
        axes.spines["bottom"].set(visible=True, color=theme.axis)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        _draw_changes(axes, line, theme)
        runs = np.flatnonzero(np.isfinite(line.reference))
        style: Any = {"color": theme.axis, "linewidth": 1.1, "marker": ".", "markersize": 3}
        axes.plot(runs, line.reference[runs], alpha=0.8, zorder=3, **style)
        _draw_values(axes, line, theme)
        _write_changes(canvas, line, top, per_run)
        _write_days(axes, line, int(width // _DAY))
        _write_toolchains(canvas, line, top + _PLOT, per_run)
        canvas.foot([*line.story, _foot(line)])
        return canvas.file(picture, "History")


def timeline_of(points: pd.DataFrame, changes: Sequence[Change], reference: pd.DataFrame | None = None) -> Timeline:
    """What to draw of a series."""
    first, last = points.iloc[0], points.iloc[-1]
    unit = unit_of(first["unit"], points["value"].tolist())
    value = points["value"].to_numpy(dtype=float) / unit.size
    low, high = (points[name].to_numpy(dtype=float) / unit.size for name in ("low", "high"))
    low, high = np.where(np.isfinite(low), low, value), np.where(np.isfinite(high), high, value)
    fixed_values = {} if reference is None else dict(zip(reference["run"], reference["value"], strict=True))
    fixed = np.array([fixed_values.get(run, math.nan) for run in points["run"]], dtype=float) / unit.size
    places = {run: place for place, run in enumerate(points["run"])}
    marks = sorted((_mark(change, places, unit) for change in changes), key=lambda mark: mark.begin)
    days = first["started"][:10], last["started"][:10]
    period = f"on {days[0]}" if days[0] == days[1] else f"from {days[0]} to {days[1]}"
    number = plural(len(points), "run")
    name = figure_title(first["metric"]).lower()
    band = "the 95 % interval" if first["unit"] == "ratio" else "from each run's lowest generation to its highest"
    return Timeline(
        title=f"{last['case']}: {name}",
        verdict=_verdict(changes, number),
        method=f"{last['suite']}, {number} {period}, {last['machine_class']}",
        axis=f"{name}, {unit.name}" if unit.name else name,
        started=tuple(started[:16].replace("T", " ") for started in points["started"]),
        value=value,
        low=low,
        high=high,
        reference=fixed,
        marks=tuple(marks),
        toolchains=tuple(_toolchains(zip(points["toolchain"], points["revision"], strict=True))),
        limits=_limits(value, low, high, fixed, marks),
        band=band if (low < high).any() else "",
        story=tuple(_story(marks, [started[:10] for started in points["started"]], unit)),
    )


def _mark(change: Change, places: Mapping[str, int], unit: Unit) -> ChangeMark:
    begin = places[change.first_bad]
    return ChangeMark(
        change=change,
        begin=begin,
        end=places[change.until] if change.kind == "drift" else begin,
        low=places[change.earliest],
        high=places[change.latest],
        before=change.before / unit.size,
        after=change.after / unit.size,
        amount=_amount(change, unit),
    )


def _amount(change: Change, unit: Unit) -> str:
    text = percent(change.ratio, decimals=1) if math.isfinite(change.ratio) else "from nothing"
    difference = f" ({(change.after - change.before) / unit.size:+,.6g})" if is_exact(change.metric) else ""
    return f"{'▲' if change.is_worse else '▼'} {text}{difference}"


def _toolchains(versions: Iterable[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """Every run whose toolchain is not the one before's; the revision is named where the release stays the same."""
    before = ("", "")
    for number, (release, revision) in enumerate(versions):
        if (release, revision) != before and release:
            yield number, release if release != before[0] else revision[:8] or release
        before = release, revision


def _limits(
    value: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    reference: NDArray[np.float64],
    marks: Sequence[ChangeMark],
) -> tuple[float, float]:
    """Room for all values but lone ones far from the others, and for every level."""
    values = np.concatenate([value, reference[np.isfinite(reference)]])
    first, middle, third = np.percentile(values, [25, 50, 75]).tolist()
    reach = _OUTLYING * max(third - first, 0.01 * abs(middle), 1e-9)
    levels = [level for mark in marks for level in (mark.before, mark.after)]
    bottom = min([max(float(min(values.min(), low.min())), first - reach), *levels])
    top = max([min(float(max(values.max(), high.max())), third + reach), *levels])
    room = 0.08 * max(top - bottom, 0.02 * abs(top), 1e-9)
    return bottom - room, top + room


def _verdict(changes: Sequence[Change], number: str) -> str:
    if not changes:
        return f"No step or drift in {number}."
    kinds = Counter(change.kind for change in changes)
    return f"{' and '.join(plural(kinds[kind], kind) for kind in ('step', 'drift') if kinds[kind])} in {number}."


def _story(marks: Sequence[ChangeMark], days: Sequence[str], unit: Unit) -> Iterator[str]:
    """The latest changes first."""
    for mark in marks[::-1][:_MOST_IN_WORDS]:
        change = mark.change
        levels = f"{unit.text(change.before)} to {unit.text(change.after)} {unit.name}".rstrip()
        drift = change.kind == "drift"
        when = f"drifting from {days[mark.begin]} to {days[mark.end]}" if drift else f"from {days[mark.begin]} on"
        place = f"first in run {change.first_bad}; 95 % range {days[mark.low]} to {days[mark.high]}"
        yield f"{mark.amount}, {levels}, {when} ({place}); cause: {change.cause}."
    if len(marks) > _MOST_IN_WORDS:
        yield f"And {len(marks) - _MOST_IN_WORDS} more before."


def _foot(line: Timeline) -> str:
    parts = ["One dot a run, evenly spaced."]
    if line.band:
        parts.append(f"Pale band: {line.band}.")
    if line.marks:
        parts.append("Shaded: where the change began, 95 % range; thick lines: levels before and after.")
    if np.isfinite(line.reference).any():
        parts.append("Grey: the reference toolchain in the same runs, which shows what the machine did.")
    if line.toolchains:
        parts.append("Ticks below: another toolchain.")
    return " ".join(parts)


def _draw_changes(axes: Axes, line: Timeline, theme: Theme) -> None:
    """The range of each change, and the levels between changes."""
    level: Any = {"color": theme.ink, "linewidth": 1.8, "zorder": 6}
    begin = -0.5
    for mark in line.marks:
        color, edge = _color(mark, theme), mark.begin - 0.5
        axes.axvspan(mark.low - 0.5, mark.high + 0.5, color=color, alpha=0.16, linewidth=0, zorder=1)
        axes.axvline(edge, color=color, linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
        axes.plot([begin, edge], [mark.before, mark.before], **level)
        begin = edge
        if mark.change.kind == "drift":
            axes.plot([edge, mark.end], [mark.before, mark.after], **level)
            begin = mark.end
    if line.marks:
        axes.plot([begin, len(line.value) - 0.5], [line.marks[-1].after] * 2, **level)


def _color(mark: ChangeMark, theme: Theme) -> str:
    return theme.tones["worse" if mark.change.is_worse else "better"]


def _draw_values(axes: Axes, line: Timeline, theme: Theme) -> None:
    number = len(line.value)
    runs = np.arange(number)
    color = theme.series[0]
    if number > 1:
        axes.fill_between(runs, line.low, line.high, color=color, alpha=0.16, linewidth=0, zorder=2.5)
    elif line.low[0] != line.high[0]:
        axes.plot([0, 0], [line.low[0], line.high[0]], color=color, linewidth=1.4)
    size = 5.0 if number <= _MOST_DOTS else 3.0 if number <= _MOST_SMALL_DOTS else 0.0
    axes.plot(runs, line.value, color=color, linewidth=0.9, alpha=0.75, zorder=4)
    axes.plot(runs, line.value, color=color, marker="o", markersize=size * POINTS_PER_PIXEL, linestyle="none", zorder=5)
    bottom, top = line.limits
    for beyond, edge, marker in ((line.value > top, top, 10), (line.value < bottom, bottom, 11)):
        outside = runs[beyond]
        style: Any = {"color": color, "marker": marker, "markersize": 6, "linestyle": "none", "clip_on": False}
        axes.plot(outside, [edge] * len(outside), **style)


def _write_changes(canvas: Canvas, line: Timeline, top: float, per_run: float) -> None:
    """By how much, above each change; in two rows, and not where there is no room in either."""
    ends = [-1e9, -1e9]
    for mark in line.marks:
        text = f"{mark.amount}{' (drift)' if mark.change.kind == 'drift' else ''}"
        half = width_px(text, SMALL, bold=True) / 2
        x = min(max(_LEFT + (mark.begin + _EDGE - 0.5) * per_run, _LEFT + half), WIDTH - MARGIN - half)
        row = next((row for row in (0, 1) if ends[row] < x - half - 6), None)
        if row is not None:
            ends[row] = x + half
            color = _color(mark, canvas.theme)
            canvas.text(x, top - 9 - row * 16, text, size=SMALL, bold=True, align="center", color=color)


def _write_days(axes: Axes, line: Timeline, most: int) -> None:
    """Days where they change, as many as there is room for; times of day where all runs are of one day."""
    one_day = len({started[:10] for started in line.started}) == 1
    texts = [started[11:16] if one_day else started[:10] for started in line.started]
    apart = max(len(texts) / max(most, 1), 1.0)
    ticks: list[int] = []
    for number, text in enumerate(texts):
        begins = number == 0 or text != texts[number - 1]
        if begins and (not ticks or number - ticks[-1] >= apart):
            ticks.append(number)
    axes.set_xticks(ticks, [drawable(texts[number]) for number in ticks])


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
            canvas.note(left, y + 14, text)
            end = left + width + 12
