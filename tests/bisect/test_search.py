"""Searching histories whose steps are known, without noise; benchmarks/bisect.py adds that."""

import math
from collections.abc import Callable, Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bisect.search import Cause, Effect, Findings, Measured, Unusable, find_steps, minimal_causes
from harness.stats.rule import Standing

FLOOR = 0.01


def exact(levels: Sequence[float | None], placed_at: Callable[[float, float], float] | None = None) -> Findings:
    """Search a history of known times, None where a position cannot be measured.

    Where it is not judged, each is placed where it lies, or as `placed_at` says of its log ratio and of the stretch's.
    """

    def measure(base: int, head: int, floor: float, whole: float | None) -> Measured | Unusable:
        below, above = levels[base], levels[head]
        if below is None or above is None:
            return Unusable(reason="it does not compile")
        log, edge = math.log(above / below), math.log1p(floor)
        if whole is not None and (placed_at or not 0.25 <= log / whole <= 0.75):
            centre = placed_at(log, whole) if placed_at else log
            return Measured(standing="open", centre=centre, low=-math.inf, high=math.inf, placed=True)
        inside = abs(abs(log) - edge) < 0.002 and log != 0
        standing: Standing = "open" if inside else "equal" if abs(log) <= edge else "higher" if log > 0 else "lower"
        return Measured(standing=standing, centre=log, low=log - 0.001, high=log + 0.001, reason="by its interval")

    return find_steps(0, len(levels) - 1, measure, FLOOR)


def steps(levels: Sequence[float | None]) -> list[tuple[int, int]]:
    return [(step.before, step.after) for step in exact(levels).steps]


@given(
    size=st.integers(2, 300),
    place=st.integers(1, 299),
    factor=st.sampled_from([0.4, 0.98, 1.02, 1.5, 8.0]),
    broken=st.sets(st.integers(1, 298), max_size=40),
)
def test_the_step_is_found_and_lies_between_what_could_be_measured(
    size: int, place: int, factor: float, broken: set[int]
) -> None:
    place = min(place, size - 1)
    levels = [None if 0 < at < size - 1 and at in broken else factor if at >= place else 1.0 for at in range(size)]
    found = exact(levels)
    (step,) = found.steps
    assert levels[step.before] == 1.0
    assert levels[step.after] == factor
    assert step.passed_over == tuple(at for at in range(step.before + 1, step.after))
    assert all(levels[at] is None for at in step.passed_over)
    assert len(found.probes) - sum(isinstance(probe.found, Unusable) for probe in found.probes) <= math.log2(size) + 5


def test_two_steps_are_both_found() -> None:
    assert steps([1, 1, 1.3, 1.3, 1.3, 1.7, 1.7]) == [(1, 2), (4, 5)]
    assert steps([1, 1, 1.1, 1.1, 1.1, 1.21, 1.21]) == [(1, 2), (4, 5)], "what lies half way belongs to neither end"
    assert steps([1, 1, 2, 3, 3, 2]) == [(1, 2), (2, 3), (4, 5)], "what lies beyond the last one is told from it"
    assert steps([1, 1, 1, 1.5, 1.5, 1.5, 1.53]) == [(2, 3)], "less than a quarter of it all is beside the question"


@pytest.mark.parametrize("side", ["open", "lower"])
def test_a_side_that_is_surely_small_when_it_is_judged_leaves_the_step_known(side: Standing) -> None:
    levels = [1, 1, 1, 1, 5, 5, 5]

    def measure(base: int, head: int, floor: float, whole: float | None) -> Measured:
        log = math.log(levels[head] / levels[base])
        if whole is not None:  # by a burst of noise, one lies beyond the end
            return Measured(standing="open", centre=log + 0.5 * (head == 5), low=-9, high=9, placed=True)
        standing: Standing = side if log == 0 else "higher"
        return Measured(standing=standing, centre=log, low=log - 0.2, high=log + 0.2, reason="too noisy")

    found = find_steps(0, 6, measure, FLOOR)
    assert [(step.before, step.after) for step in found.steps] == [(3, 4)]
    assert found.open == {}


def test_what_was_placed_wrongly_is_judged_when_the_step_is_not_there() -> None:
    found = exact([1, 1, 1, 1, 1, 1.05, 1.05, 1.05], placed_at=lambda _log, whole: whole)
    assert [(step.before, step.after) for step in found.steps] == [(4, 5)]
    assert found.open == {}


def test_ends_that_do_not_differ_or_cannot_be_told_apart_leave_nothing_to_search() -> None:
    assert len(exact([1, 1, 2, 2, 2, 1, 1]).probes) == 1, "of a step that was repaired the ends show nothing"
    assert exact([1, 5, 1.01]).open == {(0, 2): "by its interval"}
    assert exact([1, 5, None]).open == {(0, 2): "it does not compile"}


def test_a_step_is_judged_with_the_floor_and_positions_by_the_edge() -> None:
    found = exact([1, 4, 4])
    assert [(step.before, step.after) for step in found.steps] == [(0, 1)]
    assert [(probe.base, probe.head, probe.floor) for probe in found.probes] == [
        (0, 2, FLOOR),
        (0, 1, 1.0),
        (0, 1, FLOOR),
    ]
    assert found.steps[0].size == found.probes[2].found, "and not what placed it"


def test_of_what_came_little_by_little_no_step_is_named() -> None:
    found = exact([1, 1.007, 1.014])
    assert found.steps == ()
    assert list(found.open) == [(0, 2)]
    assert "it came bit by bit" in found.open[0, 2]
    long = exact([1.02**position for position in range(14)])  # each neighbour differs, and none by a quarter of it all
    assert long.steps == ()
    assert all("it came bit by bit" in why for why in long.open.values())
    assert long.open


def causes(parts: int, needed: Collection[frozenset[int]], unknown: Collection[frozenset[int]] = ()) -> list[Cause]:
    asked = []

    def effect_of(chosen: frozenset[int]) -> Effect:
        assert chosen not in asked
        asked.append(chosen)
        if chosen in unknown:
            return "unknown"
        return "all" if any(one <= chosen for one in needed) else "none"

    return list(minimal_causes(parts, effect_of))


@given(st.integers(1, 24), st.data())
def test_a_set_that_acts_together_is_found_whole_and_nothing_else(parts: int, data: st.DataObject) -> None:
    together = data.draw(st.frozensets(st.integers(0, parts - 1), min_size=1, max_size=4))
    assert causes(parts, [together]) == [Cause(parts=tuple(sorted(together)))]


def test_parts_that_each_do_it_alone_are_causes_of_their_own_and_what_could_not_be_told_is_said() -> None:
    assert causes(6, [frozenset({1}), frozenset({4})]) == [Cause(parts=(1,)), Cause(parts=(4,))]
    assert causes(6, []) == []
    assert causes(2, [frozenset({0, 1})], unknown=[frozenset({0})]) == [Cause(parts=(0, 1), untold=True)]
    assert causes(4, [frozenset({3})], unknown=[frozenset({0, 1})]) == [Cause(parts=(3,))]
