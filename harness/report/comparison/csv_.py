"""Comparison -> CSV: one line for each row, for spreadsheets and pandas.read_csv."""

from __future__ import annotations

from harness.records.comparison import Comparison
from harness.report.comparison.json_ import row_record
from harness.report.csv_ import csv_text
from harness.report.flat import Scalar


def render_csv(comparison: Comparison) -> str:
    """All rows with all figures, unrounded, in base units; an empty cell where there is none.

    The commands that repeat a row are left to the other formats, since they take several lines.
    """
    records: list[dict[str, Scalar]] = []
    for row in comparison.rows:
        record = row_record(row)
        del record["repro"]
        records.append(record)
    return csv_text(records)
