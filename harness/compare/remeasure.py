"""Pairs -> rows, measured again now and side by side, on this machine or wherever a `RowPlace` is.

Hosts of a fleet are such a place, see harness.fleet.rows.
"""

import dataclasses
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from harness.compare.comparison import Plan
from harness.compare.engine import Generation, Outcome, StoppedEarly, Task, Together, decide, in_turn
from harness.compare.pairs import DecidedRow, Pair
from harness.compare.rows import instructions_row, known_row, measured_row, with_kind_of_change
from harness.compare.samplers import (
    CacheMiss,
    LatencySampler,
    Module,
    find_module,
    group_of_row,
    sample_compiles,
    settings_of_row,
    words_of_modules,
)
from harness.errors import CaseError, HarnessError, NoHost, RunError
from harness.measure import last_core
from harness.measure.alone import only_one_measures
from harness.measure.worker import ON_CALLING_THREAD
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.process import Limits
from harness.progress import Progress, WithTimeLeft, duration, time_left
from harness.records.comparison import Row
from harness.records.run import Failure, HostRecord, Round
from harness.stats.rule import Rule
from harness.store.folders import folder_names
from harness.store.kinds import COMPARISON
from harness.store.work_directory import ComparisonDirectory, KeptGeneration
from harness.suite.present import why_gone
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


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How generations of a row come about; the fields are those of harness.compare.engine.Task."""

    sample: Callable[[int], Generation]
    noise: float = 0.0


class RowPlace(Protocol):
    """Where rows are measured."""

    @property
    def abreast(self) -> int:
        """How many rows are measured at the same time."""

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Of a fleet, the hosts that rows are on; (): this machine."""

    def missing(self, works: Sequence[Work]) -> Mapping[str, DecidedRow]:
        """Rows that cannot be measured there, by name, with why; asked once, before anything is measured."""

    def alone(self, *, wait: bool) -> AbstractContextManager[Together]:
        """Let nothing else of the harness compute there while rows are measured; give what walks the rows."""

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """Measure a row's latencies."""

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """Measure a row's compile times, with nothing else on that machine."""


@dataclass(frozen=True, kw_only=True)
class ThisMachine:
    """This machine."""

    progress: Progress
    noise: float = 0.0  # The smallest change that its last selfcheck found, as a share; 0: not known
    abreast: int = 1
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

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """In fresh workers; rounds come as they end."""
        group, settings = group_of_row(work.name, work.base, work.head), settings_of_row(seed, call_limit_s)
        return Sampling(sample=LatencySampler(group, settings, on_round), noise=self.noise)

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """On the core on which latencies are measured too."""
        return Sampling(sample=partial(sample_compiles, work.base, work.head, last_core(), limits))


# --- How long rows take that are to be measured: as long as they took in earlier comparisons of the results folder ---


# So many of the newest comparisons are looked at.
_MOST_COMPARISONS = 20
_MINUTE_S = 60


def earlier_rows(results: Path) -> dict[str, float]:
    """Mean seconds of a row that the newest comparisons measured, by metric."""
    found: dict[str, list[float]] = {}
    for name in list(reversed(folder_names(results, "comparison")))[:_MOST_COMPARISONS]:
        try:
            rows = COMPARISON.load(results / name).rows
        except HarnessError:  # a damaged one says nothing
            continue
        for row in rows:
            if row.generations and not row.control:
                found.setdefault(row.metric, []).append(row.seconds)
    return {metric: sum(seconds) / len(seconds) for metric, seconds in found.items()}


# What is measured of rows, by metric: the title of its stage, and what it is called in a sentence.
_STAGES = {LATENCY.name: ("Compare", "latencies"), COMPILE_TIME.name: ("Compile times", "compile times")}


