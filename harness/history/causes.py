"""Whose change it is: the compiler's, the machine's or the harness's, decided on its evidence; and why, in a sentence.

The reference toolchain stays the same from run to run, so what moves it is the machine (or the harness). The ratio to
it, taken between turns of the same rounds, is free of the machine, so what moves that is the other toolchain. A
module with the same bytes under the same runtime is the same program, whichever toolchain is called the newest. And
what is another program under the reference toolchain too was given otherwise, and so is not the compiler's.
docs/history.md has the rules as a table.
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
from harness.report.units import percent
from harness.store.schema import BETWEEN_HOSTS, Role

# The other series that help to explain the changes of one, by whose they are, metric and role: the `own` case's, or
# those of its baseline variant's. Several of one kind have different references.
Related = Mapping[tuple[Literal["own", "baseline"], str, Role], Sequence[SeriesValues]]
# By series and id of the run.
Programs = Mapping[tuple[str, str], Program]
_TIMES = (LATENCY.name, LATENCY_VS_REFERENCE)
_NO_RUNS = np.array([], dtype=np.int64)


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

    def of(self, row: SeriesRow) -> Iterator[tuple[Literal["own", "baseline"], SeriesRow]]:
        """Series related to this one; none for toolchains that stay the same, which explain others."""
        if row.role != "newest":
            return
        for other in self._of_case[_case_key(row)]:
            if is_exact(row.metric):
                helps = other.metric == row.metric and other.role == "reference"
            else:
                timed = other.metric in (*_TIMES, COMPILE_TIME.name)
                helps = timed or (shows_the_program(other.metric) and other.role == "newest")
            if helps:
                yield "own", other
        cases = self._baselines[_group_key(row)]
        if row.metric == LATENCY_VS_BASELINE and len(cases) == 1:
            for other in self._of_case[next(iter(cases))]:
                if other.metric in _TIMES:
                    yield "baseline", other

    def related(self, row: SeriesRow, values: Mapping[str, SeriesValues]) -> Related:
        """The same with their values, which are found by their series."""
        found: dict[tuple[Literal["own", "baseline"], str, Role], list[SeriesValues]] = defaultdict(list)
        for whose, other in self.of(row):
            if other.series in values:
                found[whose, other.metric, other.role].append(values[other.series])
        return found


def _case_key(row: SeriesRow) -> tuple[str, ...]:
    """What a series shares with the others of its case on the same machines."""
    return row.suite, row.case_id, row.machine_class, row.case


def _group_key(row: SeriesRow) -> tuple[str, ...]:
    """What a case shares with those that are measured in turns with it."""
    return row.suite, row.model, row.device, row.machine_class


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
    baseline: Movement | None = None  # How the baseline's own ratio to the reference moved
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
    def commits(self) -> str:
        """The harness's, before and after; "" where it is the same."""
        return commits_text(self.before.commit, self.after.commit)

    @property
    def other_input(self) -> bool:
        """Whether it is another program under the reference toolchain too: model, flags or a plugin changed."""
        if self.reference_counts is not None and self.reference_counts[0] != self.reference_counts[1]:
            return True
        if self.reference_program is None:
            return False
        before, after = self.reference_program
        return before.has_toolchain_of(after) and before.module_sha256 != after.module_sha256


def programs_needed(change: SeriesChange, related: Related, runs: Runs) -> Iterator[tuple[str, str]]:
    """Series and run of each point whose program a change's evidence needs."""
    for point in (change.last_good, change.before, change.after, change.point.end):
        yield change.row.series, runs.ids[change.run(point)]
    for values in (*_under_reference(change, related), *related.get(("baseline", LATENCY.name, "newest"), ())):
        for edge in (change.before, change.after):
            yield values.series, runs.ids[change.run(edge)]


def _under_reference(change: SeriesChange, related: Related) -> Sequence[SeriesValues]:
    metric = change.row.metric if is_exact(change.row.metric) else LATENCY.name
    return related.get(("own", metric, "reference"), ())


