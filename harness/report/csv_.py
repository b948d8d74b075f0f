"""Report -> CSV: one line for each case, for spreadsheets and pandas.read_csv."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from harness.report.data import Scalar
from harness.report.data import to_csv as csv_text
from harness.report.flat import flatten
from harness.report.values import Report, Row
from harness.text import one_line

__all__ = ["csv_text", "render_csv"]


def render_csv(report: Report) -> str:
    """All rows with all figures, unrounded, in base units; an empty cell where there is none.

    The commands that repeat a row are left to the other formats, since they take several lines.
    """
    counted = tuple(dict.fromkeys(key for row in report.rows() for key in row.ir))
    devices = max((len(row.memory) for row in report.rows()), default=0)
    return csv_text([_record(row, counted, devices if devices > 1 else 0) for row in report.rows()])


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
