"""What `harness history` shows of series (`--series`), of its tables (`--columns`) and of answers (`--sql`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.history.changes import Change
from harness.history.series import SeriesRow, frame_records
from harness.report.page import Column, Page, Table
from harness.report.page import Kind as ColumnKind
from harness.report.units import NOTHING, Unit, percent, ratio_text, unit_of
from harness.store.schema import TABLES

if TYPE_CHECKING:
    import pandas as pd

# Points in the table of a series that is shown alone, and of each of several.
_LATEST, _LATEST_OF_SEVERAL = 40, 10
_BLOCKS = "▁▂▃▄▅▆▇█"
# Values beyond these percentiles are drawn at the edge, so that one spike does not flatten all else.
_LOW, _HIGH = 1, 99


def series_page(tables: Sequence[Table], hidden: int, notes: Sequence[str]) -> Page:
    """Several series, and how many more there was no room for."""
    more = []
    if hidden:
        verb = "series matches" if hidden == 1 else "series match"
        more = [f"{hidden:,} more {verb}; --metric and `CASE METRIC` choose among them."]
    return Page(parts=tables, notes=(*more, *notes))


def series_table(
    row: SeriesRow, points: pd.DataFrame, changes: Sequence[Change], *, width: int, alone: bool = True
) -> Table:
    """One series."""
    values = [float(value) for value in points["value"]]
    begins = {change.first_bad: change for change in changes}
    line, marks = sparkline(values, [place for place, run in enumerate(points["run"]) if run in begins], width)
    unit = unit_of(row.unit, values)
    latest = points.tail(_LATEST if alone else _LATEST_OF_SEVERAL)
    columns = (
        Column("run", list(latest["run"]), kind="name"),
        Column("started", [time[:16].replace("T", " ") for time in latest["started"]], rank=1),
        Column("toolchain", list(latest["toolchain"]), rank=2),
        _figures(row.metric, latest["value"], unit, rank=0),
        _figures("low", latest["low"], unit, rank=3),
        _figures("high", latest["high"], unit, rank=3),
        Column("change", [_change_text(begins.get(run)) for run in latest["run"]]),
    )
    hidden = len(points) - len(latest)
    return Table(
        title=f"{row.case} {row.metric} ({row.role}, {row.machine_class}, series {row.series})",
        before=[text for text in (line, marks) if text],
        columns=columns,
        after=(
            *([f"{hidden:,} earlier points are in the line alone; --format csv prints all."] if hidden else []),
            *(f"{change.first_bad}: {change.cause}, since {change.evidence}." for change in changes),
        ),
    )


def _figures(title: str, values: pd.Series[float], unit: Unit, *, rank: int) -> Column:
    cells = [unit.text(None if math.isnan(value) else value) for value in values]
    return Column(title, cells, kind="number", unit=unit.name, rank=rank)


def _change_text(change: Change | None) -> str:
    if change is None:
        return ""
    amount = percent(change.ratio) if math.isfinite(change.ratio) else f"from {ratio_text(change.before)}"
    return f"{change.kind} {amount}, {change.cause}"


def sparkline(values: Sequence[float], changes: Sequence[int], width: int) -> tuple[str, str]:
    """Two lines of at most `width` characters: the values from their low to their high, and `^` under each change."""
    if not len(values):
        return "", ""
    levels = course(np.array(values), width)
    line = "".join(_BLOCKS[round(level * (len(_BLOCKS) - 1))] for level in levels)
    parts = _even_parts(np.arange(len(values)), len(levels))
    return line, "".join("^" if np.isin(changes, part).any() else " " for part in parts).rstrip()


def course(values: NDArray[np.float64], places: int, *, least_span: float = 0.0) -> list[float]:
    """The course of a series as levels between 0, its low, and 1, its high."""
    medians = np.array([np.median(part) for part in _even_parts(values, min(len(values), max(places, 1)))])
    low, high = (float(value) for value in np.percentile(values, [_LOW, _HIGH]))
    missing = max(abs(float(np.median(values))) * least_span - (high - low), 0.0)
    low, high = low - missing / 2, high + missing / 2
    scaled = (np.clip(medians, low, high) - low) / (high - low) if high > low else np.zeros(len(medians))
    return [float(level) for level in scaled]


def _even_parts(values: NDArray[Any], places: int) -> list[NDArray[Any]]:
    """Parts that are longer by one all along, since time is even: numpy's own come first."""
    return np.split(values, np.rint(np.arange(1, places) * len(values) / places).astype(int))


# --- Tables and answers ---


_MOST_ROWS = 1_000


def columns_page() -> Page:
    """All tables and views with their columns."""
    return Page(
        parts=tuple(
            Table(
                title=f"{table.name}: a row is {table.summary}",
                columns=(
                    Column("column", [column.name for column in table.columns], kind="name"),
                    Column("type", [column.type for column in table.columns]),
                    Column("meaning", [column.meaning for column in table.columns], kind="sentence"),
                ),
            )
            for table in TABLES.values()
        )
    )


def query_page(frame: pd.DataFrame) -> Page:
    """The first thousand rows of an answer."""
    records = frame_records(frame)
    columns = []
    for rank, name in enumerate(map(str, frame.columns)):
        kind: ColumnKind = "number" if frame.dtypes.iloc[rank].kind in "iuf" else "text"
        cells = [_cell(record[name]) for record in records[:_MOST_ROWS]]
        columns.append(Column(name, cells, kind=kind, rank=rank))
    after = []
    if not records:
        after.append("No rows.")
    if len(records) > _MOST_ROWS:
        after.append(f"{len(records) - _MOST_ROWS:,} more rows; --format csv prints all.")
    return Page(parts=(Table(columns=columns, after=after),))


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:,.6g}"
    return str(value)
