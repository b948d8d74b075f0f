"""A roofline plot: arithmetic a second over arithmetic a byte, below what this machine's cores and memory allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.plots.canvas import (
    BODY,
    LONGEST_NAME,
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    Look,
    Theme,
    cut,
    drawable,
    look_of,
    widest,
    width_px,
)
from harness.records.run import Peak
from harness.report.run_report import Report
from harness.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT = 72.0
_PLOT, _SMALL_PLOT = 360.0, 270.0
_MOST_ALONE = 2  # more panels stand in two columns
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_MARK, _SMALL_MARK = 7.5, 4.5  # points across
_RING = 12.0  # points across, around the mark of a peer
_LEAN = math.radians(30)
_NAME_ROOM = 33.0  # between the beginnings of names above a panel
_SMALL_POINTS = SMALL * POINTS_PER_PIXEL


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measured case."""

    model: str
    label: str  # Its variant, and its toolchain where there are several; of a peer, the peer's
    peer: bool
    intensity: float  # Operations for each byte of compulsory traffic
    operations_per_s: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One device, of several hosts on one of them; `peak` is None where it was not measured."""

    device: str
    points: tuple[Point, ...]
    peak: Peak | None


def draw_roofline(report: Report, top: int | None = None) -> Drawing:
    """A panel for each device, all on the same axes."""
    iree = (f"IREE {toolchain}" for toolchain in report.toolchains)
    subtitle = ", ".join(part for part in (report.header.started[:10], report.cpu, *iree) if part)
    return roofline_of(panels_of(report)[:top], report.header.suite_name, subtitle)


def panels_of(report: Report) -> list[Panel]:
    """What to draw, in the plan's order; a case with another's module has its point there."""
    if not any(row.attained for row in report.rows() if row.status == "measured"):
        reasons = {section.work.failure.message for section in report.sections if section.work and section.work.failure}
        why = f" ({one_line(min(reasons))})" if reasons else ""
        raise RunError(
            f"no arithmetic was counted{why}; run its suite again with this harness, or draw its latencies with "
            "--kind variants"
        )
    panels: dict[str, Panel] = {}
    for section in report.sections:
        points = tuple(
            Point(
                model=row.model,
                label=section.label(row),
                peer=row.peer is not None,
                intensity=row.attained.intensity,
                operations_per_s=row.attained.operations_per_s,
            )
            for row in section.rows
            if row.status == "measured" and row.attained is not None
        )
        measured = section.peak is not None and section.peak.operations_per_s and section.peak.bytes_per_s
        place = f"{section.device} of {section.host}" if section.host else section.device
        panel = Panel(device=place, points=(), peak=section.peak if measured else None)
        panel = panels.get(place, panel)
        panels[place] = replace(panel, points=(*panel.points, *points))
    return [panel for panel in panels.values() if panel.points]


def roofline_of(panels: Sequence[Panel], title: str, subtitle: str) -> Drawing:
    """These panels."""
    points = [point for panel in panels for point in panel.points]
    models = list(dict.fromkeys(point.model for point in points))
    examples = {point.label: point for point in points}
    numbers = {label: number for number, label in enumerate(dict.fromkeys(point.label for point in points))}
    limits = _limits(panels)

    def paint(canvas: Canvas) -> None:
        theme = canvas.theme
        colors = {model: theme.series[number % len(theme.series)] for number, model in enumerate(models)}
        names = {model: cut(model, LONGEST_NAME, bold=True) for model in models}
        longest = widest(names.values(), bold=True)
        above = longest * math.sin(_LEAN) + 24
        columns, plot = (2, _SMALL_PLOT) if len(panels) > _MOST_ALONE else (1, _PLOT)
        column = (WIDTH - MARGIN) / columns
        width = column - _LEFT - longest * math.cos(_LEAN) * 0.5
        for number, panel in enumerate(panels):
            left, top = (number % columns) * column + _LEFT, canvas.y + above
            axes = canvas.axes(left, top, width, plot)
            _draw_axes(axes, limits, theme)
            if panel.peak is not None:
                _draw_roof(axes, panel.peak, theme)
            for point in panel.points:
                for look in _looks(point, colors[point.model], numbers[point.label], theme):
                    axes.plot(point.intensity, point.operations_per_s / 1e9, zorder=4, **look)
            _draw_names(axes, panel, colors, names, _NAME_ROOM / width)
            caption = cut(_caption(panel), width - 20, BODY, bold=True)
            canvas.text(left + width - 8, top + plot - 14, caption, align="right", bold=True, bbox=theme.behind_texts)
            if (number + 1) % columns == 0 or number + 1 == len(panels):
                canvas.down(above + plot + 54)
        canvas.legend((label, _looks(examples[label], theme.ink, number, theme)) for label, number in numbers.items())

    return Drawing(kind="Roofline", title=title, lines=[subtitle], paint=paint)


def _looks(point: Point, color: str, number: int, theme: Theme) -> list[Look]:
    """From back to front; a peer's has a ring. A dozen shapes are filled, then hollow, then both smaller: 48 in all."""
    turn, shape = divmod(number, len(_SHAPES))
    hollow = turn % 2 == 1
    face, edge, edge_width = (theme.ground, color, 1.6) if hollow else (color, theme.ground, 0.7)
    own = look_of(_SHAPES[shape], _SMALL_MARK if turn % 4 > 1 else _MARK, face, edge, edge_width)
    return [look_of("o", _RING, "none", color, 1.0), own] if point.peer else [own]


