"""Pairs -> rows, measured again now and side by side, on this machine or wherever a `RowPlace` is.

Hosts of a fleet are such a place, see harness.fleet.rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from harness.compare.comparison import Plan
from harness.compare.engine import Batch, Generation, Outcome, StoppedEarly, Task, Together, decide, in_turn
from harness.compare.pairs import Known, Pair
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
from harness.progress import Left, Progress, Silent, duration
from harness.records.comparison import Row
from harness.records.run import Failure, HostRecord, Round
from harness.stats.rule import Rule
from harness.store.folders import folder_names
from harness.store.kinds import COMPARISON
from harness.store.sides_directory import ComparisonDirectory, KeptGeneration
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
    hosts: int = 1
    batch: Batch | None = None
    noise: float = 0.0


class RowPlace(Protocol):
    """Where rows are measured."""

    @property
    def abreast(self) -> int:
        """How many rows are measured at the same time."""

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Of a fleet, the hosts that rows are on; (): this machine."""

    def missing(self, works: Sequence[Work]) -> Mapping[str, Known]:
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

    def missing(self, works: Sequence[Work]) -> Mapping[str, Known]:
        """Rows whose device the runs had and this machine does not have now."""
        absent = _absent_devices(works)
        return {work.name: absent[work.pair.case.device] for work in works if work.pair.case.device in absent}

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


def _absent_devices(works: Sequence[Work]) -> dict[str, Known]:
    absent = {}
    for work in works:
        case = work.pair.case
        for toolchain in (work.base.loadable.toolchain, work.head.loadable.toolchain):
            if reason := why_gone(case.uris, toolchain, case.environment):
                absent[case.device] = Known(verdict="failed", reason=reason)
    return absent


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


class RowsLeft:
    """What is left of rows that are decided together, each of which takes what rows took before, else its budget.

    Rows may be decided in threads, which call it at the same time.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        row_s: float | None,
        progress: Progress | None = None,
        *,
        abreast: int = 1,
        later_s: float = 0.0,
    ) -> None:
        """`later_s` is what other rows take that come after these."""
        self.is_known = row_s is not None or not tasks
        self._expected = {task.name: task.budget_s if row_s is None else row_s for task in tasks}
        self._spent = dict.fromkeys(self._expected, 0.0)
        self._open: Collection[str] = tuple(self._expected)
        self._hosts = {task.name: task.hosts for task in tasks}
        self._progress, self._abreast, self._later_s = progress or Silent(), abreast, later_s
        self._budget, self._shown, self._lock = int(sum(task.budget_s for task in tasks)), 0, threading.Lock()

    @property
    def seconds(self) -> float:
        """That are left."""
        return sum(max(self._expected[name] - self._spent[name], 0.0) for name in self._open)

    def begin(self, title: str) -> None:
        """Show that they begin."""
        self._tell()
        self._progress.stage(f"{title} (s at most)", self._budget)

    def spend(self, name: str, generation: Generation) -> None:
        """A generation of a row has ended."""
        with self._lock:
            self._spent[name] += generation.seconds / self._hosts[name]  # hosts measure at the same time
            self._tell()
            now = min(int(sum(self._spent.values())), self._budget)
            self._progress.step(name, advance=now - self._shown)
            self._shown = now

    def extend(self, name: str, seconds: float, sentence: str) -> None:
        """A row goes on beyond its budget, and takes so long in all."""
        with self._lock:
            self._expected[name] = seconds
            self._progress.note(sentence)

    def keep_open(self, names: Collection[str]) -> None:
        """Only these rows are not decided yet."""
        self._open = names

    def end(self) -> None:
        """All of them are decided."""
        self._progress.step("", advance=self._budget - self._shown)

    def _tell(self) -> None:
        self._progress.left(Left(seconds=(self.seconds + self._later_s) / self._abreast).words)


def foresee(latency: Sequence[Task], compiled: Sequence[Task], rows: Sequence[RowsLeft], abreast: int = 1) -> str:
    """What is to be measured, and how long that should take."""
    parts = [
        f"{what} of {plural(len(tasks), 'row')} for up to {tasks[0].budget_s:g} s each"
        for what, tasks in (("latencies", latency), ("compile times", compiled))
        if tasks
    ]
    seconds = sum(of.seconds for of in rows) / abreast
    todo = f"To measure: {', '.join(parts)}"
    if all(of.is_known for of in rows):
        return f"{todo}; {Left(seconds=seconds).words}, as earlier comparisons here took"
    most = f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else duration(seconds)
    return f"{todo}; up to {most}, and longer where a difference is confirmed, or is plain and calls take long"


# --- Pairs -> rows, measured again now and side by side ---


@dataclass(frozen=True, kw_only=True)
class Bench:
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


def remeasure(plan: Plan, bench: Bench) -> list[Row]:
    """Latency, instructions and compile-time rows of a plan's open pairs and of its controls."""
    rows: list[Row] = []
    works: list[Work] = []
    gone: list[Known] = []
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
    tasks = [_latency_task(work, plan, bench, rounds[work.name]) for work in works]
    compiles = _compile_tasks(works, plan, bench)
    earlier, abreast, progress = earlier_rows(plan.options.results), bench.place.abreast, bench.progress
    left_of_compiles = RowsLeft(compiles, earlier.get(COMPILE_TIME.name), progress, abreast=abreast)
    later_s = left_of_compiles.seconds
    left = RowsLeft(tasks, earlier.get(LATENCY.name), progress, abreast=abreast, later_s=later_s)
    if number := len(bench.directory.generations):
        progress.note(f"Of before the interruption: {plural(number, 'generation')}, which count")
    progress.note(foresee(tasks, compiles, (left, left_of_compiles), abreast))
    compiled: Mapping[str, Outcome] = {}
    with bench.place.alone(wait=plan.options.wait) as together:
        latency, is_stopped = _decide(tasks, "Compare", left, together)
        if not is_stopped:
            compiled, is_stopped = _decide(compiles, "Compile times", left_of_compiles, together)
        if not is_stopped:
            _keep_compiles(compiled, bench.directory)
    for work in works:
        rows += _rows_of(work, latency[work.name], compiled.get(work.name), rounds[work.name], plan.rules)
    if is_stopped:
        raise StoppedWithRows(rows)
    return rows


