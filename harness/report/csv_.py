"""To be removed: harness.report.data has it."""

from harness.report.data import to_csv as csv_text

__all__ = ["csv_text"]
