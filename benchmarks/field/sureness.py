"""How sure the pages of docs/field are: equal releases beside each other, plain commands, and reports to be found."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from benchmarks.field.field import Field
from benchmarks.field.findings import found_steps
from benchmarks.field.parts import CONTROL, FLOOR
from benchmarks.field.reproduce import Reproduced
from benchmarks.field.upstream import told
from harness.compare.judge import CHANGED
from harness.stats.intervals import rate_bounds
from harness.text import plural

_LARGE = 1.5  # Times, either way


def controls_text(field: Field) -> str:
    """How many pairs of equal releases were called different, on one thread and on two."""
    controls = field.steps[field.steps["control"] & field.steps["ratio"].notna()]
    on_threads = controls["device"].str.endswith("threads")
    groups = ("one thread", controls[~on_threads]), ("two threads", controls[on_threads])
    told = [f"{_flagged(rows)} on {where}" for where, rows in groups if len(rows)]
    if not told:
        return "No release was measured beside itself."
    return (
        f"IREE {CONTROL} and the newest release were measured twice in every group, from two installations. Of these "
        f"pairs, {' and '.join(told)} were found to differ by {FLOOR:.0%}."
    )


def _flagged(controls: pd.DataFrame) -> str:
    flagged = int(controls["verdict"].isin(CHANGED).sum())
    bound = rate_bounds(flagged, len(controls))[1]
    undecided = int((controls["verdict"] == "inconclusive").sum())
    open_ones = len(found_steps(controls.assign(control=False))) - flagged
    return (
        f"{flagged or 'none'} of {len(controls)} (at most {bound:.1%}, 95 %; {undecided} undecided, of which "
        f"{open_ones} look like a step)"
    )


def agreement_text(field: Field) -> str:
    """How many plain commands show what was found, by the boot that they ran on."""
    boots: dict[str, list[Reproduced]] = {}
    for each in field.reproduced:
        boots.setdefault(each.boot, []).append(each)
    if not boots:
        return "No plain commands were run yet; `make field ARGS=--check` does."
    shows = "\n".join(f"- {_agreeing(own)} on {own[0].when[:10]}, {own[0].cpu}{_others(own)}" for own in boots.values())
    slugs = {each.slug for each in field.reproduced}
    nowhere = sorted(slugs - {each.slug for each in field.reproduced if each.agrees})
    return (
        f"{len(slugs)} of {len(field.findings) + len(field.faults)} findings and faults have plain commands, which ran "
        "in a fresh folder without the harness, on each boot below. They show the fault, or at least half of the step "
        f"(in the logarithm), of\n\n{shows}"
        + (f"\n\nOn no boot do they show {', '.join(f'[{slug}]({slug}.md)' for slug in nowhere)}." if nowhere else "")
    )


def _agreeing(own: Sequence[Reproduced]) -> str:
    steps, faults = [each for each in own if each.found is not None], [each for each in own if each.found is None]
    large = [each for each in steps if each.found and abs(math.log(each.found)) > math.log(_LARGE)]
    return (
        f"{sum(each.agrees for each in steps)} of {plural(len(steps), 'finding')} "
        f"({sum(each.agrees for each in large)} of the {len(large)} beyond {_LARGE:g} times) and "
        f"{sum(each.agrees for each in faults)} of {plural(len(faults), 'fault')}"
    )


def _others(own: Sequence[Reproduced]) -> str:
    """Of the findings that the commands do not show on a boot, how many the harness finds there."""
    again = [each for each in own if each.here is not None]
    return f"; the harness finds {sum(each.is_found_here for each in again)} of the others there" if again else ""


def known_reports_text(field: Field) -> str:
    """Which of the reports that this look was to find it found."""
    sought = [report for report in field.reports if report.sought]
    found = [report for report in sought if any(finding.report == report for finding in field.findings)]
    return (
        f"Of {len(sought)} reports that it was to find, {len(found)} are those of a finding, by what explain says of "
        f"it and the patterns that benchmarks/field/upstream.toml has for them: {'; '.join(map(told, found))}."
    )
