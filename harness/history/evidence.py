"""What is known before and after a change: programs, machines, the harness, and how the reference moved.

Runs record their machine and their harness; points record the toolchain and the module they were made with. The other
series of the case, and those of its baseline, show what else moved between the two levels.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.history.levels import Movement, SeriesChange, movement_of
from harness.history.series import Program, Runs, SeriesRow, SeriesValues
from harness.metrics import (
    COMPILE_TIME,
    INSTRUCTIONS,
    LATENCY,
    LATENCY_VS_BASELINE,
    LATENCY_VS_REFERENCE,
    is_exact,
    shows_the_program,
)
from harness.store.schema import BETWEEN_HOSTS, Role

# Series by metric and role; several of one kind have different references.
SeriesByKind = Mapping[tuple[str, Role], Sequence[SeriesValues]]
# By series and id of the run.
Programs = Mapping[tuple[str, str], Program]
_TIMES = (LATENCY.name, LATENCY_VS_REFERENCE)
_NO_RUNS = np.array([], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class RelatedSeries:
    """The other series that help to explain the changes of one."""

    own: SeriesByKind  # Of the same case
    baseline: SeriesByKind  # Times of its baseline variant's case, of what is a ratio to that


class Relations:
    """Finds the series that help to explain the changes of each one."""

    def __init__(self, rows: Sequence[SeriesRow]) -> None:
        self._of_case: dict[tuple[str, ...], list[SeriesRow]] = defaultdict(list)
        for row in rows:
            self._of_case[_case_key(row)].append(row)
        # The baseline of a group is its only case that is timed and has no ratio to a baseline.
        self._baselines: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        for case, members in self._of_case.items():
            kinds = {(row.metric, row.role) for row in members if not row.peer}
            if (LATENCY.name, "newest") in kinds and not any(row.metric == LATENCY_VS_BASELINE for row in members):
                self._baselines[_group_key(members[0])].add(case)

    def rows(self, row: SeriesRow) -> list[SeriesRow]:
        """Series related to this one; none for toolchains that stay the same, which explain others."""
        return [*self._own(row), *self._baseline(row)]

    def related(self, row: SeriesRow, values: Mapping[str, SeriesValues]) -> RelatedSeries:
        """The same with their values, which are found by their series."""
        return RelatedSeries(own=_by_kind(self._own(row), values), baseline=_by_kind(self._baseline(row), values))

    def _own(self, row: SeriesRow) -> list[SeriesRow]:
        members = self._of_case[_case_key(row)] if row.role == "newest" else []
        if is_exact(row.metric):
            return [other for other in members if other.metric == row.metric and other.role == "reference"]
        return [
            other
            for other in members
            if other.metric in (*_TIMES, COMPILE_TIME.name)
            or (shows_the_program(other.metric) and other.role == "newest")
        ]

    def _baseline(self, row: SeriesRow) -> list[SeriesRow]:
        cases = self._baselines[_group_key(row)]
        if row.metric != LATENCY_VS_BASELINE or row.role != "newest" or len(cases) != 1:
            return []
        return [other for other in self._of_case[next(iter(cases))] if other.metric in _TIMES]


def _case_key(row: SeriesRow) -> tuple[str, ...]:
    """What a series shares with the others of its case on the same machines."""
    return row.suite, row.case_id, row.machine_class, row.case


def _group_key(row: SeriesRow) -> tuple[str, ...]:
    """What a case shares with those that are measured in turns with it."""
    return row.suite, row.model, row.device, row.machine_class


def _by_kind(rows: Sequence[SeriesRow], values: Mapping[str, SeriesValues]) -> SeriesByKind:
    found: dict[tuple[str, Role], list[SeriesValues]] = defaultdict(list)
    for row in rows:
        if row.series in values:
            found[row.metric, row.role].append(values[row.series])
    return found


@dataclass(frozen=True, kw_only=True)
class Side:
    """What the runs of one side of a change recorded."""

    program: Program  # Of the run next to the change that is surely on this side
    machines: tuple[str, ...]  # Of each run of this side that says so, in order of time
    kernels: tuple[str, ...]  # The same of its kernel; a run of hosts with several does not say whose is which
    drivers: tuple[str, ...]  # The same of the case's own device
    commit: str  # The harness's, in the run next to the change
    load: float | None  # Median over this side's runs of the machine's load as they began


@dataclass(frozen=True, kw_only=True)
class ChangeEvidence:
    """A change of one series, and what is known before and after it."""

    metric: str
    exact: bool
    kind: Literal["step", "drift"]  # One commit may make a step, and no drift
    ratio: float  # The level after it, divided by that before it
    before: Side
    after: Side
    peer: str = ""  # The engine's registered name; "" for IREE
    # Release of the toolchain that stays the same, before and after; "" where none was measured
    references: tuple[str, str] = ("", "")
    # What the case was under it, before and after; None: not known on both sides
    reference_program: tuple[Program, Program] | None = None
    reference_counts: tuple[float, float] | None = None  # The same counted figure under it, before and after
    # How the case's latency under it moved; None: no one release was measured on both sides
    reference: Movement | None = None
    reference_compile: Movement | None = None  # How the case's compile time under it moved
    versus: Movement | None = None  # How the case's ratio to it moved
    baseline_program: tuple[Program, Program] | None = None  # Of the case's baseline variant, before and after
    # How the case's latency moved, free of the machine where that is known: what moved a ratio to the baseline
    own: Movement | None = None
    baseline: Movement | None = None  # How the baseline's did
    counted: tuple[str, ...] = ()  # Names of counted figures of the case that changed in between

    @property
    def same_toolchain(self) -> bool:
        """Whether release and revision are the same on both sides; of a peer, the engine and its version."""
        return self.before.program.has_toolchain_of(self.after.program)

    @property
    def same_program(self) -> bool:
        """Whether the same module ran under the same runtime on both sides."""
        return self.before.program == self.after.program

    @property
    def same_harness(self) -> bool:
        """Whether the harness's commit is the same on both sides."""
        return self.before.commit == self.after.commit

    @property
    def other_input(self) -> bool:
        """Whether it is another program under the reference toolchain too: model, flags or a plugin changed."""
        if self.reference_counts is not None and self.reference_counts[0] != self.reference_counts[1]:
            return True
        if self.reference_program is None:
            return False
        before, after = self.reference_program
        return before.has_toolchain_of(after) and before.module_sha256 != after.module_sha256


