"""A results folder as a history to ask."""

from __future__ import annotations

from collections.abc import Callable

from harness.progress import Progress, Silent
from harness.report.rows import rows_of
from harness.store.tables import NOTHING_YET, Tables, open_tables

__all__ = ["NOTHING_YET", "History", "open_history"]

History = Tables


class _Sentences(Silent):
    """Says each stage in a sentence, to callers that have no progress to draw."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def stage(self, title: str, total: int) -> None:
        """Say it, where there is something to do."""
        if total:
            self._say(f"{title}: {total}")


def open_history(
    place: str, *, on_progress: Callable[[str], None] | None = None, progress: Progress | None = None
) -> Tables:
    """Open the history of a results folder.

    Args:
        place: A folder, or any URL that fsspec knows.
        on_progress: Gets a sentence on what is being read.
        progress: Instead of that, who draws how far it is.

    Raises:
        UsageError: There is no such folder, or no such protocol.
        RunError: It cannot be read, or is a run and no folder of runs.
    """
    return open_tables(place, rows_of, progress or (_Sentences(on_progress) if on_progress is not None else Silent()))
