"""Rounds become arrays without losing, inventing or mixing up a turn; what other processes took is left out."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Account, Round, Turn
from harness.stats.pairing import (
    Ratios,
    counter_per_call,
    on_core_ns,
    own_ns,
    tabulate_rounds,
    taken_share,
    undelayed_ns,
)

Turns = Sequence[tuple[str, int, int]]  # case, wall time and calls


def one_round(number: int, *turns: Turn, generation: int = 0) -> Round:
    return Round(group="g", generation=generation, round=number, started_unix_ns=0, turns=turns)


# --- Against the plainest way of saying it ---


def ns_per_call(turns: Turns, case: str) -> float | None:
    """A turn of no time or without calls, as a broken clock has it, is none."""
    return next((wall_ns / calls for name, wall_ns, calls in turns if name == case and wall_ns > 0 and calls > 0), None)


TURN = st.tuples(st.sampled_from("abc"), st.integers(-1, 50), st.integers(0, 3))
TURNS = st.lists(TURN, max_size=3, unique_by=lambda turn: turn[0])


@given(st.lists(st.lists(TURNS, max_size=4), max_size=3), st.randoms())
def test_every_figure_is_that_of_the_turns_of_its_round(generations: list[list[Turns]], random: Random) -> None:
    rounds = [
        one_round(number, *(Turn(case=c, calls=n, wall_ns=ns, cpu_ns=0) for c, ns, n in turns), generation=generation)
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
        both = [([name for name, *_ in turns], math.log(a / b)) for turns, a, b in pairs if a and b]
        if both:
            ratios.append(([log for _, log in both], [names.index("a") < names.index("b") for names, _ in both]))
    found = times.log_ratios("a", "b")
    assert [generation.case_first.tolist() for generation in found] == [first for _, first in ratios]
    for generation, (logs, _) in zip(found, ratios, strict=True):
        np.testing.assert_allclose(generation.logs, logs, rtol=1e-9, atol=1e-12)
    assert times.log_ratios("a", "nobody") == ()


# --- The centre of a generation ---


def make_ratios(case_first: Sequence[float] = (), case_second: Sequence[float] = ()) -> Ratios:
    """Log ratios of the rounds in which the case had its turn first, and of those in which it had it second."""
    return Ratios(
        logs=np.array([*case_first, *case_second], dtype=np.float64),
        case_first=np.array([True] * len(case_first) + [False] * len(case_second)),
    )


@pytest.mark.parametrize(
    ("ratios", "centre"),
    [
        # Going second costs 1 %: three rounds of one order and two of the other, and a round that something disturbed.
        # One median over all would say -0.01 or 0.01, by which order happened to have more rounds.
        (make_ratios([-0.01, -0.01, 0.5], [0.01, 0.01]), 0.0),
        (make_ratios([0.03, 0.01, 0.9]), 0.03),
        (make_ratios([], [0.03, 0.01, 0.9]), 0.03),
    ],
)
def test_the_centre_lies_between_the_heaps_of_the_two_orders(ratios: Ratios, centre: float) -> None:
    assert ratios.centre == pytest.approx(centre)


# --- Counters ---


def test_counters_are_the_median_per_call_of_the_turns_that_have_them() -> None:
    def turn(case: str, calls: int, **counters: int) -> Turn:
        return Turn(case=case, calls=calls, wall_ns=1, cpu_ns=1, counters=counters)

    rounds = [
        one_round(0, turn("a", 2, instructions=200), turn("b", 1)),
        one_round(1, turn("a", 1, instructions=130), turn("b", 1, cycles=5)),
        one_round(2, turn("a", 1, instructions=101), turn("a", 0, instructions=9)),
    ]
    assert counter_per_call(rounds, "instructions") == {"a": 101.0}


# --- Own time ---

ACCOUNT = Account(
    on_calling_thread=True, thread_ns=1_000_000, delayed_ns=2_000_000, voluntary=0, involuntary=3, throttled=0
)
# A millisecond of work that took three, since other processes had the core for two.
PREEMPTED = Turn(case="a", calls=1, wall_ns=3_000_000, cpu_ns=1_000_000, account=ACCOUNT)


def changed(**fields: Any) -> Turn:
    """The preempted turn with other figures, of the turn or of its account."""
    of_turn = {name: fields.pop(name) for name in ("wall_ns", "cpu_ns") if name in fields}
    return replace(PREEMPTED, **of_turn, account=replace(ACCOUNT, **fields))


@pytest.mark.parametrize(
    ("turn", "own", "share"),
    [
        (PREEMPTED, 1_000_000, 2 / 3),
        (changed(delayed_ns=None), 1_000_000, 2 / 3),  # it never slept, so all that is missing was taken
        (changed(voluntary=2), 1_000_000, 2 / 3),  # it slept for no time
        (changed(voluntary=2, delayed_ns=500_000), 2_500_000, 1 / 6),  # it slept or waited for 1.5 ms, which count
        (changed(voluntary=2, delayed_ns=2_100_000), 1_000_000, 2 / 3),  # clocks read one after the other
        (changed(voluntary=2, delayed_ns=None), None, None),  # what it waited for is not known
        (changed(voluntary=None), None, None),
        (changed(thread_ns=None), None, None),  # its clock counts in ticks
        (changed(thread_ns=0), None, None),
        (changed(thread_ns=3_020_000, cpu_ns=3_020_000), 3_020_000, 0.0),
        (changed(thread_ns=3_040_000, cpu_ns=3_040_000), None, None),  # more than there was: clocks contradict it
        (changed(cpu_ns=1_005_000), 1_000_000, 2 / 3),
        (changed(cpu_ns=1_020_000), None, None),  # another thread of its own process computed, and may have waited
        (changed(throttled=1), None, None),  # a quota is no other process
        (changed(on_calling_thread=False), None, 2 / 3),  # of the milliseconds of a core that its threads asked for
        (changed(on_calling_thread=False, delayed_ns=None), None, None),
        (replace(PREEMPTED, account=None), None, None),  # of an older run
    ],
)
def test_only_what_was_taken_is_left_out(turn: Turn, own: float | None, share: float | None) -> None:
    found = own_ns(turn)
    assert (None if math.isnan(found) else found) == own
    assert taken_share(turn) == (None if share is None else pytest.approx(share))


ACCOUNTED = st.builds(
    changed,
    wall_ns=st.integers(1, 10**7),
    cpu_ns=st.integers(0, 10**7),
    thread_ns=st.none() | st.integers(0, 10**7),
    delayed_ns=st.none() | st.integers(0, 10**7),
    voluntary=st.integers(0, 1),
    throttled=st.integers(0, 1),
)


@given(st.lists(st.tuples(ACCOUNTED, ACCOUNTED), min_size=1, max_size=4))
def test_both_turns_of_a_round_are_compared_by_one_clock_whichever_side_they_are_on(
    pairs: list[tuple[Turn, Turn]],
) -> None:
    """The test of equal programs needs no more than that: swapping the sides changes the sign and nothing else."""
    found = [
        tabulate_rounds(
            one_round(number, *(replace(turn, case=name) for turn, name in zip(turns, names, strict=True)))
            for number, turns in enumerate(pairs)
        ).log_ratios("a", "b")[0]
        for names in ("ab", "ba")
    ]
    assert found[0].logs.tolist() == pytest.approx([-log for log in found[1].logs])
    by_own = 0
    for log, turns in zip(found[0].logs, pairs, strict=True):
        candidates = [tuple(map(clock, turns)) for clock in (on_core_ns, undelayed_ns)]
        own = next((times for times in candidates if all(map(math.isfinite, times))), None)
        by_own += own is not None
        first, second = own or (turns[0].wall_ns, turns[1].wall_ns)
        assert log == pytest.approx(math.log(first / second))
    assert [ratios.by_own_time for ratios in found] == [by_own] * 2
