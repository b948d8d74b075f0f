"""A results folder as a history to ask."""

from __future__ import annotations

from harness.progress import Progress, Silent
from harness.report.rows import rows_of
from harness.store.marks import WITHOUT_EXPERIMENTS, RunChoice
from harness.store.tables import NOTHING_YET, Tables, open_tables

__all__ = ["NOTHING_YET", "History", "RunChoice", "open_history"]

History = Tables


def open_history(
    place: str, *, progress: Progress | None = None, choice: RunChoice | None = WITHOUT_EXPERIMENTS
) -> History:
    """Open the history of a results folder."""
    return open_tables(place, rows_of, progress or Silent(), choice)
