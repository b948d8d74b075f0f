"""Report of a run -> forest: its variants and peers against the baseline of their model and device."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from harness.report.comparison.words import share
from harness.report.forest import (
    USUAL_ROWS,
    Forest,
    ForestBlock,
    ForestGroup,
    ForestRow,
    Tone,
    grouped,
    rest_text,
    without_most_lost,
)
from harness.report.names import tidy
from harness.report.units import Unit, time_unit
from harness.report.values import Report, Row, Section
from harness.report.words import interval_text, run_line, verdict
from harness.stats import CONFIDENCE, Change

_TONES: dict[Change, Tone] = {"faster": "better", "slower": "worse", "same": "same", "unclear": "open"}
_LOST = ("failed", "missing")

_Placed = tuple[Section, Row]


def forest_of_run(
    report: Report, *, keep: Callable[[str], bool] = lambda _: True, top: int | None = USUAL_ROWS
) -> Forest:
    """What to draw of a run; nothing where no variant was measured beside a baseline.

    Args:
        keep: Of a case's name, whether the user wants to see it.
        top: How many rows are drawn at most; the others are counted. None: all.
    """
    rows = [(section, row) for section in report.sections for row in section.rows if keep(row.case)]
    ranked = without_most_lost(
        sorted((placed for placed in rows if _rank(placed[1]) is not None), key=lambda placed: _order(placed[1])),
        lambda placed: placed[1].status in _LOST,
    )
    shown = ranked if top is None else ranked[:top]
    left = Counter(_word(row, report.floor) for _, row in rows if not row.baseline or row.status != "measured")
    left.subtract(_word(row, report.floor) for _, row in shown)
    facts = report.facts
    return Forest(
        title=f"{tidy(facts.suite_name)}: variants against {tidy(facts.baseline)}",
        verdict=verdict(report),
        method=tidy(run_line(facts, report.sections)),
        blocks=(_block(shown, report.floor),) if shown else (),
        rest=rest_text(dict(left)),
    )


def _rank(row: Row) -> int | None:
    """None: there is nothing to see."""
    if row.status in _LOST:
        return 1
    if row.status != "measured" or row.estimate is None or row.kind is None:
        return None
    return {"faster": 0, "slower": 0, "unclear": 1, "same": 2}[row.kind]


def _order(row: Row) -> tuple[float, float]:
    ratio = row.estimate.ratio if row.estimate is not None else math.inf
    return _rank(row) or 0, -abs(math.log(ratio)) if ratio > 0 else -math.inf


def _word(row: Row, floor: float) -> str:
    if row.status == "same":
        return "with the module of another"
    if row.status != "measured" or row.kind is None:
        return row.status
    return f"same within {share(floor)}" if row.kind == "same" else row.kind


def _block(rows: Sequence[_Placed], floor: float) -> ForestBlock:
    baselines = {section.group: _baseline_ns(section) for section, _ in rows}
    unit = time_unit([*(row.latency_ns for _, row in rows), *baselines.values()])
    return ForestBlock(
        title="Median Latency",
        interval=f"{CONFIDENCE * 100:.0f} % interval" if any(row.estimate is not None for _, row in rows) else "",
        values=f"baseline → variant, {unit.name}",
        ends=("faster", "slower"),
        groups=tuple(
            ForestGroup(
                title=title,
                rows=tuple(
                    _row(row, tidy(section.label(row) if title else row.case), baselines[section.group], unit, floor)
                    for section, row in group
                ),
            )
            for title, group in grouped(rows, lambda placed: (placed[0].model, placed[0].device))
        ),
    )


def _baseline_ns(section: Section) -> float | None:
    return next((row.latency_ns for row in section.rows if row.baseline), None)


def _row(row: Row, label: str, baseline_ns: float | None, unit: Unit, floor: float) -> ForestRow:
    if row.estimate is None or row.kind is None or row.status != "measured":
        return ForestRow(
            label=label,
            word=row.status,
            tone="lost",
            ratio=None,
            low=None,
            high=None,
            floor=floor,
            figure=row.status,
            values="",
            peer=row.peer is not None,
        )
    return ForestRow(
        label=label,
        word=_word(row, floor),
        tone=_TONES[row.kind],
        ratio=row.estimate.ratio,
        low=row.estimate.low,
        high=row.estimate.high,
        floor=floor,
        figure=interval_text(row.estimate),
        values=f"{unit.text(baseline_ns)} → {unit.text(row.latency_ns)}",
        peer=row.peer is not None,
    )
