"""Rounds become arrays without losing, inventing or mixing up a turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Round, Turn
from harness.stats import counter_per_call, tabulate_rounds
from harness.stats.pairing import Ratios

Turns = Sequence[tuple[str, int, int]]  # case, wall time and calls


def one_round(generation: int, number: int, turns: Turns) -> Round:
    return Round(
        group="g",
        generation=generation,
        round=number,
        started_unix_ns=0,
        turns=tuple(Turn(case=case, calls=calls, wall_ns=wall_ns, cpu_ns=0) for case, wall_ns, calls in turns),
    )


def make_ratios(case_first: Sequence[float] = (), case_second: Sequence[float] = ()) -> Ratios:
    """Log ratios of the rounds in which the case had its turn first, and of those in which it had it second."""
    return Ratios(
        logs=np.array([*case_first, *case_second], dtype=np.float64),
        case_first=np.array([True] * len(case_first) + [False] * len(case_second)),
    )


# --- Against the plainest way of saying it ---


def ns_per_call(turns: Turns, case: str) -> float | None:
    """Of two turns in one round the mean; a turn of no time or without calls, as a broken clock has it, is none."""
    usable = [(wall_ns, calls) for name, wall_ns, calls in turns if name == case and wall_ns > 0 and calls > 0]
    return sum(wall_ns for wall_ns, _ in usable) / sum(calls for _, calls in usable) if usable else None


def place(turns: Turns, case: str) -> int:
    """Of the first turn, whether or not it can be divided."""
    return [name for name, _, _ in turns].index(case)


TURNS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 50), st.integers(0, 3)), max_size=4)
GENERATIONS = st.lists(st.lists(TURNS, max_size=4), max_size=3)


@given(GENERATIONS, st.randoms())
def test_every_figure_is_that_of_the_turns_of_its_round(generations: list[list[Turns]], random: Random) -> None:
    rounds = [
        one_round(generation, number, turns)
        for generation, members in enumerate(generations)
        for number, turns in enumerate(members)
    ]
    random.shuffle(rounds)
    times = tabulate_rounds(rounds)
    for case in "abcd":
        per_round = [[ns for turns in members if (ns := ns_per_call(turns, case))] for members in generations]
        measured = [values for values in per_round if values]
        assert [values.tolist() for values in times.ns_per_call(case)] == measured
        assert times.medians(case).tolist() == [np.median(values) for values in measured]
        assert times.rounds(case) == sum(map(len, measured))
        turns = [turn for members in generations for turns in members for turn in turns if turn[0] == case]
        assert times.unusable.get(case, 0) == sum(wall_ns <= 0 or calls <= 0 for _, wall_ns, calls in turns)
    ratios = []
    for members in generations:
        pairs = [(turns, ns_per_call(turns, "a"), ns_per_call(turns, "b")) for turns in members]
        both = [(turns, math.log(a / b)) for turns, a, b in pairs if a and b]
        if both:
            ratios.append(([log for _, log in both], [place(turns, "a") < place(turns, "b") for turns, _ in both]))
    found = times.log_ratios("a", "b")
    assert [generation.case_first.tolist() for generation in found] == [first for _, first in ratios]
    for generation, (logs, _) in zip(found, ratios, strict=True):
        np.testing.assert_allclose(generation.logs, logs, rtol=1e-9, atol=1e-12)
    assert times.log_ratios("a", "nobody") == ()


# --- The centre of a generation ---


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
    for case_first in (ratios.case_first, ~ratios.case_first):  # the latter is the baseline's view of the same rounds
        assert Ratios(logs=-ratios.logs, case_first=case_first).centre == pytest.approx(-ratios.centre, abs=1e-12)


# --- Counters ---


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
