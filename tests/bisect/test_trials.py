"""One position beside another: what is known without a clock, what is counted, and what the engine decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.bisect import trials
from harness.bisect.judged import rule_of_measurements
from harness.bisect.trials import Measuring, Place, try_pair, why_unmeasured
from harness.compare.pairs import Side
from harness.compare.samplers import Gone
from harness.compare.task import Generation, Task
from harness.errors import CaseError, RunError
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, METRICS, Metric
from harness.process import Limits
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.run import Failure, Round, Statistics, ToolchainRecord, Turn
from harness.stats.rule import Rule
from tests.builders import Notes
from tests.compare.runs import TOOLCHAIN, a_case, a_side
from tests.fakes.fake_toolchain import make_fake_toolchain

CASE = a_case()
RULE = rule_of_measurements(8, 0.01)
NEWER = ToolchainRecord(version="0.0.1", revision="", compiler_sha256="dd" * 32)
STATISTICS = Statistics(
    dispatches=10,
    copies=0,
    fills=5,
    awaits=1,
    submissions=1,
    executables=9,
    transient_bytes=1000,
    constant_bytes=0,
    variable_bytes=0,
)


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Place]:
    toolchain = make_fake_toolchain(tmp_path / "tools")

    def make(
        name: str, *, record: ToolchainRecord = TOOLCHAIN, counts: Mapping[str, int] | None = None, **side: Any
    ) -> Place:
        case = replace(CASE, toolchain=record.version)
        made = a_side(case, toolchains=(record,), label=name, **side)
        builds = {
            name: replace(build, statistics=replace(STATISTICS, **(counts or {})))
            for name, build in made.evidence.builds.items()
        }
        made = replace(made, evidence=replace(made.evidence, builds=builds))
        return Place(name=name, side=made, case=case, toolchain=replace(toolchain, version=record.version))

    return make


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def measuring(tmp_path: Path, notes: Notes) -> Callable[..., Measuring]:
    def make(metric: Metric = LATENCY, **fields: Any) -> Measuring:
        default: dict[str, Any] = {
            "budget_s": 60.0,
            "cap_s": 600.0,
            "noise": 0.0,
            "seed": 0,
            "call_limit_s": 10.0,
            "compile_limits": Limits(seconds=10),
            "wait": True,
            "cache": tmp_path / "cache",
            "progress": notes,
        }
        return Measuring(metric=metric, **{**default, **fields})

    return make


class Clock:
    """Gives generations of a known ratio in the place of workers, and remembers the tasks that it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ratio: float, *, seconds: float = 0.5) -> None:
        self.tasks: list[Task] = []
        self.ratio, self.seconds = ratio, seconds
        self.failure: CaseError | None = None
        self.instructions: tuple[int, int] | None = None
        monkeypatch.setattr(trials, "find_module", lambda side, *_: side)
        monkeypatch.setattr(trials, "latency_task", self._task)

    def _task(
        self,
        name: str,
        _base: object,
        _head: object,
        rule: Rule,
        *,
        budget_s: float,
        on_round: Callable[[Round], None],
        **_: object,
    ) -> Task:
        def sample(number: int) -> Generation:
            if self.failure is not None:
                raise self.failure
            if self.instructions is not None:
                turns = tuple(
                    Turn(case=case, calls=1, wall_ns=1, cpu_ns=1, counters={"instructions": count})
                    for case, count in zip(("base", "head"), self.instructions, strict=True)
                )
                on_round(Round(group="x", generation=number, round=0, started_unix_ns=0, turns=turns))
            log = math.log(self.ratio) + (0.0005 if number % 2 else -0.0005)
            return Generation(log_ratio=log, base=1e6, head=1e6 * self.ratio, rounds=20, seconds=self.seconds)

        self.tasks.append(Task(name=name, sample=sample, rule=rule, budget_s=budget_s))
        return self.tasks[-1]


def test_the_engine_decides_a_latency(
    place: Callable[..., Place], measuring: Callable[..., Measuring], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, 1.42)
    found = try_pair(place("3.6.0"), place("3.7.0", record=NEWER), RULE, measuring())
    assert (found.base, found.head, found.floor, found.verdict) == ("3.6.0", "3.7.0", 0.01, "regressed")
    assert found.ratio == pytest.approx(1.42, rel=0.01)
    assert (found.base_value, found.head_value) == pytest.approx((1e6, 1.42e6))
    assert found.generations >= 2 * RULE.first_look
    assert found.seconds == pytest.approx(0.5 * found.generations)
    assert [task.budget_s for task in clock.tasks] == [60.0]
    assert why_unmeasured(found) == ""


def test_a_pair_gets_the_time_that_a_verdict_takes(
    place: Callable[..., Place], measuring: Callable[..., Measuring], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, 1.0, seconds=10.0)
    earlier = [Trial(base="a", head="b", floor=0.01, verdict="regressed", generations=10, seconds=100.0)]
    sides = place("3.6.0"), place("3.7.0", record=NEWER)
    assert try_pair(*sides, RULE, measuring(), earlier).verdict == "unchanged"
    try_pair(*sides, RULE, measuring(cap_s=70.0), earlier)
    assert clock.tasks[0].budget_s > 100
    assert clock.tasks[1].budget_s == 70.0


