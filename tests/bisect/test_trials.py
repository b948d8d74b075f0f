"""One position beside another: what is known without a clock, what is counted, and what the engine decides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from harness.bisect import trials
from harness.bisect.search import Measured, Unusable
from harness.bisect.trials import ERROR, Place, as_measured, place_by_an_end, rule_of_measurements, try_pair
from harness.compare import samplers
from harness.compare.engine import Generation, Task
from harness.compare.pairs import Side
from harness.compare.samplers import CacheMiss, MeasurementPolicy
from harness.errors import CaseError, RunError
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, METRICS, Metric
from harness.process import Limits
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.comparison import Verdict
from harness.records.run import Failure, Round, Statistics, ToolchainRecord, Turn
from harness.stats.rule import Rule
from tests.builders import a_toolchain
from tests.compare.runs import TOOLCHAIN, a_case, a_side

CASE = a_case()
RULE = rule_of_measurements(8, 0.01)
POLICY = MeasurementPolicy(rule=RULE, budget_s=60.0, cap_s=600.0, seed=0, call_limit_s=10.0, limits=Limits(seconds=10))
NEWER = ToolchainRecord(version="0.0.1", revision="", compiler_sha256="dd" * 32)
_ZEROS = ("copies", "fills", "awaits", "submissions", "executables", "constant_bytes", "variable_bytes")
STATISTICS = Statistics(dispatches=10, transient_bytes=1000, **dict.fromkeys(_ZEROS, 0))


class Pairs:
    """Two releases, the older with and without what a test changes, and a clock that gives generations of a ratio."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base, self.head = self.place("3.6.0"), self.place("3.7.0", record=NEWER)
        self.tasks: list[Task] = []  # That the clock was asked for
        self.ratio, self.seconds = 1.0, 0.5
        self.failure: CaseError | None = None
        self.instructions: tuple[int, int] | None = None
        monkeypatch.setattr(trials, "find_module", lambda side, *_: side)
        monkeypatch.setattr(trials, "latency_task", self._task)

    def place(
        self, name: str, *, record: ToolchainRecord = TOOLCHAIN, counts: Mapping[str, int] | None = None, **side: Any
    ) -> Place:
        """A position that is compiled."""
        case = replace(CASE, toolchain=record.version)
        made = a_side(case, toolchains=(record,), label=name, **side)
        statistics = replace(STATISTICS, **(counts or {}))
        builds = tuple(replace(build, statistics=statistics) for build in made.run.builds)
        made = replace(made, run=replace(made.run, builds=builds))
        return Place(name=name, side=made, case=case, toolchain=a_toolchain(record.version))

    def tried(
        self, metric: Metric = LATENCY, head: Place | None = None, earlier: Sequence[Trial] = (), **policy: Any
    ) -> Trial:
        """The older beside the newer, or another."""
        return try_pair(self.base, head or self.head, metric, replace(POLICY, **policy), Progress(), earlier=earlier)

    def _task(self, name: str, _base: object, _head: object, policy: MeasurementPolicy, **given: Any) -> Task:
        def sample(number: int) -> Generation:
            if self.failure is not None:
                raise self.failure
            if self.instructions is not None:
                turns = tuple(
                    Turn(case=case, calls=1, wall_ns=1, cpu_ns=1, counters={"instructions": count})
                    for case, count in zip(("base", "head"), self.instructions, strict=True)
                )
                given["on_round"](Round(group="x", generation=number, round=0, started_unix_ns=0, turns=turns))
            log = math.log(self.ratio) + (0.0005 if number % 2 else -0.0005)
            return Generation(log_ratio=log, base=1e6, head=1e6 * self.ratio, rounds=20, seconds=self.seconds)

        self.tasks.append(Task(name=name, sample=sample, rule=policy.rule, budget_s=policy.budget_s))
        return self.tasks[-1]


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    return Pairs(monkeypatch)


def test_the_engine_decides_a_latency_in_the_time_that_a_verdict_takes(pairs: Pairs) -> None:
    pairs.ratio = 1.42
    found = pairs.tried()
    assert (found.base, found.head, found.floor, found.verdict) == ("3.6.0", "3.7.0", 0.01, "regressed")
    assert found.ratio == pytest.approx(1.42, rel=0.01)
    assert (found.base_value, found.head_value) == pytest.approx((1e6, 1.42e6))
    assert found.generations >= 2 * RULE.first_look
    assert found.seconds == pytest.approx(0.5 * found.generations)
    assert (RULE.floor, RULE.alpha, RULE.confidence) == (0.01, ERROR / 8, 1 - 2 * ERROR / 8), "they share the error"
    pairs.ratio, pairs.seconds = 1.0, 10.0
    earlier = [Trial(base="a", head="b", floor=0.01, verdict="regressed", generations=10, seconds=100.0)]
    assert pairs.tried(earlier=earlier).verdict == "unchanged"
    pairs.tried(earlier=earlier, cap_s=70.0)
    usual, dear, capped = (task.budget_s for task in pairs.tasks)
    assert (usual, dear > 100, capped) == (60.0, True, 70.0)


