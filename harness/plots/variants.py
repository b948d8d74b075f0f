"""Bars of what each variant of a model takes, a panel for each model on each device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.plots.canvas import BODY, MARGIN, SMALL, WIDTH, Canvas, Format, Theme, cut, left_out_text, paint, width_px
from harness.report.forest import Tone
from harness.report.run_report import Report
from harness.report.run_row import Change, Row, Section
from harness.report.run_words import outcome_text, run_line, verdict
from harness.report.units import Unit, time_unit
from harness.stats import Latency

_USUAL_PANELS = 12
_MOST_BARS = 24  # of one panel; the slowest of more are counted
_ROW = 22.0
_BAR = 12.0
_PANEL_HEAD = 30.0
_BETWEEN = 16.0
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
class BarPanel:
    """One model on one device."""

    section: Section
    unit: Unit
    rows: tuple[Row, ...]  # A bar each, the fastest first
    rest: str  # What has no bar, in words; "" where everything has

    def value(self, row: Row) -> str:
        """A bar's latency with its unit."""
        return f"{self.unit.text(_latency_ns(row))} {self.unit.name}"


def draw_variants(report: Report, theme: Theme, picture: Format, top: int | None = None) -> bytes:
    """Draw the panels below each other, each with an axis of its own from zero; see harness.plots.pictures.draw."""
    panels = bar_panels(report)
    drawn = panels[: top or _USUAL_PANELS]
    columns = _columns(drawn)

    def draw(canvas: Canvas, y: float) -> None:
        tones = {_tone(row) for panel in drawn for row in panel.rows}
        canvas.legend([(tone, word) for tone, word in _WORDS.items() if tone in tones], MARGIN, y - 10)
        for panel in drawn:
            _draw_panel(canvas, panel, columns, y)
            y += _height(panel) + _BETWEEN

    return paint(
        theme,
        picture,
        draw,
        kind="Latencies",
        title=f"{report.facts.suite_name}: latency of each variant",
        lines=[verdict(report), run_line(report.facts, report.sections)],
        above=34,
        height=sum(_height(panel) + _BETWEEN for panel in drawn) + 8,
        foot=_foot(drawn, len(panels) - len(drawn)),
    )


