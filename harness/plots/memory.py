"""Latency against memory, a point for each variant, with the front of those that no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.plots.canvas import (
    LONGEST_NAME,
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    Place,
    cut,
    left_out_text,
    look_of,
    width_px,
)
from harness.report.run_report import Report, run_line, verdict
from harness.report.run_rows import Section
from harness.report.units import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_USUAL_PANELS = 8
_LEFT = MARGIN + 58.0
_LENGTH = WIDTH - MARGIN - _LEFT
_PLOT, _BELOW = 360.0, 80.0
_LINEAR = 4.0  # where figures lie further apart than by this factor, the axis is logarithmic
_ROOM = 0.08  # of an axis, around its points
_MARK = 8 * POINTS_PER_PIXEL
_RADIUS = 6.0  # of a point
# How far below its point the middle of a name may stand, on either side of it.
_ASIDE, _DOWN = 9.0, (0.0, -14.0, 14.0, -28.0, 28.0)


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
    """The panels below each other."""
    panels = memory_panels(report)
    if not panels:
        raise RunError(
            "has no model with two measured variants that take different memory, so there is nothing to draw; "
            "--kind variants draws their latencies"
        )
    drawn = panels[: top or _USUAL_PANELS]

    def paint(canvas: Canvas) -> None:
        for panel in drawn:
            _draw_panel(canvas, panel)
        canvas.foot(
            "Filled: on the front, where less memory costs time and less time costs memory; down and to the left is "
            "better. Bold: the baseline. Transient memory is what the schedule takes beside arguments and results, as "
            "iree-compile states it. Models whose variants all take the same memory are left out.",
            left_out_text(len(panels) - len(drawn)),
        )

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
        if (memory := row.figure("transient-memory" if stated else "device-peak-memory")) is not None
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


def _draw_panel(canvas: Canvas, panel: MemoryPanel) -> None:
    theme = canvas.theme
    canvas.heading(panel.title)
    top = canvas.down(_PLOT + _BELOW)
    # Those on the front and the baseline are named first.
    points = sorted(panel.points, key=lambda point: not (on_front(point, panel.points) or point.baseline))
    memory_unit = unit_of("bytes", [point.memory_bytes for point in points])
    latency_unit = unit_of("ns", [point.latency_ns for point in points])
    places = [(point.memory_bytes / memory_unit.size, point.latency_ns / latency_unit.size) for point in points]
    labels = {"xlabel": f"{panel.memory}, {memory_unit.name}", "ylabel": f"latency, {latency_unit.name}"}
    axes = canvas.axes(_LEFT, top, _LENGTH, _PLOT, **labels)
    for name, values in zip("xy", zip(*places, strict=True), strict=True):
        _scale(axes, name, values)
    axes.grid()
    axes.spines[["left", "bottom"]].set_visible(True)
    best = [on_front(point, panel.points) for point in points]
    front = sorted(place for place, is_best in zip(places, best, strict=True) if is_best)
    # From edge to edge: what lies above and to the right of the best is beaten.
    xs = [front[0][0], *(x for x, _ in front), axes.get_xlim()[1]]
    ys = [axes.get_ylim()[1], *(y for _, y in front), front[-1][1]]
    axes.plot(xs, ys, drawstyle="steps-post", color=theme.series[0], linewidth=1.4, alpha=0.7, zorder=2)
    for point, (x, y), is_best in zip(points, places, best, strict=True):
        color = theme.series[0] if is_best else theme.muted
        look = look_of("s" if point.baseline else "o", _MARK, color if is_best else theme.ground, color, 1.4)
        axes.plot([x], [y], zorder=4, **look)
    nameless = _write_names(canvas, points, canvas.pixels(axes, places), top)
    counts = {"without a point": panel.rest, "without room for a name": nameless}
    rest = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    canvas.note(WIDTH - MARGIN, top + _PLOT + 52, rest, align="right")


def _scale(axes: Axes, name: str, values: Sequence[float]) -> None:
    low, high = min(values), max(values)
    if low > 0 and high / low > _LINEAR:
        room = (high / low) ** _ROOM
        axes.set(**{f"{name}scale": "log", f"{name}lim": (low / room, high * room)})
    else:
        room = _ROOM * (high - low) or 0.05 * high or 1.0
        axes.set(**{f"{name}lim": (low - room, high + room)})
    Canvas.round_ticks(axes.xaxis if name == "x" else axes.yaxis, 8)


def _write_names(canvas: Canvas, points: Sequence[MemoryPoint], pixels: Sequence[Place], top: float) -> int:
    names = [cut(point.label, LONGEST_NAME, bold=point.baseline) for point in points]
    widths = [width_px(name, bold=point.baseline) for name, point in zip(names, points, strict=True)]
    found = free_places(pixels, widths, (_LEFT, top, WIDTH - MARGIN, top + _PLOT))
    for point, name, place in zip(points, names, found, strict=True):
        if place is not None:
            canvas.text(*place, name, size=SMALL, bold=point.baseline, bbox=canvas.theme.behind_texts)
    return found.count(None)


def free_places(
    points: Sequence[Place], widths: Sequence[float], bounds: tuple[float, float, float, float]
) -> list[Place | None]:
    """Where the left end of each name stands beside its point; None where it would cover a point or another name."""
    from matplotlib.transforms import Bbox

    taken = [Bbox.from_extents(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in points]
    left, top, right, bottom = bounds
    found: list[Place | None] = []
    for (x, y), width in zip(points, widths, strict=True):
        starts = ((start, y + down) for down in _DOWN for start in (x + _ASIDE, x - _ASIDE - width))
        boxes = (Bbox.from_bounds(start, middle - 7, width, 14) for start, middle in starts)
        inside = (box for box in boxes if left <= box.x0 and box.x1 <= right and top <= box.y0 and box.y1 <= bottom)
        free = next((box for box in inside if not box.count_overlaps(taken)), None)
        taken += [free] if free is not None else []
        found.append((free.x0, free.y0 + 7) if free is not None else None)
    return found
