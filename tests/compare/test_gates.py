"""Gates: which rows they are of, what violates them, and that none passes by being of nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.compare.gates import allowance, apply_gates
from harness.errors import ExitCode, UsageError
from harness.metrics import METRICS, ir_metric
from harness.records.case import Direction, Gate
from harness.records.comparison import VERDICTS, Row, Verdict

SUITE = "suites/net.toml"


def a_row(metric: str = "copies", base: float | None = 10, head: float | None = 10, **fields: Any) -> Row:
    """An exact metric's row has the verdict of its values; a statistical one's is the test's to say."""
    known = base is not None and head is not None
    verdict = "unchanged" if not known or base == head else "regressed" if (head or 0) > (base or 0) else "improved"
    return Row(
        **{
            "case": "net/tiled@cpu",
            "model": "net",
            "variant": "tiled",
            "device": "cpu",
            "metric": metric,
            "verdict": verdict,
            "ratio": (head or 0) / base if known and base else None,
            "base_value": base,
            "head_value": head,
            "unit": (METRICS.get(metric) or ir_metric(metric)).unit,
            "reason": "because",
            **fields,
        }
    )


def a_gate(metric: str = "copies", **fields: Any) -> Gate:
    return Gate(**{"name": "limit", "metric": metric, **fields})


def outcome(row: Row, *gates: Gate) -> str | None:
    (only,) = apply_gates([row], gates, suite=SUITE)
    return only.gate


def refusal(rows: list[Row], gate: Gate, *, partial: bool = False) -> str:
    with pytest.raises(UsageError) as caught:
        apply_gates(rows, [gate], suite=SUITE, partial=partial)
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


# ------------------------------------------------------------------------------------------------- which rows


def test_a_gate_is_of_the_rows_that_its_metric_and_its_pattern_match() -> None:
    rows = [
        a_row("copies"),
        a_row("fills"),
        a_row("copies", case="net/tiled@gpu", device="gpu"),
        a_row("copies", control=True),
    ]
    gated = apply_gates(rows, [a_gate(cases="net/*@cpu")], suite=SUITE)
    assert [row.gate for row in gated] == ["passed", None, None, None]
    assert [replace(row, gate=None) for row in gated] == rows


def test_in_a_run_of_several_toolchains_a_pattern_may_leave_them_out_or_name_them() -> None:
    rows = [a_row(case="net/tiled@cpu:3.12.0"), a_row(case="net/tiled@cpu:3.13.0")]
    assert [row.gate for row in apply_gates(rows, [a_gate(cases="*@cpu")], suite=SUITE)] == ["passed", "passed"]
    assert [row.gate for row in apply_gates(rows, [a_gate(cases="*:3.13.0")], suite=SUITE)] == [None, "passed"]


def test_no_gate_is_no_gate() -> None:
    assert outcome(a_row(head=20)) is None


def test_of_several_gates_one_is_enough_to_be_violated() -> None:
    loose, tight = a_gate(name="loose", relative=2), a_gate(name="tight", absolute=1)
    (row,) = apply_gates([a_row(head=12)], [loose, tight], suite=SUITE)
    assert (row.gate, row.reason) == ("violated", "because; gate tight allows +1")
    (row,) = apply_gates([a_row(head=50)], [loose, tight], suite=SUITE)
    assert row.reason == "because; gate loose allows +200 %; gate tight allows +1"


# ------------------------------------------------------------------------------------------- identical modules


@pytest.mark.parametrize("metric", ["copies", "module-size", "host-peak-memory", "flow/flow.tensor.update", "latency"])
def test_an_identical_row_passes_every_gate_that_equal_modules_keep(metric: str) -> None:
    row = a_row("latency", None, None, verdict="identical")
    assert outcome(row, a_gate(metric, direction="any")) == "passed"


def test_an_identical_row_says_nothing_of_what_is_timed_or_of_other_cases() -> None:
    identical, other = a_row("latency", None, None, verdict="identical"), a_row("copies", 1, 2, case="net/b@cpu")
    rows = apply_gates([identical, other], [a_gate("compile-time"), a_gate(cases="net/b@*")], suite=SUITE)
    assert [row.gate for row in rows] == [None, "violated"]
    control = replace(identical, control=True)
    assert [row.gate for row in apply_gates([control, identical], [a_gate()], suite=SUITE)] == [None, "passed"]


# ------------------------------------------------------------------------------------------------ exact metrics


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
        (10, 16, {"absolute": 6, "relative": 0.1}, "passed"),
        (10, 17, {"absolute": 6, "relative": 0.1}, "violated"),
        (0, 0, {"relative": 0.5}, "passed"),
        (0, 1, {"relative": 0.5}, "violated"),
        (0, 1, {"absolute": 1}, "passed"),
    ],
)
def test_exact_metrics_go_by_their_values(base: float, head: float, limits: dict[str, Any], expected: str) -> None:
    assert outcome(a_row(base=base, head=head), a_gate(**limits)) == expected


