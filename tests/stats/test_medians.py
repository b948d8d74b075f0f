"""Medians of all cases at once are those of each group's tables, whatever turns there are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.records.run import Round, Turn
from harness.stats import tabulate_rounds
from harness.stats.medians import medians_by_case


def one_round(generation: int, number: int, *turns: tuple[str, int, int], group: str = "g") -> Round:
    """Turns are a case, its calls and its nanoseconds."""
    made = tuple(Turn(case=case, calls=calls, wall_ns=wall_ns, cpu_ns=0) for case, calls, wall_ns in turns)
    return Round(group=group, generation=generation, round=number, started_unix_ns=0, turns=made)


def test_each_generation_has_its_median() -> None:
    rounds = [
        one_round(1, 0, ("a", 2, 100), ("b", 1, 7)),
        one_round(0, 2, ("a", 1, 30)),
        one_round(0, 0, ("a", 1, 10)),
        one_round(0, 1, ("a", 1, 17)),
    ]
    found = medians_by_case(rounds)
    assert (found["g", "a"].ns, found["g", "a"].rounds) == ((17.0, 50.0), 4)
    assert (found["g", "b"].ns, found["g", "b"].rounds) == ((7.0,), 1)


def test_two_turns_in_one_round_count_with_their_mean_and_unusable_ones_not_at_all() -> None:
    found = medians_by_case([one_round(0, 0, ("a", 1, 10), ("a", 3, 70), ("a", 0, 5), ("a", 1, 0), ("b", 1, 0))])
    assert list(found) == [("g", "a")]
    assert (found["g", "a"].ns, found["g", "a"].rounds) == ((20.0,), 1)


def test_nothing_gives_nothing() -> None:
    assert medians_by_case([]) == {}
    assert medians_by_case([one_round(0, 0)]) == {}


def test_numbers_of_rounds_may_be_anything() -> None:
    """A damaged file may have numbers that no array holds."""
    found = medians_by_case([one_round(10**30, -(10**30), ("a", 1, 10)), one_round(-1, 10**30, ("a", 1, 30))])
    assert found["g", "a"].ns == (30.0, 10.0)


TURNS = st.tuples(st.sampled_from("abc"), st.integers(-1, 3), st.integers(-1, 1 << 64))


@example([(0, 0, [("a", 1, 1), ("a", 1, 9_007_199_254_740_993)])])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.lists(TURNS, max_size=4)), max_size=12))
def test_they_are_those_of_the_tables(made: Sequence[tuple[int, int, list[tuple[str, int, int]]]]) -> None:
    # A round is there once: the tables would have two lines for it.
    unique = {(generation, number): turns for generation, number, turns in made}
    rounds = [one_round(generation, number, *turns) for (generation, number), turns in unique.items()]
    times, found = tabulate_rounds(rounds), medians_by_case(rounds)
    for case in "abc":
        expected = times.medians(case).tolist()
        assert bool(expected) == (("g", case) in found)
        if expected:
            # Times beyond 2**53 ns are rounded before they are added, or after it.
            assert found["g", case].ns == pytest.approx(tuple(expected), rel=1e-12)
            assert found["g", case].rounds == times.rounds(case)


def test_groups_are_kept_apart() -> None:
    found = medians_by_case([one_round(0, 0, ("a", 1, 10)), one_round(0, 0, ("a", 1, 30), group="h")])
    assert {key: one.ns for key, one in found.items()} == {("g", "a"): (10.0,), ("h", "a"): (30.0,)}
