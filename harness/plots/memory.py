"""Latency against memory, a point for each variant, with the front of those that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.plots.canvas import Canvas, foot_height, head_height
from harness.plots.labels import Box, place_labels
from harness.plots.look import BODY, MARGIN, SMALL, WIDTH, Format, Theme, drawing
from harness.plots.memory_points import USUAL_PANELS, MemoryPanel, MemoryPoint
from harness.plots.text import POINTS_PER_PIXEL, cut, drawable, width_px
from harness.report.ratio_axis import round_figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_HEAD = 30.0
_LEFT, _BOTTOM = 58.0, 46.0
_NARROW, _WIDE = 270.0, 360.0  # heights of a plot
_BETWEEN = 26.0
# So many points fit a panel of half the width.
_FEW = 9
_LONGEST_LABEL = 230.0
# Axes are logarithmic where figures lie further apart than by this factor.
_LINEAR = 4.0


def draw_memory(
    panels: Sequence[MemoryPanel],
    title: str,
    lines: Sequence[str],
    theme: Theme,
    picture: Format,
    *,
    top: int = USUAL_PANELS,
) -> bytes:
    """Draw the first `top` panels, two beside each other where their points are few.

    Args:
        lines: What stands below the title.

    Returns:
        A file of that format; equal values give equal bytes with the same release of matplotlib.
    """
    shown = panels[:top]
    columns = 2 if len(shown) > 1 and max(len(panel.points) for panel in shown) <= _FEW else 1
    plot = _NARROW if columns == 2 else _WIDE
    height = _HEAD + plot + _BOTTOM + _BETWEEN
    with drawing(theme):
        start = head_height(lines) + 18
        # What is left out is known once names are placed, so room is kept for that line.
        foot = _foot(shown, len(panels) - len(shown))
        canvas = Canvas(theme, start + height * math.ceil(len(shown) / columns) + foot_height([*foot, ""]) + 14)
        canvas.head(title, lines)
        width = (WIDTH - 2 * MARGIN - (columns - 1) * _BETWEEN) / columns
        unnamed = 0
        for number, panel in enumerate(shown):
            x = MARGIN + (number % columns) * (width + _BETWEEN)
            y = start + (number // columns) * height
            unnamed += _draw_panel(canvas, panel, x, y, width, plot)
        more = [f"No room for the names of {unnamed} points."] if unnamed else []
        canvas.foot([*foot, *more], start + height * math.ceil(len(shown) / columns))
        return canvas.file(picture, f"Latency against memory: {drawable(title)}", drawable(" ".join(lines[:1])))


def _foot(panels: Sequence[MemoryPanel], left: int) -> list[str]:
    text = (
        "Filled: on the front, where less memory costs time and less time costs memory; down and to the left is "
        "better. Bold: the baseline."
    )
    stated = any(panel.memory.startswith("transient") for panel in panels)
    what = "Transient memory is what the schedule takes beside arguments and results, as iree-compile states it."
    lost = " Without a point: not measured, with the module of another variant, or of another engine."
    missing = lost if any(panel.rest for panel in panels) else ""
    more = f" Not drawn: {left} more {'model' if left == 1 else 'models'} or devices." if left else ""
    equal = "Models whose variants all take the same memory are left out."
    return [text, f"{what if stated else ''}{missing} {equal}{more}".strip()]


def _draw_panel(canvas: Canvas, panel: MemoryPanel, x: float, y: float, width: float, height: float) -> int:
    """Draw one; how many names have no room."""
    theme = canvas.theme
    canvas.text(x, y + 15, cut(panel.title, width, BODY + 1, bold=True), size=BODY + 1, weight="bold")
    axes = canvas.axes(x + _LEFT, y + _HEAD, width - _LEFT, height)
    memory = [point.memory_bytes / panel.memory_unit.size for point in panel.points]
    times = [point.latency_ns / panel.time_unit.size for point in panel.points]
    to_x = _scale(axes.xaxis, memory, max(3, int((width - _LEFT) / 90)))
    to_y = _scale(axes.yaxis, times, max(3, int(height / 55)))
    axes.grid(color=theme.grid, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["left", "bottom"]].set(visible=True, color=theme.axis)
    below = y + _HEAD + height + 34
    memory_name = f"{panel.memory}, {panel.memory_unit.name}{' (log)' if _is_logarithmic(memory) else ''}"
    time_name = f"latency, {panel.time_unit.name}{' (log)' if _is_logarithmic(times) else ''}"
    canvas.text(x + _LEFT, below, memory_name, size=SMALL, color=theme.muted)
    # Beside the axis, not above it, where the title stands.
    canvas.upright(x + 9, y + _HEAD + height / 2, time_name)
    places = [(to_x(one), to_y(other)) for one, other in zip(memory, times, strict=True)]
    axes.set(xlim=(0, 1), ylim=(0, 1))
    steps = _front([place for point, place in zip(panel.points, places, strict=True) if point.on_front])
    axes.plot(*zip(*steps, strict=True), color=theme.series[0], linewidth=1.4, alpha=0.7, zorder=2)
    for point, (across, up) in zip(panel.points, places, strict=True):
        _draw_point(axes, theme, point, across, up)

    def pixel(place: tuple[float, float]) -> tuple[float, float]:
        return x + _LEFT + place[0] * (width - _LEFT), y + _HEAD + (1 - place[1]) * height

    bounds = Box(left=x + _LEFT + 3, right=x + width, bottom=y + _HEAD, top=y + _HEAD + height - 3)
    if panel.rest:
        rest = cut(panel.rest, width - _LEFT - width_px(memory_name, SMALL) - 20, SMALL)
        canvas.text(x + width, below, rest, size=SMALL, color=theme.muted, align="right")
    lines = [_around(pixel(one), pixel(other)) for one, other in pairwise(steps)]
    return _write_names(canvas, panel.points, [pixel(place) for place in places], bounds, lines)


def _is_logarithmic(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _LINEAR


def _scale(axis: Axis, values: Sequence[float], most_ticks: int) -> Callable[[float], float]:
    """Ticks on an axis from 0 to 1, and where on it a value lies."""
    from matplotlib.ticker import MaxNLocator

    low, high = min(values), max(values)
    if _is_logarithmic(values):
        low, high = low / (high / low) ** 0.08, high * (high / low) ** 0.08
        ticks = [(value, f"{value:,.6g}") for value, _ in round_figures(low, high, most_ticks)]

        def place(value: float) -> float:
            return math.log(value / low) / math.log(high / low)
    else:
        room = 0.1 * (high - low) or 0.05 * high or 1.0
        low, high = (low - room if low - room > 0 or low < 0 else -0.3 * room), high + room
        found = [float(tick) for tick in MaxNLocator(most_ticks).tick_values(low, high) if low <= tick <= high]
        ticks = [(tick, f"{tick:,.6g}") for tick in found if tick >= 0]

        def place(value: float) -> float:
            return (value - low) / (high - low)

    axis.set_ticks([place(value) for value, _ in ticks], labels=[text for _, text in ticks])
    return place


def _front(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Steps through the best, on to the edges: what lies above and to the right of them is beaten."""
    best = sorted(places, key=lambda place: (place[0], -place[1]))
    steps = [(best[0][0], 1.0)]
    for across, up in best:
        steps += [(across, steps[-1][1]), (across, up)]
    return [*steps, (1.0, best[-1][1])]