def foresee(
    planned: Mapping[str, Sequence[Task]], earlier: Mapping[str, float], abreast: int = 1
) -> tuple[str, dict[str, float]]:
    """What is to be measured, by metric, in a sentence with how long it should take; and the seconds of each stage."""
    planned = {metric: tasks for metric, tasks in planned.items() if tasks}
    planned_s = {
        _STAGES[metric][0]: math.ceil(len(tasks) / abreast) * earlier.get(metric, tasks[0].budget_s)
        for metric, tasks in planned.items()
    }
    parts = [
        f"{_STAGES[metric][1]} of {plural(len(tasks), 'row')} for up to {tasks[0].budget_s:g} s each"
        for metric, tasks in planned.items()
    ]
    todo, most_s = f"To measure: {', '.join(parts)}", sum(planned_s.values())
    if planned.keys() <= earlier.keys():
        return f"{todo}; {time_left(planned_s.values())}, as earlier comparisons here took", planned_s
    most = f"{most_s:.0f} s" if most_s < 2 * _MINUTE_S else duration(most_s)
    more = "and longer where a difference is confirmed, or is plain and calls take long"
    return f"{todo}; up to {most}, {more}", planned_s


# --- Pairs -> rows, measured again now and side by side ---


@dataclass(frozen=True, kw_only=True)
class RowBench:
    """What measuring needs."""

    place: RowPlace  # Where rows are measured

    toolchains: Mapping[str, Toolchain]  # By release
    cache: Path  # The cache folder
    directory: ComparisonDirectory  # Where each turn is kept as it is taken
    progress: Progress
    memory_bytes: int | None = None  # At which a compile is stopped; None: no limit


class StoppedWithRows(KeyboardInterrupt):
    """The user stopped a comparison; its rows are those of a whole one, as far as they were decided."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.rows = tuple(rows)


def remeasure(plan: Plan, bench: RowBench) -> list[Row]:
    """Latency, instructions and compile-time rows of a plan's open pairs and of its controls."""
    rows: list[Row] = []
    works: list[Work] = []
    gone: list[DecidedRow] = []
    for pair, control in [*((pair, False) for pair in plan.open), *((pair, True) for pair in plan.controls)]:
        found = _find(pair, plan, bench, control=control)
        if isinstance(found, Work):
            works.append(found)
        else:
            gone.append(found)
            rows.append(known_row(pair, found, control=control))
    if plan.open and gone and all(work.control for work in works):
        raise RunError(f"{gone[0].reason}; make the run again, or compare what was recorded with --no-remeasure")
    missing = bench.place.missing(works)
    rows += [known_row(work.pair, missing[work.name], control=work.control) for work in works if work.name in missing]
    works = [work for work in works if work.name not in missing]
    if not works:
        return rows
    rounds: dict[str, list[Round]] = {work.name: [] for work in works}
    for kept in bench.directory.rounds:
        rounds.setdefault(kept.group, []).append(kept)
    planned = {
        LATENCY.name: [_latency_task(work, plan, bench, rounds[work.name]) for work in works],
        COMPILE_TIME.name: _compile_tasks(works, plan, bench),
    }
    if number := len(bench.directory.generations):
        bench.progress.note(f"Of before the interruption: {plural(number, 'generation')}, which count")
    sentence, planned_s = foresee(planned, earlier_rows(plan.options.results), bench.place.abreast)
    bench.progress.note(sentence)
    progress = WithTimeLeft(bench.progress, planned_s)
    compiled: Mapping[str, Outcome] = {}
    with bench.place.alone(wait=plan.options.wait) as together:
        latency, is_stopped = _decide(LATENCY.name, planned, progress, together)
        if not is_stopped:
            compiled, is_stopped = _decide(COMPILE_TIME.name, planned, progress, together)
        if not is_stopped:
            for name, outcome in compiled.items():
                for number, generation in enumerate(outcome.generations):
                    fields = {"generation": number, "base_ns": generation.base, "head_ns": generation.head}
                    bench.directory.keep_compile(name, fields)
    for work in works:
        rows += _rows_of(work, latency[work.name], compiled.get(work.name), rounds[work.name], plan.rules)
    if is_stopped:
        raise StoppedWithRows(rows)
    return rows


def _find(pair: Pair, plan: Plan, bench: RowBench, *, control: bool) -> Work | DecidedRow:
    try:
        base, head = (
            find_module(side, case, bench.toolchains[case.toolchain], bench.cache)
            for side, case in zip((plan.base, plan.head), pair.both, strict=True)
        )
    except CacheMiss as error:
        return DecidedRow(verdict="failed", reason=str(error))
    name = f"{pair.name} (A/A control)" if control else pair.name
    return Work(name=name, pair=pair, base=base, head=head, control=control)


