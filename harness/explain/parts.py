"""Executables of two programs -> parts: those that do the same work, one to one, or several where code was fused.

What the compiler fused on one side and not on the other has no counterpart of its own there. Its time is in a
neighbour's: so it is judged together with that, and a part's two sides do the same work as far as names and places
tell. Every executable is in exactly one part.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.ir.differences import Executable, MatchedBy, match_executables

# Of parts of several executables on a side.
FUSED: Literal["fused or split"] = "fused or split"
GroupedBy = MatchedBy | Literal["fused or split"]

# What operations begin with that have as little in common as any two.
_NO_KIND = ("", "slow", "elementwise")
# The name of base's, the name of head's, and why.
_Pair = tuple[str, str, MatchedBy]
# The pairs before and after a stretch of executables that are in none, by their number; None: the program's end.
_Between = tuple[int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class Counterparts:
    """Executables of two programs that do the same work; at least one is there."""

    # Of one program, in the order in which they run; () where only the other has it. head likewise.
    base: tuple[Executable, ...]
    head: tuple[Executable, ...]
    matched_by: GroupedBy  # Why they belong together; "" of one side alone

    @property
    def operation(self) -> str:
        """What base does here, or head where base does nothing: `pad_f32 + conv_32x90x62x64x3x3_f32`."""
        return " + ".join(dict.fromkeys(each.operation or each.name for each in self.base or self.head))


def match_parts(base: Sequence[Executable], head: Sequence[Executable]) -> tuple[Counterparts, ...]:
    """Put the executables of two programs together; the parts come in the order of base, then of head.

    Pairs are those of `match_executables`, and where as many of a kind, such as convolutions of another layout, stand
    between the same two pairs on both sides, those in their order. Stretches without a partner that stand between the
    same two pairs on both sides are one part. Any other executable without a partner is one part with the pair before
    it, else with the pair after it, if that pair's code differs: it was fused into that, or split from it. Where
    neither differs, it is a part of one side.
    """
    sides = (base, head)
    matches = match_executables(base, head)
    pairs: list[_Pair] = [
        (match.base.name, match.head.name, match.by) for match in matches if match.base and match.head
    ]
    pairs += _pairs_of_kinds(sides, pairs)
    numbers = [{pair[which]: number for number, pair in enumerate(pairs)} for which in (0, 1)]
    stretches = _without_partner(sides, pairs)
    on_both = set(stretches[0].values()) & set(stretches[1].values())
    parts: dict[Hashable, tuple[list[Executable], list[Executable]]] = {}
    for which, side in enumerate(sides):
        for executable in side:
            key: Hashable = numbers[which].get(executable.name)
            if key is None:
                key = between = stretches[which][executable.name]
                if between not in on_both:
                    differing = (pair for pair in between if pair is not None and pairs[pair][2] != "same code")
                    key = next(differing, (which, executable.name))
            parts.setdefault(key, ([], []))[which].append(executable)
    found = []
    for key, (of_base, of_head) in parts.items():
        why: GroupedBy = FUSED if of_base and of_head else ""
        if isinstance(key, int) and len(of_base) == len(of_head) == 1:
            why = pairs[key][2]
        found.append(Counterparts(base=tuple(of_base), head=tuple(of_head), matched_by=why))
    return tuple(found)


def _pairs_of_kinds(sides: Sequence[Sequence[Executable]], pairs: Sequence[_Pair]) -> list[_Pair]:
    """Executables without a partner, of a kind of which as many stand in the same stretch of both sides."""
    kinds: dict[tuple[_Between, str], tuple[list[str], list[str]]] = {}
    for which, (side, stretches) in enumerate(zip(sides, _without_partner(sides, pairs), strict=True)):
        for executable in side:
            kind = executable.operation.partition("_")[0]
            if executable.name in stretches and kind not in _NO_KIND:
                kinds.setdefault((stretches[executable.name], kind), ([], []))[which].append(executable.name)
    return [
        (of_base, of_head, "operation")
        for names in kinds.values()
        if len(names[0]) == len(names[1])
        for of_base, of_head in zip(*names, strict=True)
    ]


def _without_partner(sides: Sequence[Sequence[Executable]], pairs: Sequence[_Pair]) -> list[dict[str, _Between]]:
    """Of each side, by name of each executable that is in no pair: the pairs before and after it."""
    found: list[dict[str, _Between]] = []
    for which, side in enumerate(sides):
        numbers = {pair[which]: number for number, pair in enumerate(pairs)}
        before, waiting = None, list[str]()
        found.append({})
        for executable in side:
            number = numbers.get(executable.name)
            if number is None:
                waiting.append(executable.name)
            else:
                found[-1] |= dict.fromkeys(waiting, (before, number))
                before, waiting = number, []
        found[-1] |= dict.fromkeys(waiting, (before, None))
    return found
