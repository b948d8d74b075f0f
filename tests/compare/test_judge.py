"""The one judge: what it calls a row, and that a run's report and a comparison within the run say the same."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from harness.compare.comparison import plan_comparison
from harness.compare.judge import Timings, judge, judge_recorded, rules_of
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side, pair_runs, pair_variants
from harness.errors import UsageError
from harness.metrics import FLOORS
from harness.records.comparison import Row
from harness.records.run import HostRecord, Round
from harness.stats.intervals import Estimate, paired_mean
from harness.stats.rule import Rule, Standing
from tests.builders import make_header
from tests.compare.runs import a_case, a_round, a_side


def of(*changes: float, floor: float = 0.01, rows: int = 1) -> tuple[Standing, float]:
    """One row whose generations have these ratios, beside rows that do not differ."""
    logs = np.log1p(np.array(changes))
    same = np.array([-0.01, 0.01, -0.02, 0.02, 0.0])
    samples = {str(number): same for number in range(1, rows)} | {"row": logs}
    means = {name: paired_mean(logs, confidence=0.95) for name, logs in samples.items()}
    estimates = {name: Estimate(where=mean, confidence=0.95, rounds=9) for name, mean in means.items()}
    return judge(estimates, Rule(floor=floor))["row"]


@pytest.mark.parametrize(
    ("changes", "floor", "standing"),
    [
        ((0.05, 0.06, 0.04), 0.01, "higher"),
        ((-0.05, -0.06, -0.04), 0.01, "lower"),
        ((0.020, 0.021, 0.019), 0.02, "open"),  # it differs, and may lie on either side of the floor
        ((0.004, 0.005, 0.006), 0.01, "equal"),  # it differs, by less than the floor
        ((-0.05, 0.08, 0.0), 0.01, "open"),
        ((0.5,), 0.01, "open"),
        ((0.5, 0.5, 0.5), 0.01, "open"),  # a clock too coarse to show how they vary
    ],
)
def test_a_change_needs_evidence_and_a_shift_beyond_the_floor(
    changes: tuple[float, ...], floor: float, standing: Standing
) -> None:
    assert of(*changes, floor=floor)[0] == standing


def test_a_row_needs_more_evidence_the_more_rows_are_judged_with_it() -> None:
    changes = (0.015, 0.03, 0.045, 0.03, 0.02)
    alone, among_many = of(*changes), of(*changes, rows=20)
    assert (alone[0], among_many[0]) == ("higher", "open")
    assert among_many[1] == pytest.approx(20 * alone[1])


@pytest.mark.parametrize("floor", [0.0, 1.0, -0.1, math.nan, math.inf])
def test_a_floor_that_is_none_is_refused(floor: float) -> None:
    with pytest.raises(UsageError, match=r"^results/x: its floor of latency is .*, and must lie between 0 and 1"):
        rules_of(make_header(floors={"latency": floor}), "results/x")


def test_floors_of_the_user_come_before_the_suites_and_those_before_our_own() -> None:
    header = make_header(floors={"latency": 0.03, "compile-time": 0.2})
    floors = {name: rule.floor for name, rule in rules_of(header, "results/x").items()}
    assert floors == {**FLOORS, "latency": 0.03, "compile-time": 0.2}
    assert rules_of(header, "results/x", 0.5)["latency"].floor == 0.5


def test_a_pattern_on_a_device_means_the_device_of_each_host() -> None:
    cases = [a_case(device=device) for device in ("cpu.ash", "cpu.oak", "gpu")]
    base, head = a_side(*cases), a_side(*cases, label="results/head")
    hosts = tuple(HostRecord(name=name, environment={}) for name in ("ash", "oak"))
    head = replace(head, run=replace(head.run, hosts=hosts))
    for pattern, found in (("*@cpu", cases[:2]), ("*@cpu.oak", cases[1:2]), ("*@gpu", cases[2:])):
        plan = plan_comparison(base, head, CompareOptions(remeasure=False, patterns=(pattern,)))
        assert [pair.name for pair in plan.pairs] == [case.name for case in found]


RULE = Rule()
STOCK, FAST = a_case("stock"), a_case("fast")
NOTHING = "no turns of both sides that took any time by the clock were recorded"
WOBBLE = (0.999, 1.001, 1.0, 1.0005, 0.9995)


def between(base: Side, head: Side) -> Row:
    (pair,) = pair_runs(base, head)
    return judge_recorded({"": pair}, Timings(base), Timings(head), RULE)[""].row


def within(side: Side) -> Row:
    (pair,), timings = pair_variants(side), Timings(side)
    return judge_recorded({"": pair}, timings, timings, RULE)[""].row


def alone(times_ns: Sequence[float]) -> Side:
    """A run of stock alone, one generation for each time."""
    return a_side(STOCK, rounds=[a_round(0, number, stock=ns) for number, ns in enumerate(times_ns)])


def test_weather_is_in_the_interval_between_runs_and_drops_out_of_the_pairs_within_one() -> None:
    weather = [1.0, 1.3, 0.8, 1.2, 0.9]
    base, head = (alone([ns * slow for slow in weather]) for ns in (1000, 1100))
    row = between(base, head)
    assert (row.verdict, row.metric, row.unit, row.generations) == ("inconclusive", "latency", "ns", 5)
    assert (row.base_value, row.head_value) == (1000, 1100)
    steady = between(*(alone([ns * factor for factor in WOBBLE]) for ns in (1000, 1100)))
    assert steady.verdict == "regressed" and steady.ci_low is not None and steady.ci_low > 1.09
    rounds = [
        a_round(number, generation, stock=1000 * slow, fast=1100 * slow * WOBBLE[generation])
        for generation, slow in enumerate(weather)
        for number in range(2)
    ]
    row = within(a_side(STOCK, FAST, rounds=rounds))
    assert (row.verdict, row.generations, row.rounds) == ("regressed", 5, 10)
    assert row.ratio == pytest.approx(1.1, rel=1e-3)


@pytest.mark.parametrize(
    "rounds",
    [[], [a_round(stock=0, fast=0)], [a_round(calls=0, stock=1, fast=1)]],
    ids=["none", "turns that took no time", "turns of no calls"],
)
def test_without_a_usable_turn_there_is_nothing_to_say(rounds: list[Round]) -> None:
    row = within(a_side(STOCK, FAST, rounds=rounds))
    assert (row.verdict, row.ratio, row.base_value, row.p) == ("inconclusive", None, None, None)
    assert row.reason == NOTHING
