"""A change point with its cause -> the row that tells it; pure."""

from __future__ import annotations

from typing import Literal

from harness.history.around import Programs
from harness.history.circumstances import Circumstances, commits_text, toolchain_text
from harness.history.found import Found
from harness.history.series_values import Runs
from harness.history.values import Change
from harness.history.verdicts import Cause

# What is less likely than this by chance is not known that well: tables of simulated noise end long before.
_LEAST_P = 1e-9


def describe(
    found: Found, dated: Found, around: Circumstances, cause: Cause, evidence: str, runs: Runs, programs: Programs
) -> Change:
    """The row that tells a change.

    Args:
        dated: What tells when it happened: itself, or the same event in a series that shows it without another.
        programs: What the points at both's edges were made with.
    """
    row, point = found.row, found.point

    def run(place: int) -> str:
        return runs.ids[dated.run(place)]

    before, after = (programs[dated.row.series, run(one)] for one in (dated.good, dated.point.end))
    commits = (runs.facts[dated.run(one)].commit for one in (dated.good, dated.point.end))
    return Change(
        series=row.series,
        suite=row.suite,
        case=row.case,
        metric=row.metric,
        unit=row.unit,
        machine_class=row.machine_class,
        role=row.role,
        kind=dated.point.kind,
        direction=_direction(row.unit, up=point.after > point.before),
        ratio=around.ratio,
        before=point.before,
        after=point.after,
        first_bad=run(dated.point.index),
        last_good=run(dated.good),
        earliest=run(dated.point.low),
        latest=run(dated.point.high),
        started=runs.facts[dated.run(dated.point.index)].started,
        p=max(point.p, _LEAST_P),
        cause=cause,
        evidence=evidence,
        toolchain_before=toolchain_text(before),
        toolchain_after=toolchain_text(after),
        commits=commits_text(*commits),
        points=len(found.values.values),
        until=run(dated.point.end),
        peer=row.peer,
    )


def _direction(unit: str, *, up: bool) -> Literal["slower", "faster", "more", "less"]:
    if unit in ("ns", "ratio"):
        return "slower" if up else "faster"
    return "more" if up else "less"
