"""A function's jumps -> its loops, and how deep they nest.

Loops are found as parts of the control flow that can be reached from themselves, not by where labels stand: a compiler
that lays code out moves a loop's blocks apart, and enters it in the middle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_BEFORE_THE_FIRST = -1


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop of a function."""

    blocks: frozenset[int]  # Numbers of its blocks, those of loops inside it among them
    depth: int  # 1 of a loop that is in no other
    innermost: bool  # Whether no other loop is in it


def find_loops(successors: Sequence[Collection[int]]) -> tuple[Loop, ...]:
    """The loops of a function, each before those inside it.

    Two loops that begin at the same block are one here.
    """
    predecessors: list[set[int]] = [set() for _ in successors]
    for block, following in enumerate(successors):
        for successor in following:
            predecessors[successor].add(block)
    if predecessors:
        predecessors[0].add(_BEFORE_THE_FIRST)
    return tuple(_loops_among(frozenset(range(len(successors))), successors, predecessors, 1))


def _loops_among(
    blocks: frozenset[int], successors: Sequence[Collection[int]], predecessors: Sequence[set[int]], depth: int
) -> Iterator[Loop]:
    """The loops among some blocks: each is a cycle, and without the block that it begins at, the loops inside it."""
    for cycle in sorted(_cycles(blocks, successors), key=min):
        entered = [block for block in cycle if predecessors[block] - cycle]
        header = min(entered or cycle)
        inside = tuple(_loops_among(cycle - {header}, successors, predecessors, depth + 1))
        yield Loop(blocks=cycle, depth=depth, innermost=not inside)
        yield from inside


def _cycles(blocks: frozenset[int], successors: Sequence[Collection[int]]) -> list[frozenset[int]]:
    """The strongly connected parts that have a cycle (Tarjan's algorithm, without recursion)."""
    found: list[frozenset[int]] = []
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: list[int] = []
    path: list[tuple[int, Iterator[int]]] = []

    def enter(block: int) -> None:
        number[block] = lowest[block] = len(number)
        waiting.append(block)
        path.append((block, iter([successor for successor in successors[block] if successor in blocks])))

    left: set[int] = set()
    for first in sorted(blocks):
        if first in number:
            continue
        enter(first)
        while path:
            block, following = path[-1]
            successor = next(following, None)
            if successor is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[block])
                if lowest[block] == number[block]:
                    place = waiting.index(block)
                    part = frozenset(waiting[place:])
                    del waiting[place:]
                    left |= part
                    if len(part) > 1 or block in successors[block]:
                        found.append(part)
            elif successor not in number:
                enter(successor)
            elif successor not in left:
                lowest[block] = min(lowest[block], number[successor])
    return found
