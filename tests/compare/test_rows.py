"""Rows: of what is known, measured and counted, what repeats them, what all of them say, and a suite's gates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare.comparison import plan_comparison
from harness.compare.engine import Generation, Outcome
from harness.compare.options import CompareOptions
from harness.compare.pairs import Pair, Side
from harness.compare.rows import (
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
from harness.stats.intervals import Estimate, Location
from tests.builders import make_header, make_row
from tests.compare.runs import a_case, a_side, sha256
from tests.report.builders import make_build

STOCK, FAST = a_case("stock"), a_case("fast")
PAIR = Pair(name=FAST.name, base=STOCK, head=FAST)


# --- Instructions ---


def counted(*ratios: float) -> list[Round]:
    """A generation of two rounds for each ratio of instructions per call."""

    def turn(case: str, ratio: float) -> Turn:
        return Turn(case=case, calls=10, wall_ns=1, cpu_ns=1, counters={"instructions": round(1_000_000 * ratio) * 10})

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
    row = instructions_row(PAIR, counted(*ratios), INSTRUCTIONS.floor)
    assert row is not None
    assert (row.metric, row.verdict, row.floor, row.p) == ("instructions", verdict, 0.0005, None)
    assert (row.generations, row.rounds, row.base_value) == (len(ratios), 2 * len(ratios), 1e6)
    assert (row.ci_low, row.ci_high) == pytest.approx((min(ratios), max(ratios)))
    if len(ratios) == 3:
        assert (row.ratio, row.head_value) == pytest.approx((1.02, 1.02e6))


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


# --- Measured rows, and all rows together ---


def test_a_row_that_was_measured() -> None:
    where = Location(centre=math.log(1.1), low=math.log(1.05), high=math.inf, p=1.0, size=2)
    generations = tuple(
        Generation(log_ratio=None, base=base, head=head, rounds=20, seconds=0.25)
        for base, head in ((1000.0, 1100.0), (3000.0, None), (1010.0, 1100.0))
    )
    estimate = Estimate(where=where, confidence=0.95, rounds=60)
    outcome = Outcome(
        name="x", decision="regressed", reason="confirmed", estimate=estimate, p=0.01, generations=generations
    )
    row = measured_row(PAIR, LATENCY, outcome, 0.02)
    assert (row.verdict, row.reason, row.floor, row.unit, row.p) == ("regressed", "confirmed", 0.02, "ns", 0.01)
    assert (row.ratio, row.ci_low) == pytest.approx((1.1, 1.05))
    assert row.ci_high is None
    assert (row.base_value, row.head_value) == (1010.0, 1100.0)
    assert (row.generations, row.rounds, row.seconds) == (3, 60, 0.75)


def test_a_summary_and_geometric_means_by_model_device_and_variant() -> None:
    rows = [
        make_row("regressed", ratio=2.0),
        make_row("identical", variant="inert"),
        make_row("improved", ratio=0.5, model="other", device="gpu"),
        make_row("inconclusive", ratio=9.0),
    ]
    summary = summarise([*rows, make_row("regressed", "compile-time"), make_row("regressed", control=True)])
    counts = {"regressed": 1, "improved": 1, "identical": 1, "inconclusive": 1}
    assert summary == {verdict: counts.get(verdict, 0) for verdict in VERDICTS}
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
LINALG, UPDATE = "input/linalg.*", "flow/flow.tensor.update"
MANY = "10,235 bytes where there were 19,796,992"


def figures(
    *, built: bool = True, referenced: bool = True, ir: Mapping[str, int] | None = None, **counts: int | None
) -> Side:
    """A side whose one case has these statistics; without a build or a reference it lacks theirs."""
    build = make_build(TILED)
    assert build.statistics is not None
    build = replace(build, statistics=replace(build.statistics, **counts))  # type: ignore[arg-type]
    reference = Reference(case=TILED.name, command=(), host_peak_bytes=1000, device_peak_bytes=2000)
    run = Run(
        header=make_header(cases=(TILED,)),
        builds=(build if built else replace(build, sizes=None, statistics=None),),
        references=(reference,) if referenced else (),
        ir=() if ir is None else (IrCounts(case=TILED.name, counts=dict(ir)),),
        finished=True,
    )
    return Side(run, "x")


def test_transient_memory_that_is_not_known_has_no_row_but_where_a_gate_is_about_it() -> None:
    known, unknown = figures(), figures(transient_bytes=None)
    assert "transient-memory" not in {row.metric for row in exact_rows(EXACT_PAIR, known, unknown)}
    assert unknown_row(EXACT_PAIR, known, known) is None
    for sides in ((known, unknown), (unknown, known), (unknown, unknown)):
        row = unknown_row(EXACT_PAIR, *sides)
        assert row is not None
        ((gated,), _) = apply_gates([row], [Gate(name="memory", metric="transient-memory", relative=0.05)])
        assert (row.verdict, row.head_value, gated.gate) == ("inconclusive", None, "violated")


def test_every_exact_metric_that_both_sides_have_is_a_row_and_op_counts_come_last() -> None:
    counts = {"input/tensor.empty": 3, UPDATE: 13, "bufferized/executables:memref.alloc*": 0}
    rows = exact_rows(EXACT_PAIR, figures(ir=counts), figures(ir=counts))
    assert [row.metric for row in rows] == [*(metric.name for metric in EXACT), *counts]
    assert {row.verdict for row in rows} == {"unchanged"}
    bare: Any = {"built": False, "referenced": False}
    here, there = figures(**bare, ir={LINALG: 1, UPDATE: 2}), figures(**bare, ir={UPDATE: 2, "vm/vm.call": 3})
    assert [row.metric for row in exact_rows(EXACT_PAIR, here, there)] == [UPDATE]
    assert exact_rows(EXACT_PAIR, figures(built=False), figures(referenced=False)) == []


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
        ("ir", LINALG, 1200, 1200, "unchanged", "1,200 ops on both sides"),
    ],
)
def test_a_row_of_a_figure_says_all_there_is_to_say(
    name: str, metric: str, base: int, head: int, verdict: Verdict, reason: str
) -> None:
    sides: list[Any] = [{name: {metric: value} if name == "ir" else value} for value in (base, head)]
    found = exact_rows(EXACT_PAIR, figures(**sides[0]), figures(**sides[1]))
    (row,) = [row for row in found if row.metric == metric]
    assert (row.verdict, row.reason, row.base_value, row.head_value) == (verdict, reason, base, head)
    assert row.ratio == (head / base if base else None)  # nothing is no base for a ratio


# --- Repeating a row ---

COMMAND = "iree-compile model.mlir -o module.vmfb"
BASE, HEAD = a_side(STOCK), a_side(FAST, label="results/my head")


@pytest.mark.parametrize(
    ("row", "head", "options", "command"),
    [
        (make_row(), HEAD, {"across_hosts": True}, "results/base 'results/my head' --filter net/fast@cpu"),
        (
            make_row(metric="compile-time"),
            HEAD,
            {"by_name": True, "floor": 0.02},
            "results/base 'results/my head' --filter net/fast@cpu --metric compile-time --by-name --floor 0.02",
        ),
        (
            make_row(),
            HEAD,
            {"across_hosts": True, "remeasure": False},
            "results/base 'results/my head' --filter net/fast@cpu --no-remeasure --across-hosts",
        ),
        (
            make_row(control=True),
            BASE,
            {"within": Path("results/base")},
            "--within results/base --filter net/fast@cpu --controls 1",
        ),
        (
            make_row(),
            a_side(FAST, label="iree==3.13.0"),
            {},
            "results/base iree==3.13.0 --suite suites/small.toml --filter net/fast@cpu",
        ),
    ],
)
def test_a_timed_row_has_the_command_that_repeats_it_and_both_modules(
    row: Row, head: Side, options: dict[str, Any], command: str
) -> None:
    repro = with_repro(row, PAIR, BASE, head, CompareOptions(**options)).repro
    assert repro[0] == f"harness compare {command}"
    if head is HEAD:
        assert repro[1:] == (
            f"# base: module {sha256(STOCK.name)[:12]}, {COMMAND}",
            f"# head: module {sha256(FAST.name)[:12]}, {COMMAND}",
        )


# --- Gates ---


def a_gate(metric: str = "copies", **fields: Any) -> Gate:
    return Gate(**{"name": "limit", "metric": metric, **fields})


def exact(base: float = 10, head: float = 10, metric: str = "copies", **fields: Any) -> Row:
    """A row of counted values, which another rule may have called anything."""
    return make_row("unchanged", metric, base_value=base, head_value=head, reason="because", **fields)


def timed(verdict: Verdict, ratio: float | None, **fields: Any) -> Row:
    """A row of latencies; the head's value is not the ratio's, since each is a median over generations of its own."""
    return make_row(verdict, base_value=1000, head_value=1000, ratio=ratio, **fields)


def gated(rows: Sequence[Row], *gates: Gate) -> list[str | None]:
    return [row.gate for row in apply_gates(rows, gates)[0]]


@pytest.mark.parametrize(
    ("cases", "gates"),
    [
        ("net/*@cpu", ["passed", None, "passed", "passed"]),
        ("*@gpu", [None, "passed", None, None]),
        ("*:3.13.0", [None, None, None, "passed"]),  # of several toolchains a pattern may name one or leave it out
    ],
)
def test_a_gate_is_of_the_cases_that_its_pattern_matches_and_of_no_control(cases: str, gates: list[str | None]) -> None:
    names = ("net/fast@gpu", "net/fast@cpu:3.12.0", "net/fast@cpu:3.13.0")
    rows = [exact(), *(exact(case=name, device=name[9:12]) for name in names)]
    controls = [replace(row, control=True) for row in rows]
    assert gated([*rows, *controls], a_gate(cases=cases)) == [*gates, None, None, None, None]


@pytest.mark.parametrize(
    ("row", "limits", "expected"),
    [
        # Exact metrics go by their values.
        (exact(10, 10), {}, "passed"),
        (exact(10, 11), {}, "violated"),
        (exact(10, 11, UPDATE), {}, "violated"),
        (exact(10, 9), {"direction": "decrease"}, "violated"),
        (exact(10, 9), {"direction": "any"}, "violated"),
        (exact(10, 11), {"direction": "any", "relative": 0.1}, "passed"),
        (exact(100, 106), {"relative": 0.05}, "violated"),
        (exact(100, 129), {"relative": 0.29}, "passed"),  # 0.29 * 100 is less than 29 in binary fractions
        (exact(100, 107), {"absolute": 6, "relative": 0.1}, "passed"),  # within either
        (exact(10, 17), {"absolute": 6, "relative": 0.1}, "violated"),
        (exact(0, 1), {"relative": 0.5}, "violated"),
        # Statistical ones have to be found changed first.
        (timed("regressed", 1.10), {}, "violated"),
        (timed("regressed", 1.10), {"relative": 0.2}, "passed"),
        (timed("regressed", 1.10), {"relative": 0.05}, "violated"),
        (timed("regressed", 1.10), {"absolute": 150}, "passed"),
        (timed("regressed", 1.10), {"direction": "decrease"}, "passed"),
        (timed("improved", 0.80), {}, "passed"),
        (timed("improved", 0.80), {"direction": "any", "relative": 0.1}, "violated"),
        (timed("inconclusive", 1.50), {}, "passed"),
        (exact(10, 12), {"at_most": 12}, "passed"),
        (exact(14, 13), {"at_most": 12}, "violated"),
        (timed("failed", None), {}, None),
    ],
)
def test_a_gate_is_violated_by_what_goes_beyond_its_limits_in_its_direction(
    row: Row, limits: dict[str, Any], expected: str | None
) -> None:
    assert gated([row], a_gate(row.metric, **limits)) == [expected]


@pytest.mark.parametrize(
    ("metric", "gate"),
    [
        ("copies", "passed"),
        ("host-peak-memory", "passed"),
        (UPDATE, "passed"),
        ("latency", "passed"),
        ("compile-time", None),
    ],
)
def test_an_identical_row_passes_every_gate_that_equal_modules_keep(metric: str, gate: str | None) -> None:
    assert gated([make_row("identical")], a_gate(metric, direction="any")) == [gate]


@pytest.mark.parametrize(
    ("row", "limits", "words"),
    [
        (exact(10, 11), {}, "no increase"),
        (exact(100, 200, "transient-memory"), {"relative": 0.05, "absolute": 8}, "+5 % or +8 bytes"),
        (timed("regressed", 2.0, reason="because"), {"absolute": 500}, "+0.0005 ms"),
        (exact(10, 13), {"absolute": 2, "direction": "any"}, "±2"),
        (exact(10, 5), {"relative": 0.125, "direction": "decrease"}, "-12.5 %"),
        (exact(10, 13), {"at_most": 12}, "at most 12"),
    ],
)
def test_a_row_says_what_the_gate_allows_that_it_violates(row: Row, limits: dict[str, Any], words: str) -> None:
    loose, tight = a_gate(row.metric, name="loose", relative=9, direction="any"), a_gate(row.metric, **limits)
    ((found,), _) = apply_gates([row], [loose, tight])
    assert (found.gate, found.reason) == ("violated", f"because; gate limit allows {words}")


COMPILE_TIME = a_gate("compile-time")
NOWHERE = a_gate(cases="*@gpu")


@pytest.mark.parametrize(
    ("gate", "notes"),
    [
        (a_gate(), []),
        (COMPILE_TIME, ["Gate limit was not applied: compile-time was not measured"]),
        (a_gate(cases="net/tiled@cpu"), ["Gate limit was not applied: its cases were left out"]),
        (NOWHERE, []),  # of a comparison of some cases only
    ],
)
def test_a_gate_that_can_not_be_held_against_anything_is_noted(gate: Gate, notes: list[str]) -> None:
    left_out = [Pair(name="net/tiled@cpu", base=None, head=a_case("tiled"))]
    assert apply_gates([make_row("regressed"), exact()], [gate], left_out)[1] == notes


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
    pairs = [Pair(name=case.name, base=None, head=case) for case in (a_case(f"v{number}") for number in range(4))]
    require_gated_cases(pairs, [a_gate(), COMPILE_TIME], "suites/net.toml", partial=False)
    require_gated_cases(pairs, [NOWHERE], "suites/net.toml", partial=True)
    with pytest.raises(UsageError) as caught:
        require_gated_cases(pairs, [gate], "suites/net.toml", partial=False)
    assert str(caught.value) == f"suites/net.toml: [gates.limit] {sentence}"


# --- Whose compile times are compared ---


@pytest.mark.parametrize(
    ("head_s", "options", "gates", "compared"),
    [
        (1.9, {}, (), []),
        (2.0, {"row_budget": 24.0}, (), ["a", "b"]),  # eight compiles of either side
        (2.0, {"row_budget": 23.0}, (), []),
        (0.5, {"row_budget": 12.0}, (), ["a", "b"]),
        (2.0, {"compile_budget": 0.0}, (), []),
        (1.0, {"metric": "compile-time"}, (), ["a", "b"]),
        (1.0, {}, (a_gate("compile-time", cases="net/b@*"),), ["b"]),
    ],
)
def test_those_that_are_asked_for_or_differ_plainly(
    head_s: float, options: dict[str, Any], gates: tuple[Gate, ...], compared: list[str]
) -> None:
    """Of two cases whose code changed, and one whose runtime alone did; every base took 1 s to compile."""

    def a_run(label: str, seconds: float) -> Side:
        code = {f"net/{name}@cpu": f"{name} {label}" for name in "ab"}
        run = a_side(*map(a_case, ("a", "b", "equal")), label=label, code=code, gates=gates).run
        builds = tuple(replace(build, compile_ns=int(seconds * 1e9)) for build in run.builds)
        return Side(replace(run, builds=builds), label)

    plan = plan_comparison(a_run("base", 1.0), a_run("head", head_s), CompareOptions(**options))
    assert [pair.case.variant for pair in plan.compiled] == compared
