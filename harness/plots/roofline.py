"""A roofline plot: arithmetic a second over arithmetic a byte, below what this machine's cores and memory allow."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.plots.canvas import MARGIN, WIDTH, Canvas, Drawing, Look, Theme, look_of
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
    """A panel for each device, all on the same axes; a colour a model, a shape a variant."""
    panels = panels_of(report)[:top]
    points = [point for panel in panels for point in panel.points]
    roofs = [_roof(panel.peak) for panel in panels if panel.peak is not None]
    across = [point.intensity for point in points] + [top / slope for top, slope in roofs]
    up = [point.operations_per_s / 1e9 for point in points] + [top for top, _ in roofs]
    examples = {point.label: point for point in points}
    numbers = {label: number for number, label in enumerate(examples)}

    def paint(canvas: Canvas) -> None:
        theme = canvas.theme
        models = dict.fromkeys(point.model for point in points)
        colors = dict(zip(models, cycle(theme.series), strict=False))
        canvas.legend((model, [look_of("s", 6.0, color, color, 0.0)]) for model, color in colors.items())
        canvas.legend((label, _looks(examples[label], theme.ink, number, theme)) for label, number in numbers.items())
        for panel in panels:
            canvas.heading(_caption(panel))
            top = canvas.down(_PLOT + 60)
            xlabel = "FLOP for each byte of arguments, results and constants"
            axes = canvas.axes(_LEFT, top, _LENGTH, _PLOT, xlabel=xlabel, ylabel="GFLOP/s")
            axes.set(xscale="log", yscale="log")
            for point in panel.points:
                for look in _looks(point, colors[point.model], numbers[point.label], theme):
                    axes.plot(point.intensity, point.operations_per_s / 1e9, zorder=4, **look)
            axes.set(xlim=(min(across) / 3, max(across) * 4), ylim=(min(up) / 3, max(up) * 2))
            for axis in (axes.xaxis, axes.yaxis):
                canvas.round_ticks(axis, 8)
            axes.grid()
            axes.spines[["bottom", "left"]].set_visible(True)
            if panel.peak is not None:
                _draw_roof(axes, panel.peak, theme.ink)

    iree = (f"IREE {toolchain}" for toolchain in report.toolchains)
    subtitle = ", ".join(part for part in (report.header.started[:10], report.cpu, *iree) if part)
    return Drawing(kind="Roofline", title=report.header.suite_name, lines=[subtitle], paint=paint)


def panels_of(report: Report) -> list[Panel]:
    """What to draw, in the plan's order; a case with another's module has its point there."""
    if not any(row.attained for row in report.rows() if row.status == "measured"):
        reasons = {section.work.failure.message for section in report.sections if section.work and section.work.failure}
        why = f" ({one_line(min(reasons))})" if reasons else ""
        raise RunError(
            f"no arithmetic was counted{why}; run its suite again with this harness, or draw its latencies with "
            "--kind variants"
        )
    points: dict[str, list[Point]] = defaultdict(list)
    peaks: dict[str, Peak | None] = {}
    for section in report.sections:
        measured = section.peak is not None and section.peak.operations_per_s and section.peak.bytes_per_s
        place = f"{section.device} of {section.host}" if section.host else section.device
        peaks.setdefault(place, section.peak if measured else None)
        points[place] += (
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
    return [Panel(device=place, points=tuple(own), peak=peaks[place]) for place, own in points.items() if own]


def _looks(point: Point, color: str, number: int, theme: Theme) -> list[Look]:
    """From back to front; a peer's has a ring. A dozen shapes are filled, then hollow."""
    turn, shape = divmod(number, len(_SHAPES))
    face, edge, edge_width = (theme.ground, color, 1.6) if turn % 2 else (color, theme.ground, 0.7)
    own = look_of(_SHAPES[shape], _MARK, face, edge, edge_width)
    return [look_of("o", _RING, "none", color, 1.0), own] if point.peer else [own]


def _roof(peak: Peak) -> tuple[float, float]:
    """What arithmetic can reach and what memory can feed: 1e9 operations and bytes a second."""
    return (peak.operations_per_s or 0.0) / 1e9, (peak.bytes_per_s or 0.0) / 1e9


def _draw_roof(axes: Axes, peak: Peak, ink: str) -> None:
    top, slope = _roof(peak)
    low, high = axes.get_xlim()
    xs, ys = [low, top / slope, high], [low * slope, top, top]
    axes.plot(xs, ys, color=ink, linewidth=1.6, zorder=2)
    axes.fill_between(xs, ys, axes.get_ylim()[0], color=ink, alpha=0.045, linewidth=0)


def _caption(panel: Panel) -> str:
    """The device, and what its cores and memory can do."""
    peak = panel.peak
    if peak is None:
        return f"{panel.device} (peak not measured)"
    cores = "one core" if peak.threads == 1 else f"{peak.threads} cores"
    top, slope = _roof(peak)
    rates = f"{top:.3g} GFLOP/s, f32 ({peak.operations_by}), {slope:.3g} GB/s ({peak.bytes_by})"
    return f"{panel.device}: {cores}, {rates}"
