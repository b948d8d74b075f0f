"""Which one series of a history a picture is to show."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from harness.errors import UsageError
from harness.history.series import SeriesRow, list_command_line, match_series, names_case
from harness.metrics import LATENCY
from harness.report.names import tidy
from harness.store.address import without_password

_MOST_LISTED = 6


def choose_series(rows: Sequence[SeriesRow], wanted: str | None, where: str) -> SeriesRow:
    """The one series that is meant.

    Args:
        rows: All series of the history.
        wanted: As match_series has it; a case without a metric is its latency. None is enough where
            there is one series only.
        where: The results folder, for messages.

    Raises:
        UsageError: None or several are meant; the message names some.
    """
    lists = list_command_line(where)
    where = without_password(where)
    if not rows:
        raise UsageError(f"{where}: has no series yet; put the runs of a suite into it")
    if wanted is None:
        found, asked = match_series(rows, "*"), "--series is missing"
    else:
        found, asked = _meant(rows, wanted), f"--series {tidy(wanted)}"
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{row.series} ({_described(row, found)})" for row in found[:_MOST_LISTED])
        more = f" and {len(found) - _MOST_LISTED:,} more" if len(found) > _MOST_LISTED else ""
        count = f"there are {len(found):,} to choose from"
        raise UsageError(f"{where}: {asked}, and {count}: {listed}{more}; give an id ({lists} lists all)")
    near = difflib.get_close_matches(wanted or "", list(dict.fromkeys(row.case for row in rows)), n=3, cutoff=0.4)
    hint = f"; near are {', '.join(tidy(case) for case in near)}" if near else ""
    raise UsageError(f"{where}: {asked}: is no series' id and no case of it{hint}; {lists} lists them")


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
    found = match_series(rows, wanted)
    if any(row.series == wanted for row in found):
        return found
    if any(names_case(row, wanted) for row in found):
        found = [row for row in found if row.metric == LATENCY.name] or found
    return [row for row in found if row.role == "newest"] or found


def _described(row: SeriesRow, among: Sequence[SeriesRow]) -> str:
    """What tells it from the others."""
    facts = ((one.case, one.metric, one.suite, one.machine_class, one.role) for one in among)
    differing = [len(set(column)) > 1 for column in zip(*facts, strict=True)]
    own = (row.case, row.metric, row.suite, row.machine_class, row.role)
    return ", ".join(tidy(fact) for fact, differs in zip(own, differing, strict=True) if differs) or tidy(row.case)
