"""Every case of a run over its releases of IREE, a panel for each model on each device.

Points are ratios to what the run's other cases are compared with, measured in the same rounds; a step between two
releases is what `harness bisect` looks for. Releases on which a case fails or is wrong have a mark below the axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
_PLOT = 170.0
_STRIP = 16.0
_LEFT = 130.0
_LENGTH = WIDTH - MARGIN - _LEFT
_TICKS = 5
_APART = 5.0
_ASIDE = 15.0 * POINTS_PER_PIXEL
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # as many lines as there are colours
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
class ReleasePanel:
    """One model on one device."""

    section: Section
    lines: Mapping[str, Sequence[ReleasePoint]]  # By variant, a point for each release of the section
    rest: int  # How many variants have no line, for lack of room

    @property
    def column(self) -> float:
        """The width of a release."""
        return _LENGTH / len(self.section.toolchains)


def draw_releases(report: Report, top: int | None = None) -> Drawing:
    """The panels below each other, with one axis of ratios each."""
    panels = release_panels(report)
    drawn = panels[: top or _USUAL_PANELS]

    def paint(canvas: Canvas) -> None:
        for panel in drawn:
            _draw_panel(canvas, panel, report.floor)
        canvas.foot(*_foot(drawn), left_out_text(len(panels) - len(drawn)))

    title = f"{report.header.suite_name}: each case over releases of IREE"
    lines = [verdict(report), run_line(report, releases=False)]
    return Drawing(kind="Releases", title=title, lines=lines, paint=paint)


def release_panels(report: Report) -> list[ReleasePanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out."""
    timed = (
        section
        for section in report.sections
        if any(row.status == "measured" and row.peer is None for row in section.rows)
    )
    return [_panel(section) for section in timed]


def _panel(section: Section) -> ReleasePanel:
    by_place = {(row.variant, row.toolchain): row for row in section.rows if row.peer is None}
    variants = dict.fromkeys(variant for variant, _ in by_place)
    lines = {name: [_point(by_place.get((name, release))) for release in section.toolchains] for name in variants}
    # What is skipped everywhere has nothing to show.
    shown = [
        name
        for name, points in lines.items()
        if any(point.ratio or point.mark in (_FAILED, _WRONG) for point in points)
    ]
    drawn = {name: lines[name] for name in shown[: len(_MARKERS)]}
    return ReleasePanel(section=section, lines=drawn, rest=len(shown) - len(drawn))


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
        for variant, points in panel.lines.items():
            for release, point in zip(panel.section.toolchains, points, strict=True):
                if point.mark:
                    reasons.setdefault((point.mark, point.why), []).append(f"{variant} {release}")
    words = [f"{mark}: {word}." for mark, word in _WORDS.items() if any(mark == found for found, _ in reasons)]
    told = [f"{mark} {_places(places)}: {why}" for (mark, why), places in reasons.items() if why]
    left = f"... and {plural(len(told) - _MOST_REASONS, 'more reason')}." if len(told) > _MOST_REASONS else ""
    rest = sum(panel.rest for panel in panels)
    more = f"Not drawn: {plural(rest, 'more variant')}." if rest else ""
    return [" ".join([_FOOT, *words]), *told[:_MOST_REASONS], left, more]


def _places(places: Sequence[str]) -> str:
    left = len(places) - _MOST_PLACES
    return ", ".join(places[:_MOST_PLACES]) + (f" and {left} more" if left > 0 else "")


def _draw_panel(canvas: Canvas, panel: ReleasePanel, floor: float) -> None:
    theme, section = canvas.theme, panel.section
    points = [point for line in panel.lines.values() for point in line if point.ratio is not None]
    axis = ratio_axis([(point.ratio or 0.0, point.low, point.high) for point in points], floor, most_ticks=_TICKS)
    looks = dict(zip(panel.lines, (_look(theme, number) for number in range(len(panel.lines))), strict=True))
    beside = section.against or f"beside {section.baseline}"
    middle = canvas.heading(f"{section.model} @ {section.device}, {beside}")
    canvas.down(30)
    canvas.legend((variant, [look]) for variant, look in looks.items())
    strips = [variant for variant, line in panel.lines.items() if any(point.mark for point in line)]
    axes = canvas.axes(_LEFT, canvas.down(_PLOT), _LENGTH, _PLOT)
    _scale(axes, panel, axis, theme, strips=len(strips))
    for number, (variant, line) in enumerate(panel.lines.items()):
        # Points of several variants at one ratio would hide each other.
        aside = _APART * (number - (len(panel.lines) - 1) / 2) / panel.column
        _draw_line(axes, axis, line, aside, looks[variant])
    if unit := _draw_times(axes, axis, panel, theme):
        canvas.note(WIDTH - MARGIN, middle, f"above the points: {unit}", align="right")
    for variant in strips:
        middle = canvas.down(_STRIP) + _STRIP / 2
        canvas.note(_LEFT - 8, middle, cut(variant, _LEFT - 8 - MARGIN), align="right")
        for release, point in enumerate(panel.lines[variant]):
            canvas.text(_LEFT + panel.column * (release + 0.5), middle, point.mark, size=SMALL, align="center")
    canvas.down(24 + 18)


def _scale(axes: Axes, panel: ReleasePanel, axis: RatioAxis, theme: Theme, *, strips: int) -> None:
    """Ratios upwards, slower above faster; below the strips the releases, as many as fit, the last one among them."""
    releases = panel.section.toolchains
    axes.set(xlim=(-0.5, len(releases) - 0.5), ylim=(math.log(axis.low), math.log(axis.high)))
    axes.set_yticks([math.log(ratio) for ratio, _ in axis.ticks], [text for _, text in axis.ticks])
    axes.grid(axis="y")
    axes.axhline(0.0, color=theme.axis, linewidth=1.0)
    stride = max(1, -int(-(widest(releases) + 8) // panel.column))
    named = range(len(releases) - 1, -1, -stride)
    axes.set_xticks(named, [cut(releases[place], max(panel.column * stride - 6, 20.0)) for place in named])
    axes.tick_params(axis="x", pad=5 + strips * _STRIP * POINTS_PER_PIXEL)


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


def _draw_times(axes: Axes, axis: RatioAxis, panel: ReleasePanel, theme: Theme) -> str:
    """What a call takes above each point of a line that is alone and has room for it; in which unit."""
    (line, *others) = panel.lines.values()
    unit = unit_of("ns", [point.latency_ns for point in line])
    texts = [unit.text(point.latency_ns) if point.ratio else "" for point in line]
    if others or widest(texts) >= panel.column:
        return ""
    size = SMALL * POINTS_PER_PIXEL
    look: dict[str, Any] = {"ha": "center", "va": "center", "size": size, "bbox": theme.behind_texts}
    for place, (point, text) in enumerate(zip(line, texts, strict=True)):
        if text:
            at = place, _height_of(point.ratio, axis)
            axes.annotate(text, at, (0, _ASIDE), textcoords="offset points", **look)
    return unit.name


def _look(theme: Theme, number: int) -> Look:
    """How the points of a variant look."""
    return look_of(_MARKERS[number], 5.5, theme.series[number], theme.ground, 0.8, zorder=5)
