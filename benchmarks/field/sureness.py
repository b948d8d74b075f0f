"""How sure the pages of docs/field are: equal releases beside each other, plain commands, and reports to be found."""

from __future__ import annotations

import pandas as pd

from benchmarks.field.field import Field
from benchmarks.field.parts import CONTROL, FLOOR
from benchmarks.field.reproduce import Reproduced
from benchmarks.field.upstream import told
from harness.compare.judge import CHANGED
from harness.stats.intervals import rate_bounds


def controls_text(field: Field) -> str:
    """How many pairs of equal releases were called different, on one thread and on two."""
    controls = field.steps[field.steps["control"] & field.steps["ratio"].notna()]
    on_threads = controls["device"].str.endswith("threads")
    told = [
        f"{_flagged(rows)} on {where}"
        for where, rows in (("one thread", controls[~on_threads]), ("two", controls[on_threads]))
        if len(rows)
    ]
    return (
        f"IREE {CONTROL} and the newest release were measured twice in every group, from two installations. Of these "
        f"pairs, {' and '.join(told)} were found to differ by {FLOOR:.0%}. "
        "What differs on two threads alone is told where it was seen twice."
    )


def _flagged(controls: pd.DataFrame) -> str:
    flagged = int(controls["verdict"].isin(CHANGED).sum())
    bound = rate_bounds(flagged, len(controls))[1]
    undecided = int((controls["verdict"] == "inconclusive").sum())
    return f"{flagged or 'none'} of {len(controls)} (at most {bound:.1%}, 95 %; {undecided} undecided)"


def agreement_text(field: Field) -> str:
    """How many plain commands show what was found, by the boot that they ran on."""
    if not field.reproduced:
        return ""
    boots: dict[str, list[Reproduced]] = {}
    for each in field.reproduced:
        boots.setdefault(each.boot, []).append(each)
    told = [
        f"{sum(each.agrees for each in own)} of {len(own)} on {own[0].when[:10]} ({own[0].cpu})"
        for own in boots.values()
    ]
    return (
        "Each finding's plain commands were run in a fresh folder, without the harness; they show at least half of the "
        f"step (in the logarithm) for {'; '.join(told)}."
    )


def known_reports_text(field: Field) -> str:
    """Which of the reports that this look was to find it found."""
    sought = [report for report in field.reports if report.sought]
    found = [report for report in sought if any(finding.report == report for finding in field.findings)]
    return (
        f"Of {len(sought)} reports that it was to find without being told, it found {len(found)}: "
        f"{'; '.join(map(told, found))}."
    )
