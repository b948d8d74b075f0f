"""Loops of a function, by its jumps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explain.loops import find_loops

Graph = Sequence[Sequence[int]]


def nested(successors: Graph) -> list[tuple[list[int], int, bool]]:
    return [(sorted(loop.blocks), loop.depth, loop.innermost) for loop in find_loops(successors)]


@pytest.mark.parametrize(
    ("successors", "loops"),
    [
        ([], []),
        ([[1], [2], []], []),
        ([[1, 2], [2], []], []),
        ([[0, 1], []], [([0], 1, True)]),
        ([[1], [1, 2], []], [([1], 1, True)]),
        ([[1], [2], [2, 3], [1, 4], []], [([1, 2, 3], 1, False), ([2], 2, True)]),
        ([[1], [1, 2], [2, 3], []], [([1], 1, True), ([2], 1, True)]),
        ([[2], [2], [1, 3], []], [([1, 2], 1, True)]),
        ([[1, 2], [2], [1, 3], []], [([1, 2], 1, True)]),
        ([[1], [2], [3], [2, 4], [1, 5], []], [([1, 2, 3, 4], 1, False), ([2, 3], 2, True)]),
    ],
    ids=[
        "no block",
        "a line",
        "a branch",
        "the first block",
        "one",
        "one in another",
        "two after each other",
        "entered in its middle",
        "entered at two places",
        "two blocks in four",
    ],
)
def test_loops(successors: Graph, loops: list[tuple[list[int], int, bool]]) -> None:
    assert nested(successors) == loops


def test_many_blocks_need_no_recursion() -> None:
    size = 5_000
    (loop,) = find_loops([[(place + 1) % size] for place in range(size)])
    assert (len(loop.blocks), loop.depth, loop.innermost) == (size, 1, True)


@given(st.lists(st.lists(st.integers(0, 7), max_size=2), min_size=8, max_size=8))
def test_outermost_loops_are_the_blocks_that_come_back_to_themselves(successors: list[list[int]]) -> None:
    def reached(block: int) -> set[int]:
        found: set[int] = set()
        waiting = list(successors[block])
        while waiting:
            following = waiting.pop()
            if following not in found:
                found.add(following)
                waiting += successors[following]
        return found

    loops = find_loops(successors)
    outermost = [loop.blocks for loop in loops if loop.depth == 1]
    assert sorted(block for blocks in outermost for block in blocks) == [n for n in range(8) if n in reached(n)]
    for loop in loops:
        inside = [other for other in loops if other.blocks < loop.blocks]
        assert loop.innermost == (not inside)
        assert loop.depth == 1 + sum(loop.blocks < other.blocks for other in loops)