def test_the_same_module_needs_no_clock(place: Callable[..., Place], measuring: Callable[..., Measuring]) -> None:
    found = try_pair(place("3.6.0"), place("3.7.0"), RULE, measuring())
    assert (found.verdict, found.ratio, found.reason) == ("identical", 1.0, "same module bytes, same runtime")


def test_what_failed_is_told_from_what_is_slow(
    place: Callable[..., Place], measuring: Callable[..., Measuring], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, 1.0)
    broken = place("3.7.0", record=NEWER, failures={CASE.name: Failure(stage="compile", message="it aborts")})
    found = try_pair(place("3.6.0"), broken, RULE, measuring())
    assert (found.verdict, why_unmeasured(found)) == ("failed", "fails at compile: it aborts")
    clock.failure = CaseError("measure", "the head's module: it crashed")
    found = try_pair(place("3.6.0"), place("3.7.0", record=NEWER), RULE, measuring())
    assert (found.verdict, found.reason) == ("failed", "the head's module: it crashed")


def test_counts_are_compared_without_a_clock(place: Callable[..., Place], measuring: Callable[..., Measuring]) -> None:
    base, head = place("3.6.0"), place("3.7.0", record=NEWER, counts={"dispatches": 14, "copies": 3})
    dispatches = try_pair(base, head, rule_of_measurements(8, 0.0), measuring(METRICS["dispatches"]))
    assert (dispatches.verdict, dispatches.base_value, dispatches.head_value) == ("regressed", 10, 14)
    assert (dispatches.ratio, dispatches.exact, dispatches.generations) == (1.4, True, 0)
    copies = try_pair(base, head, rule_of_measurements(8, 0.0), measuring(METRICS["copies"]))
    assert (copies.verdict, copies.ratio, copies.reason) == ("regressed", None, "0 and 3")
    nearer = try_pair(base, head, rule_of_measurements(8, 0.5), measuring(METRICS["dispatches"]))
    assert nearer.verdict == "unchanged", "it lies on this side of the edge"
    size = try_pair(base, head, rule_of_measurements(8, 0.0), measuring(METRICS["module-size"]))
    assert (size.verdict, size.reason) == ("failed", "it has no figure of module-size")


def test_instructions_are_counted_in_a_few_processes(
    place: Callable[..., Place], measuring: Callable[..., Measuring], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, 1.0)
    sides = place("3.6.0"), place("3.7.0", record=NEWER)
    none = try_pair(*sides, RULE, measuring(INSTRUCTIONS))
    assert (none.verdict, none.reason) == ("failed", "this machine does not let instructions be counted")
    clock.instructions = (1_000_000, 1_200_000)
    found = try_pair(*sides, RULE, measuring(INSTRUCTIONS))
    assert (found.verdict, found.generations) == ("regressed", 3)
    assert found.ratio == pytest.approx(1.2)
    threads = [replace(side, case=replace(side.case, uri="local-task")) for side in sides]
    other = try_pair(threads[0], threads[1], RULE, measuring(INSTRUCTIONS))
    assert other.reason == "instructions are counted on local-sync devices alone"


def test_compile_times_are_decided_in_the_time_that_compiles_take(
    place: Callable[..., Place], measuring: Callable[..., Measuring], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiles(base: object, head: object, cpus: object, limits: Limits, number: int) -> Generation:
        assert limits.seconds == 10
        return Generation(log_ratio=number % 3 / 1000, base=1e9, head=2e9, rounds=1, seconds=0.1)

    def module(side: Side, case: Case, *_: object) -> Mock:
        return Mock(build=replace(side.evidence.builds[case.name], compile_ns=50_000_000))

    Clock(monkeypatch, 1.0)
    monkeypatch.setattr(trials, "find_module", module)
    monkeypatch.setattr(trials, "sample_compiles", compiles)
    found = try_pair(place("3.6.0"), place("3.7.0", record=NEWER), RULE, measuring(COMPILE_TIME, budget_s=0.01))
    assert (found.verdict, found.head_value) == ("unchanged", 2e9)
    same = try_pair(place("none"), place("1"), RULE, measuring(COMPILE_TIME, budget_s=0.01))
    assert (same.verdict, same.head_value) == ("unchanged", 2e9)  # another compile of the same module


def test_what_is_no_longer_in_the_cache_is_said(
    place: Callable[..., Place], measuring: Callable[..., Measuring], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise Gone("the module of x in 3.6.0 is no longer in the cache")

    monkeypatch.setattr(trials, "find_module", gone)
    with pytest.raises(RunError, match="is no longer in the cache; begin the bisect again, which compiles it again"):
        try_pair(place("3.6.0"), place("3.7.0", record=NEWER), RULE, measuring())
