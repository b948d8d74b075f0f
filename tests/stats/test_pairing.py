"""Rounds become arrays without losing, inventing or mixing up a turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Round, Turn
from harness.stats import counter_per_call, tabulate_rounds
from harness.stats.pairing import Ratios


def one_round(generation: int, number: int, turns: Mapping[str, int], *, calls: int = 1) -> Round:
    return Round(
        group="g",
        generation=generation,
        round=number,
        started_unix_ns=0,
        turns=tuple(Turn(case=case, calls=calls, wall_ns=wall_ns, cpu_ns=0) for case, wall_ns in turns.items()),
    )


def make_ratios(case_first: Sequence[float] = (), case_second: Sequence[float] = ()) -> Ratios:
    """Log ratios of the rounds in which the case had its turn first, and of those in which it had it second."""
    return Ratios(
        logs=np.array([*case_first, *case_second], dtype=np.float64),
        case_first=np.array([True] * len(case_first) + [False] * len(case_second)),
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
    np.testing.assert_allclose(np.exp(ratios[0].logs), [2.0, 3.0])
    np.testing.assert_allclose(np.exp(ratios[1].logs), [4.0])


def test_rounds_and_generations_without_both_cases_make_no_ratio() -> None:
    rounds = [
        one_round(0, 0, {"a": 10}),
        one_round(0, 1, {"a": 10, "b": 20}),
        one_round(1, 0, {"a": 10}),
        one_round(2, 0, {"b": 10}),
    ]
    times = tabulate_rounds(rounds)
    assert [(ratios.logs.size, ratios.case_first.size) for ratios in times.log_ratios("b", "a")] == [(1, 1)]
    assert as_lists(times.ns_per_call("a")) == [[10.0, 10.0], [10.0]]


@pytest.mark.parametrize(("wall_ns", "calls"), [(0, 1), (-5, 1), (10, 0)])
def test_turns_that_cannot_be_divided_are_left_out_and_counted(wall_ns: int, calls: int) -> None:
    odd = one_round(0, 0, {"a": wall_ns}, calls=calls)
    times = tabulate_rounds([odd, one_round(0, 1, {"a": 10, "b": 20})])
    assert as_lists(times.ns_per_call("a")) == [[10.0]]
    assert as_lists([ratios.logs for ratios in times.log_ratios("b", "a")]) == [[pytest.approx(math.log(2))]]
    assert times.unusable == {"a": 1}


def test_each_ratio_knows_whose_turn_came_first() -> None:
    rounds = [
        one_round(0, 0, {"a": 10, "b": 20}),
        one_round(0, 1, {"b": 0, "a": 10}),  # left out, and its order with it
        one_round(0, 2, {"b": 30, "c": 1, "a": 10}),
    ]
    times = tabulate_rounds(rounds)
    assert [ratios.case_first.tolist() for ratios in times.log_ratios("b", "a")] == [[False, True]]
    assert [ratios.case_first.tolist() for ratios in times.log_ratios("a", "b")] == [[True, False]]


def test_of_two_turns_in_one_round_the_first_gives_the_place() -> None:
    turns = tuple(Turn(case=case, calls=1, wall_ns=10, cpu_ns=0) for case in "abba")
    times = tabulate_rounds([Round(group="g", generation=0, round=0, started_unix_ns=0, turns=turns)])
    assert times.places[0].tolist() == [[0, 1]]


def test_the_centre_lies_between_the_heaps_of_the_two_orders() -> None:
    # Going second costs 1 %: three rounds of one order and two of the other, and a round that something disturbed. One
    # median over all would say -0.01 or 0.01, by which order happened to have more rounds.
    ratios = make_ratios(case_first=[-0.01, -0.01, 0.5], case_second=[0.01, 0.01])
    assert ratios.centre == pytest.approx(0.0)


@pytest.mark.parametrize("present", ["case_first", "case_second"])
def test_the_centre_of_a_single_order_is_its_median(present: str) -> None:
    assert make_ratios(**{present: [0.03, 0.01, 0.9]}).centre == 0.03


LOGS = st.lists(st.floats(min_value=-50, max_value=50))


@given(LOGS, LOGS.filter(bool))
def test_the_centre_lies_among_the_logs_and_mirrors_with_them(first: list[float], second: list[float]) -> None:
    ratios = make_ratios(first, second)
    slack = 1e-12 * np.abs(ratios.logs).max()
    assert ratios.logs.min() - slack <= ratios.centre <= ratios.logs.max() + slack
    swapped = Ratios(logs=-ratios.logs, case_first=~ratios.case_first)  # the baseline's view of the same rounds
    assert swapped.centre == pytest.approx(-ratios.centre, abs=1e-12)
    negated = Ratios(logs=-ratios.logs, case_first=ratios.case_first)
    assert negated.centre == pytest.approx(-ratios.centre, abs=1e-12)


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


TURNS = st.dictionaries(st.sampled_from("abc"), st.integers(min_value=0, max_value=50))


@given(st.lists(st.tuples(st.integers(min_value=0, max_value=2), TURNS), max_size=12))
def test_medians_are_those_of_each_generation(rounds: list[tuple[int, dict[str, int]]]) -> None:
    """Cases may be missing in rounds, and turns of no time are left out: both at once for all cases, and one by one."""
    times = tabulate_rounds(one_round(generation, number, turns) for number, (generation, turns) in enumerate(rounds))
    for case in "abcd":
        alone = times.ns_per_call(case)
        assert times.medians(case).tolist() == [np.median(values) for values in alone]
        assert times.rounds(case) == sum(values.size for values in alone)
