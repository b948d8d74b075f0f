"""What became of each case of a run."""

from __future__ import annotations

from harness.records.case import Case
from harness.records.run import Failure
from harness.report.values import Status
from harness.store.evidence import is_expected


def judge(
    case: Case,
    failure: Failure | None,
    *,
    timed: bool,
    shared: bool,
    finished: bool,
    timing: bool,
    dropped: bool = False,
) -> Status:
    """What became of a case.

    Args:
        failure: Its own, or that of the case that stands for it.
        timed: Whether it, or the case that stands for it, was measured.
        shared: Whether another case stands for it.
        finished: Whether the run is.
        timing: Whether the run was to time anything.
        dropped: Whether its raw turns were deleted since.
    """
    if case.skip is not None:
        return "skipped"
    if failure is not None:
        return "expected failure" if is_expected(case, failure) else "failed"
    if timed:
        return "same" if shared else "measured"
    if not finished:
        return "not measured yet"
    if not timing:
        return "not timed"
    return "turns dropped" if dropped else "missing"