def programs_needed(change: SeriesChange, related: RelatedSeries, runs: Runs) -> Iterator[tuple[str, str]]:
    """Series and run of each point whose program a change's evidence needs."""
    for edge in change.edges():
        yield change.row.series, runs.ids[edge]
    for values in (*_under_reference(change, related), *related.baseline.get((LATENCY.name, "newest"), ())):
        for edge in (change.before, change.after):
            yield values.series, runs.ids[change.run(edge)]


def gather_evidence(change: SeriesChange, related: RelatedSeries, runs: Runs, programs: Programs) -> ChangeEvidence:
    """What is known before and after a change of whatever could have caused it."""
    row, point = change.row, change.point
    exact = is_exact(row.metric)
    timed = not exact and row.role == "newest"
    before, after = change.run(change.before), change.run(change.after)
    versus = _movement(related.own, (LATENCY_VS_REFERENCE, "newest"), change) if timed else None
    own, baseline = _parts_of_ratio(change, related, versus) if row.metric == LATENCY_VS_BASELINE else (None, None)
    first, second = sides_of(change, runs, programs)
    return ChangeEvidence(
        metric=row.metric,
        exact=exact,
        kind=point.kind,
        ratio=point.after / point.before if point.before else math.inf,
        before=first,
        after=second,
        peer=row.peer,
        references=(runs.facts[before].reference, runs.facts[after].reference),
        reference_program=_program_pair(_under_reference(change, related), before, after, runs, programs),
        reference_counts=_counts(related.own.get((row.metric, "reference"), ()), change) if exact else None,
        reference=_movement(related.own, (LATENCY.name, "reference"), change) if timed else None,
        reference_compile=_movement(related.own, (COMPILE_TIME.name, "reference"), change) if timed else None,
        versus=versus,
        baseline_program=_program_pair(
            related.baseline.get((LATENCY.name, "newest"), ()), before, after, runs, programs
        ),
        own=own,
        baseline=baseline,
        counted=_counted_changes(related.own, before, after) if timed else (),
    )


