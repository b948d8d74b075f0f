"""Gates: which rows they are of, what violates them, and that none passes by being of nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.compare.gates import allowance, apply_gates, require_gated_cases
from harness.compare.pairs import Pair
from harness.errors import UsageError
from harness.records.case import Gate
from harness.records.comparison import Row, Verdict
from tests.builders import make_row
from tests.compare.runs import a_case

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
    ("gate", "rows"),
    [
        (a_gate(cases="net/*@cpu"), {"copies": "passed", "fills": None}),
        (a_gate(UPDATES), {UPDATES: "passed", "flow/flow.dispatch": None}),
    ],
)
def test_a_gate_is_of_the_rows_of_its_metric(gate: Gate, rows: dict[str, str | None]) -> None:
    before = [exact(metric) for metric in rows]
    after = apply_gates(before, [gate])[0]
    assert [row.gate for row in after] == list(rows.values())
    assert [replace(row, gate=None) for row in after] == before


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


def test_a_gate_holds_a_size_that_changed_by_less_than_its_floor() -> None:
    size = exact("module-size", 100_000, 100_060, verdict="unchanged", unit="bytes", floor=0.01)
    assert gated([size], a_gate("module-size")) == ["violated"]
    assert gated([size], a_gate("module-size", absolute=100)) == ["passed"]


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
        (10, 9, {}, "passed"),
        (10, 9, {"direction": "decrease"}, "violated"),
        (10, 11, {"direction": "decrease"}, "passed"),
        (10, 9, {"direction": "any"}, "violated"),
        (10, 11, {"direction": "any", "relative": 0.1}, "passed"),
        (100, 105, {"relative": 0.05}, "passed"),
        (100, 106, {"relative": 0.05}, "violated"),
        (100, 129, {"relative": 0.29}, "passed"),  # 0.29 * 100 is less than 29 in binary fractions
        (100, 106, {"absolute": 6}, "passed"),
        (100, 107, {"absolute": 6}, "violated"),
        (100, 107, {"absolute": 6, "relative": 0.1}, "passed"),  # within either
        (10, 17, {"absolute": 6, "relative": 0.1}, "violated"),
        (0, 0, {"relative": 0.5}, "passed"),
        (0, 1, {"relative": 0.5}, "violated"),
        (0, 1, {"absolute": 1}, "passed"),
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
        ("regressed", 1.10, {"absolute": 50}, "violated"),
        ("regressed", 1.10, {"absolute": 150}, "passed"),
        ("regressed", 1.10, {"direction": "decrease"}, "passed"),
        ("regressed", 1.10, {"direction": "any"}, "violated"),
        ("improved", 0.80, {}, "passed"),
        ("improved", 0.80, {"direction": "decrease"}, "violated"),
        ("improved", 0.80, {"direction": "decrease", "relative": 0.25}, "passed"),
        ("improved", 0.80, {"direction": "any", "relative": 0.1}, "violated"),
        ("inconclusive", 1.50, {}, "passed"),
        ("unchanged", 1.001, {}, "passed"),
        ("failed", None, {}, None),
        ("missing", None, {}, None),
        ("new", None, {}, None),
    ],
)
def test_statistical_metrics_have_to_be_found_changed_first(
    verdict: Verdict, ratio: float | None, limits: dict[str, Any], expected: str | None
) -> None:
    # The head's value is not the ratio's: each is a median over generations of its own.
    row = make_row(verdict, base_value=1000, head_value=1000, ratio=ratio)
    assert gated([row], a_gate("latency", **limits)) == [expected]


def test_a_change_whose_size_is_not_known_is_within_no_limit() -> None:
    assert gated([make_row("regressed")], a_gate("latency", relative=0.5)) == ["violated"]


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (a_gate("transient-memory", relative=0.05), "+5 %"),
        (a_gate("transient-memory", relative=0.05, absolute=4096), "+5 % or +4,096 bytes"),
        (a_gate("latency", absolute=250_000), "+0.25 ms"),
        (a_gate("instructions", absolute=1e6), "+1,000,000 instructions"),
        (a_gate("copies", absolute=2, direction="any"), "±2"),
        (a_gate("copies", relative=0.125, direction="decrease"), "-12.5 %"),
        (a_gate("copies"), "no increase"),
        (a_gate("copies", relative=0.0), "no increase"),
        (a_gate("copies", direction="decrease"), "no decrease"),
        (a_gate("copies", direction="any"), "no change"),
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
        (a_gate(), [make_row("identical")], []),
        (COMPILE_TIME, [make_row("regressed"), exact()], NOT_MEASURED),
        (COMPILE_TIME, [make_row("identical")], NOT_MEASURED),
        (ELSEWHERE, [exact()], ["Gate limit was not applied: its cases were left out"]),
        (NOWHERE, [exact()], []),  # of a comparison of some cases only
    ],
)
def test_a_gate_that_can_not_be_held_against_anything_is_noted(gate: Gate, rows: list[Row], notes: list[str]) -> None:
    left_out = [Pair(name="net/tiled@cpu", base=None, head=a_case("tiled"))]
    assert apply_gates(rows, [gate], left_out)[1] == notes


def test_upstreams_rule_has_no_gates() -> None:
    note = "The suite's gates were not applied: upstream's rule has none"
    assert apply_gates([exact(head=11)], [a_gate()], upstream=True) == ([exact(head=11)], [note])
    assert apply_gates([exact()], [], upstream=True) == ([exact()], [])


DAMAGED = "names no metric, or a limit that is none; correct it"


@pytest.mark.parametrize(
    ("gate", "sentence"),
    [
        (a_gate("speed"), DAMAGED),
        (a_gate(relative=math.nan), DAMAGED),
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
