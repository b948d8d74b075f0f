"""Latency against memory, a point for each variant, with the front of those that no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import RunError
from harness.plots.canvas import (
    LONGEST_NAME,
    MARGIN,
    POINTS_PER_PIXEL,
    ROOM,
    SMALL,
    Canvas,
    Drawing,
    cut,
    left_out_text,
    look_of,
    width_px,
)
from harness.report.ratio_axis import round_figures
from harness.report.run_report import Report
from harness.report.run_rows import Section
from harness.report.run_words import run_line, verdict
from harness.report.units import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_USUAL_PANELS = 8
_HEAD = 30.0
_LEFT, _BOTTOM = 58.0, 46.0
_NARROW, _WIDE = 270.0, 360.0  # heights of a plot
_BETWEEN = 26.0
_FEW = 9  # points that fit a panel of half the width
_LINEAR = 4.0  # where figures lie further apart than by this factor, the axis is logarithmic

# How far from its point a name may stand, and in which directions it is tried: beside the point first.
_DISTANCES = (9.0, 16.0, 26.0, 38.0, 52.0, 68.0, 86.0, 106.0)
_DIRECTIONS = np.radians((0, 180, 45, -45, 135, -135, 90, -90, 20, -20, 160, -160, 70, -70, 110, -110))
_NEAR = 12.0  # without a line from the point to its name
_RADIUS = 6.0  # of a point
_MARK = 8 * POINTS_PER_PIXEL
_AIR = 2.0
_CROWD = 90.0  # as far as this, points are neighbours

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom
Boxes = NDArray[np.float64]  # `(boxes, 4)`


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


def draw_memory(report: Report, top: int | None = None) -> Drawing:
    """The panels, two beside each other where their points are few."""
    panels = memory_panels(report)
    if not panels:
        raise RunError(
            "has no model with two measured variants that take different memory, so there is nothing to draw; "
            "--kind variants draws their latencies"
        )
    drawn = panels[: top or _USUAL_PANELS]
    columns = 2 if len(drawn) > 1 and max(len(panel.points) for panel in drawn) <= _FEW else 1
    plot = _NARROW if columns == 2 else _WIDE
    width = (ROOM - (columns - 1) * _BETWEEN) / columns

    def paint(canvas: Canvas) -> None:
        for number, panel in enumerate(drawn):
            across = number % columns
            _draw_panel(canvas, panel, MARGIN + across * (width + _BETWEEN), width, plot)
            if across + 1 == columns or panel is drawn[-1]:
                canvas.down(_HEAD + plot + _BOTTOM + _BETWEEN)
        canvas.foot(*_foot(drawn, len(panels) - len(drawn)))

    title = f"{report.header.suite_name}: latency against memory"
    lines = [verdict(report), run_line(report)]
    return Drawing(kind="Latency against memory", title=title, lines=lines, paint=paint)


def memory_panels(report: Report) -> list[MemoryPanel]:
    """What to draw: transient memory where it is known of all variants, else the device's peak, if they differ."""
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


