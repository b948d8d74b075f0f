"""What pages load, read as static/data.js reads it."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any


def load(site: Path, key: str) -> Any:
    """The payload of `data/<key>.js`."""
    text = (site / "data" / f"{key}.js").read_text("ascii")
    before, after = f'dashboard.put("{key}",', ");\n"
    assert text.startswith(before)
    assert text.endswith(after)
    return json.loads(text[len(before) : -len(after)])


def decode(column: dict[str, Any], rows: int) -> list[Any]:
    """One column as a list."""

    def number(value: Any) -> Any:
        if value is None or isinstance(value, str) or not column.get("k"):
            return value
        return value / 10 ** column["k"]

    if "d" in column:
        return [number(value) for value in accumulate(column["d"])]
    if "n" in column:
        return [number(value) for value in column["n"]]
    if "t" in column:
        return [column["t"][code] for code in column["i"]]
    if "v" in column:
        return list(column["v"])
    return [number(column["c"])] * rows


def table(payload: dict[str, Any]) -> dict[str, list[Any]]:
    """All columns; each has as many values as the table says rows."""
    columns = {name: decode(column, payload["rows"]) for name, column in payload["columns"].items()}
    assert all(len(values) == payload["rows"] for values in columns.values())
    return columns
