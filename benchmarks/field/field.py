"""All that docs/field says, and what became of a finding in later releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from benchmarks.field.findings import Change, Fault, Finding
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


def is_slow_still(finding: Finding, field: Field) -> bool:
    """Whether it is slower in the newest release than before it began."""
    now = _now(finding, field)
    return finding.steps[0].ratio > 1 and now is not None and now > 1 + FLOOR


def _now(finding: Finding, field: Field) -> float | None:
    """The time of its largest case in the newest release, to that before it began."""
    step, ratios = finding.steps[0], ratios_of(field, finding.steps[0].line)
    return ratios[field.releases[-1]] / ratios[step.before] if {field.releases[-1], step.before} <= {*ratios} else None


def fate_of(finding: Finding, field: Field) -> str:
    """Since which release its largest case is back where it was before, or what it is in the newest."""
    step, now = finding.steps[0], _now(finding, field)
    if now is None:
        return "not to be compared"
    ratios, order = ratios_of(field, step.line), field.releases
    slower, edge = step.ratio > 1, 1 + FLOOR if step.ratio > 1 else 1 / (1 + FLOOR)
    later = [release for release in order[order.index(step.after) :] if release in ratios]
    is_back = [(ratios[release] / ratios[step.before] <= edge) is slower for release in later]
    if True not in is_back[1:]:
        return f"{ratio_text(now)} in {order[-1]}"
    since = later[is_back.index(True, 1)]
    again = "" if is_back[-1] else f", {ratio_text(now)} in {order[-1]}"
    return f"{'mended' if slower else 'lost again'} in {since}{again}"


def ratios_of(field: Field, line: str) -> dict[str, float]:
    """A line's ratios to its first release, by release; controls left out."""
    rows = field.lines[(field.lines["line"] == line) & field.lines["ratio"].notna()]
    pairs = zip(rows["release"], rows["ratio"], strict=True)
    return {release: float(ratio) for release, ratio in pairs if "+" not in release}