def _around(one: tuple[float, float], other: tuple[float, float]) -> Box:
    (left, right), (bottom, top) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    return Box(left=left - 1, right=right + 1, bottom=bottom - 1, top=top + 1)


def _draw_point(axes: Axes, theme: Theme, point: MemoryPoint, across: float, up: float) -> None:
    color = theme.series[0] if point.on_front else theme.muted
    axes.plot(
        [across],
        [up],
        linestyle="none",
        marker="s" if point.baseline else "o",
        markersize=8 * POINTS_PER_PIXEL,
        markerfacecolor=color if point.on_front else theme.ground,
        markeredgecolor=color,
        markeredgewidth=1.4,
        zorder=4,
        clip_on=False,
    )


def _write_names(
    canvas: Canvas,
    points: Sequence[MemoryPoint],
    pixels: Sequence[tuple[float, float]],
    bounds: Box,
    lines: Sequence[Box],
) -> int:
    """Names beside the points; how many have no room."""
    names = [cut(point.label, _LONGEST_LABEL, SMALL, bold=point.baseline) for point in points]
    sizes = [(width_px(name, SMALL, bold=point.baseline), SMALL + 2) for name, point in zip(names, points, strict=True)]
    places = place_labels(pixels, sizes, bounds, lines)
    for point, name, place, (x, y) in zip(points, names, places, pixels, strict=True):
        if place is None:
            continue
        box = place.box
        middle = (box.bottom + box.top) / 2
        canvas.box(box.left, box.bottom, box.right - box.left, box.top - box.bottom, canvas.theme.ground, zorder=1)
        if place.far:
            near = min(max(x, box.left), box.right)
            canvas.line([x, near], [y, min(max(y, box.bottom), box.top)], canvas.theme.axis, 0.7)
        color = canvas.theme.ink if point.on_front or point.baseline else canvas.theme.muted
        weight = "bold" if point.baseline else "normal"
        canvas.text((box.left + box.right) / 2, middle, name, size=SMALL, align="center", color=color, weight=weight)
    return sum(place is None for place in places)
