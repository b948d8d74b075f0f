"""Comparison -> exit status, JSON and CSV; harness.store.kinds reads the JSON, in which it is kept.

What a tool printed of a failed row stands apart from the rows, in `tool_output`, so that rows stay records of one
size; `row` in it counts the rows from 0.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import ExitCode
from harness.metrics import LATENCY, TIMED
from harness.records.comparison import VERDICTS, Comparison, Row
from harness.report.data import stored_json, to_csv
from harness.report.verdicts import LOST, MEASURED, of_metric, of_verdict, real_rows
from harness.store.kinds import COMPARISON


def comparison_exit_code(comparison: Comparison, *, strict: bool = False) -> ExitCode:
    """1 for a regression or a violated gate; else 3 for a failed or missing row, or if nothing was compared; else 0.

    A latency or a compile time that regressed is a regression unless a gate of the suite allows it; other figures are
    only what their gates make of them. Where both 1 and 3 hold it is 1, and the report names both. A/A controls never
    count.
    """
    rows = real_rows(comparison)
    if any(row.gate == "violated" or is_regression(row) for row in rows):
        return ExitCode.REGRESSION
    latencies = of_metric(rows, LATENCY.name)
    if of_verdict(rows, *LOST) or not of_verdict(latencies, *MEASURED, "identical"):
        return ExitCode.CASE_FAILED
    if strict and of_verdict(latencies, "inconclusive"):
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK


def is_regression(row: Row) -> bool:
    """Whether a time regressed and no gate of the suite says otherwise."""
    return row.verdict == "regressed" and row.metric in TIMED and row.gate != "passed"


def comparison_csv(comparison: Comparison) -> str:
    """A line a row; the commands that repeat it are left to the other formats, since they take several lines.

    Of hosts it has the names.
    """
    records = [row_record(row) | {"hosts": " ".join(host.host for host in row.hosts)} for row in comparison.rows]
    return to_csv([{name: value for name, value in record.items() if name != "repro"} for record in records])


def json_document(comparison: Comparison) -> bytes:
    """Everything a comparison says, as it is kept."""
    return stored_json(
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
