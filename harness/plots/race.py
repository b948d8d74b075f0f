"""The race of a tuning: each candidate of the whole program at its ratio, and the best so far over the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.plots.canvas import (
    BODY,
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Format,
    Theme,
    cut,
    left_out_text,
    paint,
    width_px,
)
from harness.records.tuning import Moment, Tuning
from harness.report.ratio_axis import RatioAxis, ratio_axis
from harness.report.tune_page import beside_start
from harness.report.units import ratio_text
from harness.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_USUAL_PANELS = 12
_ALONE, _BESIDE = 330.0, 190.0  # heights of a plot
_HEAD, _BELOW, _LEFT = 26.0, 46.0, 58.0
_RIGHT = 10.0
_MARK_PX = 6.5
_FLOOR = 0.05  # the axis shows this much on either side of 1
_UNITS = ((180.0, "s", 1.0), (3 * 3600.0, "min", 60.0), (float("inf"), "h", 3600.0))


def draw_race(tunings: Sequence[Tuning], theme: Theme, picture: Format, top: int | None = None) -> bytes:
    """Draw the race of each model below the others; equal values give equal bytes with the same matplotlib."""
    raced = [found for found in tunings if found.moments]
    if not raced:
        raise RunError("nothing was timed, so there is no race to draw")
    drawn = raced[: top or _USUAL_PANELS]
    plot = _ALONE if len(drawn) == 1 else _BESIDE
    panel = _HEAD * (len(drawn) > 1) + plot + _BELOW

    def draw(canvas: Canvas, y: float) -> None:
        for found in drawn:
            if len(drawn) > 1:
                head = cut(_title(found), WIDTH - 2 * MARGIN, BODY, bold=True)
                canvas.text(MARGIN, y + _HEAD / 2, head, bold=True)
            _draw_panel(canvas, found, y + panel - _BELOW - plot, plot)
            y += panel

    first = drawn[0]
    lines = [first.sentence] if len(drawn) == 1 else ["Ratios beside the start of each search, over its budget."]
    foot = [
        "Line: the best so far. Dots: each candidate of the whole program when it was last timed; filled: "
        "the best then; triangle: above the axis.",
        left_out_text(len(raced) - len(drawn)),
    ]
    return paint(
        theme,
        picture,
        draw,
        kind="Race",
        title=_title(first) if len(drawn) == 1 else f"{plural(len(drawn), 'race')} of {first.suite}",
        lines=lines,
        above=16,
        height=panel * len(drawn) + 8,
        foot=[line for line in foot if line],
    )


def _title(found: Tuning) -> str:
    return f"{found.model} on {found.device}, beside {found.start}"


def best_so_far(found: Tuning) -> list[tuple[float, float]]:
    """Corners of the line: seconds and the ratio from then on; it begins at the start's 1 and ends with the search."""
    best = [(0.0, 1.0), *((moment.seconds, moment.ratio) for moment in found.moments if moment.best)]
    return [*best, (max(found.spent_s, best[-1][0]), best[-1][1])]


def race_winner(found: Tuning) -> Moment | None:
    """What was confirmed, or else the last that was the best."""
    beside = beside_start(found)
    confirmed = beside.head if beside is not None and found.variant else ""
    of_variant = (moment for moment in reversed(found.moments) if moment.name == confirmed)
    return next(of_variant, None) or next((moment for moment in reversed(found.moments) if moment.best), None)


def race_axis(found: Tuning) -> RatioAxis:
    """One on which the winner lies, whatever becomes of those that are far slower."""
    axis = ratio_axis(((moment.ratio, None, None) for moment in found.moments), _FLOOR)
    winner = race_winner(found)
    return axis if winner is None or winner.ratio >= axis.low else ratio_axis([(winner.ratio, None, None)], _FLOOR)


