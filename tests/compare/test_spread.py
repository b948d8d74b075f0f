"""Rows that several hosts measure at the same time, on scripted hosts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.engine import decide
from harness.compare.spread import by_host
from harness.compare.task import Generation, Outcome, Task
from harness.errors import CaseError
from harness.stats.rule import PAIR
from tests.compare.scripted import (
    EQUAL,
    NOISY,
    RULE,
    SLOWER,
    Script,
    a_generation,
    crash,
    generations,
    ignore,
    outcome_of,
)

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


class Fleet:
    """Hosts that give what is written for each, over and over; a batch arrives in the order that `arrive` makes of it.

    Args:
        scripts: By host, log ratios.
        seconds: By host, what a generation takes; of others, a second.
        fails: The generation that ends the row.
    """

    def __init__(
        self,
        scripts: Mapping[str, Sequence[float]],
        seconds: Mapping[str, float] | None = None,
        fails: int | None = None,
        arrive: Any = sorted,
    ) -> None:
        self._scripts = scripts
        self._seconds = seconds or {}
        self._fails = fails
        self._arrive = arrive
        self.asked: list[list[int]] = []
        self._done = Counter[str]()

    def __call__(self, numbers: Sequence[int]) -> Iterator[tuple[int, Generation | CaseError]]:
        """A batch."""
        self.asked.append(list(numbers))
        gave: dict[int, Generation | CaseError] = {}
        for host, own in by_host(numbers, tuple(self._scripts)).items():
            for number in own:
                logs = self._scripts[host]
                one = a_generation(logs[self._done[host] % len(logs)], seconds=self._seconds.get(host, 1.0))
                self._done[host] += 1
                gave[number] = crash() if number == self._fails else replace(one, host=host)
        yield from ((number, gave[number]) for number in self._arrive(gave))


def spread_outcome(fleet: Fleet, hosts: int, *, budget_s: float = 16) -> Outcome:
    never = Script([])
    task = Task(name="row", sample=never, rule=RULE, budget_s=budget_s, hosts=hosts, batch=fleet)
    (outcome,) = decide([task], ignore)
    assert never.asked == 0
    return outcome


def alike(hosts: int, logs: Sequence[float]) -> dict[str, Sequence[float]]:
    return dict.fromkeys(NAMES[:hosts], logs)


def test_pairs_of_both_orders_stay_on_one_host_and_go_round() -> None:
    assert by_host(range(8), ("a", "b", "c")) == {"a": [0, 1, 6, 7], "b": [2, 3], "c": [4, 5]}
    assert by_host([3, 4], ("a", "b", "c")) == {"b": [3], "c": [4]}


@given(st.integers(min_value=2, max_value=8), st.sampled_from([0.5, 3, 8, 40]), st.sampled_from([EQUAL, NOISY, SLOWER]))
def test_every_batch_and_every_look_has_as_many_generations_of_each_host(
    hosts: int, budget_s: float, logs: list[float]
) -> None:
    fleet = Fleet(alike(hosts, logs))
    outcome = spread_outcome(fleet, hosts, budget_s=budget_s)
    assert [number for batch in fleet.asked for number in batch] == list(range(len(outcome.generations)))
    assert {len(batch) for batch in fleet.asked} == {PAIR * hosts}
    counts = Counter(generation.host for generation in outcome.generations)
    assert len(set(counts.values())) == 1
    assert len(counts) == hosts
    assert outcome.confirming % (PAIR * hosts) == 0


@pytest.mark.parametrize("hosts", [2, 4, 8])
def test_as_much_is_known_in_a_fraction_of_the_time(hosts: int) -> None:
    """Each of eight hosts takes 32 seconds, which are as many generations, where one alone has no room for more."""
    outcome = spread_outcome(Fleet(alike(hosts, NOISY)), hosts, budget_s=32)
    assert len(outcome.generations) == 32 * hosts
    found = spread_outcome(Fleet(alike(hosts, SLOWER)), hosts)
    assert found.decision == "regressed"
    assert len(found.generations) == 2 * max(8, PAIR * hosts)
    assert found.reason.endswith(f"fresh generations, on {hosts} hosts")
    assert spread_outcome(Fleet(alike(hosts, EQUAL)), hosts).reason == (
        f"the interval lies within 1 %, on {hosts} hosts"
    )


def test_the_slowest_host_sets_the_pace_and_has_as_much_to_say() -> None:
    outcome = spread_outcome(Fleet(alike(4, NOISY), seconds={"c": 3.0}), 4, budget_s=32)
    assert Counter(generation.host for generation in outcome.generations) == dict.fromkeys(NAMES[:4], 10)


LOGS = st.lists(st.floats(min_value=-0.2, max_value=0.2), min_size=1, max_size=9)


@given(st.lists(LOGS, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_when_a_generation_arrives_changes_nothing(scripts: list[list[float]], random: Any) -> None:
    def shuffled(numbers: Mapping[int, object]) -> list[int]:
        order = list(numbers)
        random.shuffle(order)
        return order

    by_name = dict(zip(NAMES, scripts, strict=False))
    in_order = spread_outcome(Fleet(by_name), len(scripts))
    assert spread_outcome(Fleet(by_name, arrive=shuffled), len(scripts)) == in_order


@given(LOGS, st.sampled_from([0.5, 8, 20, 40]))
def test_one_host_is_as_none(logs: list[float], budget_s: float) -> None:
    here, there = (
        outcome_of(steps, budget_s=budget_s)
        for steps in (generations(*logs), [replace(step, host="a") for step in generations(*logs)])
    )
    assert replace(there, generations=here.generations) == here


def test_hosts_that_disagree_are_named_and_nothing_is_called_changed() -> None:
    scripts = alike(3, EQUAL) | {"b": SLOWER}
    outcome = spread_outcome(Fleet(scripts), 3)
    assert (outcome.decision, outcome.hosts_disagree) == ("inconclusive", True)
    assert outcome.reason == "the hosts disagree, from +0.0 % on a to +5.2 % on b; compare them one by one"
    assert outcome.estimate is not None
    assert outcome.estimate.low is not None
    assert outcome.estimate.high is not None
    assert outcome.estimate.low < 1.001
    assert outcome.estimate.high > math.exp(0.05)


def test_a_change_that_is_larger_on_one_host_is_a_change_on_each() -> None:
    outcome = spread_outcome(Fleet({"a": SLOWER, "b": [2 * log for log in SLOWER]}), 2)
    assert (outcome.decision, outcome.hosts_disagree) == ("regressed", False)
    assert outcome.reason == ("confirmed in 8 fresh generations, on 2 hosts (from +5.2 % on a to +10.6 % on b)")


@pytest.mark.parametrize(("fails", "kept"), [(0, 0), (5, 5), (13, 13)])
def test_a_generation_that_fails_ends_the_row_and_those_before_it_count(fails: int, kept: int) -> None:
    outcome = spread_outcome(Fleet(alike(4, NOISY), fails=fails), 4)
    assert (outcome.decision, len(outcome.generations)) == ("failed", kept)


@pytest.mark.parametrize(
    ("hosts", "cap_s", "decision", "beyond_s"),
    [(4, 1800, "regressed", []), (2, 1800, "regressed", [240.0]), (2, 120, "inconclusive", [])],
)
def test_a_plain_change_of_long_calls_needs_its_generations_of_all_hosts_together(
    hosts: int, cap_s: float, decision: str, beyond_s: list[float]
) -> None:
    """Eight generations of 30 s, and eight that confirm them: the first pair on each of four hosts is as many."""
    fleet = Fleet(alike(hosts, [2.05, 2.08, 2.11]), seconds=dict.fromkeys(NAMES, 30.0))
    task = Task(name="row", sample=Script([]), rule=RULE, budget_s=15, cap_s=cap_s, hosts=hosts, batch=fleet)
    went: list[float] = []
    (outcome,) = decide([task], ignore, on_beyond=lambda _name, seconds, _sentence: went.append(seconds))
    assert (outcome.decision, outcome.lacked_time, went) == (decision, decision == "inconclusive", beyond_s)
