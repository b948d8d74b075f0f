"""Report -> what the variants plot shows: a panel for each model on each device, a bar for each variant and peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.report.forest import Tone
from harness.report.names import tidy
from harness.report.units import Unit, time_unit
from harness.report.values import Report, Row, Section
from harness.report.words import outcome_text
from harness.stats import Change

# Panels that one picture has at most.
USUAL_PANELS = 12
# Bars of one panel; the slowest of more are counted.
_MOST_BARS = 24
_TONES: dict[Change, Tone] = {"faster": "better", "slower": "worse", "same": "same", "unclear": "open"}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One variant or peer.

    Attributes:
        latency_ns: Median over generations.
        low_ns: Of the fastest generation.
        high_ns: Of the slowest one.
        tone: What its ratio to the baseline says; None: the baseline itself, or nothing to compare with.
        note: That ratio with its mark and interval, `baseline`, or whose module it has.
        shared: Whether its module is another's, so that it has no timings of its own.
    """

    label: str
    latency_ns: float
    low_ns: float
    high_ns: float
    tone: Tone | None
    note: str
    baseline: bool
    peer: bool
    shared: bool


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """One model on one device.

    Attributes:
        bars: The fastest first.
        rest: What has no bar, in words; "" where everything has.
    """

    title: str
    unit: Unit
    bars: tuple[Bar, ...]
    rest: str


def bar_panels(report: Report, *, keep: Callable[[str], bool] = lambda _: True) -> list[BarPanel]:
    """What to draw, in the report's order; models of which nothing was measured are left out.

    Args:
        keep: Of a case's name, whether the user wants to see it.
    """
    found = [_panel(section, [row for row in section.rows if keep(row.case)]) for section in report.sections]
    return [panel for panel in found if any(not bar.shared for bar in panel.bars)]


def _panel(section: Section, rows: list[Row]) -> BarPanel:
    bars = sorted((bar for row in rows if (bar := _bar(section, row)) is not None), key=lambda bar: bar.latency_ns)
    shown = _shown(bars)
    states = [row.status for row in rows if row.latency_ns is None]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    parts = [f"{number} {state}" for state, number in counts.items()]
    if len(shown) < len(bars):
        parts.insert(0, f"{len(bars) - len(shown)} slower")
    return BarPanel(
        title=f"{tidy(section.model)} @ {tidy(section.device)}",
        unit=time_unit([bar.latency_ns for bar in shown]),
        bars=tuple(shown),
        rest=f"without a bar: {', '.join(parts)}" if parts else "",
    )


def _shown(bars: list[Bar]) -> list[Bar]:
    """The fastest, and the baseline wherever it stands."""
    first = bars[:_MOST_BARS]
    return first if any(bar.baseline for bar in first) else [*first, *(bar for bar in bars if bar.baseline)]


def _bar(section: Section, row: Row) -> Bar | None:
    if row.latency_ns is None or row.status not in ("measured", "same"):
        return None
    shared = row.status == "same"
    compared = row.kind is not None and row.estimate is not None and not shared
    return Bar(
        label=tidy(section.label(row)),
        latency_ns=row.latency_ns,
        low_ns=row.latency_low_ns if row.latency_low_ns is not None else row.latency_ns,
        high_ns=row.latency_high_ns if row.latency_high_ns is not None else row.latency_ns,
        tone=_TONES[row.kind] if compared and row.kind is not None else None,
        note=tidy(outcome_text(row)),
        baseline=row.baseline,
        peer=row.peer is not None,
        shared=shared,
    )
