"""What a search makes of a measurement, the same when it is read from disk again."""

from __future__ import annotations

import math

import pytest

from harness.bisect.judged import (
    ERROR,
    as_measured,
    counted,
    error_of,
    place,
    rule_of_measurements,
)
from harness.bisect.search import Measured, Unusable
from harness.compare.task import Generation, Task
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.stats.rule import Rule, Standing
from harness.store.files import adapter

TRIAL = Trial(
    base="3.6.0",
    head="3.7.0",
    floor=math.expm1(0.17),
    verdict="regressed",
    reason="confirmed in 11 fresh generations",
    ratio=1.42,
    ci_low=1.4,
    ci_high=1.44,
    p=1e-6,
    generations=22,
    seconds=9.5,
)


def trial(verdict: Verdict, **fields: float | None) -> Trial:
    return Trial(base="a", head="b", floor=0.01, verdict=verdict, reason="why", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "standing"),
    [("regressed", "higher"), ("improved", "lower"), ("unchanged", "equal"), ("inconclusive", "open")],
)
def test_a_verdict_is_where_the_position_stands(verdict: Verdict, standing: Standing) -> None:
    found = as_measured(trial(verdict, ratio=1.2, ci_low=1.1, ci_high=None, p=0.01))
    assert found == Measured(standing=standing, centre=math.log(1.2), low=math.log(1.1), high=math.inf, reason="why")


@pytest.mark.parametrize("verdict", ["failed", "outputs differ", "missing", "new"])
def test_what_was_not_measured_is_passed_over(verdict: Verdict) -> None:
    assert as_measured(trial(verdict)) == Unusable(reason="why")
    assert as_measured(trial("inconclusive")) == Unusable(reason="why"), "of a clock that is too coarse"


def test_equal_modules_are_equal() -> None:
    found = as_measured(trial("identical", ratio=1.0))
    assert found == Measured(standing="equal", centre=0.0, low=0.0, high=0.0, reason="why")


def test_counts_are_compared_where_one_is_zero() -> None:
    found = as_measured(
        Trial(base="a", head="b", floor=0.0, verdict="regressed", base_value=0.0, head_value=3.0, exact=True)
    )
    assert isinstance(found, Measured)
    assert (found.standing, found.centre, found.reason) == ("higher", math.log(6), "0 and 3")
    assert counted(3.0, 3.0, 0.0) == Measured(standing="equal", centre=0.0, low=0.0, high=0.0, reason="3 and 3")
    assert counted(None, 3.0, 0.0) == Unusable(reason="it has no such figure")


def test_a_measurement_that_was_kept_says_the_same() -> None:
    kept = adapter(Trial).validate_json(adapter(Trial).dump_json(TRIAL))
    assert kept == TRIAL
    assert kept.key == TRIAL.key
    assert as_measured(kept) == as_measured(TRIAL)


def test_all_measurements_of_a_search_share_its_error() -> None:
    rule = rule_of_measurements(8, 0.02)
    assert (rule.floor, rule.alpha, rule.confidence) == (0.02, ERROR / 8, 1 - 2 * ERROR / 8)
    assert error_of(8, 8) == ERROR
    assert error_of(12, 8) == pytest.approx(1.5 * ERROR)
    assert error_of(0, 8) == 0


def asked(*logs: float | None) -> tuple[Trial, Task]:
    def sample(number: int) -> Generation:
        return Generation(log_ratio=logs[number], base=1e6, head=5e6 + number, rounds=4, seconds=1.5)

    return trial("inconclusive"), Task(name="a", sample=sample, rule=Rule(), budget_s=60)


@pytest.mark.parametrize("logs", [(-0.1, 0.3), (1.3, 1.8), (2.2, 2.2), (-0.5, -0.5)])
def test_two_generations_place_what_lies_plainly_by_an_end(logs: tuple[float, float]) -> None:
    found = place(*asked(*logs), math.log(5))
    assert isinstance(found, Trial)
    assert (found.placed, found.is_open, found.generations, found.seconds) == (True, False, 2, 3.0)
    assert found.log_ratio == pytest.approx(sum(logs) / 2)
    assert (found.base_value, found.head_value, found.ci_low) == (1e6, 5e6 + 1, None)
    assert as_measured(found).placed  # type: ignore[union-attr]


@pytest.mark.parametrize("logs", [(0.1, 1.6), (0.8, 0.8), (0.1, 0.5), (0.1, None)])
def test_what_does_not_is_judged_with_these_as_its_first_generations(logs: tuple[float, float | None]) -> None:
    task = place(*asked(*logs, 0.7), math.log(5))
    assert isinstance(task, Task)
    assert [task.sample(number).log_ratio for number in range(3)] == [*logs, 0.7]
