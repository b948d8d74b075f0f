"""Pairs -> rows, measured again now and side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from harness.compare.comparison import Plan
from harness.compare.engine import StoppedEarly, Together, decide, in_turn
from harness.compare.expect import RowsLeft, earlier_rows, foresee
from harness.compare.pairs import Known, Pair
from harness.compare.places import RowPlace, Work
from harness.compare.rows import instructions_row, known_row, measured_row, with_kind_of_change
from harness.compare.samplers import Gone, find_module, words_of_modules
from harness.compare.task import Batch, Generation, Outcome, Task
from harness.errors import CaseError, NoHost, RunError
from harness.measure.worker import ON_CALLING_THREAD
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.process import Limits
from harness.progress import Progress
from harness.records.comparison import Row
from harness.records.run import Failure, Round
from harness.remaining import Left
from harness.stats.rule import Rule
from harness.store.sides_directory import ComparisonDirectory, KeptGeneration
from harness.text import plural
from harness.toolchain import Toolchain


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
    earlier = earlier_rows(plan.options.results)
    left = RowsLeft(tasks, earlier.get(LATENCY.name, {}))
    left_of_compiles = RowsLeft(compiles, earlier.get(COMPILE_TIME.name, {}))
    if number := len(bench.directory.generations):
        bench.progress.note(f"Of before the interruption: {plural(number, 'generation')}, which count")
    abreast = bench.place.abreast
    bench.progress.note(foresee(tasks, compiles, (left, left_of_compiles), abreast))
    with bench.place.alone(wait=plan.options.wait) as together:
        later_s = left_of_compiles.seconds
        latency, is_stopped = _decide(tasks, "Compare", bench.progress, left, together, abreast, later_s=later_s)
        compiled: Mapping[str, Outcome] = {}
        if not is_stopped:
            compiled, is_stopped = _decide(
                compiles, "Compile times", bench.progress, left_of_compiles, together, abreast
            )
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
    except Gone as error:
        return Known(verdict="failed", reason=str(error))
    name = f"{pair.name} (A/A control)" if control else pair.name
    return Work(name=name, pair=pair, base=base, head=head, control=control)


def _latency_task(work: Work, plan: Plan, bench: Bench, rounds: list[Round]) -> Task:
    """Each round is kept on disk, and in `rounds`, as it ends."""

    def keep(measured: Round) -> None:
        bench.directory.keep_round(measured)
        rounds.append(measured)

    options = plan.options
    sampling = bench.place.latencies(work, seed=options.seed, call_limit_s=options.call_timeout, on_round=keep)
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
    limits = Limits(seconds=options.compile_timeout, memory_bytes=bench.memory_bytes)
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


def _decide(
    tasks: Sequence[Task],
    title: str,
    progress: Progress,
    left: RowsLeft,
    together: Together = in_turn,
    abreast: int = 1,
    *,
    later_s: float = 0.0,
) -> tuple[dict[str, Outcome], bool]:
    """Outcomes by name, and whether the user stopped them."""
    if not tasks:
        return {}, False
    seconds, shown = 0.0, 0
    budget = int(sum(task.budget_s for task in tasks))
    hosts = {task.name: task.hosts for task in tasks}
    one_tells = threading.Lock()  # rows may be walked in threads

    def tell() -> None:
        progress.left(Left(seconds=(left.seconds + later_s) / abreast).words)

    def show(name: str, generation: Generation) -> None:
        nonlocal seconds, shown
        taken_s = generation.seconds / hosts[name]  # hosts measure at the same time
        with one_tells:
            seconds += taken_s
            left.spend(name, taken_s)
            tell()
            now = min(int(seconds), budget)
            progress.step(name, advance=now - shown)
            shown = now

    def beyond(name: str, seconds: float, sentence: str) -> None:
        with one_tells:
            left.extend(name, seconds)
            progress.note(sentence)

    tell()
    progress.stage(f"{title} (s at most)", budget)
    try:
        outcomes: Sequence[Outcome] = list(decide(tasks, show, left.keep_open, beyond, together))
    except StoppedEarly as stopped:
        return {outcome.name: outcome for outcome in stopped.outcomes}, True
    progress.step("", advance=budget - shown)
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
