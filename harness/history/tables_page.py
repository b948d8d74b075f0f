"""What `harness history --columns` and `--sql` show: the tables that there are to ask, and the answer to a question."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.history.frames import TABLES, Kind, kinds_of
from harness.history.series import SeriesRow
from harness.history.values import Point
from harness.report.page import Column, Page, Table
from harness.report.page import Kind as ColumnKind
from harness.report.units import NOTHING

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 1_000
_ATTRIBUTE = re.compile(r"    (\w+): (.*)")
_TYPES: Mapping[Kind, str] = {
    "text": "text",
    "integer": "integer",
    "integer or none": "integer or null",
    "number": "number",
    "truth": "true or false",
}

VIEWS: Mapping[str, type[Any]] = {**{str(name): row for name, row in TABLES.items()}, "series": SeriesRow}


def meanings(row: type[Any]) -> dict[str, str]:
    """The sentence that a row's docstring has for each of its columns."""
    found: dict[str, str] = {}
    latest = ""
    for line in (inspect.getdoc(row) or "").partition("Attributes:\n")[2].splitlines():
        if (match := _ATTRIBUTE.fullmatch(line)) is not None:
            latest = match[1]
            found[latest] = match[2]
        elif latest and line.strip():
            found[latest] += f" {line.strip()}"
    return found


def _meaning(row: type[Any], column: str) -> str:
    """A series has most of its columns from its points."""
    return meanings(row).get(column) or meanings(Point)[column]


def _summary(row: type[Any]) -> str:
    what = (inspect.getdoc(row) or "").splitlines()[0].partition(":")[0]
    return f"{what[:1].lower()}{what[1:]}"


def column_records() -> list[dict[str, str]]:
    """Table, name, type and meaning of each column of each table."""
    return [
        {"table": view, "column": column, "type": _TYPES[kind], "meaning": _meaning(row, column)}
        for view, row in VIEWS.items()
        for column, kind in kinds_of(row).items()
    ]


def columns_page() -> Page:
    """All tables and views with their columns."""
    records = column_records()
    tables = []
    for view, row in VIEWS.items():
        columns = [record for record in records if record["table"] == view]
        tables.append(
            Table(
                title=f"{view}: a row is {_summary(row)}",
                columns=(
                    Column("column", [column["column"] for column in columns], kind="name"),
                    Column("type", [column["type"] for column in columns]),
                    Column("meaning", [column["meaning"] for column in columns], kind="sentence"),
                ),
            )
        )
    return Page(parts=tables)


def query_page(frame: pd.DataFrame) -> Page:
    """The first thousand rows of an answer."""
    records = frame_records(frame)
    columns = []
    for rank, name in enumerate(map(str, frame.columns)):
        values = [record[name] for record in records[:_MOST_ROWS]]
        kind: ColumnKind = "number" if _are_numbers(values) else "text"
        columns.append(Column(name, [_cell(value) for value in values], kind=kind, rank=rank))
    after = []
    if not records:
        after.append("No rows.")
    if len(records) > _MOST_ROWS:
        after.append(f"{len(records) - _MOST_ROWS:,} more rows; --format csv prints all.")
    return Page(parts=(Table(columns=columns, after=after),))


def frame_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values: None where there is none; times and whatever else DuckDB has as text."""
    names = [str(name) for name in frame.columns]
    rows = frame.itertuples(index=False, name=None)
    return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    import numpy as np
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, list | dict | tuple | np.ndarray):
        return str(value)
    return None if pd.isna(value) else str(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:,.6g}"
    return str(value)