def test_what_needs_no_clock_and_what_failed(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    same = pairs.tried(head=pairs.place("3.7.0"))
    assert (same.verdict, same.ratio, same.reason) == ("identical", 1.0, "same module bytes, same runtime")
    aborts = Failure(stage="compile", message="it aborts")
    broken = pairs.tried(head=pairs.place("3.7.0", record=NEWER, failures={CASE.name: aborts}))
    assert (broken.verdict, broken.reason) == ("failed", "fails at compile: it aborts")
    pairs.failure = CaseError("measure", "the head's module: it crashed")
    found = pairs.tried()
    assert (found.verdict, found.reason) == ("failed", "the head's module: it crashed")

    def gone(*_: object) -> None:
        raise CacheMiss("the module of x in 3.6.0 is no longer in the cache")

    monkeypatch.setattr(trials, "find_module", gone)
    with pytest.raises(RunError, match="is no longer in the cache; begin the bisect again, which compiles it again"):
        pairs.tried()


def test_counts_are_compared_without_a_clock(pairs: Pairs) -> None:
    pairs.head, exact = pairs.place("3.7.0", record=NEWER, counts={"dispatches": 14, "copies": 3}), Rule(floor=0.0)
    dispatches = pairs.tried(METRICS["dispatches"], rule=exact)
    assert (dispatches.verdict, dispatches.base_value, dispatches.head_value) == ("regressed", 10, 14)
    assert (dispatches.ratio, dispatches.exact, dispatches.generations) == (1.4, True, 0)
    copies = pairs.tried(METRICS["copies"], rule=exact)
    assert (copies.verdict, copies.ratio, copies.reason) == ("regressed", None, "0 and 3")
    log = math.log(6)  # a zero stands as a half
    assert as_measured(copies) == Measured(standing="higher", centre=log, low=log, high=log, reason="0 and 3")
    nearer = pairs.tried(METRICS["dispatches"], rule=Rule(floor=0.5))
    assert nearer.verdict == "unchanged", "it lies on this side of the edge"
    size = pairs.tried(METRICS["module-size"], rule=exact)
    assert (size.verdict, size.reason) == ("failed", "it has no figure of module-size")


def test_instructions_are_counted_in_a_few_processes(pairs: Pairs) -> None:
    assert pairs.tried(INSTRUCTIONS).reason == "this machine does not let instructions be counted"
    pairs.instructions = (1_000_000, 1_200_000)
    found = pairs.tried(INSTRUCTIONS)
    assert (found.verdict, found.generations) == ("regressed", 3)
    assert found.ratio == pytest.approx(1.2)
    pairs.base, pairs.head = (
        replace(side, case=replace(side.case, uri="local-task")) for side in (pairs.base, pairs.head)
    )
    assert pairs.tried(INSTRUCTIONS).reason == "instructions are counted on local-sync devices alone"


def test_compile_times_are_decided_in_the_time_that_compiles_take(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiles(base: object, head: object, cpus: object, limits: Limits, number: int) -> Generation:
        assert limits.seconds == 10
        return Generation(log_ratio=number % 3 / 1000, base=1e9, head=2e9, rounds=1, seconds=0.1)

    def module(side: Side, case: Case, *_: object) -> Mock:
        return Mock(build=replace(side.evidence.builds[case.name], compile_ns=50_000_000))

    monkeypatch.setattr(trials, "find_module", module)
    monkeypatch.setattr(samplers, "sample_compiles", compiles)
    for head in (pairs.head, pairs.place("1")):  # also of another compile of the same module
        found = pairs.tried(COMPILE_TIME, head, budget_s=0.01)
        assert (found.verdict, found.head_value) == ("unchanged", 2e9)


TRIAL = Trial(base="a", head="b", floor=0.01, verdict="inconclusive", reason="why")
HIGHER = Measured(standing="higher", centre=math.log(1.2), low=math.log(1.1), high=math.inf, reason="why")
EQUAL = Measured(standing="equal", centre=0.0, low=0.0, high=0.0, reason="why")


@pytest.mark.parametrize(
    ("verdict", "ratio", "found"),
    [
        ("regressed", 1.2, HIGHER),
        ("improved", 1.2, replace(HIGHER, standing="lower")),
        ("inconclusive", 1.2, replace(HIGHER, standing="open")),
        ("inconclusive", None, Unusable(reason="why")),  # of a clock that is too coarse
        ("identical", 1.0, EQUAL),
        ("outputs differ", None, Unusable(reason="why")),
    ],
)
def test_a_verdict_is_where_the_position_stands(
    verdict: Verdict, ratio: float | None, found: Measured | Unusable
) -> None:
    assert as_measured(replace(TRIAL, verdict=verdict, ratio=ratio, ci_low=ratio and 1.1)) == found


@pytest.mark.parametrize(
    ("logs", "is_placed"),
    [
        *[(logs, True) for logs in ((-0.1, 0.3), (1.3, 1.8), (2.2, 2.2), (-0.5, -0.5))],
        *[(logs, False) for logs in ((0.1, 1.6), (0.8, 0.8), (0.1, 0.5), (0.1, None))],
    ],
)
def test_two_generations_place_what_lies_plainly_by_an_end_else_it_is_judged_with_these_as_its_first(
    logs: tuple[float, float], is_placed: bool
) -> None:
    def sample(number: int) -> Generation:
        return Generation(log_ratio=(*logs, 0.7)[number], base=1e6, head=5e6 + number, rounds=4, seconds=1.5)

    found = place_by_an_end(TRIAL, Task(name="a", sample=sample, rule=Rule(), budget_s=60), math.log(5))
    assert isinstance(found, Trial) is is_placed
    if isinstance(found, Task):
        assert [found.sample(number).log_ratio for number in range(3)] == [*logs, 0.7]
        return
    assert (found.placed, found.is_open, found.generations, found.seconds) == (True, False, 2, 3.0)
    assert found.log_ratio == pytest.approx(sum(logs) / 2)
    assert (found.base_value, found.head_value, found.ci_low) == (1e6, 5e6 + 1, None)
    measured = as_measured(found)
    assert isinstance(measured, Measured) and measured.placed
