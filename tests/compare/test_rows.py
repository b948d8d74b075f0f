"""Rows: of what is known, measured and counted, what repeats them, and what all of them together say."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare.comparison import Plan, plan_comparison
from harness.compare.engine import Generation, Outcome
from harness.compare.options import CompareOptions
from harness.compare.pairs import Pair, Side, side_of
from harness.compare.rows import (
    allowance,
    apply_gates,
    exact_rows,
    geometric_means,
    instructions_row,
    measured_row,
    require_gated_cases,
    summarise,
    unknown_row,
    with_kind_of_change,
    with_repro,
)
from harness.errors import UsageError
from harness.metrics import EXACT, INSTRUCTIONS, LATENCY
from harness.records.case import Gate
from harness.records.comparison import VERDICTS, Row, Verdict
from harness.records.run import IrCounts, Reference, Round, Run, Turn
from harness.stats import Estimate
from harness.stats.intervals import Location
from tests.builders import make_header, make_row
from tests.compare.runs import a_case, a_side, sha256
from tests.report.builders import make_build

STOCK, FAST = a_case("stock"), a_case("fast")
PAIR = Pair(name=FAST.name, base=STOCK, head=FAST)
FLOOR = INSTRUCTIONS.floor


# --- Instructions ---


def counted(*ratios: float, base: int = 1_000_000, calls: int = 10) -> list[Round]:
    """A generation of two rounds for each ratio of instructions per call."""

    def turn(case: str, ratio: float) -> Turn:
        return Turn(case=case, calls=calls, wall_ns=1, cpu_ns=1, counters={"instructions": round(base * ratio) * calls})

    return [
        Round(group="x", generation=generation, round=number, started_unix_ns=0, turns=turns)
        for generation, ratio in enumerate(ratios)
        for number in range(2)
        if (turns := (turn("base", 1), turn("head", ratio)))
    ]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.0004], "unchanged"),
        ([1.0006], "regressed"),
        ([1.01, 1.03, 1.02], "regressed"),
        ([0.5, 0.6], "improved"),
        ([1.001, 1.0], "inconclusive"),
    ],
)
def test_the_floor_is_a_twentieth_of_a_per_cent_and_all_generations_have_to_agree(
    ratios: list[float], verdict: Verdict
) -> None:
    row = instructions_row(PAIR, counted(*ratios), FLOOR)
    assert row is not None
    assert (row.case, row.metric, row.verdict, row.unit) == (FAST.name, "instructions", verdict, "instructions")
    assert (row.generations, row.rounds, row.floor, row.p) == (len(ratios), 2 * len(ratios), 0.0005, None)
    middle = sorted(ratios)[1] if len(ratios) == 3 else sum(ratios) / len(ratios)
    assert (row.ci_low, row.ci_high) == pytest.approx((min(ratios), max(ratios)))
    assert row.ratio == pytest.approx(middle, rel=0.01)
    assert row.base_value == 1e6
    assert row.head_value == pytest.approx(1e6 * middle)
    assert row.reason == "counted, not timed: the interval is that of all generations"


@pytest.mark.parametrize(
    ("latency", "instructions", "change"),
    [
        ("regressed", "regressed", "more work"),
        ("regressed", "unchanged", "same work, slower"),
        ("improved", "improved", "less work"),
        ("regressed", "inconclusive", None),
        ("unchanged", "regressed", None),
        ("regressed", None, None),
    ],
)
def test_the_kind_of_a_change(latency: Verdict, instructions: Verdict | None, change: str | None) -> None:
    counts = None if instructions is None else make_row(instructions, "instructions")
    assert with_kind_of_change(make_row(latency), counts) == make_row(latency, change=change)


# --- Measured and known rows ---


def a_generation(base: float | None = 1000.0, head: float | None = 1100.0) -> Generation:
    return Generation(log_ratio=None, base=base, head=head, rounds=20, seconds=0.25)


def test_a_row_that_was_measured() -> None:
    where = Location(centre=math.log(1.1), low=math.log(1.05), high=math.inf, p=1.0, size=2)
    outcome = Outcome(
        name="x",
        decision="regressed",
        reason="confirmed",
        estimate=Estimate(where=where, confidence=0.95, rounds=60),
        p=0.01,
        generations=(a_generation(), a_generation(base=3000.0, head=None), a_generation(base=1010.0)),
    )
    row = measured_row(PAIR, LATENCY, outcome, 0.02)
    assert (row.verdict, row.reason, row.floor, row.unit, row.p) == ("regressed", "confirmed", 0.02, "ns", 0.01)
    assert (row.ratio, row.ci_low) == pytest.approx((1.1, 1.05))
    assert row.ci_high is None
    assert (row.base_value, row.head_value) == (1010.0, 1100.0)
    assert (row.generations, row.rounds, row.seconds) == (3, 60, 0.75)


# --- All rows together ---


def test_a_summary_and_geometric_means_by_model_device_and_variant() -> None:
    rows = [
        make_row("regressed", ratio=2.0),
        make_row("identical", variant="inert"),
        make_row("improved", ratio=0.5, model="other", device="gpu"),
        make_row("inconclusive", ratio=9.0),
    ]
    others = [make_row("regressed", "compile-time"), make_row("regressed", control=True)]
    summary = summarise([*rows, *others])
    assert tuple(summary) == VERDICTS
    counts = {"regressed": 1, "improved": 1, "identical": 1, "inconclusive": 1}
    assert {verdict: count for verdict, count in summary.items() if count} == counts
    means = {(mean.kind, mean.name): (mean.ratio, mean.rows) for mean in geometric_means(rows)}
    assert means == {
        ("model", "net"): (pytest.approx(math.sqrt(2)), 2),  # an identical row counts with 1
        ("model", "other"): (0.5, 1),
        ("device", "cpu"): (pytest.approx(math.sqrt(2)), 2),
        ("device", "gpu"): (0.5, 1),
        ("variant", "fast"): (pytest.approx(1.0), 2),
        ("variant", "inert"): (1.0, 1),
    }


# --- Exact figures ---

TILED = a_case("tiled")
EXACT_PAIR = Pair(name=TILED.name, base=TILED, head=TILED)
LINALG = "input/linalg.*"
UPDATE = "flow/flow.tensor.update"
MANY = "10,235 bytes where there were 19,796,992"


def figures(
    *,
    built: bool = True,
    referenced: bool = True,
    ir: Mapping[str, int] | None = None,
    host: int | None = 1000,
    device: int | None = 2000,
    **counts: int | None,
) -> Side:
    """A side whose one case has these statistics; without a build or a reference it lacks theirs."""
    build = make_build(TILED)
    assert build.statistics is not None
    build = replace(build, statistics=replace(build.statistics, **counts))  # type: ignore[arg-type]
    reference = Reference(case=TILED.name, command=(), host_peak_bytes=host, device_peak_bytes=device)
    run = Run(
        header=make_header(cases=(TILED,)),
        builds=(build if built else replace(build, sizes=None, statistics=None),),
        references=(reference,) if referenced else (),
        ir=() if ir is None else (IrCounts(case=TILED.name, counts=dict(ir)),),
        finished=True,
    )
    return side_of(run, "x")


def test_transient_memory_that_is_not_known_has_no_row_but_where_a_gate_is_about_it() -> None:
    known, unknown = figures(), figures(transient_bytes=None)
    assert "transient-memory" not in {row.metric for row in exact_rows(EXACT_PAIR, known, unknown)}
    assert unknown_row(EXACT_PAIR, known, known) is None
    for sides in ((known, unknown), (unknown, known), (unknown, unknown)):
        row = unknown_row(EXACT_PAIR, *sides)
        assert row is not None
        gate = Gate(name="memory", metric="transient-memory", relative=0.05)
        ((gated,), _) = apply_gates([row], [gate])
        assert (row.verdict, row.head_value, gated.gate) == ("inconclusive", None, "violated")


def test_every_exact_metric_that_both_sides_have_is_a_row_and_op_counts_come_last() -> None:
    counts = {"input/tensor.empty": 3, UPDATE: 13, "bufferized/executables:memref.alloc*": 0}
    rows = exact_rows(EXACT_PAIR, figures(ir=counts), figures(ir=counts))
    assert [row.metric for row in rows] == [*(metric.name for metric in EXACT), *counts]
    assert {row.verdict for row in rows} == {"unchanged"}


@pytest.mark.parametrize(
    ("name", "metric", "base", "head", "verdict", "reason"),
    [
        ("transient_bytes", "transient-memory", 19_796_992, 10_235, "improved", MANY),
        ("transient_bytes", "transient-memory", 4096, 4137, "regressed", "4,137 bytes where there were 4,096"),
        ("transient_bytes", "transient-memory", 4096, 4097, "unchanged", "4,097 bytes where there were 4,096"),
        ("transient_bytes", "transient-memory", 0, 1, "regressed", "1 byte where there were 0"),
        ("copies", "copies", 13, 1, "improved", "1 copy where there were 13"),
        ("fills", "fills", 0, 0, "unchanged", "0 fills on both sides"),
        ("dispatches", "dispatches", 1, 0, "improved", "0 dispatches where there was 1"),
        ("ir", UPDATE, 13, 1, "improved", "1 op where there were 13"),
        ("ir", LINALG, 1200, 1200, "unchanged", "1,200 ops on both sides"),
    ],
)
def test_a_row_of_a_figure_says_all_there_is_to_say(
    name: str, metric: str, base: int, head: int, verdict: Verdict, reason: str
) -> None:
    sides: list[Any] = [{name: {metric: value} if name == "ir" else value} for value in (base, head)]
    found = exact_rows(EXACT_PAIR, figures(**sides[0]), figures(**sides[1]))
    assert [row for row in found if row.metric == metric] == [
        make_row(
            verdict,
            metric,
            case="net/tiled@cpu",
            variant="tiled",
            ratio=head / base if base else None,  # nothing is no base for a ratio
            base_value=base,
            head_value=head,
            unit="bytes" if name == "transient_bytes" else "count",
            floor=0.01 if name == "transient_bytes" else 0.0,
            reason=reason,
        )
    ]


def test_what_one_side_does_not_have_is_left_out() -> None:
    """A tool may not print it; a plugin may rewrite a program after a phase, and a suite count other ops by now."""
    bare: Any = {"built": False, "referenced": False}
    here, there = (figures(**bare, ir={LINALG: 1, UPDATE: 2}), figures(**bare, ir={UPDATE: 2, "vm/vm.call": 3}))
    assert [row.metric for row in exact_rows(EXACT_PAIR, here, there)] == [UPDATE]
    assert exact_rows(EXACT_PAIR, here, figures(**bare)) == []
    assert exact_rows(EXACT_PAIR, figures(built=False), figures(referenced=False)) == []
    assert exact_rows(Pair(name="x", base=None, head=TILED), figures(), figures()) == []
    rows = exact_rows(EXACT_PAIR, figures(built=False, host=None), figures(built=False, device=7))
    assert [(row.metric, row.verdict) for row in rows] == [("device-peak-memory", "improved")]


# --- Repeating a row ---

COMMAND = "iree-compile model.mlir -o module.vmfb"
RUNS = a_side(STOCK), a_side(FAST, label="results/my head")


def repro(
    row: Row, base: Side = RUNS[0], head: Side = RUNS[1], *, pair: Pair = PAIR, **options: Any
) -> tuple[str, ...]:
    return with_repro(row, pair, base, head, CompareOptions(**options)).repro


@pytest.mark.parametrize(("metric", "asked"), [("latency", ""), ("compile-time", " --metric compile-time")])
def test_a_timed_row_has_the_command_that_repeats_it_and_both_modules(metric: str, asked: str) -> None:
    assert repro(make_row(metric=metric)) == (
        f"harness compare results/base 'results/my head' --filter net/fast@cpu{asked}",
        f"# base: module {sha256(STOCK.name)[:12]}, {COMMAND}",
        f"# head: module {sha256(FAST.name)[:12]}, {COMMAND}",
    )


def test_a_comparison_within_a_run_or_of_a_toolchain_is_repeated_as_one() -> None:
    row = make_row(control=True)
    assert repro(row, RUNS[0], RUNS[0], within=Path("results/base"))[0] == (
        "harness compare --within results/base --filter net/fast@cpu --controls 1"
    )
    assert repro(make_row(), head=a_side(FAST, label="iree==3.13.0"))[0] == (
        "harness compare results/base iree==3.13.0 --suite suites/small.toml --filter net/fast@cpu"
    )


def test_options_that_make_the_comparison_what_it_is_are_repeated() -> None:
    options: Any = {"across_hosts": True, "by_name": True, "floor": 0.02}
    assert repro(make_row(), remeasure=False, **options)[0].endswith(
        " --no-remeasure --across-hosts --by-name --floor 0.02"
    )
    assert "--across-hosts" not in repro(make_row(), **options)[0]  # both are measured here


UPDATES = "flow/flow.tensor.update"


def exact(metric: str = "copies", base: float = 10, head: float = 10, **fields: Any) -> Row:
    """A row that has the verdict of its values."""
    verdict: Verdict = "unchanged" if base == head else "regressed" if head > base else "improved"
    ratio = head / base if base else None
    values = {"ratio": ratio, "base_value": base, "head_value": head, "reason": "because"}
    return make_row(metric=metric, **{"verdict": verdict, **values, **fields})


def a_gate(metric: str = "copies", **fields: Any) -> Gate:
    return Gate(**{"name": "limit", "metric": metric, **fields})


def gated(rows: Sequence[Row], *gates: Gate) -> list[str | None]:
    return [row.gate for row in apply_gates(rows, gates)[0]]


def reason(row: Row, *gates: Gate) -> str:
    return apply_gates([row], gates)[0][0].reason


# --- Which rows ---


@pytest.mark.parametrize(
    ("cases", "gates"),
    [
        ("net/*@cpu", ["passed", None, "passed", "passed"]),
        ("*@gpu", [None, "passed", None, None]),
        ("*:3.13.0", [None, None, None, "passed"]),  # of several toolchains a pattern may name one or leave it out
    ],
)
def test_a_gate_is_of_the_cases_that_its_pattern_matches_and_of_no_control(cases: str, gates: list[str | None]) -> None:
    rows = [
        exact(),
        exact(case="net/fast@gpu", device="gpu"),
        exact(case="net/fast@cpu:3.12.0"),
        exact(case="net/fast@cpu:3.13.0"),
    ]
    controls = [replace(row, control=True) for row in rows]
    assert gated([*rows, *controls], a_gate(cases=cases)) == [*gates, None, None, None, None]
    assert gated(rows) == [None] * 4


def test_of_several_gates_one_is_enough_to_be_violated() -> None:
    loose, tight = a_gate(name="loose", relative=2), a_gate(name="tight", absolute=1)
    assert gated([exact(head=12)], loose, tight) == ["violated"]
    assert reason(exact(head=12), loose, tight) == "because; gate tight allows +1"
    assert reason(exact(head=50), loose, tight) == "because; gate loose allows +200 %; gate tight allows +1"
    assert reason(exact(head=10), loose, tight) == "because"
    assert reason(exact(head=11, reason=""), a_gate()) == "gate limit allows no increase"


@pytest.mark.parametrize(
    ("metric", "gate"),
    [
        *((metric, "passed") for metric in ("copies", "module-size", "host-peak-memory", UPDATES, "latency")),
        ("compile-time", None),
    ],
)
def test_an_identical_row_passes_every_gate_that_equal_modules_keep(metric: str, gate: str | None) -> None:
    rows = [make_row("identical", control=True), make_row("identical"), exact(case="net/b@cpu", head=11)]
    assert gated(rows[:2], a_gate(metric, direction="any")) == [None, gate]
    assert gated(rows, a_gate(cases="net/b@*")) == [None, None, "violated"]


# --- Exact metrics ---


@pytest.mark.parametrize("metric", ["copies", "module-size", UPDATES])
@pytest.mark.parametrize(
    ("base", "head", "limits", "expected"),
    [
        (10, 10, {}, "passed"),
        (10, 11, {}, "violated"),
        (10, 9, {"direction": "decrease"}, "violated"),
        (10, 9, {"direction": "any"}, "violated"),
        (10, 11, {"direction": "any", "relative": 0.1}, "passed"),
        (100, 105, {"relative": 0.05}, "passed"),
        (100, 106, {"relative": 0.05}, "violated"),
        (100, 129, {"relative": 0.29}, "passed"),  # 0.29 * 100 is less than 29 in binary fractions
        (100, 107, {"absolute": 6, "relative": 0.1}, "passed"),  # within either
        (10, 17, {"absolute": 6, "relative": 0.1}, "violated"),
        (0, 1, {"relative": 0.5}, "violated"),
    ],
)
def test_exact_metrics_go_by_their_values_whatever_another_rule_calls_them(
    metric: str, base: float, head: float, limits: dict[str, Any], expected: str
) -> None:
    rows = [exact(metric, base, head), exact(metric, base, head, verdict="unchanged")]
    assert gated(rows, a_gate(metric, **limits)) == [expected, expected]


# --- Statistical metrics ---


@pytest.mark.parametrize(
    ("verdict", "ratio", "limits", "expected"),
    [
        ("regressed", 1.10, {}, "violated"),
        ("regressed", 1.10, {"relative": 0.2}, "passed"),
        ("regressed", 1.10, {"relative": 0.05}, "violated"),
        ("regressed", 1.10, {"absolute": 150}, "passed"),
        ("regressed", 1.10, {"direction": "decrease"}, "passed"),
        ("improved", 0.80, {}, "passed"),
        ("improved", 0.80, {"direction": "decrease"}, "violated"),
        ("improved", 0.80, {"direction": "any", "relative": 0.1}, "violated"),
        ("inconclusive", 1.50, {}, "passed"),
        ("failed", None, {}, None),
    ],
)
def test_statistical_metrics_have_to_be_found_changed_first(
    verdict: Verdict, ratio: float | None, limits: dict[str, Any], expected: str | None
) -> None:
    # The head's value is not the ratio's: each is a median over generations of its own.
    row = make_row(verdict, base_value=1000, head_value=1000, ratio=ratio)
    assert gated([row], a_gate("latency", **limits)) == [expected]


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (a_gate("transient-memory", relative=0.05), "+5 %"),
        (a_gate("transient-memory", relative=0.05, absolute=4096), "+5 % or +4,096 bytes"),
        (a_gate("latency", absolute=250_000), "+0.25 ms"),
        (a_gate("copies", absolute=2, direction="any"), "±2"),
        (a_gate("copies", relative=0.125, direction="decrease"), "-12.5 %"),
        (a_gate("copies"), "no increase"),
    ],
)
def test_what_a_gate_allows_in_words(gate: Gate, words: str) -> None:
    assert allowance(gate) == words


# --- Gates of nothing ---

COMPILE_TIME = a_gate("compile-time")
ELSEWHERE = a_gate(cases="net/tiled@cpu")
NOWHERE = a_gate(cases="*@gpu")
NOT_MEASURED = ["Gate limit was not applied: compile-time was not measured"]


@pytest.mark.parametrize(
    ("gate", "rows", "notes"),
    [
        (a_gate(), [make_row("regressed"), exact()], []),
        (COMPILE_TIME, [make_row("regressed"), exact()], NOT_MEASURED),
        (ELSEWHERE, [exact()], ["Gate limit was not applied: its cases were left out"]),
        (NOWHERE, [exact()], []),  # of a comparison of some cases only
    ],
)
def test_a_gate_that_can_not_be_held_against_anything_is_noted(gate: Gate, rows: list[Row], notes: list[str]) -> None:
    left_out = [Pair(name="net/tiled@cpu", base=None, head=a_case("tiled"))]
    assert apply_gates(rows, [gate], left_out)[1] == notes


DAMAGED = "names no metric, or a limit that is none; correct it"


@pytest.mark.parametrize(
    ("gate", "sentence"),
    [
        (a_gate("speed"), DAMAGED),
        (a_gate(absolute=-1.0), DAMAGED),
        (
            NOWHERE,
            "cases: this comparison has no case that '*@gpu' matches, and has net/v0@cpu, net/v1@cpu, net/v2@cpu, ...; "
            "correct the pattern or remove the gate",
        ),
    ],
)
def test_gates_are_looked_at_before_anything_is_measured(gate: Gate, sentence: str) -> None:
    cases = [a_case(f"v{number}") for number in range(4)]
    pairs = [Pair(name=case.name, base=None, head=case) for case in cases]
    require_gated_cases(pairs, [a_gate(), COMPILE_TIME], "suites/net.toml", partial=False)
    with pytest.raises(UsageError) as caught:
        require_gated_cases(pairs, [gate], "suites/net.toml", partial=False)
    assert str(caught.value) == f"suites/net.toml: [gates.limit] {sentence}"
    require_gated_cases(pairs, [NOWHERE], "suites/net.toml", partial=True)


NAMES = ("a", "b", "equal")
GATE = Gate(name="slow", metric="compile-time", cases="net/b@*")


def a_plan(head_s: float, gates: tuple[Gate, ...] = (), **options: Any) -> Plan:
    """Of two cases whose code changed, and one whose runtime alone did; every base took 1 s to compile."""
    base, head = (
        with_times(a_side(*map(a_case, NAMES), label=label, code=code(label), gates=gates), seconds)
        for label, seconds in (("base", 1.0), ("head", head_s))
    )
    return plan_comparison(base, head, CompareOptions(**options))


def code(label: str) -> dict[str, str]:
    return {f"net/{name}@cpu": f"{name} {label}" for name in NAMES[:2]}


def with_times(side: Side, seconds: float) -> Side:
    builds = tuple(replace(build, compile_ns=int(seconds * 1e9)) for build in side.run.builds)
    return side_of(replace(side.run, builds=builds), side.label)


@pytest.mark.parametrize(
    ("head_s", "options", "compared"),
    [
        (1.9, {}, []),
        (2.0, {"row_budget": 24.0}, ["a", "b"]),  # eight compiles of either side
        (0.5, {"row_budget": 12.0}, ["a", "b"]),
        (2.0, {"row_budget": 1.0, "compile_budget": 24.0}, ["a", "b"]),
        (1.0, {"metric": "compile-time", "row_budget": 1.0}, ["a", "b"]),
        (1.0, {"gates": (GATE,)}, ["b"]),
    ],
)
def test_those_that_are_asked_for_or_differ_plainly(
    head_s: float, options: dict[str, Any], compared: list[str]
) -> None:
    assert [pair.case.variant for pair in a_plan(head_s, **options).compiled] == compared
