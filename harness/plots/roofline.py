"""A roofline plot: arithmetic a second over arithmetic a byte, below what this machine's cores and memory allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.errors import RunError
from harness.plots.canvas import (
    BODY,
    MARGIN,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    Look,
    Theme,
    cut,
    look_of,
)
from harness.records.run import Peak
from harness.report.run_report import Report
from harness.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT = 72.0
_LENGTH = WIDTH - MARGIN - _LEFT
_PLOT = 360.0
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_MARK, _RING = 7.5, 12.0  # points across; a ring is around the mark of a peer


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
    """These panels: a colour a model, a shape a variant."""
    points = [point for panel in panels for point in panel.points]
    models = list(dict.fromkeys(point.model for point in points))
    examples = {point.label: point for point in points}
    numbers = {label: number for number, label in enumerate(examples)}

    def paint(canvas: Canvas) -> None:
        theme = canvas.theme
        colors = {model: theme.series[number % len(theme.series)] for number, model in enumerate(models)}
        canvas.legend((model, [look_of("s", 6.0, color, color, 0.0)]) for model, color in colors.items())
        canvas.legend((label, _looks(examples[label], theme.ink, number, theme)) for label, number in numbers.items())
        for panel in panels:
            canvas.down(20)
            top = canvas.down(_PLOT + 60)
            xlabel = "FLOP for each byte of arguments, results and constants"
            axes = canvas.axes(_LEFT, top, _LENGTH, _PLOT, xlabel=xlabel, ylabel="GFLOP/s")
            axes.set(xscale="log", yscale="log")
            for point in panel.points:
                for look in _looks(point, colors[point.model], numbers[point.label], theme):
                    axes.plot(point.intensity, point.operations_per_s / 1e9, zorder=4, **look)
            _draw_axes(axes, panels)
            if panel.peak is not None:
                _draw_roof(canvas, axes, panel.peak)
            caption = cut(_caption(panel), _LENGTH - 20, BODY, bold=True)
            x, y = WIDTH - MARGIN - 8, top + _PLOT - 14
            canvas.text(x, y, caption, align="right", bold=True, bbox=theme.behind_texts)

    return Drawing(kind="Roofline", title=title, lines=[subtitle], paint=paint)


def _looks(point: Point, color: str, number: int, theme: Theme) -> list[Look]:
    """From back to front; a peer's has a ring. A dozen shapes are filled, then hollow."""
    turn, shape = divmod(number, len(_SHAPES))
    face, edge, edge_width = (theme.ground, color, 1.6) if turn % 2 else (color, theme.ground, 0.7)
    own = look_of(_SHAPES[shape], _MARK, face, edge, edge_width)
    return [look_of("o", _RING, "none", color, 1.0), own] if point.peer else [own]


def _roof(peak: Peak) -> tuple[float, float]:
    """What arithmetic can reach and what memory can feed: 1e9 operations and bytes a second."""
    return (peak.operations_per_s or 0.0) / 1e9, (peak.bytes_per_s or 0.0) / 1e9


def _draw_axes(axes: Axes, panels: Sequence[Panel]) -> None:
    """Room around the points of all panels, and up to the corner of every roof."""
    points = [point for panel in panels for point in panel.points]
    roofs = [_roof(panel.peak) for panel in panels if panel.peak is not None]
    across = [point.intensity for point in points] + [top / slope for top, slope in roofs]
    up = [point.operations_per_s / 1e9 for point in points] + [top for top, _ in roofs]
    axes.set(xlim=(min(across) / 3, max(across) * 4), ylim=(min(up) / 3, max(up) * 2))
    for axis in (axes.xaxis, axes.yaxis):
        Canvas.round_ticks(axis, 8)
    axes.grid()
    axes.spines[["bottom", "left"]].set_visible(True)


def _draw_roof(canvas: Canvas, axes: Axes, peak: Peak) -> None:
    theme, (top, slope) = canvas.theme, _roof(peak)
    (low, high), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    ridge = top / slope
    axes.plot([low, ridge, high], [low * slope, top, top], color=theme.ink, linewidth=1.6, zorder=2)
    axes.fill_between([low, ridge, high], [low * slope, top, top], bottom, color=theme.ink, alpha=0.045, linewidth=0)
    start = max(low, bottom / slope)
    (x, y), (ridge_x, ridge_y) = canvas.pixels(axes, [(start, start * slope), (ridge, top)])
    arithmetic = f"{top:.3g} GFLOP/s, f32 ({peak.operations_by})"
    canvas.text(WIDTH - MARGIN - 4, ridge_y - 10, arithmetic, size=SMALL, align="right", bbox=theme.behind_texts)
    # Along the slope, from its lower end.
    look: dict[str, Any] = {"rotation": math.degrees(math.atan2(y - ridge_y, ridge_x - x)), "rotation_mode": "anchor"}
    canvas.text(x + 12, y - 22, f"{slope:.3g} GB/s ({peak.bytes_by})", size=SMALL, **look)


def _caption(panel: Panel) -> str:
    if panel.peak is None:
        return f"{panel.device} (peak not measured)"
    return f"{panel.device}: {'one core' if panel.peak.threads == 1 else f'{panel.peak.threads} cores'}"