def _find(pair: Pair, plan: Plan, bench: Bench, *, control: bool) -> Work | Known:
    try:
        base, head = (
            find_module(side, case, bench.toolchains[case.toolchain], bench.cache)
            for side, case in zip((plan.base, plan.head), pair.both, strict=True)
        )
    except CacheMiss as error:
        return Known(verdict="failed", reason=str(error))
    name = f"{pair.name} (A/A control)" if control else pair.name
    return Work(name=name, pair=pair, base=base, head=head, control=control)


def _latency_task(work: Work, plan: Plan, bench: Bench, rounds: list[Round]) -> Task:
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

    def batch(measure: Batch, numbers: Sequence[int]) -> Iterator[tuple[int, Generation | CaseError]]:
        known = {number: _as_it_was(kept[number]) for number in numbers if number in kept}
        yield from known.items()
        has_failed = any(isinstance(measured, CaseError) for measured in known.values())
        left = [number for number in numbers if number not in known and not has_failed]
        for number, measured in measure(left) if left else ():
            keep(number, measured)
            yield number, measured

    return replace(task, sample=sample, batch=None if task.batch is None else partial(batch, task.batch))


def _as_it_was(kept: KeptGeneration) -> Generation | CaseError:
    if kept.failure is not None:
        return CaseError(kept.failure.stage, kept.failure.message, kept.failure.stderr)
    return Generation(**{figure.name: getattr(kept, figure.name) for figure in fields(Generation)})


def _compile_tasks(works: Sequence[Work], plan: Plan, bench: Bench) -> list[Task]:
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


def _keep_compiles(outcomes: Mapping[str, Outcome], directory: ComparisonDirectory) -> None:
    for name, outcome in outcomes.items():
        for number, generation in enumerate(outcome.generations):
            fields = {"generation": number, "base_ns": generation.base, "head_ns": generation.head}
            directory.keep_compile(name, fields)


def _decide(tasks: Sequence[Task], title: str, left: RowsLeft, together: Together) -> tuple[dict[str, Outcome], bool]:
    """Outcomes by name, and whether the user stopped them."""
    if not tasks:
        return {}, False
    left.begin(title)
    try:
        outcomes: Sequence[Outcome] = list(decide(tasks, left.spend, left.keep_open, left.extend, together))
    except StoppedEarly as stopped:
        return {outcome.name: outcome for outcome in stopped.outcomes}, True
    left.end()
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
