"""Every case of a run over its releases of IREE, a panel for each model on each device.

Points are ratios to what the run's other cases are compared with, measured in the same rounds; a step between two
releases is what `harness bisect` looks for. Releases on which a case fails or is wrong have a mark below the axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.plots.canvas import (
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    Look,
    Theme,
    cut,
    left_out_text,
    look_of,
    widest,
)
from harness.report.ratio_axis import RatioAxis, ratio_axis
from harness.report.run_report import Report
from harness.report.run_rows import Row, Section
from harness.report.run_words import run_line, verdict
from harness.report.units import unit_of
from harness.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_USUAL_PANELS = 6
_MOST_LINES = 8  # as many as there are colours
_PLOT = 170.0
_STRIP = 16.0
_LEFT = 130.0
_TICKS = 5
_APART = 5.0
_ASIDE = 15.0 * POINTS_PER_PIXEL
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_FAILED, _WRONG, _SKIPPED = "✗", "≠", "∅"
_WORDS = {_FAILED: "fails", _WRONG: "wrong outputs", _SKIPPED: "skipped"}
# In words below the picture: so many reasons, and of each so many places.
_MOST_REASONS, _MOST_PLACES = 4, 3
_FOOT = "Ratios: time divided by that of the baseline, in the same rounds, with the 95 % interval; above 1 is slower."


@dataclass(frozen=True, kw_only=True)
class ReleasePoint:
    """A variant under one release."""

    ratio: float | None = None  # To what the section's cases are compared with; None: it was not measured
    low: float | None = None  # Lower end of its interval; None: it has none
    high: float | None = None
    latency_ns: float | None = None  # Median time of one call
    mark: str = ""  # Why it was not measured: it fails, is wrong, or is skipped; "" of what is left out
    why: str = ""  # The same in words


@dataclass(frozen=True, kw_only=True)
class ReleaseLine:
    """One variant, with a point for each release of its panel."""

    variant: str
    points: tuple[ReleasePoint, ...]


@dataclass(frozen=True, kw_only=True)
class ReleasePanel:
    """One model on one device."""

    section: Section
    releases: tuple[str, ...]
    lines: tuple[ReleaseLine, ...]
    axis: RatioAxis
    rest: int  # How many variants have no line, for lack of room


def draw_releases(report: Report, top: int | None = None) -> Drawing:
    """The panels below each other, with one axis of ratios each."""
    panels = release_panels(report)
    drawn = panels[: top or _USUAL_PANELS]

    def paint(canvas: Canvas) -> None:
        for panel in drawn:
            _draw_panel(canvas, panel)
        canvas.foot(*_foot(drawn), left_out_text(len(panels) - len(drawn)))

    title = f"{report.header.suite_name}: each case over releases of IREE"
    lines = [verdict(report), run_line(report, releases=False)]
    return Drawing(kind="Releases", title=title, lines=lines, paint=paint)


def release_panels(report: Report) -> list[ReleasePanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out."""
    return [
        _panel(section, report.floor)
        for section in report.sections
        if any(row.status == "measured" and row.peer is None for row in section.rows)
    ]


def _panel(section: Section, floor: float) -> ReleasePanel:
    releases = section.toolchains
    by_place = {(row.variant, row.toolchain): row for row in section.rows if row.peer is None}
    variants = dict.fromkeys(variant for variant, _ in by_place)
    lines = [
        ReleaseLine(variant=variant, points=tuple(_point(by_place.get((variant, release))) for release in releases))
        for variant in variants
    ]
    # What is skipped everywhere has nothing to show.
    lines = [
        line
        for line in lines
        if any(point.ratio is not None or point.mark in (_FAILED, _WRONG) for point in line.points)
    ]
    drawn = lines[:_MOST_LINES]
    extents = [
        (point.ratio, point.low, point.high) for line in drawn for point in line.points if point.ratio is not None
    ]
    axis = ratio_axis(extents, floor, most_ticks=_TICKS)
    return ReleasePanel(section=section, releases=releases, lines=tuple(drawn), axis=axis, rest=len(lines) - len(drawn))


def _point(row: Row | None) -> ReleasePoint:
    if row is None:
        return ReleasePoint()
    if row.latency is not None and (row.baseline or (row.status == "same" and row.estimate is None)):
        return ReleasePoint(ratio=1.0, latency_ns=row.latency_ns)
    if row.latency is not None and (estimate := row.estimate) is not None and estimate.ratio > 0:
        return ReleasePoint(ratio=estimate.ratio, low=estimate.low, high=estimate.high, latency_ns=row.latency_ns)
    if row.failure is not None:
        mark = _WRONG if row.failure.mismatch else _FAILED
    else:
        mark = _SKIPPED if row.status == "skipped" else ""
    return ReleasePoint(mark=mark, why=next(iter(row.remarks), "") if mark else "")


