"""The one judge: what it calls a row, and that a run's report and a comparison within the run say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare.comparison import conclude, plan_comparison, recorded
from harness.compare.judge import WORDS, Judgement, Timings, judge, judge_recorded, recorded_row, rules_of
from harness.compare.options import CompareOptions
from harness.compare.pairs import Pair, Side, pair_runs, pair_within, side_of
from harness.errors import UsageError
from harness.metrics import FLOORS
from harness.records.comparison import Comparison, HostRatio, Row
from harness.records.run import HostRecord, Round
from harness.report.run_report import Report, build_report
from harness.stats import Estimate
from harness.stats.intervals import paired_mean
from harness.stats.rule import Rule, Standing
from harness.store.run_directory import load_run
from tests.builders import make_header, make_row
from tests.compare.runs import a_case, a_round, a_side
from tests.report.builders import make_refused_run

PUBLISHED = Path(__file__).parents[2] / "results" / "published" / "esrgan"
MIRRORED: dict[Standing, Standing] = {"higher": "lower", "lower": "higher", "equal": "equal", "open": "open"}


def of(*changes: float, floor: float = 0.01, rows: int = 1) -> Judgement:
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
        ((-0.40, -0.39, -0.41), 0.01, "lower"),
        ((0.05, 0.06, 0.04), 0.01, "higher"),
        ((0.020, 0.021, 0.019), 0.01, "higher"),
        ((0.020, 0.021, 0.019), 0.03, "equal"),
        ((0.020, 0.021, 0.019), 0.02, "open"),  # it differs, and may lie on either side of the floor
        ((0.001, -0.001, 0.0), 0.01, "equal"),
        ((0.004, 0.005, 0.006), 0.01, "equal"),  # it differs, by less than the floor
        ((-0.05, 0.05, 0.0), 0.01, "open"),
        ((0.5,), 0.01, "open"),
        ((0.5, 0.5, 0.5), 0.01, "open"),  # a clock too coarse to show how they vary
    ],
)
def test_a_change_needs_evidence_and_a_shift_beyond_the_floor(
    changes: tuple[float, ...], floor: float, standing: Standing
) -> None:
    assert of(*changes, floor=floor).standing == standing
    mirrored = of(*(1 / (1 + change) - 1 for change in changes), floor=floor)
    assert mirrored.standing == MIRRORED[standing]


def test_a_row_needs_more_evidence_the_more_rows_are_judged_with_it() -> None:
    changes = (0.015, 0.03, 0.045, 0.03, 0.02)
    alone, among_many = of(*changes), of(*changes, rows=20)
    assert (alone.standing, among_many.standing) == ("higher", "open")
    assert among_many.p == pytest.approx(20 * alone.p)
    assert among_many.estimate == alone.estimate


def test_a_run_of_five_generations_shows_plain_changes_among_a_hundred_rows() -> None:
    """The signed-rank test of five has p = 6 % at least, and could not."""
    assert of(-0.40, -0.39, -0.41, -0.40, -0.395, rows=100).standing == "lower"


def test_why() -> None:
    assert of(0.5).reason == "one generation was recorded, and an interval needs two"
    assert of(*[0.5, 0.4] * 2).reason == "by the interval of so few generations that was recorded; not confirmed"
    assert of(*[0.5, 0.4] * 4).reason == "by the interval that was recorded; not confirmed"


@pytest.mark.parametrize("floor", [0.0, 1.0, -0.1, math.nan, math.inf])
def test_a_floor_that_is_none_is_refused(floor: float) -> None:
    with pytest.raises(UsageError, match=r"^results/x: its floor of latency is .*, and must lie between 0 and 1"):
        rules_of(make_header(floors={"latency": floor}), "results/x")


def test_floors_of_the_user_come_before_the_suites_and_those_before_our_own() -> None:
    header = make_header(floors={"latency": 0.03, "compile-time": 0.2})
    floors = {name: rule.floor for name, rule in rules_of(header, "results/x").items()}
    assert floors == {**FLOORS, "latency": 0.03, "compile-time": 0.2}
    assert rules_of(header, "results/x", 0.5)["latency"].floor == 0.5


def compared(side: Side, *patterns: str) -> Comparison:
    options = CompareOptions(within=Path(side.label), remeasure=False, patterns=patterns)
    plan = plan_comparison(side, side, options)
    return conclude(plan, recorded(plan), {}, created=datetime.now(timezone.utc))


@pytest.mark.parametrize(("measured", "told"), [(["ash"], ["ash"]), ([], ["ash", "oak"])])
def test_the_hosts_of_a_comparison_are_those_that_measured_or_where_all_rows_failed_all(
    measured: list[str], told: list[str]
) -> None:
    ratios = tuple(HostRatio(host=host, ratio=1.0, generations=8) for host in measured)
    base, head = a_side(a_case()), a_side(a_case(), label="results/head", code={a_case().name: "head"})
    plan = plan_comparison(base, head, CompareOptions(remeasure=False))
    hosts = [HostRecord(name=name, environment={"machine": {"id": name}}) for name in ("ash", "oak")]
    row = make_row("failed" if not measured else "unchanged", case=a_case().name, hosts=ratios)
    comparison = conclude(plan, [row], {}, created=datetime.now(timezone.utc), hosts=hosts)
    assert [host.name for host in comparison.hosts] == told
    assert comparison.machine.description == "; ".join(f"{name}: machine {name}" for name in told)


def test_where_no_host_of_a_fleet_measured_nobody_says_that_this_machine_did() -> None:
    base, head = a_side(a_case()), a_side(a_case(), label="results/head")
    plan = plan_comparison(base, head, CompareOptions(remeasure=False, fleet="tls://bench:8786"))
    comparison = conclude(plan, [], {"machine": {"id": "here"}}, created=datetime.now(timezone.utc))
    assert "here" not in comparison.machine.description


def assert_they_agree(report: Report, comparison: Comparison) -> None:
    """Verdict, ratio and interval of every row of the one are those of the other."""
    latency = {row.case: row for row in comparison.rows if row.metric == "latency"}
    words = {words.change: words.verdict for words in WORDS.values()}
    judged = 0
    for row in report.rows():
        if row.kind is None or row.peer is not None:
            assert row.case not in latency or latency[row.case].ratio is None
        elif row.estimate is None:
            assert (row.kind, latency[row.case].verdict) == ("same", "identical")
        else:
            other, judged = latency[row.case], judged + 1
            assert other.verdict == words[row.kind]
            assert (other.ratio, other.ci_low, other.ci_high) == (
                row.estimate.ratio,
                row.estimate.low,
                row.estimate.high,
            )
            assert (other.generations, other.rounds) == (row.estimate.generations, row.estimate.rounds)
            assert other.floor == report.floor
    assert judged == sum(row.ratio is not None for row in latency.values())


@st.composite
def runs(draw: st.DrawFn) -> Side:
    """A run of some variants: some slower or faster by about the floor, some inert, some without usable turns."""
    cases = [a_case("stock"), *(a_case(f"v{number}") for number in range(draw(st.integers(1, 12))))]
    shift = {case.variant: draw(st.sampled_from([1.0, 1.0, 1.02, 0.97, 0.5])) for case in cases}
    noise = draw(st.sampled_from([0.0, 0.002, 0.02]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    twins = {case.name: draw(st.sampled_from([case.name, cases[0].name, cases[1].name])) for case in cases[1:]}
    silent = draw(st.sets(st.sampled_from([case.variant for case in cases]), max_size=2))
    rounds: list[Round] = []
    for generation in range(draw(st.integers(0, 7))):
        times = {name: 1e6 * factor * math.exp(rng.normal(0, noise)) for name, factor in shift.items()}
        walls: Any = times | dict.fromkeys(silent, 0)
        rounds += [a_round(number, generation, **walls) for number in range(2)]
    floor = draw(st.sampled_from([0.001, 0.01, 0.03, 0.3]))
    return a_side(*cases, code=twins, rounds=rounds, floors={"latency": floor}, suite_name="small")


@settings(max_examples=60)
@given(side=runs())
def test_a_report_and_a_comparison_within_the_run_agree(side: Side) -> None:
    assert_they_agree(build_report(side.run), compared(side))


def test_they_agree_on_the_published_run() -> None:
    run = load_run(PUBLISHED)
    report, side = build_report(run), side_of(run, str(PUBLISHED))
    whole = compared(side)
    assert_they_agree(report, whole)
    assert {row.kind for row in report.rows()} >= {"faster", "slower", "same", "unclear"}
    alone = compared(side, "rdb/im2col@cpu")
    assert alone.rows[0] in whole.rows  # what is left out of a comparison is still judged with the rest


def test_with_a_refused_baseline_report_and_comparison_hold_rows_against_the_same_case() -> None:
    run = make_refused_run()
    comparison = compared(side_of(run, "results/x"))
    assert_they_agree(build_report(run), comparison)
    assert comparison.base.variants == ("fast",)
    assert comparison.notes == (
        "mm@local-sync is compared with mm/fast@local-sync, since mm/stock@local-sync is refused: wrong output",
    )


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
