"""All that docs/field says, and what became of a finding in later releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from benchmarks.field.findings import Change, Fault, Finding, Step
from benchmarks.field.flags import Tried
from benchmarks.field.parts import FLOOR, public
from benchmarks.field.reproduce import Reproduced
from benchmarks.field.upstream import Report
from harness.report.units import ratio_text


@dataclass(frozen=True, kw_only=True)
class Field:
    """All that the pages say."""

    lines: pd.DataFrame
    steps: pd.DataFrame
    findings: Sequence[Finding]
    changes: Sequence[Change]  # All of them, also those of no finding
    faults: Sequence[Fault]
    reproduced: Sequence[Reproduced]
    tried: Sequence[Tried]
    reports: Sequence[Report]  # All of upstream.toml

    @property
    def releases(self) -> list[str]:
        """Of all lines, the oldest first."""
        names = dict.fromkeys(map(public, self.lines["release"]))
        return sorted(names, key=lambda name: tuple(map(int, name.split("."))))


def slow_still(finding: Finding, field: Field) -> list[Step]:
    """Its decided steps that are slower in the newest release than before they began."""
    slower = (step for step in finding.steps if step.decided and step.ratio > 1)
    return [step for step in slower if (_now(step, field) or 0.0) > 1 + FLOOR]


def _now(step: Step, field: Field) -> float | None:
    """The time of its case in the newest release, to that before it began."""
    ratios, newest = ratios_of(field, step.line), field.releases[-1]
    return ratios[newest] / ratios[step.before] if {newest, step.before} <= {*ratios} else None


def fate_of(finding: Finding, field: Field) -> str:
    """Since which release its largest case is back where it was before, or what it is in the newest."""
    step = finding.steps[0]
    now = _now(step, field)
    if now is None:
        return "not to be compared"
    ratios, order = ratios_of(field, step.line), field.releases
    slower, edge = step.ratio > 1, 1 + FLOOR if step.ratio > 1 else 1 / (1 + FLOOR)
    later = [release for release in order[order.index(step.after) :] if release in ratios]
    is_back = [(ratios[release] / ratios[step.before] <= edge) is slower for release in later]
    if True not in is_back[1:]:
        return f"{ratio_text(now)} in {order[-1]}"
    since = later[is_back.index(True, 1)]
    again = "" if is_back[-1] else f", again {ratio_text(now)} in {order[-1]}"
    left = [each for each in slow_still(finding, field) if each != step]
    others = f"; {len(left)} of {sum(each.decided for each in finding.steps)} cases are slower still" if left else ""
    return f"{'mended' if slower else 'lost'} in {since}{again}{others}"


def ratios_of(field: Field, line: str) -> dict[str, float]:
    """A line's ratios to its first release, by release; controls left out."""
    rows = field.lines[(field.lines["line"] == line) & field.lines["ratio"].notna()]
    pairs = zip(rows["release"], rows["ratio"], strict=True)
    return {release: float(ratio) for release, ratio in pairs if "+" not in release}
