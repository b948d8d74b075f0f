"""Pairs -> rows, measured again now and side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.compare.compile_time import CompileSampler
from harness.compare.engine import Generation, Outcome, Task, decide
from harness.compare.latency import GENERATION_S, LatencySampler
from harness.compare.modules import Gone, Module, find_module
from harness.compare.pairs import Known, Pair, Side
from harness.compare.rows import instructions_row, known_row, measured_row, with_kind_of_change
from harness.errors import RunError
from harness.measure import Settings, last_core
from harness.measure.generation import only_one_measures
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.comparison import Row
from harness.records.run import Round
from harness.stats.rule import Rule
from harness.store.comparison_directory import ComparisonDirectory
from harness.toolchain import Toolchain
from harness.toolchain.devices import driver_of, probe_driver

_PROBE_LIMITS = Limits(seconds=60)
# The one device whose work is done by the calling thread alone, so that its counters count all of it.
_ONE_THREAD = "local-sync"


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """What measuring pairs again needs to know; see harness.stages.comparing.CompareOptions.

    Attributes:
        toolchains: On this machine, by release.
        rules: By metric.
        cache: The cache folder.
    """

    toolchains: Mapping[str, Toolchain]
    rules: Mapping[str, Rule]
    row_budget_s: float
    compile_budget_s: float
    seed: int
    compile_limits: Limits
    call_limit_s: float
    cache: Path


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """A pair whose modules are here.

    Attributes:
        name: Unique among the tasks.
        control: Whether it is an A/A control.
    """

    name: str
    pair: Pair
    base: Module
    head: Module
    control: bool


def remeasure(
    pairs: Sequence[Pair],
    controls: Sequence[Pair],
    base: Side,
    head: Side,
    options: MeasureOptions,
    directory: ComparisonDirectory,
    progress: Progress,
) -> list[Row]:
    """Latency, instructions and compile-time rows of pairs, each turn kept as it is taken.

    Args:
        pairs: With both sides, and different modules or runtimes.
        controls: Identical pairs to be measured all the same.

    Raises:
        RunError: No module of any pair is here, so that the comparison cannot be made; or the disk is full.
    """
    ready, gone = _find(pairs, controls, base, head, options)
    if pairs and not any(not one.control for one in ready) and gone:
        first = next(iter(gone.values()))
        raise RunError(f"{first.reason}; make the run again, or compare what was recorded with --no-remeasure")
    rows = [known_row(pair, gone[pair.name]) for pair in pairs if pair.name in gone]
    rows += [replace(known_row(pair, gone[pair.name]), control=True) for pair in controls if pair.name in gone]
    absent = _absent_devices(ready)
    for one in ready:
        if one.pair.case.device in absent:
            rows.append(replace(known_row(one.pair, absent[one.pair.case.device]), control=one.control))
    ready = [one for one in ready if one.pair.case.device not in absent]
    if not ready:
        return rows
    rounds: dict[str, list[Round]] = {one.name: [] for one in ready}
    tasks = [_latency_task(one, options, rounds[one.name], directory) for one in ready]
    with only_one_measures(lambda: progress.note("Another harness is measuring on this machine; waiting for it")):
        latency = _decide(tasks, "Compare", progress)
        compiled = _compile_times([one for one in ready if not one.control], options, directory, progress)
    for one in ready:
        rows += _rows_of(one, latency[one.name], compiled.get(one.name), rounds[one.name], options)
    return rows


def _find(
    pairs: Sequence[Pair], controls: Sequence[Pair], base: Side, head: Side, options: MeasureOptions
) -> tuple[list[_Ready], dict[str, Known]]:
    ready, gone = [], {}
    for pair, control in [*((pair, False) for pair in pairs), *((pair, True) for pair in controls)]:
        try:
            sides = [_module(case, side, options) for case, side in ((pair.base, base), (pair.head, head))]
        except Gone as error:
            gone[pair.name] = Known(verdict="failed", reason=str(error))
            continue
        name = f"{pair.name} (A/A control)" if control else pair.name
        ready.append(_Ready(name=name, pair=pair, base=sides[0], head=sides[1], control=control))
    return ready, gone


def _module(case: Case | None, side: Side, options: MeasureOptions) -> Module:
    assert case is not None  # noqa: S101 (only pairs with two sides are measured)
    return find_module(side, case, options.toolchains[case.toolchain], options.cache)


def _absent_devices(ready: Sequence[_Ready]) -> dict[str, Known]:
    """By name: devices that the runs had and that are not here now."""
    absent = {}
    for one in ready:
        case = one.pair.case
        for toolchain in (one.base.loadable.toolchain, one.head.loadable.toolchain):
            for uri in case.uris:
                probe = probe_driver(toolchain, driver_of(uri), limits=_PROBE_LIMITS, environment=case.environment)
                if probe.reason is not None:
                    advice = f"; {probe.advice}" if probe.advice else ""
                    reason = f"device {uri} is gone: {probe.reason}{advice}"
                    absent[case.device] = Known(verdict="failed", reason=reason)
    return absent


def _latency_task(one: _Ready, options: MeasureOptions, rounds: list[Round], directory: ComparisonDirectory) -> Task:
    def keep(measured: Round) -> None:
        directory.keep_round(measured)
        rounds.append(measured)

    case = one.pair.case
    sampler = LatencySampler(
        name=one.name,
        uri=case.uri,
        more_uris=case.more_uris,
        environment=case.environment,
        base=one.base.loadable,
        head=one.head.loadable,
        cpus=last_core() if case.pin else None,
        settings=Settings(seconds=GENERATION_S, seed=options.seed, call_limit_s=options.call_limit_s),
        on_round=keep,
    )
    return Task(name=one.name, sampler=sampler, rule=options.rules[LATENCY.name], budget_s=options.row_budget_s)


def _compile_times(
    ready: Sequence[_Ready], options: MeasureOptions, directory: ComparisonDirectory, progress: Progress
) -> dict[str, Outcome]:
    """Only of builds that changed: equal modules were compiled to equal code, and their time is nobody's news."""
    changed = [one for one in ready if one.base.build.module_sha256 != one.head.build.module_sha256]
    if not options.compile_budget_s:
        return {}
    tasks = [
        Task(
            name=one.name,
            sampler=CompileSampler(base=one.base, head=one.head, cpus=last_core(), limits=options.compile_limits),
            rule=options.rules[COMPILE_TIME.name],
            budget_s=options.compile_budget_s,
        )
        for one in changed
    ]
    outcomes = _decide(tasks, "Compile times", progress)
    for name, outcome in outcomes.items():
        for number, one in enumerate(outcome.generations):
            directory.keep_compile(name, {"generation": number, "base_ns": one.base, "head_ns": one.head})
    return outcomes


