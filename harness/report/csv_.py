"""Report -> CSV: one line for each case, for spreadsheets and pandas.read_csv."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping, Sequence
from io import StringIO

from harness.report.flat import Scalar, flatten
from harness.report.values import Report, Row
from harness.text import one_line


def render_csv(report: Report) -> str:
    """All rows with all figures, unrounded, in base units; an empty cell where there is none.

    The commands that repeat a row are left to the other formats, since they take several lines.
    """
    counted = tuple(dict.fromkeys(key for row in report.rows() for key in row.ir))
    devices = max((len(row.memory) for row in report.rows()), default=0)
    return csv_text([_record(row, counted, devices if devices > 1 else 0) for row in report.rows()])


def csv_text(records: Sequence[Mapping[str, Scalar]]) -> str:
    """Records of the same columns as CSV with a line of heads; "" without records."""
    text = StringIO()
    if records:
        writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({column: _cell(value) for column, value in record.items()} for record in records)
    return text.getvalue()


def _record(row: Row, counted: Sequence[str], devices: int) -> dict[str, Scalar]:
    memory: dict[str, Scalar] = {}
    for number in range(devices):
        one = row.memory[number] if number < len(row.memory) else None
        memory[f"device {number} host_peak_bytes"] = one.host_peak_bytes if one else None
        memory[f"device {number} device_peak_bytes"] = one.device_peak_bytes if one else None
    return {
        **flatten(row),
        **memory,
        **{one_line(f"ir {key}"): row.ir.get(key) for key in counted},
        "compile_flags": shlex.join(row.compile_flags),
        "run_flags": shlex.join(row.run_flags),
        "remarks": "; ".join(row.remarks),
    }


def _cell(value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return "true" if value else "false"
    # One line a case: a text of several lines would break every tool that counts lines.
    return one_line(value) if isinstance(value, str) else value
