"""A run and its report -> points: one for each figure of each case."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from harness.history.machine_class import machine_class
from harness.history.values import Point, Role
from harness.metrics import (
    BUILD_FACTS,
    COMPILE_TIME,
    INSTRUCTIONS,
    LATENCY,
    LATENCY_VS_BASELINE,
    LATENCY_VS_REFERENCE,
    NOISY_METRICS,
    REFERENCE_FACTS,
    metric_named,
)
from harness.records.case import Case
from harness.records.run import Header
from harness.report.run_report import Report
from harness.report.run_rows import Row
from harness.stats import Estimate, GroupTimes, estimate_ratio, tabulate_rounds
from harness.store.evidence import Evidence, stand_ins

_ID_DIGITS = 16


def series_id(suite: str, case_id: str, metric: str, machine_class: str, role: Role, beside: str = "") -> str:
    """16 hex digits that tell one series from all others.

    Args:
        suite: Its name.
        case_id: Of what is compiled and how it runs; the same after the variant was renamed.
        machine_class: In words, see harness.history.machine_class.
        beside: What else has to stay the same: the release of a reference or of another fixed toolchain, or the case's
            name where a suite has two cases of one id.
    """
    definition = [suite, case_id, metric, machine_class, role, beside]
    text = json.dumps(definition, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def toolchain_role(place: int, count: int) -> Role:
    """What the toolchain at a place (from 0) is among so many: the last is the newest, the first of several fixed."""
    if place == count - 1:
        return "newest"
    return "reference" if place == 0 else "other"


@dataclass(frozen=True, kw_only=True)
class _Figure:
    """One value of a case.

    Attributes:
        beside: The release that it is a ratio to; "" where it is none to another toolchain.
    """

    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    beside: str = ""


class CaseColumns(TypedDict):
    """The columns that tables of cases share; harness.history.values says what they hold."""

    case: str
    case_id: str
    model: str
    variant: str
    device: str
    peer: str
    role: Role
    toolchain: str


@dataclass(frozen=True, kw_only=True)
class CaseFacts:
    """What the rows of one case in one run share.

    Attributes:
        name: Without the toolchain.
        role: Of its toolchain; a peer's is `newest`.
        toolchain: Its release; of a peer, the engine's name and version as far as the run knows them.
        revision: "" of a peer.
        ambiguous: Whether the run has another case with the same id and the same toolchain, as of two variants with
            the same flags.
    """

    case: Case
    name: str
    role: Role
    toolchain: str
    revision: str
    ambiguous: bool

    @property
    def columns(self) -> CaseColumns:
        """What every table says of a case."""
        return CaseColumns(
            case=self.name,
            case_id=self.case.id,
            model=self.case.model,
            variant=self.case.variant,
            device=self.case.device,
            peer=self.case.peer or "",
            role=self.role,
            toolchain=self.toolchain,
        )


def facts_of_cases(header: Header) -> dict[str, CaseFacts]:
    """By name of the case, in the header's order."""
    places = {one.version: place for place, one in enumerate(header.toolchains)}
    peers = header.environment.get("peers", {})
    seen: set[tuple[str, str]] = set()
    found = {}
    for case in header.cases:
        place = places.get(case.toolchain)
        known = header.toolchains[place] if place is not None else None
        role: Role = "newest" if place is None else toolchain_role(place, len(header.toolchains))
        found[case.name] = CaseFacts(
            case=case,
            name=f"{case.model}/{case.variant}@{case.device}",
            role=role,
            toolchain=case.toolchain if case.peer is None else str(peers.get(case.variant, "")),
            revision=known.revision if known is not None else "",
            ambiguous=(case.id, case.toolchain) in seen,
        )
        seen.add((case.id, case.toolchain))
    return found


def points_of(
    header: Header, started: str, report: Report, evidence: Evidence, facts: Mapping[str, CaseFacts]
) -> list[Point]:
    """The points of a run, case by case.

    Args:
        started: The run's, as tables have it.
        report: The run's.
        evidence: Likewise.
        facts: Of its cases.
    """
    groups: dict[str, list[Case]] = {}
    for case in header.cases:
        groups.setdefault(case.group, []).append(case)
    rows = {row.case: row for row in report.rows()}
    machine = str(header.environment.get("machine", {}).get("id", ""))
    points = []
    for name, cases in groups.items():
        group = _Group(header, name, cases, evidence)
        classed = machine_class(header.environment, cases[0].device)
        for case in cases:
            row, fact = rows[case.name], facts[case.name]
            columns = fact.columns
            for figure in group.figures(case, row):
                beside = [figure.beside or (fact.toolchain if fact.role in ("reference", "other") else "")]
                if fact.ambiguous:
                    beside.append(fact.name)
                metric = metric_named(figure.metric)
                points.append(
                    Point(
                        run=header.id,
                        started=started,
                        series=series_id(
                            header.suite_name,
                            case.id,
                            figure.metric,
                            classed,
                            fact.role,
                            " ".join(filter(None, beside)),
                        ),
                        suite=header.suite_name,
                        **columns,
                        revision=fact.revision,
                        machine_class=classed,
                        machine=machine,
                        metric=figure.metric,
                        unit=metric.unit if metric is not None else "ratio",
                        value=figure.value,
                        low=figure.low,
                        high=figure.high,
                        module_sha256=row.module_sha256 or "",
                    )
                )
    return points