def gather_evidence(change: SeriesChange, related: Related, runs: Runs, programs: Programs) -> ChangeEvidence:
    """What is known before and after a change of whatever could have caused it."""
    row, point, exact = change.row, change.point, is_exact(change.row.metric)
    edges = change.run(change.before), change.run(change.after)

    def movement(metric: str, role: Role, whose: Literal["own", "baseline"] = "own") -> Movement | None:
        """Under the one reference that was measured on both sides, the surest of several; none of counted figures."""
        series = () if exact else related.get((whose, metric, role), ())
        found = (movement_of(values, change) for values in series)
        return min((each for each in found if each is not None), key=lambda each: each.error, default=None)

    def both_programs(series: Sequence[SeriesValues]) -> tuple[Program, Program] | None:
        """The programs of the series that has points in both runs next to the change."""
        pairs = ([programs.get((values.series, runs.ids[place])) for place in edges] for values in series)
        return next(((pair[0], pair[1]) for pair in pairs if pair[0] is not None and pair[1] is not None), None)

    before, after = sides_of(change, runs, programs)
    return ChangeEvidence(
        metric=row.metric,
        kind=point.kind,
        ratio=point.after / point.before if point.before else math.inf,
        before=before,
        after=after,
        peer=row.peer,
        references=(runs.facts[edges[0]].reference, runs.facts[edges[1]].reference),
        reference_program=both_programs(_under_reference(change, related)),
        reference_counts=_counts(related.get(("own", row.metric, "reference"), ()), change) if exact else None,
        reference=movement(LATENCY.name, "reference"),
        reference_compile=movement(COMPILE_TIME.name, "reference"),
        versus=movement(LATENCY_VS_REFERENCE, "newest"),
        baseline_program=both_programs(related.get(("baseline", LATENCY.name, "newest"), ())),
        baseline=movement(LATENCY_VS_REFERENCE, "newest", "baseline"),
        counted=() if exact else tuple(_counted_changes(related, *edges)),
    )


def sides_of(change: SeriesChange, runs: Runs, programs: Programs) -> tuple[Side, Side]:
    """What the runs before a change recorded, and those after it; no machine changes a counted figure."""
    levels = (_NO_RUNS, _NO_RUNS) if is_exact(change.row.metric) else change.levels

    def side(place: int, level: NDArray[np.int64]) -> Side:
        facts = [runs.facts[int(run)] for run in level]
        machines = [runs.machine(change.row.series, int(run)) for run in level]
        loads = [run.load_1min for run in facts if run.load_1min is not None]
        return Side(
            program=programs[change.row.series, runs.ids[place]],
            machines=tuple(machine for machine in machines if machine),
            kernels=tuple(run.kernel for run in facts if run.kernel and BETWEEN_HOSTS not in run.kernel),
            drivers=tuple(driver for run in facts if (driver := run.driver(change.row.device))),
            commit=runs.facts[place].harness_commit,
            load=statistics.median(loads) if loads else None,
        )

    return side(change.run(change.before), levels[0]), side(change.run(change.after), levels[1])


def _counts(series: Sequence[SeriesValues], change: SeriesChange) -> tuple[float, float] | None:
    both = ([values.values_at(level) for level in change.levels] for values in series)
    return next(((first[-1], second[0]) for first, second in both if first and second), None)


def _counted_changes(related: Related, before: int, after: int) -> Iterator[str]:
    """Counted figures of the case that differ between two runs, by more than a loop's odd iteration."""
    for (whose, metric, role), series in related.items():
        if whose == "own" and role == "newest" and shows_the_program(metric):
            first, second = (series[-1].values_at(np.array([place])) for place in (before, after))
            floor = INSTRUCTIONS.floor if metric == INSTRUCTIONS.name else 0.0
            if first and second and abs(second[0] - first[0]) > floor * abs(first[0]):
                yield metric


Cause = Literal["compiler", "machine", "harness", "unknown"]
# A cause, and why it is that in one sentence.
Explanation = tuple[Cause, str]

_SAME_MODULE = "the same module ran under the same runtime on both sides"
# A difference in load that may explain a figure: one core's worth.
_LOAD = 1.0
_SHOWN_DIGITS = 10