def _decide(tasks: Sequence[Task], title: str, progress: Progress) -> dict[str, Outcome]:
    seconds = dict.fromkeys((task.name for task in tasks), 0.0)
    budget = int(sum(task.budget_s for task in tasks))
    told = 0
    progress.stage(f"{title} (s at most)", budget)

    def tell(name: str, generation: Generation) -> None:
        nonlocal told
        seconds[name] += generation.seconds
        now = min(int(sum(seconds.values())), budget)
        progress.step(name, advance=now - told)
        told = now

    outcomes = {outcome.name: outcome for outcome in decide(tasks, tell)}
    progress.step("", advance=budget - told)
    return outcomes


def _rows_of(
    one: _Ready, latency: Outcome, compiled: Outcome | None, rounds: Sequence[Round], options: MeasureOptions
) -> Iterator[Row]:
    row = measured_row(one.pair, LATENCY, latency, options.rules[LATENCY.name].floor)
    counted = None
    if set(one.pair.case.uris) == {_ONE_THREAD}:
        counted = instructions_row(one.pair, rounds, options.rules[INSTRUCTIONS.name].floor)
    yield replace(with_kind_of_change(row, counted), control=one.control)
    if counted is not None:
        yield replace(counted, control=one.control)
    if compiled is not None:
        yield measured_row(one.pair, COMPILE_TIME, compiled, options.rules[COMPILE_TIME.name].floor)