def _latency_task(work: Work, plan: Plan, bench: RowBench, rounds: list[Round]) -> Task:
    def keep(measured: Round) -> None:
        bench.directory.keep_round(measured)
        rounds.append(measured)

    options = plan.options
    sampling = bench.place.latencies(work, seed=options.seed, call_limit_s=options.call_timeout_s, on_round=keep)
    task = Task(
        name=work.name,
        rule=plan.rules[LATENCY.name],
        budget_s=options.row_budget,
        cap_s=options.row_cap,
        **vars(sampling),
    )
    return _going_on(task, LATENCY.name, work, bench.directory)


def _going_on(task: Task, metric: str, work: Work, directory: ComparisonDirectory) -> Task:
    """The row, which gives the generations of earlier stretches before it measures, and keeps each that it measures."""
    modules = words_of_modules(work.base, work.head)
    kept = {
        generation.generation: generation
        for generation in directory.generations
        if (generation.row, generation.metric) == (task.name, metric)
    }
    if any(generation.modules != modules for generation in kept.values()):
        raise RunError(
            f"{directory.path}: {task.name} was measured with other modules than its runs have now; compare the two "
            "sides again"
        )

    def keep(number: int, measured: Generation | CaseError) -> None:
        row = KeptGeneration(row=task.name, metric=metric, modules=modules, generation=number)
        gave = {"failure": Failure.of(measured)} if isinstance(measured, CaseError) else vars(measured)
        directory.keep_generation(replace(row, **gave))

    def sample(number: int) -> Generation:
        if number in kept:
            measured = _as_it_was(kept[number])
            if isinstance(measured, CaseError):
                raise measured
            return measured
        try:
            measured = task.sample(number)
        except CaseError as error:
            if not isinstance(error, NoHost):
                keep(number, error)
            raise
        keep(number, measured)
        return measured

    return replace(task, sample=sample)


def _as_it_was(kept: KeptGeneration) -> Generation | CaseError:
    if kept.failure is not None:
        return CaseError(kept.failure.stage, kept.failure.message, kept.failure.stderr)
    return Generation(**{figure.name: getattr(kept, figure.name) for figure in dataclasses.fields(Generation)})


def _compile_tasks(works: Sequence[Work], plan: Plan, bench: RowBench) -> list[Task]:
    options, chosen = plan.options, {pair.name for pair in plan.compiled}
    limits = Limits(seconds=options.compile_timeout_s, memory_bytes=bench.memory_bytes)
    tasks = []
    for work in works:
        if work.control or work.pair.name not in chosen:
            continue
        task = Task(
            name=work.name,
            rule=plan.rules[COMPILE_TIME.name],
            budget_s=options.compile_budget_s,
            **vars(bench.place.compiles(work, limits)),
        )
        tasks.append(_going_on(task, COMPILE_TIME.name, work, bench.directory))
    return tasks


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

    def note(_name: str, _seconds: float, sentence: str) -> None:
        with lock:
            progress.note(sentence)

    try:
        outcomes: Sequence[Outcome] = list(decide(tasks, show, end_others, note, together))
    except StoppedEarly as stopped:
        return {outcome.name: outcome for outcome in stopped.outcomes}, True
    end_others(())
    return {outcome.name: outcome for outcome in outcomes}, False


def _rows_of(
    work: Work, latency: Outcome, compiled: Outcome | None, rounds: Sequence[Round], rules: Mapping[str, Rule]
) -> Iterator[Row]:
    row = measured_row(work.pair, LATENCY, latency, rules[LATENCY.name].floor, control=work.control)
    counted = None
    if set(work.pair.case.uris) == {ON_CALLING_THREAD}:
        counted = instructions_row(work.pair, rounds, rules[INSTRUCTIONS.name].floor, control=work.control)
    yield with_kind_of_change(row, counted)
    if counted is not None:
        yield counted
    if compiled is not None:
        yield measured_row(work.pair, COMPILE_TIME, compiled, rules[COMPILE_TIME.name].floor)