class _Group:
    """The figures of the cases that were measured against each other."""

    def __init__(self, header: Header, name: str, cases: Sequence[Case], evidence: Evidence) -> None:
        self._evidence = evidence
        self._stand_ins = stand_ins(cases, evidence)
        self._several = len(header.toolchains) > 1
        self._times = tabulate_rounds(evidence.rounds.get(name, ())) if self._several else None
        self._baselines = {case.toolchain: case for case in cases if case.variant == header.baseline and not case.peer}
        first = header.toolchains[0].version if self._several else ""
        self._references = {_across(case): case for case in cases if case.toolchain == first and not case.peer}
        self._newest = header.toolchains[-1].version if header.toolchains else ""

    def figures(self, case: Case, row: Row) -> Iterator[_Figure]:
        """All of one case that are numbers which can be plotted and compared."""
        for figure in (*self._timings(case, row), *self._counted(case)):
            lowest = 0.0 if figure.metric not in NOISY_METRICS else math.ulp(0.0)
            if math.isfinite(figure.value) and figure.value >= lowest:
                yield figure

    def _timings(self, case: Case, row: Row) -> Iterator[_Figure]:
        if row.latency_ns is None:
            return
        yield _Figure(metric=LATENCY.name, value=row.latency_ns, low=row.latency_low_ns, high=row.latency_high_ns)
        if row.instructions_per_call is not None:
            yield _Figure(metric=INSTRUCTIONS.name, value=row.instructions_per_call)
        if self._times is None:
            if row.estimate is not None:
                yield _ratio(LATENCY_VS_BASELINE, row.estimate)
            elif row.kind == "same":  # its module is the baseline's
                yield _Figure(metric=LATENCY_VS_BASELINE, value=1.0)
            return
        baseline = self._baselines.get(case.toolchain if case.peer is None else self._newest)
        if baseline is not None and baseline is not case:
            yield from self._against(self._times, LATENCY_VS_BASELINE, case, baseline)
        reference = self._references.get(_across(case))
        if reference is not None and case.toolchain != reference.toolchain:
            yield from self._against(self._times, LATENCY_VS_REFERENCE, case, reference, beside=reference.toolchain)

    def _against(self, times: GroupTimes, metric: str, case: Case, other: Case, beside: str = "") -> Iterator[_Figure]:
        """The case's time divided by another's, from turns of the same rounds."""
        timed, below = self._timed(times, case), self._timed(times, other)
        if timed == below:
            yield _Figure(metric=metric, value=1.0, beside=beside)
        elif (estimate := estimate_ratio(times.log_ratios(timed, below))) is not None:
            yield _ratio(metric, estimate, beside)

    def _timed(self, times: GroupTimes, case: Case) -> str:
        """The case whose turns are this one's: its own, unless another with its module stands for it."""
        return case.name if case.name in times.columns else self._stand_ins.get(case.name, case).name

    def _counted(self, case: Case) -> Iterator[_Figure]:
        build = self._evidence.builds.get(case.name)
        if build is not None and build.failure is None:
            if build.compile_ns is not None and not build.cached:
                yield _Figure(metric=COMPILE_TIME.name, value=float(build.compile_ns))
            for metric, of_build in BUILD_FACTS.items():
                yield from _known(metric.name, of_build(build))
        stand_in = self._stand_ins.get(case.name, case)
        references = self._evidence.references
        reference = references.get(case.name) or references.get(stand_in.name)
        if reference is not None:
            for metric, of_reference in REFERENCE_FACTS.items():
                yield from _known(metric.name, of_reference(reference))
        counted = self._evidence.ir.get(case.name)
        for name, count in counted.counts.items() if counted is not None else ():
            yield from _known(name, count)


def _across(case: Case) -> tuple[str, str]:
    """What a case has in common with itself under another toolchain; a group may have two variants of one id."""
    return case.id, case.variant


def _known(metric: str, value: float | None) -> Iterator[_Figure]:
    if value is not None:
        yield _Figure(metric=metric, value=float(value))


def _ratio(metric: str, estimate: Estimate, beside: str = "") -> _Figure:
    return _Figure(metric=metric, value=estimate.ratio, low=estimate.low, high=estimate.high, beside=beside)