@pytest.mark.parametrize(
    ("base", "head", "limits", "expected", "reason"),
    [
        (13, 13, {}, "passed", "because"),
        (13, 1, {}, "passed", "because"),
        (0, 1, {}, "violated", "because; gate limit allows no increase"),
        (13, 15, {"absolute": 1}, "violated", "because; gate limit allows +1"),
        (13, 14, {"absolute": 1}, "passed", "because"),
        (1, 0, {"direction": "decrease"}, "violated", "because; gate limit allows no decrease"),
    ],
)
def test_a_count_of_ops_is_an_exact_metric(
    base: float, head: float, limits: dict[str, Any], expected: str, reason: str
) -> None:
    rows = [a_row("flow/flow.tensor.update", base, head), a_row("flow/flow.dispatch", 1, 9)]
    gated, other = apply_gates(rows, [a_gate("flow/flow.tensor.update", **limits)], suite=SUITE)
    assert (gated.gate, gated.reason) == (expected, reason)
    assert other.gate is None


def test_exact_metrics_go_by_their_values_whatever_another_rule_calls_them() -> None:
    assert outcome(a_row("module-size", 100, 104, verdict="unchanged"), a_gate("module-size")) == "violated"


# ------------------------------------------------------------------------------------------ statistical metrics


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
        ("identical", None, {}, "passed"),
        ("failed", None, {}, None),
        ("missing", None, {}, None),
        ("new", None, {}, None),
    ],
)
def test_statistical_metrics_have_to_be_found_changed_first(
    verdict: Verdict, ratio: float | None, limits: dict[str, Any], expected: str | None
) -> None:
    # The head's value is not the ratio's: each is a median over generations of its own.
    row = a_row("latency", 1000, 1000, verdict=verdict, ratio=ratio)
    assert outcome(row, a_gate("latency", **limits)) == expected


def test_a_change_whose_size_is_not_known_is_within_no_limit() -> None:
    row = a_row("latency", None, None, verdict="regressed")
    assert outcome(row, a_gate("latency", relative=0.5)) == "violated"


# --------------------------------------------------------------------------------------------------------- words


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


def test_the_reason_of_a_violated_row_ends_in_the_gate() -> None:
    gate = a_gate("transient-memory", name="transient-memory", relative=0.05)
    (row,) = apply_gates([a_row("transient-memory", 100, 120)], [gate], suite=SUITE)
    assert row.reason == "because; gate transient-memory allows +5 %"


# ------------------------------------------------------------------------------------------------ gates of nothing


def test_a_gate_of_no_case() -> None:
    rows = [a_row(), *(a_row(case=f"net/v{number}@cpu", variant=f"v{number}") for number in range(3))]
    assert refusal(rows, a_gate(cases="*@gpu")) == (
        "suites/net.toml: [gates.limit] cases: this comparison has no case that '*@gpu' matches, and has "
        "net/tiled@cpu, net/v0@cpu, net/v1@cpu, ...; correct the pattern or remove the gate"
    )
    assert apply_gates(rows, [a_gate(cases="*@gpu")], suite=SUITE, partial=True) == tuple(rows)


def test_a_gate_of_a_metric_that_was_not_measured() -> None:
    rows = [a_row("latency", verdict="regressed"), a_row("copies")]
    for partial in (False, True):
        assert refusal(rows, a_gate("compile-time", cases="net/*"), partial=partial) == (
            "suites/net.toml: [gates.limit] metric: this comparison has no compile-time of a case that 'net/*' "
            "matches, only copies, latency; measure it, or remove the gate"
        )


@pytest.mark.parametrize("verdict", ["identical", "failed", "missing", "new"])
def test_a_gate_of_cases_that_have_nothing_more_to_measure(verdict: Verdict) -> None:
    rows = [a_row("latency", None, None, verdict=verdict), a_row("copies")]
    assert [row.gate for row in apply_gates(rows, [a_gate("compile-time")], suite=SUITE)] == [None, None]


# ------------------------------------------------------------------------------------------------------ invariants

AMOUNTS = st.none() | st.floats(min_value=0, max_value=1e6)
VALUES = st.integers(min_value=0, max_value=10**6)


@given(
    metric=st.sampled_from(["latency", "copies", "module-size"]),
    verdict=st.sampled_from(VERDICTS),
    values=st.tuples(VALUES, VALUES),
    direction=st.sampled_from(["increase", "decrease", "any"]),
    limits=st.tuples(AMOUNTS, AMOUNTS),
    more=st.tuples(AMOUNTS, AMOUNTS),
)
def test_a_looser_limit_never_violates_more(
    metric: str,
    verdict: Verdict,
    values: tuple[int, int],
    direction: Direction,
    limits: tuple[float | None, float | None],
    more: tuple[float | None, float | None],
) -> None:
    row = a_row(metric, *values, verdict=verdict)
    tight = a_gate(metric, direction=direction, relative=limits[0], absolute=limits[1])
    wider = [(one or 0) + (other or 0) for one, other in zip(limits, more, strict=True)]
    loose = replace(tight, relative=wider[0], absolute=wider[1])
    assume(outcome(row, tight) != "violated")
    assert outcome(row, loose) == outcome(row, tight)


@given(values=st.tuples(VALUES, VALUES), relative=AMOUNTS, absolute=AMOUNTS)
def test_a_gate_of_any_direction_is_violated_where_one_of_the_two_is(
    values: tuple[int, int], relative: float | None, absolute: float | None
) -> None:
    row = a_row("copies", *values)
    up, down, either = (
        outcome(row, a_gate(direction=direction, relative=relative, absolute=absolute))
        for direction in ("increase", "decrease", "any")
    )
    assert (either == "violated") == ("violated" in (up, down))