def _limits(panels: Sequence[Panel]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of both axes: room around all points, and up to the corner of every roof."""
    points = [point for panel in panels for point in panel.points]
    roofs = [_roof(panel.peak) for panel in panels if panel.peak is not None]
    across = [point.intensity for point in points] + [top / slope for top, slope in roofs]
    up = [point.operations_per_s / 1e9 for point in points]
    return (min(across) / 3, max(across) * 4), (min(up) / 3, max([*up, *(top for top, _ in roofs)]) * 2)


def _roof(peak: Peak) -> tuple[float, float]:
    """What arithmetic can reach and what memory can feed: 1e9 operations and bytes a second."""
    return (peak.operations_per_s or 0.0) / 1e9, (peak.bytes_per_s or 0.0) / 1e9


def _draw_axes(axes: Axes, limits: tuple[tuple[float, float], tuple[float, float]], theme: Theme) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=limits[0], ylim=limits[1])
    axes.set_xlabel("FLOP for each byte of arguments, results and constants", color=theme.muted, size=_SMALL_POINTS)
    axes.set_ylabel("GFLOP/s", color=theme.muted, size=_SMALL_POINTS)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="major")
    axes.spines[["bottom", "left"]].set(visible=True, color=theme.axis)


def _draw_roof(axes: Axes, peak: Peak, theme: Theme) -> None:
    top, slope = _roof(peak)
    (low, high), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    ridge = top / slope
    axes.plot([low, ridge, high], [low * slope, top, top], color=theme.ink, linewidth=1.6, zorder=2)
    axes.fill_between([low, ridge, high], [low * slope, top, top], bottom, color=theme.ink, alpha=0.045, linewidth=0)
    axes.annotate(
        drawable(f"{top:.3g} GFLOP/s, f32 ({peak.operations_by})"),
        (high, top),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        size=_SMALL_POINTS,
        bbox=theme.behind_texts,
    )
    start = max(low, bottom / slope)
    rate = drawable(f"{slope:.3g} GB/s ({peak.bytes_by})")
    x, y = axes.transData.transform([(start, start * slope), (ridge, top)]).T
    short = x[1] - x[0] < 2 * width_px(rate)  # a figure has two pixels for each of a page
    at, align, aside = (start, "left", 4) if short else (math.sqrt(start * ridge), "center", -3)
    axes.annotate(
        rate,
        (at, at * slope),
        xytext=(aside, 5),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(y[1] - y[0], x[1] - x[0])),
        rotation_mode="anchor",
        ha=align,
        size=_SMALL_POINTS,
    )


def _draw_names(axes: Axes, panel: Panel, colors: Mapping[str, str], names: Mapping[str, str], apart: float) -> None:
    """The models' names above the panel, each over the line that its points stand on, or shifted as far as needed."""
    low, high = (math.log(limit) for limit in axes.get_xlim())
    spans = sorted({(point.intensity, point.model) for point in panel.points})
    room = min(apart, 0.9 / len(spans))
    lines = [(math.log(intensity) - low) / (high - low) for intensity, _ in spans]
    ends: list[float] = []
    for line in lines:
        ends.append(max(line, ends[-1] + room) if ends else max(line, room - 1.0))
    back = max(0.0, ends[-1] - 0.97)
    for (intensity, model), line, shifted in zip(spans, lines, ends, strict=True):
        color = colors[model]
        end = max(shifted - back, 0.0)
        axes.axvline(intensity, color=color, linewidth=0.8, alpha=0.45, zorder=1)
        axes.plot([line, end], [1.0, 1.03], transform=axes.transAxes, color=color, linewidth=0.8, clip_on=False)
        axes.text(
            end,
            1.04,
            names[model],
            transform=axes.transAxes,
            color=color,
            rotation=math.degrees(_LEAN),
            rotation_mode="anchor",
            weight="bold",
            size=_SMALL_POINTS,
        )


def _caption(panel: Panel) -> str:
    if panel.peak is None:
        return f"{panel.device} (peak not measured)"
    return f"{panel.device}: {'one core' if panel.peak.threads == 1 else f'{panel.peak.threads} cores'}"