def explain(change: ChangeEvidence) -> Explanation:
    """The cause of a change, and why it is that."""
    engines = change.before.program.toolchain, change.after.program.toolchain
    if change.peer and (engines[0] != engines[1] or not engines[0]):
        before, after = (engine or "unknown" for engine in engines)
        return "unknown", f"the engine's version changed, or is not recorded ({before} -> {after})"
    if not change.same_toolchain and change.other_input:
        why = f"under the reference toolchain {change.references[1]}, itself the same on both sides, the program is"
        return _given_otherwise(change, f"{why} another too: its model, flags or a plugin changed")
    if is_exact(change.metric):
        if change.same_toolchain:
            return _given_otherwise(change, "a counted figure changed under the same toolchain")
        return "compiler", f"a counted figure changed {_toolchains(change)}"
    if change.metric == LATENCY_VS_BASELINE:
        return _against_baseline(change)
    same = f"the same engine ran on both sides ({engines[1]})" if change.peer else _SAME_MODULE
    if change.metric == INSTRUCTIONS.name and (change.peer or change.same_program):
        # No machine's speed changes that.
        return _given_otherwise(change, f"{same}, and executed another number of instructions")
    if change.peer or change.same_program:
        return _not_the_compiler(change, same)
    if change.same_toolchain:
        return _given_otherwise(change, "the module is another, though the toolchain is the same on both sides")
    if change.metric == COMPILE_TIME.name:
        return _compile_time(change)
    if change.metric == LATENCY.name and (change.reference or change.versus):
        return _with_reference(change)
    return _without_reference(change)


def _given_otherwise(change: ChangeEvidence, why: str) -> Explanation:
    """Neither the compiler's nor the machine's: the harness's where its commit changed."""
    if not change.commits:
        return "unknown", f"{why}, under the same harness{_machine_changes(change)}"
    return "harness", f"{why}, and the harness changed ({change.commits})"


def _compile_time(change: ChangeEvidence) -> Explanation:
    """The reference's own compile time decides; its latency shows a slower machine, but not that there was none."""
    log_change = math.log(change.ratio)
    for figure, moved in (("compile time", change.reference_compile), ("latency", change.reference)):
        if moved is None:
            continue
        what = f"the {figure} under the reference toolchain {change.references[1]}"
        by = f"({percent(moved.ratio)})"
        if moved.is_most_of(log_change):
            return "machine", f"{what} moved likewise {by}{_machine_changes(change)}"
        if figure == "compile time":
            if moved.is_little_of(log_change):
                return _compiler(change, f"{what} did not move likewise {by}, and the toolchain changed")
            return "unknown", f"{what} moved, not clearly with it and not clearly less {by}"
    why = "no compile time of one reference toolchain was taken on both sides, which would tell the machine from the"
    return "unknown", f"{why} compiler{_machine_changes(change)}"


def _with_reference(change: ChangeEvidence) -> Explanation:
    log_change = math.log(change.ratio)
    name = f"the reference toolchain {change.references[1]}"
    versus = change.versus
    reference = change.reference if change.reference and change.reference.explains(log_change) else None
    if versus is not None and versus.explains(log_change):
        why = f"the ratio to {name} moved by {percent(versus.ratio)} {_toolchains(change)}"
        if reference is not None:
            why += f", and the reference itself by {percent(reference.ratio)}, which is the machine's part"
        return _compiler(change, why)
    if reference is not None:
        ratio = f", the ratio to it by {percent(versus.ratio)}" if versus is not None else ""
        return _not_the_compiler(change, f"{name} moved likewise, by {percent(reference.ratio)}{ratio}")
    return "unknown", f"neither {name} nor the ratio to it moved clearly at these runs"


def _without_reference(change: ChangeEvidence) -> Explanation:
    """The ratio to the reference or the number of instructions, or a latency alone, between two toolchains."""
    between = _toolchains(change)
    if change.metric == LATENCY_VS_REFERENCE:
        return _compiler(change, f"the ratio to the reference toolchain, taken in the same rounds, moved {between}")
    if change.metric == INSTRUCTIONS.name:
        return _compiler(change, f"the program executes another number of instructions {between}")
    if change.counted:
        return _compiler(change, f"{', '.join(change.counted)} changed too {between}")
    why = "no reference toolchain was measured beside it, which would tell the machine from the compiler"
    before, after = change.references
    if before and after and before != after:
        why = f"the reference toolchain itself changed from {before} to {after} at these runs"
    return "unknown", f"the toolchain changed {between}, and {why}"


