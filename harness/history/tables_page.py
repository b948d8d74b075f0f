"""What `harness history --columns` and `--sql` show: the tables that there are to ask, and the answer to a question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.report.page import Column, Page, Table
from harness.report.page import Kind as ColumnKind
from harness.report.units import NOTHING
from harness.store.schema import TABLES

if TYPE_CHECKING:
    import pandas as pd

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
