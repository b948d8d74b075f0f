"""Comparison -> forest: its most relevant rows, by metric and by model and device, the largest changes first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from harness.metrics import TIMED
from harness.records.comparison import VERDICTS, Comparison, Row, Verdict
from harness.report.comparison.finite import finite
from harness.report.comparison.method import sides_line
from harness.report.comparison.selection import CHANGED, LOST, metrics_of, of_metric, real_rows
from harness.report.comparison.words import figure_title, headline, interval_title, ratio_with_interval, unit_of
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
from harness.report.units import Unit

_NEXT_TO_NOTHING = 1e-300
_TONES: dict[Verdict, Tone] = {
    "regressed": "worse",
    "improved": "better",
    "unchanged": "same",
    "inconclusive": "open",
    "failed": "lost",
    "missing": "lost",
}


def forest_of(comparison: Comparison, rows: Sequence[Row] | None = None, *, top: int | None = USUAL_ROWS) -> Forest:
    """What to draw of a comparison.

    Args:
        rows: Those to choose from; None: all but the A/A controls.
        top: How many are drawn at most; the others are counted. None: all that have something to show.
    """
    known = finite(comparison if rows is None else replace(comparison, rows=tuple(rows)))
    given = real_rows(known)
    ranked = without_most_lost(_ranked(given), lambda row: row.verdict in LOST)
    shown = ranked if top is None else ranked[:top]
    left = Counter(row.verdict for row in given)
    left.subtract(row.verdict for row in shown)
    return Forest(
        title=_title(known),
        verdict=headline(finite(comparison)),
        method=tidy(sides_line(known)),
        blocks=tuple(_block(known, of_metric(shown, metric)) for metric in metrics_of(shown)),
        rest=rest_text({verdict: left[verdict] for verdict in VERDICTS}),
    )


def _title(comparison: Comparison) -> str:
    """`esrgan: results/new against iree==3.12.0`; a run by its id alone."""
    base, head = (
        tidy(side.run if side.run and side.label.rstrip("/").endswith(side.run) else side.label)
        for side in (comparison.base, comparison.head)
    )
    suite = tidy(PurePath(comparison.head.suite).stem)
    return f"{suite}: {head} against {base}" if suite else f"{head} against {base}"


def _ranked(rows: Iterable[Row]) -> list[Row]:
    """Rows with something to show: timed changes first, then what is lost or open, other changes, the unchanged."""
    ranked = [(rank, row) for row in rows if (rank := _rank(row)) is not None]
    return [row for _, row in sorted(ranked, key=lambda pair: (pair[0], -_size(pair[1])))]


def _rank(row: Row) -> int | None:
    """None: there is nothing to see, as where two values are equal or the modules are."""
    if row.verdict in LOST:
        return 1
    if _ratio(row) is None and _beyond(row) is None:
        return None
    if row.gate == "violated":
        return 0
    timed = row.metric in TIMED
    if row.verdict in CHANGED:
        return 0 if timed else 2
    if not timed:
        return None
    return {"inconclusive": 1, "unchanged": 3}.get(row.verdict)


def _ratio(row: Row) -> float | None:
    return row.ratio if row.ratio is not None and 0 < row.ratio < math.inf else None


def _beyond(row: Row) -> Literal["left", "right"] | None:
    """Where a row lies that no logarithmic axis has a place for."""
    base, head = row.base_value, row.head_value
    if base is None or head is None:
        return "left" if row.ratio == 0 else None
    if base == 0 and head > 0:
        return "right"
    return "left" if head == 0 and base > 0 else None


def _size(row: Row) -> float:
    ratio = _ratio(row)
    return abs(math.log(ratio)) if ratio is not None else math.inf


def _block(comparison: Comparison, rows: list[Row]) -> ForestBlock:
    metric = rows[0].metric
    unit = unit_of(rows)
    valued = any(row.base_value is not None or row.head_value is not None for row in rows)
    return ForestBlock(
        title=tidy(figure_title(metric)),
        interval=interval_title(comparison, metric) if any(row.ci_low is not None for row in rows) else "",
        values=f"base → head{f', {unit.name}' if unit.name else ''}" if valued else "",
        ends=("faster", "slower") if metric in TIMED else ("less", "more"),
        groups=tuple(
            ForestGroup(
                title=title,
                rows=tuple(_row(row, unit, _label(row, group) if title else tidy(row.case)) for row in group),
            )
            for title, group in grouped(rows, lambda row: (row.model, row.device))
        ),
    )


def _label(row: Row, group: Sequence[Row]) -> str:
    """Its variant, where that tells it from the others of its group."""
    alike = sum(other.variant == row.variant for other in group)
    return tidy(row.variant if alike == 1 and row.variant else row.case)


def _row(row: Row, unit: Unit, label: str) -> ForestRow:
    ratio = _ratio(row)
    lost = row.verdict in LOST
    beyond = _beyond(row) if ratio is None and not lost else None
    said = {"left": "0", "right": "from nothing", None: ratio_with_interval(row)}
    low, high = _interval(row) if ratio is not None and not lost else (None, None)
    return ForestRow(
        label=label,
        word=row.verdict,
        tone=_TONES.get(row.verdict, "open"),
        ratio=None if lost else ratio,
        low=low,
        high=high,
        floor=row.floor if row.floor > 0 else 0.0,
        figure=row.verdict if lost else said[beyond],
        values="" if lost else _values(row, unit),
        remark="gate violated" if row.gate == "violated" else "",
        exact=row.metric not in TIMED,
        beyond=beyond,
    )


def _interval(row: Row) -> tuple[float | None, float | None]:
    """Both ends; an end at 0 or below lies beyond the left end of any logarithmic axis."""
    if row.ci_low is None or row.ci_high is None:
        return None, None
    return max(row.ci_low, _NEXT_TO_NOTHING), max(row.ci_high, _NEXT_TO_NOTHING)


def _values(row: Row, unit: Unit) -> str:
    if row.base_value is None and row.head_value is None:
        return ""
    return f"{unit.text(row.base_value)} → {unit.text(row.head_value)}"