def sides_of(change: SeriesChange, runs: Runs, programs: Programs) -> tuple[Side, Side]:
    """What the runs before a change recorded, and those after it; no machine changes a counted figure."""
    levels = (_NO_RUNS, _NO_RUNS) if is_exact(change.row.metric) else change.levels
    first, second = (
        _side(change, point, level, runs, programs)
        for point, level in zip((change.before, change.after), levels, strict=True)
    )
    return first, second


def _side(change: SeriesChange, point: int, level: NDArray[np.int64], runs: Runs, programs: Programs) -> Side:
    place = change.run(point)
    facts = [runs.facts[int(run)] for run in level]
    machines = [runs.machine(change.row.series, int(run)) for run in level]
    loads = [run.load for run in facts if run.load is not None]
    return Side(
        program=programs[change.row.series, runs.ids[place]],
        machines=tuple(machine for machine in machines if machine),
        kernels=tuple(run.kernel for run in facts if run.kernel and BETWEEN_HOSTS not in run.kernel),
        drivers=tuple(driver for run in facts if (driver := run.driver(change.row.device))),
        commit=runs.facts[place].commit,
        load=statistics.median(loads) if loads else None,
    )


def _parts_of_ratio(
    change: SeriesChange, related: RelatedSeries, versus: Movement | None
) -> tuple[Movement | None, Movement | None]:
    """How the two parts of a ratio to the baseline moved: the case's own time and the baseline's."""
    if versus is not None:
        return versus, _movement(related.baseline, (LATENCY_VS_REFERENCE, "newest"), change)
    # A peer, or one toolchain alone: of both the time itself, or of neither.
    own = _movement(related.own, (LATENCY.name, "newest"), change)
    if change.row.peer:
        return own, _movement(related.baseline, (LATENCY_VS_REFERENCE, "newest"), change)
    return own, _movement(related.baseline, (LATENCY.name, "newest"), change)


def _under_reference(change: SeriesChange, related: RelatedSeries) -> Sequence[SeriesValues]:
    """Series that tell which program the case was under the reference toolchain."""
    metric = change.row.metric if is_exact(change.row.metric) else LATENCY.name
    return related.own.get((metric, "reference"), ()) if change.row.role == "newest" else ()


def _program_pair(
    series: Sequence[SeriesValues], before: int, after: int, runs: Runs, programs: Programs
) -> tuple[Program, Program] | None:
    """The programs of the series that has points in both of two runs."""
    for values in series:
        first, second = (programs.get((values.series, runs.ids[place])) for place in (before, after))
        if first is not None and second is not None:
            return first, second
    return None


def _movement(series: SeriesByKind, kind: tuple[str, Role], change: SeriesChange) -> Movement | None:
    """Under the one reference that was measured on both sides, the surest of several."""
    movements = [movement_of(values, change) for values in series.get(kind, ())]
    known = [movement for movement in movements if movement is not None]
    return min(known, key=lambda movement: movement.error, default=None)


def _counts(series: Sequence[SeriesValues], change: SeriesChange) -> tuple[float, float] | None:
    """A counted figure next to a change, on both sides."""
    before, after = change.levels
    for values in series:
        first, second = values.values_at(before), values.values_at(after)
        if first and second:
            return first[-1], second[0]
    return None


def _counted_changes(own: SeriesByKind, before: int, after: int) -> tuple[str, ...]:
    """Counted figures of the case that differ between two runs, by more than a loop's odd iteration."""
    changed = []
    for (metric, role), series in own.items():
        if role != "newest" or not shows_the_program(metric):
            continue
        first, second = (series[-1].values_at(np.array([place])) for place in (before, after))
        if not (first and second):
            continue
        floor = INSTRUCTIONS.floor if metric == INSTRUCTIONS.name else 0.0
        if abs(second[0] - first[0]) > floor * abs(first[0]):
            changed.append(metric)
    return tuple(changed)
