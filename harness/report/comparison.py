"""Comparison -> JSON and CSV; harness.store.kinds reads the JSON, in which it is kept.

What a tool printed of a failed row stands apart from the rows, in `tool_output`, so that rows stay records of one
size; `row` in it counts the rows from 0.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from harness.records.comparison import VERDICTS, Comparison, Row
from harness.report.comparison_words import finite
from harness.report.data import json_bytes, to_csv
from harness.store.kinds import COMPARISON


def comparison_csv(comparison: Comparison) -> str:
    """A line a row; the commands that repeat it are left to the other formats, since they take several lines.

    Of hosts it has the names.
    """
    rows = finite(comparison).rows
    records = [row_record(row) | {"hosts": " ".join(host.host for host in row.hosts)} for row in rows]
    return to_csv([{name: value for name, value in record.items() if name != "repro"} for record in records])


def json_document(comparison: Comparison) -> bytes:
    """Everything a comparison says, as it is kept: JSON in the strict sense, without NaN and infinities.

    Of half a surrogate pair, as an argument that is no UTF-8 has, a `?` is left.
    """
    content = json_bytes(
        {
            "schema_version": COMPARISON.version,
            "id": comparison.id,
            "created": comparison.created,
            "base": asdict(comparison.base),
            "head": asdict(comparison.head),
            "machine": asdict(comparison.machine),
            "within": comparison.within,
            "mode": comparison.mode,
            "rule": comparison.rule,
            "rows": [row_record(row) for row in comparison.rows],
            "tool_output": [
                {"row": index, "stderr": row.stderr} for index, row in enumerate(comparison.rows) if row.stderr
            ],
            "summary": {verdict: comparison.summary.get(verdict, 0) for verdict in VERDICTS},
            "means": [asdict(mean) for mean in comparison.means],
            "notes": comparison.notes,
            "settings": comparison.settings,
            "command": comparison.command,
            "explained": [asdict(explained) for explained in comparison.explained],
            "hosts": [asdict(host) for host in comparison.hosts],
        }
    )
    if b"\\ud" not in content:
        return content
    whole = json.dumps(json.loads(content), ensure_ascii=False).encode(errors="replace")
    return json_bytes(json.loads(whole))


def row_record(row: Row) -> dict[str, Any]:
    """A row as a flat record of stable names; its hosts and its commands are the lists in it."""
    record = dict(vars(row))  # in the order of the fields, and faster than naming each
    del record["stderr"]
    record["hosts"] = [asdict(host) for host in row.hosts]
    if type(row.base_value) is int:  # as a byte count may be; it is written as it will be read
        record["base_value"] = float(row.base_value)
    if type(row.head_value) is int:
        record["head_value"] = float(row.head_value)
    return record
