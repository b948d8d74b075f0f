"""Bars of what each variant of a model takes, a panel for each model on each device."""

from collections import Counter
from dataclasses import dataclass

from harness.plots.canvas import BODY, MARGIN, ROOM, SMALL, WIDTH, Canvas, Drawing, cut, left_out_text, widest, width_px
from harness.report.forest import ROW_TONES, Tone
from harness.report.run_report import Report, outcome_text, run_line, verdict, verdict_of
from harness.report.run_rows import Row, Section
from harness.report.units import unit_of
from harness.stats.intervals import Latency

_USUAL_PANELS = 12
_MOST_BARS = 24  # of one panel; the slowest of more are counted
_ROW = 22.0
_BAR = 12.0
_GAP = 12.0
_LEAST_BARS = 260.0
_LONGEST_NOTE = 220.0
_FOOT = (
    "Bars: the median over generations; the line on each reaches from the fastest generation to the slowest. Ratios: "
    "time divided by the baseline's, with the 95 % interval. Dashed: the baseline. Hatched: other engines. Pale: the "
    "module is another variant's."
)
_WORDS: dict[Tone, str] = {
    "better": "faster than the baseline",
    "worse": "slower",
    "same": "the same",
    "open": "unclear",
}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One variant."""

    row: Row
    label: str
    value: str  # Its latency with its unit
    latency: Latency

    @property
    def tone(self) -> Tone | None:
        """What its ratio to the baseline says; None: it is the baseline, or there is nothing to compare with."""
        found = verdict_of(self.row)
        return ROW_TONES[found] if found is not None and self.row.estimate is not None else None


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """One model on one device."""

    title: str
    bars: tuple[Bar, ...]  # The fastest first
    rest: str  # What has no bar, in words; "" where everything has


def draw_variants(report: Report, top: int | None = None) -> Drawing:
    """The panels below each other, each with an axis of its own from zero."""
    panels = bar_panels(report)
    drawn = panels[: top or _USUAL_PANELS]
    bars = [bar for panel in drawn for bar in panel.bars]

    def paint(canvas: Canvas) -> None:
        tones = {bar.tone for bar in bars}
        canvas.tones((tone, word) for tone, word in _WORDS.items() if tone in tones)
        # The notes' width, where bars begin, and how long the longest is.
        note = min(widest(outcome_text(bar.row) for bar in bars), _LONGEST_NOTE)
        room = ROOM - widest(bar.value for bar in bars) - note - 3 * _GAP
        label = min(max(width_px(bar.label, BODY, bold=bar.row.baseline) for bar in bars), room - _LEAST_BARS)
        for panel in drawn:
            _draw_panel(canvas, panel, MARGIN + label + _GAP, room - label, note)
        canvas.foot(_FOOT, left_out_text(len(panels) - len(drawn)))

    lines = [verdict(report), run_line(report)]
    title = f"{report.header.suite_name}: latency of each variant"
    return Drawing(kind="Latencies", title=title, lines=lines, paint=paint)


def bar_panels(report: Report) -> list[BarPanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out."""
    return [_panel(section) for section in report.sections if any(row.status == "measured" for row in section.rows)]


def _panel(section: Section) -> BarPanel:
    timed = sorted(
        ((row.latency, row) for row in section.rows if row.latency is not None), key=lambda pair: pair[0].median_ns
    )
    # The fastest, and the baseline wherever it stands.
    drawn = [pair for place, pair in enumerate(timed) if place < _MOST_BARS or pair[1].baseline]
    unit = unit_of("ns", [latency.median_ns for latency, _ in drawn])
    states = Counter(row.status for row in section.rows if row.latency is None)
    parts = [f"{len(timed) - len(drawn)} slower"] if len(drawn) < len(timed) else []
    parts += [f"{number} {state}" for state, number in states.items()]
    bars = (
        Bar(row=row, label=section.label(row), value=f"{unit.text(latency.median_ns)} {unit.name}", latency=latency)
        for latency, row in drawn
    )
    return BarPanel(title=section.place, bars=tuple(bars), rest=f"without a bar: {', '.join(parts)}" if parts else "")


def _draw_panel(canvas: Canvas, panel: BarPanel, start: float, length: float, note: float) -> None:
    theme = canvas.theme
    canvas.heading(panel.title)
    per_ns = length / max(bar.latency.high_ns for bar in panel.bars)
    ends = [canvas.y, canvas.y + _ROW * len(panel.bars)]
    for bar in panel.bars:
        row, middle, is_bold = bar.row, canvas.down(_ROW) + _ROW / 2, bar.row.baseline
        if row.baseline and row.status == "measured":
            edge = start + bar.latency.median_ns * per_ns
            canvas.points([edge, edge], ends, color=theme.muted, linewidth=1.0, linestyle=(0.0, (3.0, 3.0)))
        label = cut(bar.label, start - _GAP - MARGIN, BODY, bold=is_bold)
        canvas.text(start - _GAP, middle, label, align="right", bold=is_bold)
        end = _draw_bar(canvas, bar, start, middle, per_ns) + 8
        canvas.box(end - 2, middle - SMALL * 0.7, width_px(bar.value) + 4, SMALL * 1.4, color=theme.ground, zorder=2.5)
        canvas.text(end, middle, bar.value, size=SMALL)
        color = theme.tones[bar.tone] if bar.tone in ("better", "worse") else theme.muted
        canvas.note(WIDTH - MARGIN, middle, cut(outcome_text(row), note + 1), align="right", color=color)
    canvas.points([start, start], ends, color=theme.axis, linewidth=1.0)
    if panel.rest:
        canvas.note(start, canvas.down(18) + 10, cut(panel.rest, WIDTH - MARGIN - start))
    canvas.down(16)


def _draw_bar(canvas: Canvas, bar: Bar, start: float, middle: float, per_ns: float) -> float:
    """A bar with its line from the fastest generation to the slowest; where that ends."""
    theme, latency = canvas.theme, bar.latency
    look = {
        "facecolor": theme.axis if bar.tone is None else theme.tones[bar.tone],
        "edgecolor": theme.ground,
        "alpha": 0.35 if bar.row.status == "same" else 1.0,
        "hatch": "////" if bar.row.peer else None,
        "zorder": 1.0,
    }
    canvas.box(start, middle - _BAR / 2, max(latency.median_ns * per_ns, 1.0), _BAR, **look)
    low, high = start + latency.low_ns * per_ns, start + latency.high_ns * per_ns
    if bar.row.status == "measured" and high - low > 1:
        canvas.points([low, high], [middle, middle], color=theme.ink, linewidth=1.2)
    return high
