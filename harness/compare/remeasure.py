"""Pairs -> rows, measured again now and side by side, on this machine or wherever a `RowPlace` is.

Hosts of a fleet are such a place, see harness.fleet.bench.
"""

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from harness.compare.comparison import Plan
from harness.compare.engine import Generation, Outcome, StoppedEarly, Task, Together, decide, in_turn
from harness.compare.pairs import DecidedRow, Pair
from harness.compare.rows import instructions_row, known_row, measured_row, with_kind_of_change
from harness.compare.samplers import (
    CacheMiss,
    MeasurementPolicy,
    Module,
    compile_task,
    find_module,
    latency_task,
    words_of_modules,
)
from harness.errors import CaseError, NoHost, RunError
from harness.measure.session import only_one_measures
from harness.measure.worker import ON_CALLING_THREAD
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.process import Limits
from harness.progress import Progress, duration
from harness.records.comparison import Row
from harness.records.run import Failure, HostRecord, Round, ToolchainRecord
from harness.store.work_directory import ComparisonDirectory
from harness.suite.devices import why_gone
from harness.text import plural
from harness.toolchain import Toolchain


@dataclass(frozen=True, kw_only=True)
class Work:
    """A pair whose modules are here."""

    name: str  # Unique among the rows of a comparison
    pair: Pair
    base: Module
    head: Module
    control: bool  # Whether it is an A/A control


class RowPlace(Protocol):
    """Where rows are measured."""

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Of a fleet, the hosts that rows are on, one on each at a time; (): this machine."""

    def missing(self, works: Sequence[Work]) -> Mapping[str, DecidedRow]:
        """Rows that cannot be measured there, by name, with why; asked once, before anything is measured."""

    def alone(self, *, wait: bool) -> AbstractContextManager[Together]:
        """Let nothing else of the harness compute there while rows are measured; give what walks the rows."""

    def latencies(self, work: Work, policy: MeasurementPolicy, on_round: Callable[[Round], None]) -> Task:
        """Measure a row's latencies."""

    def compiles(self, work: Work, policy: MeasurementPolicy) -> Task:
        """Measure a row's compile times, with nothing else on that machine."""


@dataclass(frozen=True, kw_only=True)
class ThisMachine:
    """This machine."""

    progress: Progress
    noise: float = 0.0  # The smallest change that its last selfcheck found, as a share; 0: not known
    hosts: tuple[HostRecord, ...] = ()

    def missing(self, works: Sequence[Work]) -> Mapping[str, DecidedRow]:
        """Rows whose device the runs had and this machine does not have now."""
        absent = {}
        for work in works:
            case = work.pair.case
            for module in (work.base, work.head):
                if reason := why_gone(case.uris, module.loadable.toolchain, case.environment):
                    absent[work.name] = DecidedRow(verdict="failed", reason=reason)
        return absent

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Together]:
        """One row after the other."""
        with only_one_measures(self.progress.note, wait=wait):
            yield in_turn

    def latencies(self, work: Work, policy: MeasurementPolicy, on_round: Callable[[Round], None]) -> Task:
        """In fresh workers."""
        return latency_task(work.name, work.base, work.head, replace(policy, noise=self.noise), on_round=on_round)

    def compiles(self, work: Work, policy: MeasurementPolicy) -> Task:
        """One row after the other."""
        return compile_task(work.name, work.base, work.head, policy)


@dataclass(frozen=True, kw_only=True)
class RowBench:
    """What measuring needs."""

    place: RowPlace  # Where rows are measured
    toolchains: Mapping[ToolchainRecord, Toolchain]
    directory: ComparisonDirectory  # Where each turn is kept as it is taken
    progress: Progress
    limits: Limits  # Of each compile


# What is measured of rows, by metric: the title of its stage, and what it is called in a sentence.
_STAGES = {LATENCY.name: ("Compare", "latencies"), COMPILE_TIME.name: ("Compile times", "compile times")}


def remeasure(plan: Plan, bench: RowBench) -> tuple[list[Row], bool]:
    """Latency, instructions and compile-time rows of a plan's open pairs and its controls; whether the user stopped."""
    works, rows = _works(plan, bench)
    if not works:
        return rows, False
    directory = bench.directory
    rounds: dict[str, list[Round]] = {work.name: [] for work in works}
    for kept in directory.rounds:
        rounds.setdefault(kept.group, []).append(kept)
    planned = _planned(works, plan, bench, rounds)
    if directory.measured:
        bench.progress.note(f"Of before the interruption: {plural(directory.measured, 'generation')}, which count")
    sentence, planned_s = to_measure(planned, max(1, len(bench.place.hosts)))
    bench.progress.note(sentence)
    bench.progress.expect(planned_s)
    compiled: Mapping[str, Outcome] = {}
    with bench.place.alone(wait=plan.options.wait) as together:
        latency, is_stopped = _decide(LATENCY.name, planned, bench.progress, together)
        if not is_stopped:
            compiled, is_stopped = _decide(COMPILE_TIME.name, planned, bench.progress, together)
    for work in works:
        rows += _rows_of(work, latency[work.name], compiled.get(work.name), rounds[work.name], plan)
    return rows, is_stopped


