"""The parts of a change -> the smallest sets of them that make the difference (Zeller and Hildebrandt 2002, ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Part = TypeVar("Part")
# What a set of parts does, added to the base: as much as all parts together, nothing, or it cannot be told.
Effect = Literal["all", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Parts that make the difference together, and without any of which it is not there."""

    parts: tuple[int, ...]  # In the order given
    untold: bool = False  # Whether a smaller set could not be told, so that there may be one


def minimal_causes(parts: int, effect_of: Callable[[frozenset[int]], Effect]) -> tuple[Cause, ...]:
    """Sets of parts, each of which makes the difference on its own and holds no smaller one that does.

    After a first set is found it is taken out, and what is left is tried again, for as long as it makes the difference
    too: two parts that both do the same alone are two causes.
    """
    known: dict[frozenset[int], Effect] = {}

    def effect(numbers: Sequence[int]) -> Effect:
        chosen = frozenset(numbers)
        if chosen not in known:
            known[chosen] = effect_of(chosen) if chosen else "none"
        return known[chosen]

    causes: list[Cause] = []
    left = list(range(parts))
    while effect(left) == "all":
        found = _shrink(left, effect)
        causes.append(found)
        left = [part for part in left if part not in found.parts]
    return tuple(causes)


def _shrink(parts: list[int], effect: Callable[[Sequence[int]], Effect]) -> Cause:
    """Take pieces out, or take one piece alone, in ever smaller pieces, for as long as the difference stays."""
    pieces = 2
    while len(parts) > 1:
        size = -(-len(parts) // pieces)
        chunks = [parts[begin : begin + size] for begin in range(0, len(parts), size)]
        rests = [[part for part in parts if part not in chunk] for chunk in chunks] if len(chunks) > 2 else []
        found, untold = None, False
        for smaller in (*chunks, *rests):
            told = effect(smaller)
            untold = untold or told == "unknown"
            if told == "all":
                found = smaller
                break
        if found is not None:
            pieces = 2 if found in chunks else max(len(chunks) - 1, 2)
            parts = found
        elif len(chunks) == len(parts):
            return Cause(parts=tuple(parts), untold=untold)
        else:
            pieces = min(2 * pieces, len(parts))
    return Cause(parts=tuple(parts))
