"""Own time: what other processes took is left out, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Account, Round, Turn
from harness.stats import tabulate_rounds
from harness.stats.own_time import on_core_ns, own_ns, taken_share, undelayed_ns

# A millisecond of work that took three, since other processes had the core for two.
PREEMPTED = Turn(
    case="a",
    calls=1,
    wall_ns=3_000_000,
    cpu_ns=1_000_000,
    account=Account(
        on_calling_thread=True, thread_ns=1_000_000, delayed_ns=2_000_000, voluntary=0, involuntary=3, throttled=0
    ),
)
ACCOUNT = PREEMPTED.account


def changed(**fields: Any) -> Turn:
    """The preempted turn with other figures, of the turn or of its account."""
    of_turn = {name: fields.pop(name) for name in ("wall_ns", "cpu_ns") if name in fields}
    assert ACCOUNT is not None
    return replace(PREEMPTED, **of_turn, account=replace(ACCOUNT, **fields))


@pytest.mark.parametrize(
    ("turn", "own"),
    [
        (PREEMPTED, 1_000_000),
        (changed(delayed_ns=None), 1_000_000),  # it never slept, so all that is missing was taken
        (changed(voluntary=2), 1_000_000),  # it slept for no time
        (changed(voluntary=2, delayed_ns=500_000), 2_500_000),  # it slept or waited for 1.5 ms, which count
        (changed(voluntary=2, delayed_ns=2_100_000), 1_000_000),  # clocks read one after the other
        (changed(voluntary=2, delayed_ns=None), None),  # what it waited for is not known
        (changed(voluntary=None), None),
        (changed(thread_ns=None), None),  # its clock counts in ticks
        (changed(thread_ns=0), None),
        (changed(thread_ns=3_020_000, cpu_ns=3_020_000), 3_020_000),
        (changed(thread_ns=3_040_000, cpu_ns=3_040_000), None),  # more than there was: the clocks contradict each other
        (changed(cpu_ns=1_005_000), 1_000_000),
        (changed(cpu_ns=1_020_000), None),  # another thread of its own process computed meanwhile
        (changed(throttled=1), None),  # a quota is no other process
        (changed(on_calling_thread=False), None),
        (replace(PREEMPTED, account=None), None),  # of an older run
    ],
)
def test_only_what_was_taken_is_left_out(turn: Turn, own: float | None) -> None:
    found = own_ns(turn)
    assert (None if math.isnan(found) else found) == own


@pytest.mark.parametrize(
    ("turn", "share"),
    [
        (PREEMPTED, 2 / 3),
        (changed(voluntary=2, delayed_ns=500_000), 1 / 6),
        (changed(on_calling_thread=False), 2 / 3),  # of the three milliseconds of a core that its threads asked for
        (changed(on_calling_thread=False, delayed_ns=None), None),
        (changed(cpu_ns=2_000_000), None),  # its other threads may have waited too
        (changed(throttled=2), None),  # a quota of its own looks the same
        (replace(PREEMPTED, account=None), None),
    ],
)
def test_the_share_that_was_taken(turn: Turn, share: float | None) -> None:
    assert taken_share(turn) == (None if share is None else pytest.approx(share))


TURNS = st.builds(
    changed,
    wall_ns=st.integers(1, 10**7),
    cpu_ns=st.integers(0, 10**7),
    thread_ns=st.none() | st.integers(0, 10**7),
    delayed_ns=st.none() | st.integers(0, 10**7),
    voluntary=st.integers(0, 1),
    throttled=st.integers(0, 1),
)


@given(st.lists(st.tuples(TURNS, TURNS), min_size=1, max_size=4))
def test_both_turns_of_a_round_are_compared_by_one_clock_whichever_side_they_are_on(
    pairs: list[tuple[Turn, Turn]],
) -> None:
    """The test of equal programs needs no more than that: swapping the sides changes the sign and nothing else."""
    found = [tabulate_rounds(_rounds(pairs, names)).log_ratios("a", "b")[0] for names in ("ab", "ba")]
    assert found[0].logs.tolist() == pytest.approx([-log for log in found[1].logs])
    by_own = 0
    for log, turns in zip(found[0].logs, pairs, strict=True):
        candidates = [tuple(map(clock, turns)) for clock in (on_core_ns, undelayed_ns)]
        own = next((times for times in candidates if all(map(math.isfinite, times))), None)
        by_own += own is not None
        first, second = own or (turns[0].wall_ns, turns[1].wall_ns)
        assert log == pytest.approx(math.log(first / second))
    assert [ratios.by_own_time for ratios in found] == [by_own] * 2


def _rounds(pairs: list[tuple[Turn, Turn]], names: str) -> list[Round]:
    return [
        Round(
            group="g",
            generation=0,
            round=number,
            started_unix_ns=0,
            turns=tuple(replace(turn, case=name) for turn, name in zip(turns, names, strict=True)),
        )
        for number, turns in enumerate(pairs)
    ]