def race_clock(found: Tuning) -> tuple[float, str, float]:
    """How many seconds its axis has, the unit of its ticks, and the seconds of that."""
    end_s = max(found.budget_s, found.spent_s, *(moment.seconds for moment in found.moments))
    unit, size = next((name, size) for limit, name, size in _UNITS if end_s <= limit)
    return end_s, unit, size


def _draw_panel(canvas: Canvas, found: Tuning, top: float, height: float) -> None:
    theme = canvas.theme
    axes = canvas.axes(MARGIN + _LEFT, top, WIDTH - 2 * MARGIN - _LEFT - _RIGHT, height)
    end_s, unit, size = race_clock(found)
    axis = race_axis(found)
    _scale(axes, theme, axis, end_s / size)
    line = best_so_far(found)
    axes.plot(
        [seconds / size for seconds, _ in line],
        [ratio for _, ratio in line],
        drawstyle="steps-post",
        color=theme.tones["better"],
        linewidth=1.6,
        zorder=3,
    )
    for best in (False, True):
        for beyond in (False, True):
            moments = [m for m in found.moments if m.best is best and (m.ratio > axis.high) is beyond]
            axes.plot(
                [moment.seconds / size for moment in moments],
                [min(moment.ratio, axis.high) for moment in moments],
                linestyle="none",
                marker="^" if beyond else "o",
                markersize=_MARK_PX * POINTS_PER_PIXEL,
                markerfacecolor=theme.tones["better"] if best else theme.ground,
                markeredgecolor=theme.tones["better" if best else "same"],
                zorder=5 if best else 4,
                clip_on=False,
            )
    _label(canvas, found, axis, top, height, end_s)
    middle = MARGIN + _LEFT + (WIDTH - 2 * MARGIN - _LEFT - _RIGHT) / 2
    below = f"spent of the budget ({unit})"
    canvas.text(middle, top + height + 32, below, size=SMALL, color=theme.muted, align="center")
    canvas.upright(MARGIN + 6, top + height / 2, "ratio to the start")


def _scale(axes: Axes, theme: Theme, axis: RatioAxis, end: float) -> None:
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

    axes.set_yscale("log")
    axes.set(xlim=(0, end), ylim=(axis.low, axis.high))
    axes.yaxis.set_major_locator(FixedLocator([tick.ratio for tick in axis.ticks]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_yticklabels([tick.text for tick in axis.ticks])
    axes.xaxis.set_major_locator(MaxNLocator(8))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.grid(color=theme.grid, linewidth=0.8)
    axes.axhline(1.0, color=theme.axis, linewidth=1.0, zorder=2)


def _label(canvas: Canvas, found: Tuning, axis: RatioAxis, top: float, height: float, end_s: float) -> None:
    """The name and the ratio of the last that was the best, beside its dot where it covers the fewest others."""
    winner = race_winner(found)
    if winner is None:
        return
    left, length = MARGIN + _LEFT, WIDTH - 2 * MARGIN - _LEFT - _RIGHT

    def place(moment: Moment) -> tuple[float, float]:
        return left + length * moment.seconds / end_s, top + height * (1 - axis.share(min(moment.ratio, axis.high)))

    x, y = place(winner)
    dots = [place(moment) for moment in found.moments]
    ratio = f" {ratio_text(winner.ratio)}"
    room = max(x - left, left + length - x) - 12
    text = cut(winner.name, room - width_px(ratio, SMALL, bold=True), SMALL, bold=True) + ratio
    width = width_px(text, SMALL, bold=True)
    spots = [(x + across, y + down) for down in (14, -14, 32, -32) for across in (10, -10 - width)]
    fitting = [
        (at, middle) for at, middle in spots if left <= at <= left + length - width and middle + 8 < top + height
    ]
    at, middle = min(
        fitting or spots,
        key=lambda spot: sum(
            spot[0] - 5 < dot_x < spot[0] + width + 5 and abs(dot_y - spot[1]) < 12 for dot_x, dot_y in dots
        ),
    )
    canvas.text(at, middle, text, size=SMALL, color=canvas.theme.tones["better"], bold=True)
