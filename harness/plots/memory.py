"""Latency against memory, a point for each variant, with the front of those that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.plots.canvas import (
    BODY,
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Box,
    Canvas,
    Format,
    Theme,
    cut,
    left_out_text,
    paint,
    place_labels,
    width_px,
)
from harness.report.ratio_axis import round_figures
from harness.report.run_report import Report
from harness.report.run_row import Section
from harness.report.run_words import run_line, verdict
from harness.report.units import byte_unit, time_unit

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_USUAL_PANELS = 8
_HEAD = 30.0
_LEFT, _BOTTOM = 58.0, 46.0
_NARROW, _WIDE = 270.0, 360.0  # heights of a plot
_BETWEEN = 26.0
_FEW = 9  # points that fit a panel of half the width
_LONGEST_LABEL = 230.0
_LINEAR = 4.0  # where figures lie further apart than by this factor, the axis is logarithmic

Place = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class MemoryPoint:
    """One variant; its latency is the median over generations."""

    label: str
    memory_bytes: float
    latency_ns: float
    baseline: bool


@dataclass(frozen=True, kw_only=True)
class MemoryPanel:
    """One model on one device."""

    title: str
    memory: str  # Which memory it is, in words
    points: tuple[MemoryPoint, ...]
    rest: int  # How many variants have no point


def draw_memory(report: Report, theme: Theme, picture: Format, top: int | None = None) -> bytes:
    """Draw the panels, two beside each other where their points are few; see harness.plots.pictures.draw."""
    panels = memory_panels(report)
    if not panels:
        raise RunError(
            "has no model with two measured variants that take different memory, so there is nothing to draw; "
            "--kind variants draws their latencies"
        )
    drawn = panels[: top or _USUAL_PANELS]
    columns = 2 if len(drawn) > 1 and max(len(panel.points) for panel in drawn) <= _FEW else 1
    plot = _NARROW if columns == 2 else _WIDE
    height = _HEAD + plot + _BOTTOM + _BETWEEN
    width = (WIDTH - 2 * MARGIN - (columns - 1) * _BETWEEN) / columns

    def draw(canvas: Canvas, y: float) -> None:
        for number, panel in enumerate(drawn):
            down, across = divmod(number, columns)
            _draw_panel(canvas, panel, MARGIN + across * (width + _BETWEEN), y + down * height, width, plot)

    return paint(
        theme,
        picture,
        draw,
        kind="Latency against memory",
        title=f"{report.facts.suite_name}: latency against memory",
        lines=[verdict(report), run_line(report.facts, report.sections)],
        above=18,
        height=height * math.ceil(len(drawn) / columns),
        foot=_foot(drawn, len(panels) - len(drawn)),
    )


def memory_panels(report: Report) -> list[MemoryPanel]:
    """What to draw, in the report's order; models whose variants all take the same memory are left out.

    Memory is what the program's schedule takes beside its arguments and results, as iree-compile states it; where
    that is not known of all variants, the peak of the device's allocator in one process of iree-benchmark-module.
    """
    panels = (_panel(section) for section in report.sections)
    return [panel for panel in panels if len({point.memory_bytes for point in panel.points}) > 1]


def _panel(section: Section) -> MemoryPanel:
    measured = [row for row in section.rows if row.status == "measured" and row.peer is None]
    stated = all(row.figure("transient-memory") is not None for row in measured)
    points = tuple(
        MemoryPoint(
            label=section.label(row), memory_bytes=float(memory), latency_ns=row.latency_ns, baseline=row.baseline
        )
        for row in measured
        if (memory := row.figure("transient-memory") if stated else row.figure("device-peak-memory")) is not None
        and row.latency_ns is not None
    )
    return MemoryPanel(
        title=section.place,
        memory="transient memory" if stated else "peak device memory",
        points=points,
        rest=len(section.rows) - len(points),
    )


def on_front(point: MemoryPoint, points: Sequence[MemoryPoint]) -> bool:
    """Whether it is on the Pareto front: no other point is as good in both and better in one."""
    return not any(
        (other.memory_bytes, other.latency_ns) != (point.memory_bytes, point.latency_ns)
        and other.memory_bytes <= point.memory_bytes
        and other.latency_ns <= point.latency_ns
        for other in points
    )


def _foot(panels: Sequence[MemoryPanel], left_out: int) -> list[str]:
    text = (
        "Filled: on the front, where less memory costs time and less time costs memory; down and to the left is "
        "better. Bold: the baseline."
    )
    stated = "Transient memory is what the schedule takes beside arguments and results, as iree-compile states it."
    lost = "Without a point: not measured, identical to another variant, or of another engine."
    parts = (
        stated if any(panel.memory.startswith("transient") for panel in panels) else "",
        lost if any(panel.rest for panel in panels) else "",
        "Models whose variants all take the same memory are left out.",
        left_out_text(left_out),
    )
    return [text, " ".join(part for part in parts if part)]


def _draw_panel(canvas: Canvas, panel: MemoryPanel, x: float, y: float, width: float, height: float) -> None:
    theme = canvas.theme
    canvas.text(x, y + 15, cut(panel.title, width, BODY + 1, bold=True), size=BODY + 1, bold=True)
    axes = canvas.axes(x + _LEFT, y + _HEAD, width - _LEFT, height)
    memory_unit = byte_unit([point.memory_bytes for point in panel.points])
    latency_unit = time_unit([point.latency_ns for point in panel.points])
    memory = [point.memory_bytes / memory_unit.size for point in panel.points]
    times = [point.latency_ns / latency_unit.size for point in panel.points]
    to_x = _scale(axes.xaxis, memory, max(3, int((width - _LEFT) / 90)))
    to_y = _scale(axes.yaxis, times, max(3, int(height / 55)))
    axes.grid(color=theme.grid, linewidth=0.8, zorder=0)
    axes.spines[["left", "bottom"]].set(visible=True, color=theme.axis)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    places = [(to_x(value), to_y(time)) for value, time in zip(memory, times, strict=True)]
    best = [on_front(point, panel.points) for point in panel.points]
    steps = _front([place for place, front in zip(places, best, strict=True) if front])
    axes.plot(*zip(*steps, strict=True), color=theme.series[0], linewidth=1.4, alpha=0.7, zorder=2)
    for point, (across, up), front in zip(panel.points, places, best, strict=True):
        color = theme.series[0] if front else theme.muted
        axes.plot(
            [across],
            [up],
            linestyle="none",
            marker="s" if point.baseline else "o",
            markersize=8 * POINTS_PER_PIXEL,
            markerfacecolor=color if front else theme.ground,
            markeredgecolor=color,
            markeredgewidth=1.4,
            zorder=4,
            clip_on=False,
        )

    def pixel(place: Place) -> Place:
        return x + _LEFT + place[0] * (width - _LEFT), y + _HEAD + (1 - place[1]) * height

    bounds = Box(left=x + _LEFT + 3, right=x + width, bottom=y + _HEAD, top=y + _HEAD + height - 3)
    lines = [_around(pixel(start), pixel(end)) for start, end in pairwise(steps)]
    unnamed = _write_names(canvas, panel.points, [pixel(place) for place in places], best, bounds, lines)
    below = y + _HEAD + height + 34
    memory_name = f"{panel.memory}, {memory_unit.name}{' (log)' if _is_logarithmic(memory) else ''}"
    canvas.text(x + _LEFT, below, memory_name, size=SMALL, color=theme.muted)
    # Beside the axis, not above it, where the title stands.
    time_name = f"latency, {latency_unit.name}{' (log)' if _is_logarithmic(times) else ''}"
    canvas.upright(x + 9, y + _HEAD + height / 2, time_name)
    counts = {"without a point": panel.rest, "without room for a name": unnamed}
    rest = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    rest = cut(rest, width - _LEFT - width_px(memory_name, SMALL) - 20, SMALL)
    canvas.text(x + width, below, rest, size=SMALL, color=theme.muted, align="right")


def _is_logarithmic(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _LINEAR


def _scale(axis: Axis, values: Sequence[float], most_ticks: int) -> Callable[[float], float]:
    """Ticks on an axis from 0 to 1, and where on it a value lies."""
    from matplotlib.ticker import MaxNLocator

    low, high = min(values), max(values)
    if _is_logarithmic(values):
        low, high = low / (high / low) ** 0.08, high * (high / low) ** 0.08
        ticks = [value for value, _ in round_figures(low, high, most_ticks)]

        def place(value: float) -> float:
            return math.log(value / low) / math.log(high / low)
    else:
        room = 0.1 * (high - low) or 0.05 * high or 1.0
        low, high = (low - room if low - room > 0 or low < 0 else -0.3 * room), high + room
        ticks = [float(tick) for tick in MaxNLocator(most_ticks).tick_values(low, high) if max(low, 0) <= tick <= high]

        def place(value: float) -> float:
            return (value - low) / (high - low)

    axis.set_ticks([place(value) for value in ticks], labels=[f"{value:,.6g}" for value in ticks])
    return place


def _front(places: Sequence[Place]) -> list[Place]:
    """Steps through the best, on to the edges: what lies above and to the right of them is beaten."""
    best = sorted(places, key=lambda place: (place[0], -place[1]))
    steps = [(best[0][0], 1.0)]
    for across, up in best:
        steps += [(across, steps[-1][1]), (across, up)]
    return [*steps, (1.0, best[-1][1])]


def _around(start: Place, end: Place) -> Box:
    (left, right), (bottom, top) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    return Box(left=left - 1, right=right + 1, bottom=bottom - 1, top=top + 1)


def _write_names(
    canvas: Canvas,
    points: Sequence[MemoryPoint],
    pixels: Sequence[Place],
    best: Sequence[bool],
    bounds: Box,
    lines: Sequence[Box],
) -> int:
    """Names beside the points; how many have no room."""
    theme = canvas.theme
    names = [cut(point.label, _LONGEST_LABEL, SMALL, bold=point.baseline) for point in points]
    sizes = [(width_px(name, SMALL, bold=point.baseline), SMALL + 2) for name, point in zip(names, points, strict=True)]
    places = place_labels(pixels, sizes, bounds, lines)
    for point, name, place, (x, y), front in zip(points, names, places, pixels, best, strict=True):
        if place is None:
            continue
        box = place.box
        size = box.right - box.left, box.top - box.bottom
        canvas.box(box.left, box.bottom, *size, color=theme.ground, zorder=1)
        if place.far:
            near = min(max(x, box.left), box.right)
            canvas.line([x, near], [y, min(max(y, box.bottom), box.top)], theme.axis, 0.7)
        color = theme.ink if front or point.baseline else theme.muted
        middle = (box.left + box.right) / 2, (box.bottom + box.top) / 2
        canvas.text(*middle, name, size=SMALL, align="center", color=color, bold=point.baseline)
    return sum(place is None for place in places)
