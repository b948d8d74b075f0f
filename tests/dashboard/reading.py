"""What pages load, read as static/data.js reads it."""

import json
from pathlib import Path
from typing import Any


def load(site: Path, key: str) -> Any:
    """The payload of `data/<key>.js`."""
    text = (site / "data" / f"{key}.js").read_text("ascii")
    before, after = f'dashboard.put("{key}",', ");\n"
    assert text.startswith(before)
    assert text.endswith(after)
    return json.loads(text[len(before) : -len(after)])


def decode(column: Any, rows: int) -> list[Any]:
    """One column as a list."""
    if column is None:
        return [None] * rows
    return [column["texts"][place] for place in column["at"]] if isinstance(column, dict) else list(column)


def table(payload: dict[str, Any]) -> dict[str, list[Any]]:
    """All columns; each has as many values as the table says rows."""
    columns = {name: decode(column, payload["rows"]) for name, column in payload["columns"].items()}
    assert all(len(values) == payload["rows"] for values in columns.values())
    return columns
