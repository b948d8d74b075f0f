"""The race of a tuning: each candidate of the whole program at its ratio, and the best so far over the budget."""

from harness.errors import RunError
from harness.plots.canvas import MARGIN, POINTS_PER_PIXEL, SMALL, WIDTH, Canvas, Drawing, cut, look_of, width_px
from harness.records.tuning import Tuning
from harness.report.tune_page import beside_start
from harness.report.units import ratio_text

_HEIGHT = 330.0
_LEFT = MARGIN + 58.0
_LENGTH = WIDTH - MARGIN - 10.0 - _LEFT
_LEAST, _MOST = 0.95, 2.0  # ratios that the axis shows at least, and at most
_UNITS = ((180.0, "s", 1.0), (3 * 3600.0, "min", 60.0), (float("inf"), "h", 3600.0))
_MARK = 6.5 * POINTS_PER_PIXEL


def draw_race(found: Tuning) -> Drawing:
    """Ratios to the start of the search, over its budget."""
    if not found.moments:
        raise RunError("nothing was timed, so there is no race to draw")

    title = f"{found.model} on {found.device}, beside {found.start}"
    return Drawing(kind="Race", title=title, lines=[found.sentence], paint=lambda canvas: _draw(canvas, found))


def _draw(canvas: Canvas, found: Tuning) -> None:
    theme, beside = canvas.theme, beside_start(found)
    # What was confirmed, or else the last that was the best.
    confirmed = beside.head if beside is not None and found.variant else ""
    winner = max(found.moments, key=lambda moment: (moment.name == confirmed, moment.best, moment.seconds))
    end_s = max(found.budget_s, found.spent_s, *(moment.seconds for moment in found.moments))
    unit, size = next((name, size) for limit, name, size in _UNITS if end_s <= limit)
    xlabel = f"spent of the budget ({unit})"
    top = canvas.down(_HEIGHT + 46)
    axes = canvas.axes(_LEFT, top, _LENGTH, _HEIGHT, xlabel=xlabel, ylabel="ratio to the start")
    ratios = [moment.ratio for moment in found.moments]
    high = min(max(*ratios, 1 / _LEAST), _MOST)
    low = min(*ratios, _LEAST)
    room = 0.06 * (high - low)
    axes.set(xlim=(0, end_s / size), ylim=(low - room, high + room))
    canvas.round_ticks(axes.xaxis, 8)
    canvas.round_ticks(axes.yaxis, 8)
    axes.grid()
    axes.axhline(1.0, color=theme.axis, linewidth=1.0, zorder=2)
    # It begins at the start's 1 and ends with the search.
    best = [(0.0, 1.0), *((moment.seconds, moment.ratio) for moment in found.moments if moment.best)]
    best.append((max(found.spent_s, best[-1][0]), best[-1][1]))
    xs, ys = [seconds / size for seconds, _ in best], [ratio for _, ratio in best]
    axes.plot(xs, ys, drawstyle="steps-post", color=theme.tones["better"], linewidth=1.6, zorder=3)
    for moment in found.moments:
        face, edge = (theme.tones["better"],) * 2 if moment.best else (theme.ground, theme.tones["same"])
        look = look_of("^" if moment.ratio > high else "o", _MARK, face, edge, 1.0, zorder=5 if moment.best else 4)
        axes.plot([moment.seconds / size], [min(moment.ratio, high)], clip_on=False, **look)
    # The winner's name and ratio, above its dot on the side with more room.
    ((x, y),) = canvas.pixels(axes, [(winner.seconds / size, min(winner.ratio, high))])
    is_left = x < _LEFT + _LENGTH / 2
    ratio = f" {ratio_text(winner.ratio)}"
    room = max(x - _LEFT, _LEFT + _LENGTH - x) - 10 - width_px(ratio, bold=True)
    text, align = cut(winner.name, room, bold=True) + ratio, "left" if is_left else "right"
    look = {"align": align, "color": theme.tones["better"], "bold": True, "bbox": theme.behind_texts}
    canvas.text(x + (10 if is_left else -10), y - 14, text, size=SMALL, **look)
    canvas.foot(
        "Line: the best so far. Dots: each candidate of the whole program when it was last timed; filled: the best "
        "then; triangle: above the axis."
    )
