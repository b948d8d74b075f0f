"""Comparing what runs recorded by themselves: paired within a run, by Welch between runs, and never with a NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.pairs import Pair, Side, pair_runs, pair_within
from harness.compare.recorded import Timings, judge_recorded, recorded_row
from harness.records.comparison import Row
from harness.records.run import Round
from harness.stats.rule import Rule
from tests.compare.runs import a_case, a_round, a_side

RULE = Rule()
STOCK, FAST = a_case("stock"), a_case("fast")
NOTHING = "no turns of both sides that took any time by the clock were recorded"
WOBBLE = (0.999, 1.001, 1.0, 1.0005, 0.9995)


def rows_of(pairs: Sequence[Pair], base: Side, head: Side, *, within: bool) -> dict[str, Row]:
    sides = Timings(base), Timings(head)
    judgements = judge_recorded({pair.name: pair for pair in pairs}, *sides, RULE, within=within)
    rows = {pair.name: recorded_row(pair, judgements.get(pair.name), *sides, RULE) for pair in pairs}
    for row in rows.values():
        assert_finite(row)
    return rows


def between(base: Side, head: Side) -> Row:
    (row,) = rows_of(pair_runs(base, head), base, head, within=False).values()
    return row


def within(side: Side) -> Row:
    (row,) = rows_of(pair_within(side), side, side, within=True).values()
    return row


def assert_finite(row: Row) -> None:
    assert not [name for name, value in asdict(row).items() if isinstance(value, float) and not math.isfinite(value)]


def alone(times_ns: Sequence[float]) -> Side:
    """A run of stock alone, one generation for each time."""
    return a_side(STOCK, rounds=[a_round(0, number, stock=ns) for number, ns in enumerate(times_ns)])


def test_between_runs_each_sides_generations_stand_for_themselves() -> None:
    row = between(alone([1000 * factor for factor in WOBBLE]), alone([1100 * factor for factor in WOBBLE]))
    assert (row.verdict, row.metric, row.unit, row.generations) == ("regressed", "latency", "ns", 5)
    assert row.ratio == pytest.approx(1.1, rel=1e-3)
    assert row.ci_low is not None and row.ci_high is not None and row.p is not None
    assert 1.09 < row.ci_low < 1.1 < row.ci_high < 1.11
    assert row.p < 0.001
    assert (row.base_value, row.head_value) == pytest.approx((1000, 1100), rel=1e-3)


def test_weather_is_in_the_interval_between_runs_and_drops_out_of_the_pairs_within_one() -> None:
    weather = [1.0, 1.3, 0.8, 1.2, 0.9]
    base, head = (alone([ns * slow for slow in weather]) for ns in (1000, 1100))
    assert between(base, head).verdict == "inconclusive"
    rounds = [
        a_round(number, generation, stock=1000 * slow, fast=1100 * slow * WOBBLE[generation])
        for generation, slow in enumerate(weather)
        for number in range(2)
    ]
    row = within(a_side(STOCK, FAST, rounds=rounds))
    assert (row.verdict, row.generations, row.rounds) == ("regressed", 5, 10)
    assert row.ratio == pytest.approx(1.1, rel=1e-3)


def test_an_inert_variants_times_are_those_of_the_case_with_its_module() -> None:
    cases = (STOCK, FAST, a_case("inert"))
    rounds = [a_round(0, number, stock=1000, fast=1100 * factor) for number, factor in enumerate(WOBBLE)]
    side = a_side(*cases, code={"net/inert@cpu": "net/fast@cpu"}, rounds=rounds)
    rows = rows_of(pair_within(side), side, side, within=True)
    assert rows["net/inert@cpu"].ratio == rows["net/fast@cpu"].ratio == pytest.approx(1.1, rel=1e-2)


def test_one_generation_has_a_ratio_and_no_interval() -> None:
    for row in (
        between(alone([1000]), alone([1500])),
        within(a_side(STOCK, FAST, rounds=[a_round(stock=1000, fast=1500)])),
    ):
        assert (row.verdict, row.ci_low, row.ci_high, row.p) == ("inconclusive", None, None, 1.0)
        assert row.ratio == pytest.approx(1.5)


@pytest.mark.parametrize(
    "rounds",
    [[], [a_round(stock=0, fast=0)], [a_round(calls=0, stock=1, fast=1)]],
    ids=["none", "turns that took no time", "turns of no calls"],
)
def test_without_a_usable_turn_there_is_nothing_to_say(rounds: list[Round]) -> None:
    row = within(a_side(STOCK, FAST, rounds=rounds))
    assert (row.verdict, row.ratio, row.base_value, row.p) == ("inconclusive", None, None, None)
    assert row.reason == NOTHING


def test_one_side_without_rounds() -> None:
    some, none = alone([1000, 1001]), alone([])
    assert between(some, none).reason == between(none, some).reason == NOTHING


TIMES = st.lists(st.one_of(st.just(0), st.integers(1, 10**15)), max_size=4)


@given(base=TIMES, head=TIMES)
def test_no_timing_makes_a_nan(base: list[int], head: list[int]) -> None:
    between(alone(base), alone(head))
    pairs = enumerate(zip(base, head, strict=False))
    together = [a_round(0, number, stock=stock, fast=fast) for number, (stock, fast) in pairs]
    within(a_side(STOCK, FAST, rounds=together))
