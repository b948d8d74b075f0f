"""What `harness history --series` shows: the points of series as a line of text and as a table, and their changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.history.page import Page, Sheet
from harness.history.series_view import SeriesRow
from harness.history.sparkline import sparkline
from harness.history.values import Change
from harness.report.columns import Column
from harness.report.units import Unit, byte_unit, count_unit, percent, ratio_text, time_unit
from harness.text import one_line

if TYPE_CHECKING:
    import pandas as pd

# Points in the table of a series that is shown alone, and of each of several.
_LATEST, _LATEST_OF_SEVERAL = 40, 10


def constant_sheet(rows: Sequence[SeriesRow]) -> Sheet:
    """Counted series whose value has never changed, a line each.

    Args:
        rows: Of these, `last_value` is the only value.
    """
    units = [_unit(row.unit, [row.last_value]) for row in rows]
    values = [f"{unit.text(row.last_value)} {unit.name}".rstrip() for unit, row in zip(units, rows, strict=True)]
    columns = (
        Column(title="case", cells=tuple(one_line(row.case) for row in rows), number=False),
        Column(title="metric", cells=tuple(row.metric for row in rows), number=False),
        Column(title="toolchain", cells=tuple(row.role for row in rows), number=False),
        Column(title="value", cells=tuple(values)),
        Column(title="runs", cells=tuple(f"{row.points:,}" for row in rows)),
        Column(title="first", cells=tuple(one_line(row.first_run) for row in rows), number=False, rank=3),
        Column(title="last", cells=tuple(one_line(row.last_run) for row in rows), number=False, rank=2),
        Column(title="series", cells=tuple(row.series for row in rows), number=False, rank=1),
    )
    return Sheet(title="Counted, and the same in every run", columns=columns, names=frozenset(["case"]))


def series_sheet(
    row: SeriesRow, points: pd.DataFrame, changes: Sequence[Change], *, width: int, alone: bool = True
) -> Sheet:
    """One series.

    Args:
        points: Its own, in order of time.
        changes: Those found in it.
        width: Of the line of text.
        alone: Whether no other is shown, so that there is room for more of its points.
    """
    values = [float(value) for value in points["value"]]
    runs = [str(run) for run in points["run"]]
    begins = {change.first_bad: change for change in changes}
    line, marks = sparkline(values, [place for place, run in enumerate(runs) if run in begins], width)
    unit = _unit(row.unit, values)
    latest = points.tail(_LATEST if alone else _LATEST_OF_SEVERAL)
    columns = (
        Column(title="run", cells=tuple(latest["run"]), number=False),
        Column(
            title="started",
            cells=tuple(text[:16].replace("T", " ") for text in latest["started"]),
            number=False,
            rank=1,
        ),
        Column(title="toolchain", cells=tuple(map(one_line, latest["toolchain"])), number=False, rank=2),
        Column(title=row.metric, unit=unit.name, cells=tuple(unit.text(value) for value in latest["value"])),
        Column(title="low", unit=unit.name, cells=tuple(_optional(unit, value) for value in latest["low"]), rank=3),
        Column(title="high", unit=unit.name, cells=tuple(_optional(unit, value) for value in latest["high"]), rank=3),
        Column(title="change", cells=tuple(_mark(begins.get(run)) for run in latest["run"]), number=False),
    )
    hidden = len(points) - len(latest)
    return Sheet(
        title=f"{one_line(row.case)} {row.metric} ({row.role}, {row.machine_class}, series {row.series})",
        before=tuple(one for one in (line, marks) if one),
        columns=columns,
        names=frozenset(["run"]),
        after=(
            *([f"{hidden:,} earlier points are in the line alone; --format csv prints all."] if hidden else []),
            *(f"{one_line(one.first_bad)}: {one.cause}, since {one.evidence}." for one in changes),
        ),
    )


def series_page(sheets: Sequence[Sheet], left_out: int, notes: Sequence[str]) -> Page:
    """Several series, and how many there was no room for."""
    more = []
    if left_out:
        verb = "series matches" if left_out == 1 else "series match"
        more = [f"{left_out:,} more {verb}; --metric and `CASE METRIC` choose among them."]
    return Page(sheets=tuple(sheets), notes=(*more, *notes))


def _unit(unit: str, values: Sequence[float]) -> Unit:
    if unit == "ratio":
        return Unit(name="", size=1.0, decimals=4)
    return {"ns": time_unit, "bytes": byte_unit}.get(unit, count_unit)(values)


def _optional(unit: Unit, value: float) -> str:
    return unit.text(None if math.isnan(value) else value)


def _mark(change: Change | None) -> str:
    if change is None:
        return ""
    amount = percent(change.ratio, decimals=1) if math.isfinite(change.ratio) else f"from {ratio_text(change.before)}"
    return f"{change.kind} {amount}, {change.cause}"
