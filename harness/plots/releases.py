"""Every case of a run over its releases of IREE, a panel for each model on each device.

Points are ratios to what the run's other cases are compared with, measured in the same rounds; a step between two
releases is what `harness bisect` looks for. Releases on which a case fails or is wrong have a mark below the axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.plots.canvas import (
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    Look,
    cut,
    left_out_text,
    look_of,
    widest,
)
from harness.report.forest import RatioAxis, ratio_axis
from harness.report.releases import ReleasePoint, State, lines_of
from harness.report.run_report import Report, run_line, verdict
from harness.report.run_rows import Section
from harness.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_USUAL_PANELS = 6
_PLOT = 170.0
_STRIP = 16.0
_LEFT = 130.0
_LENGTH = WIDTH - MARGIN - _LEFT
_APART = 5.0
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # as many lines as there are colours
MARKS: Mapping[State, str] = {"fails": "✗", "wrong": "≠", "not available": "∅"}
_FOOT = (
    "Ratios: time divided by that of the baseline, in the same rounds, with the 95 % interval; above 1 is slower. "
    f"{MARKS['fails']}: fails. {MARKS['wrong']}: wrong outputs. {MARKS['not available']}: skipped."
)


@dataclass(frozen=True, kw_only=True)
class ReleasePanel:
    """One model on one device."""

    section: Section
    lines: Mapping[str, Sequence[ReleasePoint]]  # By variant, a point for each release of the section
    rest: int  # How many variants have no line, for lack of room


def draw_releases(report: Report, top: int | None = None) -> Drawing:
    """The panels below each other, with one axis of ratios each."""
    panels = release_panels(report)
    drawn = panels[: top or _USUAL_PANELS]

    def paint(canvas: Canvas) -> None:
        for panel in drawn:
            _draw_panel(canvas, panel, report.floor)
        rest = sum(panel.rest for panel in drawn)
        more = f"Not drawn: {plural(rest, 'more variant')}." if rest else ""
        canvas.foot(_FOOT, more, left_out_text(len(panels) - len(drawn)))

    title = f"{report.header.suite_name}: each case over releases of IREE"
    lines = [verdict(report), run_line(report, releases=False)]
    return Drawing(kind="Releases", title=title, lines=lines, paint=paint)


def release_panels(report: Report) -> list[ReleasePanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out."""
    return [
        _panel(section)
        for section in report.sections
        if any(row.status == "measured" and row.peer is None for row in section.rows)
    ]


def _panel(section: Section) -> ReleasePanel:
    lines = {line.variant: line.points for line in lines_of(section, section.toolchains)}
    # What is skipped everywhere has nothing to show.
    shown = [
        name for name, points in lines.items() if any(point.state in ("measured", "fails", "wrong") for point in points)
    ]
    drawn = {name: lines[name] for name in shown[: len(_MARKERS)]}
    return ReleasePanel(section=section, lines=drawn, rest=len(shown) - len(drawn))


def _draw_panel(canvas: Canvas, panel: ReleasePanel, floor: float) -> None:
    theme, section = canvas.theme, panel.section
    column = _LENGTH / len(section.toolchains)
    points = [point for line in panel.lines.values() for point in line if point.ratio is not None]
    axis = ratio_axis([(point.ratio or 0.0, point.low, point.high) for point in points], floor, most_ticks=5)
    looks = {
        variant: look_of(marker, 5.5, color, theme.ground, 0.8, zorder=5)
        for variant, marker, color in zip(panel.lines, _MARKERS, theme.series, strict=False)
    }
    canvas.heading(f"{section.model} @ {section.device}, {section.against or f'beside {section.baseline}'}")
    canvas.legend((variant, [look]) for variant, look in looks.items())
    strips = [variant for variant, line in panel.lines.items() if any(point.state in MARKS for point in line)]
    axes = canvas.axes(_LEFT, canvas.down(_PLOT), _LENGTH, _PLOT)
    axes.set(xlim=(-0.5, len(section.toolchains) - 0.5), ylim=(math.log(axis.low), math.log(axis.high)))
    axes.set_yticks([math.log(ratio) for ratio, _ in axis.ticks], [text for _, text in axis.ticks])
    axes.grid(axis="y")
    axes.axhline(0.0, color=theme.axis, linewidth=1.0)
    # Below the strips the releases, as many as fit, the last one among them.
    stride = max(1, -int(-(widest(section.toolchains) + 8) // column))
    named = range(len(section.toolchains) - 1, -1, -stride)
    axes.set_xticks(named, [cut(section.toolchains[place], max(column * stride - 6, 20.0)) for place in named])
    axes.tick_params(axis="x", pad=5 + len(strips) * _STRIP * POINTS_PER_PIXEL)
    for number, (variant, line) in enumerate(panel.lines.items()):
        # Points of several variants at one ratio would hide each other.
        aside = _APART * (number - (len(panel.lines) - 1) / 2) / column
        _draw_line(axes, axis, line, aside, looks[variant])
    for variant in strips:
        middle = canvas.down(_STRIP) + _STRIP / 2
        canvas.note(_LEFT - 8, middle, cut(variant, _LEFT - 8 - MARGIN), align="right")
        for release, point in enumerate(panel.lines[variant]):
            canvas.text(
                _LEFT + column * (release + 0.5), middle, MARKS.get(point.state, ""), size=SMALL, align="center"
            )
    canvas.down(24 + 18)


def _draw_line(axes: Axes, axis: RatioAxis, points: Sequence[ReleasePoint], aside: float, look: Look) -> None:
    """A variant's points with their intervals, joined where there is none without a figure between them."""
    color = look["markerfacecolor"]
    xs, ys = [place + aside for place in range(len(points))], [_height_of(point.ratio, axis) for point in points]
    for x, point in zip(xs, points, strict=True):
        if point.low is not None and point.high is not None:
            axes.vlines(x, _height_of(point.low, axis), _height_of(point.high, axis), color, linewidth=1.4)
    axes.plot(xs, ys, color=color, linewidth=1.0, alpha=0.6)
    axes.plot(xs, ys, clip_on=False, **look)


def _height_of(ratio: float | None, axis: RatioAxis) -> float:
    """Of a ratio on the axis; what is beyond lies on its edge."""
    return math.nan if ratio is None else math.log(min(max(ratio, axis.low), axis.high))
