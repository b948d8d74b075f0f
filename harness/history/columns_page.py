"""What `harness history --columns` lists: every table and column with its meaning, out of the rows' own docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from harness.history.frames import TABLES, Kind, kinds_of
from harness.history.page import Page, Sheet
from harness.history.series_view import SeriesRow
from harness.history.values import Point
from harness.report.columns import Column

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


def summary(row: type[Any]) -> str:
    """What a row is, out of the first line of its docstring: `one figure of one case in one run`."""
    what = (inspect.getdoc(row) or "").splitlines()[0].partition(":")[0]
    return f"{what[:1].lower()}{what[1:]}"


def records() -> list[dict[str, str]]:
    """One for each column of each view: table, column, type and meaning."""
    return [
        {"table": view, "column": column, "type": _TYPES[kind], "meaning": _meaning(row, column)}
        for view, row in VIEWS.items()
        for column, kind in kinds_of(row).items()
    ]


def columns_page() -> Page:
    """All views."""
    listed = records()
    sheets = []
    for view, row in VIEWS.items():
        of_view = [one for one in listed if one["table"] == view]
        columns = tuple(
            Column(title=title, cells=tuple(one[title] for one in of_view), number=False)
            for title in ("column", "type", "meaning")
        )
        sheets.append(
            Sheet(
                title=f"{view}: a row is {summary(row)}",
                columns=columns,
                names=frozenset(["column"]),
                below=frozenset(["meaning"]),
            )
        )
    return Page(sheets=tuple(sheets))
