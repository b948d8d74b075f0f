"""Which one series of a history a picture is to show."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from harness.errors import UsageError
from harness.history.series import SeriesRow, list_command_line, match_series, names_case
from harness.metrics import LATENCY
from harness.report.names import tidy
from harness.store.place import without_password

_MOST_LISTED = 6


def choose_series(rows: Sequence[SeriesRow], wanted: str | None, where: str) -> SeriesRow:
    """The one series that is meant.

    Args:
        rows: All series of the history.
        wanted: As match_series has it; a case without a metric is its latency. None is enough where there is one
            series only.
        where: The results folder, for messages.

    Raises:
        UsageError: None or several are meant; the message names some.
    """
    lists = list_command_line(where)
    where = without_password(where)
    if not rows:
        raise UsageError(f"{where}: has no series yet; put the runs of a suite into it")
    meant = match_series(rows, "*") if wanted is None else _meant(rows, wanted)
    if len(meant) == 1:
        return meant[0]
    option = "--series is missing" if wanted is None else f"--series {tidy(wanted)}"
    if meant:
        some = ", ".join(f"{row.series} ({_described(row, meant)})" for row in meant[:_MOST_LISTED])
        more = f" and {len(meant) - _MOST_LISTED:,} more" if len(meant) > _MOST_LISTED else ""
        number = f"there are {len(meant):,} to choose from"
        raise UsageError(f"{where}: {option}, and {number}: {some}{more}; give an id ({lists} lists all)")
    near = difflib.get_close_matches(wanted or "", list(dict.fromkeys(row.case for row in rows)), n=3, cutoff=0.4)
    hint = f"; near are {', '.join(tidy(case) for case in near)}" if near else ""
    raise UsageError(f"{where}: {option}: is no series' id and no case of it{hint}; {lists} lists them")


def reference_of(rows: Sequence[SeriesRow], chosen: SeriesRow) -> SeriesRow | None:
    """The same case's series under the fixed toolchain on the same machines, the longest of several; None without."""
    if chosen.role == "reference":
        return None

    def place(row: SeriesRow) -> tuple[str, ...]:
        return row.suite, row.case_id, row.case, row.metric, row.machine_class

    same = [row for row in rows if row.role == "reference" and place(row) == place(chosen)]
    return max(same, key=lambda row: (row.points, row.series), default=None)


def _meant(rows: Sequence[SeriesRow], wanted: str) -> list[SeriesRow]:
    """What matches; a case's latency, and the newest toolchain's, where there are others."""
    matches = match_series(rows, wanted)
    if any(row.series == wanted for row in matches):
        return matches
    if any(names_case(row, wanted) for row in matches):
        matches = [row for row in matches if row.metric == LATENCY.name] or matches
    return [row for row in matches if row.role == "newest"] or matches


def _described(row: SeriesRow, among: Sequence[SeriesRow]) -> str:
    """What tells it from the others."""
    facts = [(other.case, other.metric, other.suite, other.machine_class, other.role) for other in (row, *among)]
    return ", ".join(tidy(column[0]) for column in zip(*facts, strict=True) if len(set(column)) > 1) or tidy(row.case)
