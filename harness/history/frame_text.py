"""A frame as text: what `harness history --sql` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.history.page import Page, Sheet, page_markdown, page_terminal
from harness.report.columns import Column
from harness.report.csv_ import csv_text
from harness.report.json_ import SCHEMA_VERSION, json_text
from harness.report.units import NOTHING
from harness.text import one_line, shown

if TYPE_CHECKING:
    import pandas as pd

    from harness.commands.output import Format

_MOST_ROWS = 1_000


def render_frame(frame: pd.DataFrame, output_format: Format, *, width: int, color: bool) -> str:
    """All rows as CSV or JSON; the first thousand as a table for people."""
    records = records_of(frame)
    if output_format == "json":
        return json_text({"schema_version": SCHEMA_VERSION, "columns": list(map(str, frame.columns)), "rows": records})
    if output_format == "csv":
        return csv_text(records) or ",".join(map(str, frame.columns)) + "\n"
    first = records[:_MOST_ROWS]
    columns = tuple(
        Column(
            title=one_line(str(name)),
            cells=tuple(_cell(record[str(name)]) for record in first),
            number=_is_number([record[str(name)] for record in first]),
            rank=place,
        )
        for place, name in enumerate(frame.columns)
    )
    after = []
    if not records:
        after.append("No rows.")
    if len(records) > _MOST_ROWS:
        after.append(f"{len(records) - _MOST_ROWS:,} more rows; --format csv prints all.")
    page = Page(sheets=(Sheet(columns=columns, after=tuple(after)),))
    return page_markdown(page) if output_format == "markdown" else page_terminal(page, width=width, color=color)


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
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


def _is_number(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:,.6g}"
    return shown(str(value))
