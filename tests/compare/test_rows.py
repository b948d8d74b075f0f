"""Outcomes and counters -> rows, and what all rows together say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.engine import Generation, Outcome
from harness.compare.pairs import Known, Pair
from harness.compare.rows import (
    geometric_means,
    instructions_row,
    known_row,
    measured_row,
    summarise,
    with_kind_of_change,
)
from harness.metrics import INSTRUCTIONS, LATENCY
from harness.records.comparison import VERDICTS, Row, Verdict
from harness.records.run import Failure, Round, Turn
from tests.compare.runs import a_case

PAIR = Pair(name="net/fast@cpu", base=a_case("stock"), head=a_case("fast"))
FLOOR = INSTRUCTIONS.floor


def a_row(verdict: Verdict = "unchanged", ratio: float | None = 1.0, metric: str = "latency", **fields: Any) -> Row:
    place = {"case": "net/fast@cpu", "model": "net", "variant": "fast", "device": "cpu"}
    return Row(**{**place, "metric": metric, "verdict": verdict, "ratio": ratio, **fields})


# --- Instructions ---


def counted(*ratios: float, base: int = 1_000_000, calls: int = 10) -> list[Round]:
    """A generation of two rounds for each ratio of instructions per call."""

    def turn(case: str, ratio: float) -> Turn:
        return Turn(case=case, calls=calls, wall_ns=1, cpu_ns=1, counters={"instructions": round(base * ratio) * calls})

    return [
        Round(
            group="x",
            generation=generation,
            round=number,
            started_unix_ns=0,
            turns=(turn("base", 1), turn("head", ratio)),
        )
        for generation, ratio in enumerate(ratios)
        for number in range(2)
    ]


def of_instructions(*ratios: float) -> Row:
    row = instructions_row(PAIR, counted(*ratios), FLOOR)
    assert row is not None
    return row


def test_a_thousandth_more_instructions_is_found_from_one_generation() -> None:
    row = of_instructions(1.001)
    assert (row.case, row.metric, row.verdict, row.unit) == (
        "net/fast@cpu",
        "instructions",
        "regressed",
        "instructions",
    )
    assert (row.generations, row.rounds, row.floor) == (1, 2, FLOOR)
    assert (row.ratio, row.ci_low, row.ci_high) == pytest.approx((1.001, 1.001, 1.001))
    assert (row.base_value, row.head_value) == (1_000_000, 1_001_000)
    assert row.p is None  # nothing is estimated
    assert row.reason == "counted, not timed: the interval is that of all generations"


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.0], "unchanged"),
        ([1.0004], "unchanged"),
        ([0.9996], "unchanged"),
        ([1.0006], "regressed"),
        ([0.9994], "improved"),
        ([1.001, 1.002, 1.001], "regressed"),
        ([0.5, 0.6], "improved"),
        ([1.001, 1.0], "inconclusive"),
        ([1.001, 0.999], "inconclusive"),
    ],
)
def test_the_floor_is_a_twentieth_of_a_per_cent_and_all_generations_have_to_agree(
    ratios: list[float], verdict: str
) -> None:
    assert FLOOR == 0.0005
    assert of_instructions(*ratios).verdict == verdict


def test_the_interval_is_that_of_all_generations() -> None:
    row = of_instructions(1.01, 1.03, 1.02)
    assert (row.ci_low, row.ratio, row.ci_high) == pytest.approx((1.01, 1.02, 1.03))


def test_without_counters_there_is_no_row() -> None:
    bare = Turn(case="base", calls=1, wall_ns=1, cpu_ns=1)
    one_side = Round(group="x", generation=0, round=0, started_unix_ns=0, turns=(bare, *counted(1.0)[0].turns[1:]))
    assert instructions_row(PAIR, [], FLOOR) is None
    assert instructions_row(PAIR, [one_side], FLOOR) is None
    assert instructions_row(PAIR, counted(1.0, base=0), FLOOR) is None
    assert instructions_row(PAIR, counted(1.0, calls=0), FLOOR) is None


# --- Kinds of change ---


@pytest.mark.parametrize(
    ("latency", "instructions", "change"),
    [
        ("regressed", "regressed", "more work"),
        ("regressed", "unchanged", "same work, slower"),
        ("regressed", "improved", "less work, slower"),
        ("improved", "improved", "less work"),
        ("improved", "unchanged", "same work, faster"),
        ("improved", "regressed", "more work, faster"),
        ("regressed", "inconclusive", None),
        ("unchanged", "regressed", None),
        ("inconclusive", "regressed", None),
        ("failed", "unchanged", None),
    ],
)
def test_the_kind_of_a_change(latency: Verdict, instructions: Verdict, change: str | None) -> None:
    row = with_kind_of_change(a_row(latency), a_row(instructions, metric="instructions"))
    assert (row.change, row.verdict) == (change, latency)


def test_instructions_never_decide_an_open_latency() -> None:
    row = with_kind_of_change(
        a_row("inconclusive", reason="the interval is wide"), a_row("unchanged", metric="instructions")
    )
    assert (row.verdict, row.reason) == ("inconclusive", "the interval is wide; instructions per call are unchanged")


def test_without_instructions_a_row_stays_as_it_is() -> None:
    assert with_kind_of_change(a_row("regressed"), None) == a_row("regressed")


# --- Measured and known rows ---


def a_generation(base: float | None = 1000.0, head: float | None = 1100.0, seconds: float = 0.25) -> Generation:
    return Generation(log_ratio=None, base=base, head=head, rounds=20, seconds=seconds)


def test_a_row_that_was_measured() -> None:
    outcome = Outcome(
        name="x",
        decision="regressed",
        reason="confirmed",
        log_ratio=math.log(1.1),
        low=math.log(1.05),
        high=None,
        p=0.01,
        generations=(a_generation(), a_generation(base=3000.0, head=None), a_generation(base=1010.0)),
    )
    row = measured_row(PAIR, LATENCY, outcome, 0.02)
    assert (row.verdict, row.reason, row.floor, row.unit) == ("regressed", "confirmed", 0.02, "ns")
    assert (row.ratio, row.ci_low) == pytest.approx((1.1, 1.05))
    assert row.ci_high is None
    assert (row.base_value, row.head_value) == (1010.0, 1100.0)
    assert (row.generations, row.rounds, row.seconds) == (3, 60, 0.75)


def test_a_row_that_failed_has_what_the_tool_said_and_no_figures() -> None:
    failure = Failure(stage="measure", message="the head's module: it crashed", stderr="last words")
    outcome = Outcome(name="x", decision="failed", reason=failure.message, failure=failure)
    row = measured_row(PAIR, LATENCY, outcome, 0.01)
    assert (row.verdict, row.reason, row.stderr) == ("failed", failure.message, "last words")
    assert (row.ratio, row.base_value, row.generations, row.seconds) == (None, None, 0, 0)


def test_a_row_that_needs_no_measuring() -> None:
    row = known_row(PAIR, Known(verdict="missing", reason="the head has no such case", stderr=""))
    assert (row.metric, row.verdict, row.reason, row.ratio) == ("latency", "missing", "the head has no such case", None)


# --- All rows together ---


def test_a_summary_counts_latencies_and_no_controls() -> None:
    rows = [
        a_row("regressed"),
        a_row("identical"),
        a_row("identical"),
        a_row("regressed", metric="compile-time"),
        a_row("regressed", control=True),
    ]
    summary = summarise(rows)
    assert tuple(summary) == VERDICTS
    assert {verdict: count for verdict, count in summary.items() if count} == {"regressed": 1, "identical": 2}


def test_geometric_means_by_model_device_and_variant() -> None:
    rows = [
        a_row("regressed", 2.0),
        a_row("identical", None, variant="inert"),
        a_row("improved", 0.5, model="other", device="gpu"),
    ]
    means = {(mean.kind, mean.name): (mean.ratio, mean.rows) for mean in geometric_means(rows)}
    assert means == {
        ("model", "net"): (pytest.approx(math.sqrt(2)), 2),  # an identical row counts with 1
        ("model", "other"): (0.5, 1),
        ("device", "cpu"): (pytest.approx(math.sqrt(2)), 2),
        ("device", "gpu"): (0.5, 1),
        ("variant", "fast"): (pytest.approx(1.0), 2),
        ("variant", "inert"): (1.0, 1),
    }


@pytest.mark.parametrize(
    "row",
    [
        a_row("new", None),
        a_row("failed", 3.0),
        a_row("regressed", 3.0, metric="compile-time"),
        a_row("regressed", 3.0, control=True),
        a_row("unchanged", 0.0),
    ],
    ids=["without a ratio", "failed on the way", "another metric", "a control", "a ratio of zero"],
)
def test_rows_that_no_mean_is_of(row: Row) -> None:
    assert geometric_means([row]) == ()


@given(st.lists(st.floats(min_value=1e-300, max_value=1e300), min_size=1, max_size=5))
def test_a_mean_lies_between_its_ratios(ratios: list[float]) -> None:
    (mean, *_) = geometric_means([a_row("unchanged", ratio) for ratio in ratios])
    assert min(ratios) * (1 - 1e-9) <= mean.ratio <= max(ratios) * (1 + 1e-9)
