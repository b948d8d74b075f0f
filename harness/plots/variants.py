"""Bars of what each variant of a model takes, a panel for each model on each device."""

from __future__ import annotations

from collections.abc import Sequence

from harness.plots.canvas import Canvas, foot_height, head_height
from harness.plots.look import BODY, MARGIN, SMALL, WIDTH, Format, Theme, drawing
from harness.plots.text import cut, drawable, width_px
from harness.plots.variant_bars import USUAL_PANELS, Bar, BarPanel
from harness.report.forest import Tone

_ROW = 22.0
_BAR = 12.0
_PANEL_HEAD = 30.0
_BETWEEN = 16.0
_GAP = 12.0
_LEAST_BARS = 260.0
_WORDS: tuple[tuple[Tone, str], ...] = (
    ("better", "faster than the baseline"),
    ("worse", "slower"),
    ("same", "the same"),
    ("open", "unclear"),
)


def draw_variants(
    panels: Sequence[BarPanel],
    title: str,
    lines: Sequence[str],
    theme: Theme,
    picture: Format,
    *,
    top: int = USUAL_PANELS,
) -> bytes:
    """Draw the first `top` panels below each other; each has an axis of its own, from zero.

    Args:
        lines: What stands below the title.

    Returns:
        A file of that format; equal values give equal bytes with the same release of matplotlib.
    """
    shown = panels[:top]
    with drawing(theme):
        foot = _foot(shown, len(panels) - len(shown))
        start = head_height(lines) + 34
        body = sum(_height(panel) + _BETWEEN for panel in shown)
        canvas = Canvas(theme, start + body + 8 + foot_height(foot) + 8)
        canvas.head(title, lines)
        used = {bar.tone for panel in shown for bar in panel.bars}
        canvas.legend([(tone, word) for tone, word in _WORDS if tone in used], MARGIN, start - 10)
        columns = _columns(shown)
        y = start
        for panel in shown:
            _draw_panel(canvas, panel, columns, y)
            y += _height(panel) + _BETWEEN
        canvas.foot(foot, y + 8)
        return canvas.file(picture, f"Latencies: {drawable(title)}", drawable(" ".join(lines[:1])))


def _foot(panels: Sequence[BarPanel], left: int) -> list[str]:
    bars = [bar for panel in panels for bar in panel.bars]
    text = "Bars: the median over generations; the line on each reaches from the fastest generation to the slowest."
    text += " Ratios: time divided by the baseline's, with the 95 % interval. Dashed: the baseline."
    if any(bar.peer for bar in bars):
        text += " Hatched: other engines."
    if any(bar.shared for bar in bars):
        text += " Pale: the module is another variant's."
    more = f"Not drawn: {left} more {'model' if left == 1 else 'models'} or devices." if left else ""
    return [part for part in (text, more) if part]


def _height(panel: BarPanel) -> float:
    return _PANEL_HEAD + _ROW * len(panel.bars) + (18.0 if panel.rest else 0.0)


def _columns(panels: Sequence[BarPanel]) -> tuple[float, float, float]:
    """Where bars begin, how long the longest is, and where the notes end."""
    bars = [bar for panel in panels for bar in panel.bars]
    values = max(width_px(_value(panel, bar), SMALL) for panel in panels for bar in panel.bars)
    note = min(max(width_px(bar.note, SMALL) for bar in bars), 220.0)
    room = WIDTH - 2 * MARGIN - values - note - 3 * _GAP
    label = min(max(width_px(drawable(bar.label), BODY, bold=bar.baseline) for bar in bars), room - _LEAST_BARS)
    return MARGIN + label + _GAP, room - label, note


def _value(panel: BarPanel, bar: Bar) -> str:
    return f"{panel.unit.text(bar.latency_ns)} {panel.unit.name}"


def _draw_panel(canvas: Canvas, panel: BarPanel, columns: tuple[float, float, float], y: float) -> None:
    theme = canvas.theme
    start, length, note = columns
    canvas.text(MARGIN, y + 15, cut(panel.title, WIDTH - 2 * MARGIN, BODY + 1, bold=True), size=BODY + 1, weight="bold")
    longest = max(bar.high_ns for bar in panel.bars)
    y += _PANEL_HEAD
    bottom = y + _ROW * len(panel.bars)
    for bar in panel.bars:
        if bar.baseline and not bar.shared:
            edge = start + bar.latency_ns * length / longest
            canvas.line([edge, edge], [y, bottom], theme.muted, 1.0, dashed=True)
    for bar in panel.bars:
        middle = y + _ROW / 2
        label = cut(bar.label, start - _GAP - MARGIN, BODY, bold=bar.baseline)
        canvas.text(start - _GAP, middle, label, align="right", weight="bold" if bar.baseline else "normal")
        _draw_bar(canvas, bar, start, middle, length / longest)
        end = start + bar.high_ns * length / longest + 8
        value = _value(panel, bar)
        canvas.box(end - 2, middle - SMALL * 0.7, width_px(value, SMALL) + 4, SMALL * 1.4, theme.ground, zorder=2.5)
        canvas.text(end, middle, value, size=SMALL)
        color = theme.tones[bar.tone] if bar.tone in ("better", "worse") else theme.muted
        canvas.text(WIDTH - MARGIN, middle, cut(bar.note, note + 1, SMALL), size=SMALL, color=color, align="right")
        y += _ROW
    canvas.line([start, start], [bottom - _ROW * len(panel.bars), bottom], theme.axis)
    if panel.rest:
        canvas.text(start, y + 10, cut(panel.rest, WIDTH - MARGIN - start, SMALL), size=SMALL, color=theme.muted)


def _draw_bar(canvas: Canvas, bar: Bar, start: float, middle: float, per_ns: float) -> None:
    from matplotlib.patches import Rectangle

    theme = canvas.theme
    color = theme.tones[bar.tone] if bar.tone is not None else theme.axis
    canvas.figure.add_artist(
        Rectangle(
            (start, middle - _BAR / 2),
            max(bar.latency_ns * per_ns, 1.0),
            _BAR,
            facecolor=color,
            edgecolor=theme.ground,
            linewidth=0.0,
            alpha=0.35 if bar.shared else 1.0,
            hatch="////" if bar.peer else None,
            transform=canvas.place,
        )
    )
    low, high = start + bar.low_ns * per_ns, start + bar.high_ns * per_ns
    if not bar.shared and high - low > 1:
        canvas.line([low, high], [middle, middle], theme.ink, 1.2)