def _foot(panels: Sequence[ReleasePanel]) -> list[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for panel in panels:
        for line in panel.lines:
            for release, point in zip(panel.releases, line.points, strict=True):
                if point.mark:
                    reasons.setdefault((point.mark, point.why), []).append(f"{line.variant} {release}")
    words = [f"{mark}: {word}." for mark, word in _WORDS.items() if any(mark == found for found, _ in reasons)]
    told = [f"{mark} {_places(places)}: {why}" for (mark, why), places in reasons.items() if why]
    left = f"... and {plural(len(told) - _MOST_REASONS, 'more reason')}." if len(told) > _MOST_REASONS else ""
    rest = sum(panel.rest for panel in panels)
    more = f"Not drawn: {plural(rest, 'more variant')}." if rest else ""
    return [" ".join([_FOOT, *words]), *told[:_MOST_REASONS], left, more]


def _places(places: Sequence[str]) -> str:
    left = len(places) - _MOST_PLACES
    return ", ".join(places[:_MOST_PLACES]) + (f" and {left} more" if left > 0 else "")


# --- drawing ---


def _draw_panel(canvas: Canvas, panel: ReleasePanel) -> None:
    theme, section = canvas.theme, panel.section
    beside = section.against or f"beside {section.baseline}"
    middle = canvas.heading(f"{section.model} @ {section.device}, {beside}")
    canvas.down(30)
    canvas.legend((line.variant, [_look(theme, number)]) for number, line in enumerate(panel.lines))
    strips = [line for line in panel.lines if any(point.mark for point in line.points)]
    axes = canvas.axes(_LEFT, canvas.down(_PLOT), WIDTH - MARGIN - _LEFT, _PLOT)
    _scale(axes, panel, theme, strips=len(strips))
    for number, line in enumerate(panel.lines):
        _draw_line(axes, panel, number, line, theme)
    if unit := _draw_times(axes, panel, theme):
        canvas.note(WIDTH - MARGIN, middle, f"above the points: {unit}", align="right")
    for line in strips:
        middle = canvas.down(_STRIP) + _STRIP / 2
        canvas.note(_LEFT - 8, middle, cut(line.variant, _LEFT - 8 - MARGIN), align="right")
        for release, point in enumerate(line.points):
            x = _LEFT + _width_of_column(panel) * (release + 0.5)
            canvas.text(x, middle, point.mark, size=SMALL, align="center")
    canvas.down(24 + 18)


def _scale(axes: Axes, panel: ReleasePanel, theme: Theme, *, strips: int) -> None:
    """Ratios upwards, slower above faster; below the strips the releases, as many as fit, the last one among them."""
    axis, width = panel.axis, _width_of_column(panel)
    axes.set(xlim=(-0.5, len(panel.releases) - 0.5), ylim=(math.log(axis.low), math.log(axis.high)))
    axes.set_yticks([math.log(ratio) for ratio, _ in axis.ticks], [text for _, text in axis.ticks])
    axes.grid(axis="y")
    axes.axhline(0.0, color=theme.axis, linewidth=1.0)
    stride = max(1, -int(-(widest(panel.releases) + 8) // width))
    named = range(len(panel.releases) - 1, -1, -stride)
    names = [cut(panel.releases[place], max(width * stride - 6, 20.0)) for place in named]
    axes.set_xticks(named, names)
    axes.tick_params(axis="x", pad=5 + strips * _STRIP * POINTS_PER_PIXEL)


def _draw_line(axes: Axes, panel: ReleasePanel, number: int, line: ReleaseLine, theme: Theme) -> None:
    """A variant's points with their intervals, joined where there is none without a figure between them."""
    color = theme.series[number]
    # Points of several variants at one ratio would hide each other.
    aside = _APART * (number - (len(panel.lines) - 1) / 2) / _width_of_column(panel)
    xs = [release + aside for release in range(len(line.points))]
    ys = [_height_of(point.ratio, panel.axis) for point in line.points]
    for x, point in zip(xs, line.points, strict=True):
        if point.low is not None and point.high is not None:
            axes.vlines(x, _height_of(point.low, panel.axis), _height_of(point.high, panel.axis), color, linewidth=1.4)
    axes.plot(xs, ys, color=color, linewidth=1.0, alpha=0.6)
    axes.plot(xs, ys, clip_on=False, **_look(theme, number))


def _height_of(ratio: float | None, axis: RatioAxis) -> float:
    """Of a ratio on the axis; what is beyond lies on its edge."""
    return math.nan if ratio is None else math.log(min(max(ratio, axis.low), axis.high))


def _draw_times(axes: Axes, panel: ReleasePanel, theme: Theme) -> str:
    """What a call takes above each point of a line that is alone and has room for it; in which unit."""
    (line, *others) = panel.lines
    known = {place: point for place, point in enumerate(line.points) if point.ratio}
    unit = unit_of("ns", [point.latency_ns for point in known.values()])
    texts = {place: unit.text(point.latency_ns) for place, point in known.items()}
    if others or widest(texts.values()) >= _width_of_column(panel):
        return ""
    look: dict[str, Any] = {"ha": "center", "va": "center", "size": SMALL * POINTS_PER_PIXEL}
    for place, text in texts.items():
        at = (place, _height_of(line.points[place].ratio, panel.axis))
        axes.annotate(text, at, xytext=(0, _ASIDE), textcoords="offset points", bbox=theme.behind_texts, **look)
    return unit.name


def _width_of_column(panel: ReleasePanel) -> float:
    return (WIDTH - MARGIN - _LEFT) / len(panel.releases)


def _look(theme: Theme, number: int) -> Look:
    """How the points of a variant look."""
    return look_of(_MARKERS[number], 5.5, theme.series[number], theme.ground, 0.8, zorder=5)
