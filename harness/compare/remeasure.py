"""Pairs -> rows, measured again now and side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.compare.engine import Generation, Outcome, Task, decide
from harness.compare.options import CompareOptions
from harness.compare.pairs import Known, Pair, Side
from harness.compare.rows import instructions_row, known_row, measured_row, with_kind_of_change
from harness.compare.samplers import CompileSampler, Gone, Module, find_module, latency_task
from harness.errors import RunError
from harness.measure import last_core
from harness.measure.generation import only_one_measures
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.process import Limits
from harness.progress import Progress
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
class Bench:
    """What measuring needs of this machine.

    Attributes:
        toolchains: By release.
        cache: The cache folder.
        memory_bytes: At which a compile is stopped; None: no limit.
    """

    toolchains: Mapping[str, Toolchain]
    cache: Path
    memory_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """A pair whose modules are here; `name` is unique among the tasks, `control` says that it is an A/A control."""

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
    rules: Mapping[str, Rule],
    options: CompareOptions,
    bench: Bench,
    directory: ComparisonDirectory,
    progress: Progress,
) -> list[Row]:
    """Latency, instructions and compile-time rows of pairs, each turn kept as it is taken.

    Args:
        pairs: With both sides, and different modules or runtimes.
        controls: Identical pairs to be measured all the same.
        rules: By metric.

    Raises:
        RunError: No module of any pair is here, so that the comparison cannot be made; or the disk is full.
    """
    rows, ready = [], []
    gone: list[Known] = []
    for pair, control in [*((pair, False) for pair in pairs), *((pair, True) for pair in controls)]:
        found = _find(pair, base, head, bench, control=control)
        if isinstance(found, _Ready):
            ready.append(found)
        else:
            gone.append(found)
            rows.append(known_row(pair, found, control=control))
    if pairs and gone and all(one.control for one in ready):
        raise RunError(f"{gone[0].reason}; make the run again, or compare what was recorded with --no-remeasure")
    absent = _absent_devices(ready)
    lost = [one for one in ready if one.pair.case.device in absent]
    rows += [known_row(one.pair, absent[one.pair.case.device], control=one.control) for one in lost]
    ready = [one for one in ready if one.pair.case.device not in absent]
    if not ready:
        return rows
    rounds: dict[str, list[Round]] = {one.name: [] for one in ready}
    tasks = [_latency_task(one, rules[LATENCY.name], options, rounds[one.name], directory) for one in ready]
    with only_one_measures(lambda: progress.note("Another harness is measuring on this machine; waiting for it")):
        latency = _decide(tasks, "Compare", progress)
        compiled = _compile_times(ready, rules[COMPILE_TIME.name], options, bench, directory, progress)
    for one in ready:
        rows += _rows_of(one, latency[one.name], compiled.get(one.name), rounds[one.name], rules)
    return rows


def _find(pair: Pair, base: Side, head: Side, bench: Bench, *, control: bool) -> _Ready | Known:
    assert pair.base is not None and pair.head is not None  # noqa: S101 (only pairs with two sides are measured)
    try:
        modules = [
            find_module(side, case, bench.toolchains[case.toolchain], bench.cache)
            for side, case in ((base, pair.base), (head, pair.head))
        ]
    except Gone as error:
        return Known(verdict="failed", reason=str(error))
    name = f"{pair.name} (A/A control)" if control else pair.name
    return _Ready(name=name, pair=pair, base=modules[0], head=modules[1], control=control)


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
                    absent[case.device] = Known(
                        verdict="failed", reason=f"device {uri} is gone: {probe.reason}{advice}"
                    )
    return absent


def _latency_task(
    one: _Ready, rule: Rule, options: CompareOptions, rounds: list[Round], directory: ComparisonDirectory
) -> Task:
    def keep(measured: Round) -> None:
        directory.keep_round(measured)
        rounds.append(measured)

    return latency_task(
        one.name,
        one.base,
        one.head,
        rule,
        budget_s=options.row_budget,
        seed=options.seed,
        call_limit_s=options.call_timeout,
        on_round=keep,
    )


def _compile_times(
    ready: Sequence[_Ready],
    rule: Rule,
    options: CompareOptions,
    bench: Bench,
    directory: ComparisonDirectory,
    progress: Progress,
) -> dict[str, Outcome]:
    """Only of builds that changed: equal modules were compiled to equal code, and their time is nobody's news."""
    if not options.compile_budget:
        return {}
    limits = Limits(seconds=options.compile_timeout, memory_bytes=bench.memory_bytes)
    tasks = [
        Task(
            name=one.name,
            sampler=CompileSampler(base=one.base, head=one.head, cpus=last_core(), limits=limits),
            rule=rule,
            budget_s=options.compile_budget,
        )
        for one in ready
        if not one.control and one.base.build.module_sha256 != one.head.build.module_sha256
    ]
    outcomes = _decide(tasks, "Compile times", progress)
    for name, outcome in outcomes.items():
        for number, one in enumerate(outcome.generations):
            directory.keep_compile(name, {"generation": number, "base_ns": one.base, "head_ns": one.head})
    return outcomes


def _decide(tasks: Sequence[Task], title: str, progress: Progress) -> dict[str, Outcome]:
    seconds, shown = 0.0, 0
    budget = int(sum(task.budget_s for task in tasks))
    progress.stage(f"{title} (s at most)", budget)

    def show(name: str, generation: Generation) -> None:
        nonlocal seconds, shown
        seconds += generation.seconds
        now = min(int(seconds), budget)
        progress.step(name, advance=now - shown)
        shown = now

    outcomes = {outcome.name: outcome for outcome in decide(tasks, show)}
    progress.step("", advance=budget - shown)
    return outcomes


def _rows_of(
    one: _Ready, latency: Outcome, compiled: Outcome | None, rounds: Sequence[Round], rules: Mapping[str, Rule]
) -> Iterator[Row]:
    row = measured_row(one.pair, LATENCY, latency, rules[LATENCY.name].floor, control=one.control)
    counted = None
    if set(one.pair.case.uris) == {_ONE_THREAD}:
        counted = instructions_row(one.pair, rounds, rules[INSTRUCTIONS.name].floor, control=one.control)
    yield with_kind_of_change(row, counted)
    if counted is not None:
        yield counted
    if compiled is not None:
        yield measured_row(one.pair, COMPILE_TIME, compiled, rules[COMPILE_TIME.name].floor)
