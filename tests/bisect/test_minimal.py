"""Parts of a change whose effects are known."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from harness.bisect.minimal import Cause, Effect, minimal_causes


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


def test_parts_that_each_do_it_alone_are_causes_of_their_own() -> None:
    assert causes(6, [frozenset({1}), frozenset({4})]) == [Cause(parts=(1,)), Cause(parts=(4,))]
    assert causes(6, []) == []
    assert causes(0, [frozenset({0})]) == []


def test_what_could_not_be_told_is_said() -> None:
    assert causes(2, [frozenset({0, 1})], unknown=[frozenset({0})]) == [Cause(parts=(0, 1), untold=True)]
    assert causes(4, [frozenset({3})], unknown=[frozenset({0, 1})]) == [Cause(parts=(3,))]
