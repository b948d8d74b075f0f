"""Bars of what each variant of a model takes, a panel for each model on each device."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.plots.canvas import BODY, MARGIN, SMALL, WIDTH, Canvas, Format, Theme, blank, cut, left_out_text, width_px
from harness.report.forest import Tone
from harness.report.run_report import Report
from harness.report.run_rows import Row, Section
from harness.report.run_words import outcome_text, run_line, verdict
from harness.report.units import Unit, unit_of
from harness.report.verdicts import Change
from harness.stats import Latency

_USUAL_PANELS = 12
_MOST_BARS = 24  # of one panel; the slowest of more are counted
_ROW = 22.0
_BAR = 12.0
_GAP = 12.0
_LEAST_BARS = 260.0
_LONGEST_NOTE = 220.0
_TONES: dict[Change, Tone] = {"faster": "better", "slower": "worse", "same": "same", "unclear": "open"}
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
        row = self.row
        compared = row.status == "measured" and row.estimate is not None and row.kind is not None
        return _TONES[row.kind] if compared and row.kind is not None else None


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """One model on one device."""

    title: str
    bars: tuple[Bar, ...]  # The fastest first
    rest: str  # What has no bar, in words; "" where everything has


def draw_variants(report: Report, theme: Theme, picture: Format, top: int | None = None) -> bytes:
    """Draw the panels below each other, each with an axis of its own from zero; see harness.plots.pictures.draw."""
    panels = bar_panels(report)
    drawn = panels[: top or _USUAL_PANELS]
    bars = [bar for panel in drawn for bar in panel.bars]
    title = f"{report.facts.suite_name}: latency of each variant"
    with blank(theme, title, [verdict(report), run_line(report.facts, report.sections)]) as canvas:
        tones = {bar.tone for bar in bars}
        canvas.tones((tone, word) for tone, word in _WORDS.items() if tone in tones)
        columns = _columns(bars)
        for panel in drawn:
            _draw_panel(canvas, panel, columns)
        canvas.foot([_foot(bars), left_out_text(len(panels) - len(drawn))])
        return canvas.file(picture, "Latencies")


def bar_panels(report: Report) -> list[BarPanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out."""
    return [_panel(section) for section in report.sections if any(row.status == "measured" for row in section.rows)]


def _panel(section: Section) -> BarPanel:
    timed = [(row.latency.median_ns, row.latency, row) for row in section.rows if row.latency is not None]
    timed.sort(key=lambda latency: latency[0])
    # The fastest, and the baseline wherever it stands.
    drawn = [each for place, each in enumerate(timed) if place < _MOST_BARS or each[2].baseline]
    unit: Unit = unit_of("ns", [median for median, _, _ in drawn])
    states = Counter(row.status for row in section.rows if row.latency is None)
    parts = [f"{len(timed) - len(drawn)} slower"] if len(drawn) < len(timed) else []
    parts += [f"{number} {state}" for state, number in states.items()]
    return BarPanel(
        title=section.place,
        bars=tuple(
            Bar(row=row, label=section.label(row), value=f"{unit.text(median)} {unit.name}", latency=latency)
            for median, latency, row in drawn
        ),
        rest=f"without a bar: {', '.join(parts)}" if parts else "",
    )


def _foot(bars: Sequence[Bar]) -> str:
    text = "Bars: the median over generations; the line on each reaches from the fastest generation to the slowest."
    text += " Ratios: time divided by the baseline's, with the 95 % interval. Dashed: the baseline."
    if any(bar.row.peer for bar in bars):
        text += " Hatched: other engines."
    if any(bar.row.status == "same" for bar in bars):
        text += " Pale: the module is another variant's."
    return text


def _columns(bars: Sequence[Bar]) -> tuple[float, float, float]:
    """Where bars begin, how long the longest is, and how wide the notes are."""
    note = min(max(width_px(outcome_text(bar.row), SMALL) for bar in bars), _LONGEST_NOTE)
    room = WIDTH - 2 * MARGIN - max(width_px(bar.value, SMALL) for bar in bars) - note - 3 * _GAP
    labels = max(width_px(bar.label, BODY, bold=bar.row.baseline) for bar in bars)
    label = min(labels, room - _LEAST_BARS)
    return MARGIN + label + _GAP, room - label, note


def _draw_panel(canvas: Canvas, panel: BarPanel, columns: tuple[float, float, float]) -> None:
    theme = canvas.theme
    start, length, note = columns
    canvas.heading(panel.title)
    canvas.down(30)
    per_ns = length / max(bar.latency.high_ns for bar in panel.bars)
    top, bottom = canvas.y, canvas.y + _ROW * len(panel.bars)
    for bar in panel.bars:
        row, middle, is_bold = bar.row, canvas.down(_ROW) + _ROW / 2, bar.row.baseline
        if row.baseline and row.status == "measured":
            edge = start + bar.latency.median_ns * per_ns
            canvas.line([edge, edge], [top, bottom], theme.muted, 1.0, linestyle=(0.0, (3.0, 3.0)))
        label = cut(bar.label, start - _GAP - MARGIN, BODY, bold=is_bold)
        canvas.text(start - _GAP, middle, label, align="right", bold=is_bold)
        end = _draw_bar(canvas, bar, start, middle, per_ns) + 8
        size = width_px(bar.value, SMALL) + 4, SMALL * 1.4
        canvas.box(end - 2, middle - SMALL * 0.7, *size, color=theme.ground, zorder=2.5)
        canvas.text(end, middle, bar.value, size=SMALL)
        color = theme.tones[bar.tone] if bar.tone in ("better", "worse") else theme.muted
        canvas.note(WIDTH - MARGIN, middle, cut(outcome_text(row), note + 1, SMALL), align="right", color=color)
    canvas.line([start, start], [top, bottom], theme.axis)
    if panel.rest:
        canvas.note(start, canvas.down(18) + 10, cut(panel.rest, WIDTH - MARGIN - start, SMALL))
    canvas.down(16)


def _draw_bar(canvas: Canvas, bar: Bar, start: float, middle: float, per_ns: float) -> float:
    """A bar with its line from the fastest generation to the slowest; where that ends."""
    theme, latency = canvas.theme, bar.latency
    canvas.box(
        start,
        middle - _BAR / 2,
        max(latency.median_ns * per_ns, 1.0),
        _BAR,
        facecolor=theme.axis if bar.tone is None else theme.tones[bar.tone],
        edgecolor=theme.ground,
        alpha=0.35 if bar.row.status == "same" else 1.0,
        hatch="////" if bar.row.peer else None,
        zorder=1.0,
    )
    low, high = start + latency.low_ns * per_ns, start + latency.high_ns * per_ns
    if bar.row.status == "measured" and high - low > 1:
        canvas.line([low, high], [middle, middle], theme.ink, 1.2)
    return high