def _draw_panel(canvas: Canvas, panel: MemoryPanel, x: float, width: float, height: float) -> None:
    theme, top, left, length = canvas.theme, canvas.y + _HEAD, x + _LEFT, width - _LEFT
    canvas.heading(panel.title, x, width)
    axes = canvas.axes(left, top, length, height)
    memory_unit = unit_of("bytes", [point.memory_bytes for point in panel.points])
    latency_unit = unit_of("ns", [point.latency_ns for point in panel.points])
    places = [(point.memory_bytes / memory_unit.size, point.latency_ns / latency_unit.size) for point in panel.points]
    memory, times = zip(*places, strict=True)
    logs = _scale(axes, "x", memory, max(3, int(length / 90))), _scale(axes, "y", times, max(3, int(height / 55)))
    axes.grid()
    axes.spines[["left", "bottom"]].set_visible(True)
    best = [on_front(point, panel.points) for point in panel.points]
    front = [place for place, is_best in zip(places, best, strict=True) if is_best]
    steps = _front(front, axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot(*zip(*steps, strict=True), color=theme.series[0], linewidth=1.4, alpha=0.7, zorder=2)
    for point, (across, up), is_best in zip(panel.points, places, best, strict=True):
        color = theme.series[0] if is_best else theme.muted
        look = look_of("s" if point.baseline else "o", _MARK, color if is_best else theme.ground, color, 1.4)
        axes.plot([across], [up], zorder=4, clip_on=False, **look)

    def pixels(places: Sequence[Place]) -> list[Place]:
        """Where places of the axes lie in the picture."""
        shares = axes.transAxes.inverted().transform(axes.transData.transform(places))
        return [(left + float(across) * length, top + (1 - float(up)) * height) for across, up in shares]

    bounds = left + 3, top, left + length, top + height - 3
    nameless = _write_names(canvas, panel.points, pixels(places), best, bounds, pixels(steps))
    memory_name, time_name = (
        f"{name}, {unit.name}{' (log)' if is_log else ''}"
        for name, unit, is_log in zip((panel.memory, "latency"), (memory_unit, latency_unit), logs, strict=True)
    )
    canvas.note(left, top + height + 34, memory_name)
    # Beside the axis, not above it, where the title stands.
    canvas.note(x + 9, top + height / 2, time_name, align="center", rotation=90, rotation_mode="anchor", va="center")
    counts = {"without a point": panel.rest, "without room for a name": nameless}
    rest = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    room = length - width_px(memory_name) - 20
    canvas.note(x + width, top + height + 34, cut(rest, room), align="right")


def _scale(axes: Axes, name: Literal["x", "y"], values: Sequence[float], most_ticks: int) -> bool:
    """Limits and ticks of an axis; whether it is logarithmic."""
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = min(values), max(values)
    is_log = low > 0 and high / low > _LINEAR
    if is_log:
        low, high = low / (high / low) ** 0.08, high * (high / low) ** 0.08
        axes.set(**{f"{name}scale": "log"})
        ticks = [value for value, _ in round_figures(low, high, most_ticks)]
        axis.set_ticks(ticks, labels=[f"{value:,.6g}" for value in ticks])
        axis.set_ticks([], minor=True)
    else:
        room = 0.1 * (high - low) or 0.05 * high or 1.0
        low, high = (low - room if low - room > 0 or low < 0 else -0.3 * room), high + room
        Canvas.round_ticks(axis, most_ticks)
    axes.set(**{f"{name}lim": (low, high)})
    return is_log


def _front(places: Sequence[Place], right: float, top: float) -> list[Place]:
    """Steps through the best, on to the edges: what lies above and to the right of them is beaten."""
    best = sorted(places, key=lambda place: (place[0], -place[1]))
    steps = [(best[0][0], top)]
    for across, up in best:
        steps += [(across, steps[-1][1]), (across, up)]
    return [*steps, (right, best[-1][1])]


def _write_names(
    canvas: Canvas,
    points: Sequence[MemoryPoint],
    pixels: Sequence[Place],
    best: Sequence[bool],
    bounds: Box,
    steps: Sequence[Place],
) -> int:
    """Names beside the points; how many have no room."""
    theme = canvas.theme
    names = [cut(point.label, LONGEST_NAME, bold=point.baseline) for point in points]
    widths = [width_px(name, bold=point.baseline) for name, point in zip(names, points, strict=True)]
    lines = [
        (min(x, end_x) - 1, min(y, end_y) - 1, max(x, end_x) + 1, max(y, end_y) + 1)
        for (x, y), (end_x, end_y) in pairwise(steps)
    ]
    places = place_labels(pixels, [(width, SMALL + 2) for width in widths], bounds, lines)
    for point, name, place, (x, y), is_best in zip(points, names, places, pixels, best, strict=True):
        if place is None:
            continue
        (x0, y0, x1, y1), is_far = place
        canvas.box(x0, y0, x1 - x0, y1 - y0, color=theme.ground, zorder=1)
        if is_far:
            nearest = [x, min(max(x, x0), x1)], [y, min(max(y, y0), y1)]
            canvas.points(*nearest, color=theme.axis, linewidth=0.7)
        color = theme.ink if is_best or point.baseline else theme.muted
        canvas.text((x0 + x1) / 2, (y0 + y1) / 2, name, size=SMALL, align="center", color=color, bold=point.baseline)
    return places.count(None)


def place_labels(
    points: Sequence[Place], sizes: Sequence[Place], bounds: Box, avoid: Sequence[Box] = ()
) -> list[tuple[Box, bool] | None]:
    """A box for each name and whether a line has to lead to it; None where there is no room left.

    No two overlap, and none covers a point; `avoid` is left free where another place is as near.
    """
    centres = np.array(points, dtype=float).reshape(-1, 2)
    taken = np.hstack([centres - _RADIUS, centres + _RADIUS])
    lines = np.array(avoid, dtype=float).reshape(-1, 4)
    placed: list[tuple[Box, bool] | None] = [None] * len(points)
    # Where points crowd, places are rare.
    apart = np.hypot(centres[:, None, 0] - centres[:, 0], 3 * (centres[:, None, 1] - centres[:, 1]))
    for index in np.argsort(-(apart < _CROWD).sum(axis=1), kind="stable").tolist():
        for distance in _DISTANCES:
            boxes = _boxes_around(centres[index], sizes[index], distance)
            inside = (boxes[:, :2] >= bounds[:2]).all(axis=1) & (boxes[:, 2:] <= bounds[2:]).all(axis=1)
            if (free := boxes[inside & ~overlaps(boxes, taken)]).size:
                box = free[int(overlaps(free, lines).argmin())]
                taken = np.vstack([taken, box])
                left, top, right, bottom = box.tolist()
                placed[index] = (left, top, right, bottom), distance > _NEAR
                break
    return placed


def overlaps(boxes: Boxes, others: Boxes) -> Any:
    """Of each box whether it has more than an edge in common with one of the others."""
    begin, end = boxes[:, None, :2], boxes[:, None, 2:]
    meet = (others[:, :2] < end) & (begin < others[:, 2:])
    return np.any(np.all(meet, axis=2), axis=1)


def _boxes_around(point: Boxes, size: Place, distance: float) -> Boxes:
    """A box for each direction, whose edge or corner next to the point lies at that distance from it."""
    towards = np.stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)], axis=1)
    sides = np.where(np.abs(towards) < 0.3, 0.0, np.sign(towards))
    begin = point + distance * towards - np.array(size) * (0.5 - 0.5 * sides)
    return np.hstack([begin - (_AIR, 0.0), begin + size + (_AIR, 0.0)])