def bar_panels(report: Report) -> list[BarPanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out."""
    return [_panel(section) for section in report.sections if any(row.status == "measured" for row in section.rows)]


def _panel(section: Section) -> BarPanel:
    bars = sorted((row for row in section.rows if row.latency_ns is not None), key=_latency_ns)
    # The fastest, and the baseline wherever it stands.
    drawn = [row for place, row in enumerate(bars) if place < _MOST_BARS or row.baseline]
    states = Counter(row.status for row in section.rows if row.latency_ns is None)
    parts = [f"{len(bars) - len(drawn)} slower"] if len(drawn) < len(bars) else []
    parts += [f"{number} {state}" for state, number in states.items()]
    return BarPanel(
        section=section,
        unit=time_unit([row.latency_ns for row in drawn]),
        rows=tuple(drawn),
        rest=f"without a bar: {', '.join(parts)}" if parts else "",
    )


def _latency(row: Row) -> Latency:
    assert row.latency is not None  # noqa: S101 (a row without one has no bar)
    return row.latency


def _latency_ns(row: Row) -> float:
    return _latency(row).median_ns


def _tone(row: Row) -> Tone | None:
    """What its ratio to the baseline says; None: it is the baseline, or there is nothing to compare with."""
    return _TONES[row.kind] if row.status == "measured" and row.estimate is not None and row.kind is not None else None


def _foot(panels: Sequence[BarPanel], left_out: int) -> list[str]:
    rows = [row for panel in panels for row in panel.rows]
    text = "Bars: the median over generations; the line on each reaches from the fastest generation to the slowest."
    text += " Ratios: time divided by the baseline's, with the 95 % interval. Dashed: the baseline."
    if any(row.peer for row in rows):
        text += " Hatched: other engines."
    if any(row.status == "same" for row in rows):
        text += " Pale: the module is another variant's."
    return [part for part in (text, left_out_text(left_out)) if part]


def _height(panel: BarPanel) -> float:
    return _PANEL_HEAD + _ROW * len(panel.rows) + (18.0 if panel.rest else 0.0)


def _columns(panels: Sequence[BarPanel]) -> tuple[float, float, float]:
    """Where bars begin, how long the longest is, and how wide the notes are."""
    bars = [(panel, row) for panel in panels for row in panel.rows]
    values = max(width_px(panel.value(row), SMALL) for panel, row in bars)
    note = min(max(width_px(outcome_text(row), SMALL) for _, row in bars), _LONGEST_NOTE)
    room = WIDTH - 2 * MARGIN - values - note - 3 * _GAP
    labels = max(width_px(panel.section.label(row), BODY, bold=row.baseline) for panel, row in bars)
    label = min(labels, room - _LEAST_BARS)
    return MARGIN + label + _GAP, room - label, note


def _draw_panel(canvas: Canvas, panel: BarPanel, columns: tuple[float, float, float], y: float) -> None:
    theme = canvas.theme
    start, length, note = columns
    title = cut(panel.section.place, WIDTH - 2 * MARGIN, BODY + 1, bold=True)
    canvas.text(MARGIN, y + 15, title, size=BODY + 1, bold=True)
    per_ns = length / max(_latency(row).high_ns for row in panel.rows)
    y += _PANEL_HEAD
    top, bottom = y, y + _ROW * len(panel.rows)
    for row in panel.rows:
        if row.baseline and row.status == "measured":
            edge = start + _latency_ns(row) * per_ns
            canvas.line([edge, edge], [top, bottom], theme.muted, 1.0, linestyle=(0.0, (3.0, 3.0)))
    for row in panel.rows:
        middle = y + _ROW / 2
        label = cut(panel.section.label(row), start - _GAP - MARGIN, BODY, bold=row.baseline)
        canvas.text(start - _GAP, middle, label, align="right", bold=row.baseline)
        end = _draw_bar(canvas, row, start, middle, per_ns) + 8
        value = panel.value(row)
        size = width_px(value, SMALL) + 4, SMALL * 1.4
        canvas.box(end - 2, middle - SMALL * 0.7, *size, color=theme.ground, zorder=2.5)
        canvas.text(end, middle, value, size=SMALL)
        tone = _tone(row)
        color = theme.tones[tone] if tone in ("better", "worse") else theme.muted
        canvas.text(
            WIDTH - MARGIN, middle, cut(outcome_text(row), note + 1, SMALL), size=SMALL, color=color, align="right"
        )
        y += _ROW
    canvas.line([start, start], [top, bottom], theme.axis)
    if panel.rest:
        canvas.text(start, y + 10, cut(panel.rest, WIDTH - MARGIN - start, SMALL), size=SMALL, color=theme.muted)


def _draw_bar(canvas: Canvas, row: Row, start: float, middle: float, per_ns: float) -> float:
    """A bar with its line from the fastest generation to the slowest; where that ends."""
    theme, tone, latency_ns = canvas.theme, _tone(row), _latency_ns(row)
    canvas.box(
        start,
        middle - _BAR / 2,
        max(latency_ns * per_ns, 1.0),
        _BAR,
        facecolor=theme.axis if tone is None else theme.tones[tone],
        edgecolor=theme.ground,
        alpha=0.35 if row.status == "same" else 1.0,
        hatch="////" if row.peer else None,
        zorder=1.0,
    )
    low, high = (start + end_ns * per_ns for end_ns in (_latency(row).low_ns, _latency(row).high_ns))
    if row.status == "measured" and high - low > 1:
        canvas.line([low, high], [middle, middle], theme.ink, 1.2)
    return high