def _works(plan: Plan, bench: RowBench) -> tuple[list[Work], list[Row]]:
    """What can be measured, and the rows of what cannot."""
    works: list[Work] = []
    gone: list[tuple[Pair, DecidedRow, bool]] = []
    for pair, control in [*((pair, False) for pair in plan.open), *((pair, True) for pair in plan.controls)]:
        try:
            base, head = (
                find_module(side, case, bench.toolchains[side.toolchains[case.toolchain]])
                for side, case in zip((plan.base, plan.head), pair.both, strict=True)
            )
        except CacheMiss as error:
            gone.append((pair, DecidedRow(verdict="failed", reason=str(error)), control))
            continue
        name = f"{pair.name} (A/A control)" if control else pair.name
        works.append(Work(name=name, pair=pair, base=base, head=head, control=control))
    if plan.open and gone and all(work.control for work in works):
        reason = gone[0][1].reason
        raise RunError(f"{reason}; make the run again, or compare what was recorded with --no-remeasure")
    missing = bench.place.missing(works)
    gone += [(work.pair, missing[work.name], work.control) for work in works if work.name in missing]
    rows = [known_row(pair, known, control=control) for pair, known, control in gone]
    return [work for work in works if work.name not in missing], rows


def to_measure(planned: Mapping[str, Sequence[Task]], abreast: int = 1) -> tuple[str, dict[str, float]]:
    """What is to be measured, by metric, in a sentence with how long it may take; and the seconds of each stage."""
    planned = {metric: tasks for metric, tasks in planned.items() if tasks}
    planned_s = {
        _STAGES[metric][0]: math.ceil(len(tasks) / abreast) * tasks[0].budget_s for metric, tasks in planned.items()
    }
    parts = [
        f"{_STAGES[metric][1]} of {plural(len(tasks), 'row')} for up to {tasks[0].budget_s:g} s each"
        for metric, tasks in planned.items()
    ]
    more = "and longer where a difference is confirmed, or is plain and calls take long"
    return f"To measure: {', '.join(parts)}; up to {duration(sum(planned_s.values()))}, {more}", planned_s


def _planned(
    works: Sequence[Work], plan: Plan, bench: RowBench, rounds: Mapping[str, list[Round]]
) -> dict[str, list[Task]]:
    """What is to be measured, by metric; rounds are kept as they end."""
    options, place, directory = plan.options, bench.place, bench.directory
    policy = MeasurementPolicy(
        rule=plan.rules[LATENCY.name],
        budget_s=options.row_budget,
        cap_s=options.row_cap,
        seed=options.seed,
        call_limit_s=options.call_timeout_s,
        limits=bench.limits,
    )
    of_compiles = replace(policy, rule=plan.rules[COMPILE_TIME.name], budget_s=options.compile_budget_s, cap_s=0.0)
    chosen = {pair.name for pair in plan.compiled}

    def keep(measured: Round) -> None:
        directory.keep_round(measured)
        rounds[measured.group].append(measured)

    timed = [(work, place.latencies(work, policy, keep)) for work in works]
    compiled = [
        (work, place.compiles(work, of_compiles)) for work in works if not work.control and work.pair.name in chosen
    ]
    return {
        metric: [_going_on(task, metric, work, directory) for work, task in tasks]
        for metric, tasks in ((LATENCY.name, timed), (COMPILE_TIME.name, compiled))
    }


def _going_on(task: Task, metric: str, work: Work, directory: ComparisonDirectory) -> Task:
    """The row, which gives the generations of earlier stretches before it measures, and keeps each that it measures."""
    modules = words_of_modules(work.base, work.head)
    kept = directory.generations(task.name, metric, modules, Generation | Failure)

    def sample(number: int) -> Generation:
        measured = kept.get(number)
        if isinstance(measured, Generation):
            return measured
        if measured is not None:
            raise CaseError(measured.stage, measured.message, measured.stderr)
        try:
            measured = task.sample(number)
        except NoHost:
            raise
        except CaseError as error:
            directory.keep_generation(task.name, metric, number, modules, Failure.of(error))
            raise
        directory.keep_generation(task.name, metric, number, modules, measured)
        return measured

    return replace(task, sample=sample)


def _decide(
    metric: str, planned: Mapping[str, Sequence[Task]], progress: Progress, together: Together
) -> tuple[dict[str, Outcome], bool]:
    """Outcomes by name, and whether the user stopped them."""
    if not (tasks := planned[metric]):
        return {}, False
    progress.stage(_STAGES[metric][0], len(tasks))
    undecided, lock = {task.name for task in tasks}, threading.Lock()  # rows may be decided in threads

    def show(name: str, _: Generation) -> None:
        with lock:
            progress.step(name, advance=0)

    def end_others(left: Collection[str]) -> None:
        with lock:
            for name in undecided.difference(left):
                progress.step(name)
            undecided.intersection_update(left)

    def note(sentence: str) -> None:
        with lock:
            progress.note(sentence)

    try:
        outcomes: Sequence[Outcome] = list(decide(tasks, show, end_others, note, together))
    except StoppedEarly as stopped:
        return {outcome.name: outcome for outcome in stopped.outcomes}, True
    end_others(())
    return {outcome.name: outcome for outcome in outcomes}, False


def _rows_of(
    work: Work, latency: Outcome, compiled: Outcome | None, rounds: Sequence[Round], plan: Plan
) -> Iterator[Row]:
    floors = {metric: rule.floor for metric, rule in plan.rules.items()}
    row = measured_row(work.pair, LATENCY, latency, floors[LATENCY.name], control=work.control)
    counted = None
    if set(work.pair.case.uris) == {ON_CALLING_THREAD}:
        counted = instructions_row(work.pair, rounds, floors[INSTRUCTIONS.name], control=work.control)
    yield with_kind_of_change(row, counted)
    if counted is not None:
        yield counted
    if compiled is not None:
        yield measured_row(work.pair, COMPILE_TIME, compiled, floors[COMPILE_TIME.name])
