"""Report -> what each release did: lines over the run's releases, the steps between neighbours, and what fails where.

All ratios are of turns that ran side by side in this run. Those to a line's first measured release are judged together,
and so are those of neighbouring releases: one family of rows each, by the one judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from harness.compare.judge import CHANGED, Judged, Timings, judge_recorded
from harness.compare.pairs import Pair, pair_releases
from harness.records.comparison import Row as JudgedRow
from harness.records.comparison import Verdict
from harness.report.run_report import Report
from harness.report.run_rows import Row, Section
from harness.stats.rule import Rule

# `not available`: the release lacks a flag, variant or plugin of the case, which is skipped there.
State = Literal["measured", "fails", "wrong", "not available", "not measured"]
MANY = 3  # A run of so many releases is read line by line, not case by case


@dataclass(frozen=True, kw_only=True)
class ReleasePoint:
    """A line under one release."""

    release: str
    state: State
    expected: bool = False  # Whether the suite says that it fails or is wrong there
    case: str = ""  # "" where the run has no such case
    why: str = ""  # Of what is not measured, in a sentence
    latency_ns: float | None = None
    ratio: float | None = None  # To the line's first measured release; None of what is not measured
    low: float | None = None  # Lower end of its interval; None where it has none
    high: float | None = None
    verdict: Verdict | None = None  # Of that ratio; None of the first release itself


@dataclass(frozen=True, kw_only=True)
class Line:
    """A model's variant on a device over the releases of the run."""

    group: str
    model: str
    variant: str
    device: str
    host: str
    points: tuple[ReleasePoint, ...]  # One for each release, in the run's order

    @property
    def name(self) -> str:
        """As that of its cases, without the release."""
        return f"{self.model}/{self.variant}@{self.device}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A line under a release beside itself under the last one before it that was measured."""

    line: Line
    before: str
    after: str
    between: tuple[str, ...]  # Releases between them under which it was not measured
    row: JudgedRow

    @property
    def size(self) -> float:
        """How far the ratio is from 1, either way, in the logarithm."""
        return abs(math.log(self.row.ratio)) if self.row.ratio else 0.0


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Releases one after the other under which a line is in one state; those that say nothing of it are passed over."""

    line: Line
    state: State
    expected: bool
    first: str
    last: str
    why: str
    before: State | None  # The state that it has before; None: it is the line's first

    @property
    def is_bad(self) -> bool:
        """Whether it fails or is wrong there, and is not expected to."""
        return self.state in ("fails", "wrong") and not self.expected


@dataclass(frozen=True, kw_only=True)
class Releases:
    """A run over its releases."""

    names: tuple[str, ...]
    lines: tuple[Line, ...]
    neighbours: tuple[Step, ...]  # Every judged pair of neighbours, changed or not, once for each module

    @property
    def steps(self) -> list[Step]:
        """The neighbours that were found to differ, the largest first."""
        return sorted((step for step in self.neighbours if step.row.verdict in CHANGED), key=lambda step: -step.size)

    @property
    def stretches(self) -> list[Stretch]:
        """Line by line, what it did under which releases; one that has a state `before` is a change."""
        return [stretch for line in self.lines for stretch in _stretches(line)]


def steps(report: Report, floor: float | None = None) -> list[Step]:
    """The steps of a run by the floor that is given, or by its own; the largest first."""
    return releases_of(report, floor).steps


def releases_of(report: Report, floor: float | None = None) -> Releases:
    """The lines of a report's rows and their neighbours, judged with all that the run measured."""
    side, timings = report.timings.side, report.timings
    names = tuple(side.toolchains)
    rule = Rule(floor=report.floor if floor is None else floor)

    def pairs(to: Literal["first", "last"]) -> dict[str, Pair]:
        return {pair.name: pair for pair in pair_releases(side, lambda case: timings.medians(case).size > 0, to=to)}

    to_first = judge_recorded(pairs("first"), timings, timings, rule)
    lines = [line for section in report.sections for line in lines_of(section, names, to_first)]
    line_of = {point.case: line for line in lines for point in line.points}
    # Of two variants with one module before and after, the one that was measured tells of the step.
    of_neighbours = {name: pair for name, pair in pairs("last").items() if not _is_twin(pair, timings)}
    judged = judge_recorded(of_neighbours, timings, timings, rule)
    neighbours = [
        _step(line_of[name], pair, names, judged[name].row) for name, pair in of_neighbours.items() if name in line_of
    ]
    return Releases(names=names, lines=tuple(lines), neighbours=tuple(neighbours))


def _point(row: Row | None, release: str, judged: Mapping[str, Judged] | None) -> ReleasePoint:
    if row is None:
        return ReleasePoint(release=release, state="not measured")
    found = None if judged is None else judged.get(row.case)
    estimate = row.estimate if judged is None else found.estimate if found is not None else None
    is_base = (row.baseline or row.kind == "same") if judged is None else found is None
    has_ratio = estimate is not None and estimate.ratio > 0
    if row.failure is None and row.latency is not None and (has_ratio or is_base):
        point = ReleasePoint(release=release, state="measured", case=row.case, latency_ns=row.latency_ns, ratio=1.0)
        if estimate is None:
            return point
        verdict = found.row.verdict if found is not None else None
        return replace(point, ratio=estimate.ratio, low=estimate.low, high=estimate.high, verdict=verdict)
    if row.failure is not None:
        state: State = "wrong" if row.failure.mismatch else "fails"
    else:
        state = "not available" if row.status == "skipped" else "not measured"
    expected = row.status == "expected failure"
    return ReleasePoint(release=release, state=state, expected=expected, case=row.case, why=next(iter(row.remarks), ""))


def lines_of(section: Section, names: Sequence[str], to_first: Mapping[str, Judged] | None = None) -> list[Line]:
    """The lines of a model on a device; without judged ratios with those to the section's baseline."""
    variants: dict[str, dict[str, Row]] = {}
    for row in section.rows:
        if row.peer is None:
            variants.setdefault(row.variant, {})[row.toolchain] = row
    facts = {name: getattr(section, name) for name in ("group", "model", "device", "host")}
    return [
        Line(variant=variant, points=tuple(_point(rows.get(name), name, to_first) for name in names), **facts)
        for variant, rows in variants.items()
    ]


def _is_twin(pair: Pair, timings: Timings) -> bool:
    timed = list(map(timings.timed, pair.both))
    return timed[0].variant == timed[1].variant != pair.case.variant


def _step(line: Line, pair: Pair, names: tuple[str, ...], row: JudgedRow) -> Step:
    before, after = (case.toolchain for case in pair.both)
    between = names[names.index(before) + 1 : names.index(after)]
    return Step(line=line, before=before, after=after, between=between, row=row)


def _stretches(line: Line) -> list[Stretch]:
    known = [point for point in line.points if point.state not in ("not available", "not measured")]
    found: list[Stretch] = []
    for (state, expected), group in groupby(known, key=lambda point: (point.state, point.expected)):
        first, last = (points := list(group))[0], points[-1]
        before = found[-1].state if found else None
        ends = {"first": first.release, "last": last.release, "why": first.why}
        found.append(Stretch(line=line, state=state, expected=expected, before=before, **ends))
    return found