def _against_baseline(change: ChangeEvidence) -> Explanation:
    """A ratio to the baseline, in which two cases have a part; of a peer, where its engine stayed the same."""
    programs = [(change.before.program, change.after.program)]
    if change.baseline_program is not None:
        programs.append(change.baseline_program)
    elif change.peer:
        why = "the engine is the same on both sides, and what the baseline ran is not known"
        return "unknown", f"{why}{_machine_changes(change)}"
    if all(before == after for before, after in programs):
        what = "the same engine and the baseline's same module" if change.peer else "the same modules"
        return _not_the_compiler(change, f"{what} ran under the same runtime on both sides")
    changed = [pair for pair in programs if not pair[0].has_toolchain_of(pair[1])]
    if not changed:
        why = "the module or the baseline's is another, though the toolchain is the same on both sides"
        return _given_otherwise(change, why)
    between, baseline = _between(*changed[0]), change.baseline
    if not change.peer:
        return _compiler(change, f"the ratio to the baseline, taken in the same rounds, moved {between}")
    why = f"the engine is the same, and the baseline variant's toolchain changed {between}"
    if baseline is None:
        return _compiler(change, why)
    by = percent(baseline.ratio)
    if baseline.explains(-math.log(change.ratio)):
        return _compiler(change, f"{why}, its own time by {by}")
    return "unknown", f"{why}, but its own time moved by {by}, which does not explain it{_machine_changes(change)}"


def _compiler(change: ChangeEvidence, why: str) -> Explanation:
    before, after = change.before, change.after
    moved = _differ(before.machines, after.machines) or _differ(before.kernels, after.kernels)
    also = ", and another machine can move a ratio too" if moved else ""
    return "compiler", f"{why}{_machine_changes(change)}{also}"


def _not_the_compiler(change: ChangeEvidence, why: str) -> Explanation:
    """The machine's, unless nothing changed but the harness."""
    changed = _machine_changes(change)
    if change.kind == "step" and change.commits and not changed:
        return "harness", f"{why}, and nothing else that runs record changed but the harness ({change.commits})"
    return "machine", f"{why}{changed or '; nothing that runs record of the machine changed'}"


def _machine_changes(change: ChangeEvidence) -> str:
    """`; meanwhile the kernel changed from 6.1.0 to 6.2.0`, or "" where nothing that runs record did."""
    before, after = change.before, change.after
    facts = [
        ("the machine", before.machines, after.machines),
        ("the kernel", before.kernels, after.kernels),
        ("the device", before.drivers, after.drivers),
    ]
    parts = [f"{what} changed from {old[-1]} to {new[0]}" for what, old, new in facts if _differ(old, new)]
    if before.load is not None and after.load is not None and abs(after.load - before.load) >= _LOAD:
        parts.append(f"its load went from {before.load:.1f} to {after.load:.1f}")
    return f"; meanwhile {' and '.join(parts)}" if parts else ""


def _differ(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the sides have no value in common, and one kept to a single one: on hired machines all values differ."""
    if not before or not after or set(before) & set(after):
        return False
    longer = before if len(before) >= len(after) else after
    kept = any(len(side) > 1 and len(set(side)) == 1 for side in (before, after))
    return kept or len(longer) == 1


def _toolchains(change: ChangeEvidence) -> str:
    return _between(change.before.program, change.after.program)


def _between(before: Program, after: Program) -> str:
    """`between 3.12.0 (89ece87b89) and 3.13.0 (0123456789)`."""
    return f"between {toolchain_text(before)} and {toolchain_text(after)}"


def toolchain_text(program: Program) -> str:
    """Release and revision: `3.12.0 (89ece87b89)`."""
    if not program.revision:
        return program.toolchain
    return f"{program.toolchain} ({program.revision[:_SHOWN_DIGITS]})"


def commits_text(before: str, after: str) -> str:
    """`35217dcf00 -> 89ece87b89`; "" where it is the same."""
    return "" if before == after else f"{_commit(before)} -> {_commit(after)}"


def _commit(commit: str) -> str:
    digits, _, dirty = commit.partition("+")
    return f"{digits[:_SHOWN_DIGITS]}{'+dirty' if dirty else ''}" or "no commit"
