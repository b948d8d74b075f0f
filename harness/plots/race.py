"""The race of a tuning: each candidate of the whole program at its ratio, and the best so far over the budget."""

from collections.abc import Sequence

from harness.errors import RunError
from harness.plots.canvas import (
    MARGIN,
    POINTS_PER_PIXEL,
    SMALL,
    WIDTH,
    Canvas,
    Drawing,
    cut,
    left_out_text,
    look_of,
    width_px,
)
from harness.records.tuning import TimedCandidate, Tuning
from harness.report.ratio_axis import RatioAxis, ratio_axis
from harness.report.tune_page import beside_start
from harness.report.units import ratio_text
from harness.text import plural

_USUAL_PANELS = 12
_ALONE, _BESIDE = 330.0, 190.0  # heights of a plot
_LEFT = MARGIN + 58.0
_LENGTH = WIDTH - MARGIN - 10.0 - _LEFT
_FLOOR = 0.05  # the axis shows this much on either side of 1
_UNITS = ((180.0, "s", 1.0), (3 * 3600.0, "min", 60.0), (float("inf"), "h", 3600.0))
_MARK = 6.5 * POINTS_PER_PIXEL
_FOOT = (
    "Line: the best so far. Dots: each candidate of the whole program when it was last timed; filled: the best then; "
    "triangle: above the axis."
)


def draw_race(tunings: Sequence[Tuning], top: int | None = None) -> Drawing:
    """The race of each model below the others."""
    raced = [found for found in tunings if found.moments]
    if not raced:
        raise RunError("nothing was timed, so there is no race to draw")
    drawn = raced[: top or _USUAL_PANELS]
    title, line = _title(drawn[0]), drawn[0].sentence
    if len(drawn) > 1:
        title = f"{plural(len(drawn), 'race')} of {drawn[0].suite}"
        line = "Ratios beside the start of each search, over its budget."

    def paint(canvas: Canvas) -> None:
        for found in drawn:
            if len(drawn) > 1:
                canvas.heading(_title(found))
                canvas.down(26)
            _draw_panel(canvas, found, _ALONE if len(drawn) == 1 else _BESIDE)
        canvas.foot(_FOOT, left_out_text(len(raced) - len(drawn)))

    return Drawing(kind="Race", title=title, lines=[line], paint=paint)


def _title(found: Tuning) -> str:
    return f"{found.model} on {found.device}, beside {found.start}"


def _winner(found: Tuning) -> TimedCandidate | None:
    """What was confirmed, or else the last that was the best."""
    beside = beside_start(found)
    confirmed = beside.head if beside is not None and found.variant else ""
    latest = [*reversed(found.moments)]
    named, best = ([each for each in latest if each.name == confirmed], [each for each in latest if each.best])
    return next(iter(named or best), None)


def race_axis(found: Tuning) -> RatioAxis:
    """One on which the winner lies, whatever becomes of those that are far slower."""
    axis = ratio_axis(((moment.ratio, None, None) for moment in found.moments), _FLOOR)
    winner = _winner(found)
    return axis if winner is None or winner.ratio >= axis.low else ratio_axis([(winner.ratio, None, None)], _FLOOR)


def _draw_panel(canvas: Canvas, found: Tuning, height: float) -> None:
    theme, axis = canvas.theme, race_axis(found)
    end_s = max(found.budget_s, found.spent_s, *(moment.seconds for moment in found.moments))
    unit, size = next((name, size) for limit, name, size in _UNITS if end_s <= limit)
    top = canvas.down(height + 46)
    xlabel = f"spent of the budget ({unit})"
    axes = canvas.axes(_LEFT, top, _LENGTH, height, xlabel=xlabel, ylabel="ratio to the start")
    axes.set(yscale="log", xlim=(0, end_s / size), ylim=(axis.low, axis.high))
    axes.set_yticks([ratio for ratio, _ in axis.ticks], [text for _, text in axis.ticks])
    axes.set_yticks([], minor=True)
    canvas.round_ticks(axes.xaxis, 8)
    axes.grid()
    axes.axhline(1.0, color=theme.axis, linewidth=1.0, zorder=2)
    # It begins at the start's 1 and ends with the search.
    best = [(0.0, 1.0), *((moment.seconds, moment.ratio) for moment in found.moments if moment.best)]
    best.append((max(found.spent_s, best[-1][0]), best[-1][1]))
    xs, ys = [seconds / size for seconds, _ in best], [ratio for _, ratio in best]
    axes.plot(xs, ys, drawstyle="steps-post", color=theme.tones["better"], linewidth=1.6, zorder=3)
    places = []
    for moment in found.moments:
        face, edge = (theme.tones["better"],) * 2 if moment.best else (theme.ground, theme.tones["same"])
        look = look_of("^" if moment.ratio > axis.high else "o", _MARK, face, edge, 1.0, zorder=5 if moment.best else 4)
        ratio = min(moment.ratio, axis.high)
        axes.plot([moment.seconds / size], [ratio], clip_on=False, **look)
        places.append((_LEFT + _LENGTH * moment.seconds / end_s, top + height * (1 - axis.share(ratio))))
    if (winner := _winner(found)) is not None:
        _label(canvas, winner, places[found.moments.index(winner)], places, top + height)


def _label(
    canvas: Canvas,
    winner: TimedCandidate,
    place: tuple[float, float],
    dots: Sequence[tuple[float, float]],
    bottom: float,
) -> None:
    """The winner's name and ratio, on the side of its dot with more room, where they cover the fewest others."""
    x, y = place
    ratio = f" {ratio_text(winner.ratio)}"
    room = max(x - _LEFT, _LEFT + _LENGTH - x) - 12 - width_px(ratio, bold=True)
    text = cut(winner.name, room, bold=True) + ratio
    width = width_px(text, bold=True)
    left = x + 10 if x < _LEFT + _LENGTH / 2 else x - 10 - width

    def covered(middle: float) -> int:
        return sum(left - 5 < across < left + width + 5 and abs(down - middle) < 12 for across, down in dots)

    middle = min((y + down for down in (14, -14, 32, -32) if y + down + 8 < bottom), key=covered)
    canvas.text(left, middle, text, size=SMALL, color=canvas.theme.tones["better"], bold=True)
