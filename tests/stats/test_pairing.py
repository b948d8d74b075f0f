"""Rounds become arrays without losing, inventing or mixing up a turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from harness.results.records import Round, Turn
from harness.stats import counter_per_call, tabulate_rounds


def one_round(generation: int, number: int, turns: Mapping[str, int], *, calls: int = 1) -> Round:
    return Round(
        group="g",
        generation=generation,
        round=number,
        started_unix_ns=0,
        turns=tuple(Turn(case=case, calls=calls, wall_ns=wall_ns, cpu_ns=0) for case, wall_ns in turns.items()),
    )


def as_lists(arrays: Sequence[np.ndarray]) -> list[list[float]]:
    return [array.tolist() for array in arrays]


def test_times_are_divided_by_calls_and_kept_apart_by_generation() -> None:
    rounds = [
        one_round(1, 0, {"b": 60, "a": 40}, calls=4),
        one_round(0, 1, {"a": 30, "b": 20}),
        one_round(0, 0, {"a": 10, "b": 50}),
    ]
    times = tabulate_rounds(rounds)
    assert as_lists(times.ns_per_call("a")) == [[10.0, 30.0], [10.0]]
    assert as_lists(times.ns_per_call("b")) == [[50.0, 20.0], [15.0]]
    assert times.unusable == {}


def test_ratios_pair_turns_of_the_same_round() -> None:
    rounds = [
        one_round(0, 0, {"a": 10, "b": 20}),
        one_round(0, 1, {"b": 300, "a": 100}),
        one_round(2, 0, {"a": 1, "b": 4}),
    ]
    ratios = tabulate_rounds(rounds).log_ratios("b", "a")
    np.testing.assert_allclose(np.exp(ratios[0]), [2.0, 3.0])
    np.testing.assert_allclose(np.exp(ratios[1]), [4.0])


def test_rounds_and_generations_without_both_cases_make_no_ratio() -> None:
    rounds = [
        one_round(0, 0, {"a": 10}),
        one_round(0, 1, {"a": 10, "b": 20}),
        one_round(1, 0, {"a": 10}),
        one_round(2, 0, {"b": 10}),
    ]
    times = tabulate_rounds(rounds)
    assert [ratios.size for ratios in times.log_ratios("b", "a")] == [1]
    assert as_lists(times.ns_per_call("a")) == [[10.0, 10.0], [10.0]]


@pytest.mark.parametrize(("wall_ns", "calls"), [(0, 1), (-5, 1), (10, 0)])
def test_turns_that_cannot_be_divided_are_left_out_and_counted(wall_ns: int, calls: int) -> None:
    odd = one_round(0, 0, {"a": wall_ns}, calls=calls)
    times = tabulate_rounds([odd, one_round(0, 1, {"a": 10, "b": 20})])
    assert as_lists(times.ns_per_call("a")) == [[10.0]]
    assert as_lists(times.log_ratios("b", "a")) == [[pytest.approx(math.log(2))]]
    assert times.unusable == {"a": 1}


def test_two_turns_of_a_case_in_one_round_count_with_their_mean() -> None:
    turns = (
        Turn(case="a", calls=1, wall_ns=10, cpu_ns=0),
        Turn(case="b", calls=1, wall_ns=20, cpu_ns=0),
        Turn(case="a", calls=3, wall_ns=70, cpu_ns=0),
    )
    times = tabulate_rounds([Round(group="g", generation=0, round=0, started_unix_ns=0, turns=turns)])
    assert as_lists(times.ns_per_call("a")) == [[20.0]]


def test_nothing_measured_is_nothing_and_no_error() -> None:
    times = tabulate_rounds([])
    assert times.ns_per_call("a") == ()
    assert times.log_ratios("a", "b") == ()
    assert tabulate_rounds([one_round(0, 0, {"a": 1})]).log_ratios("a", "nobody") == ()


def test_counters_are_the_median_per_call_of_the_turns_that_have_them() -> None:
    def turn(case: str, calls: int, **counters: int) -> Turn:
        return Turn(case=case, calls=calls, wall_ns=1, cpu_ns=1, counters=counters)

    turns = (
        (turn("a", 2, instructions=200), turn("b", 1)),
        (turn("a", 1, instructions=130), turn("b", 1, cycles=5)),
        (turn("a", 1, instructions=101), turn("a", 0, instructions=9)),
    )
    rounds = [Round(group="g", generation=0, round=n, started_unix_ns=0, turns=some) for n, some in enumerate(turns)]
    assert counter_per_call(rounds, "instructions") == {"a": 101.0}
