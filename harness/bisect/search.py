"""An ordered history -> the steps in it, the largest first, with as few measurements as it takes.

A search halves a stretch whose two ends differ: every position in between, measured beside the stretch's first one,
belongs to the end that it is nearer to, half way in the logarithm. A few generations place what lies plainly by one
end; the rest is judged, and so is the step that a search ends with. Other steps are searched for where neighbours lie
so far apart that it matters. Positions that cannot be measured are passed over, so a step may lie in a range.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from harness.records.bisection import Nearer
from harness.stats.rule import Standing


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What measuring one position beside another said."""

    standing: Standing  # By the judge's rule, with the floor that was asked for
    centre: float  # Estimate of log(head / base)
    low: float  # Lower end of its interval; high the upper one
    high: float
    reason: str = ""  # Why it stands so, in plain words
    placed: bool = False  # Whether it was not judged, since a few generations lie plainly by one end of its stretch

    @property
    def differs(self) -> bool:
        """Whether it was found to lie beyond the floor."""
        return self.standing in ("higher", "lower")


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """A position that cannot be measured, and why, in plain words."""

    reason: str


# Measures position `head` beside position `base`; the floor is a share, as a rule's. With the log ratio of the two ends
# of a stretch, a few generations may place it; without, it is judged.
Measure = Callable[[int, int, float, float | None], Measured | Unusable]
# A step that is smaller than this share of what was asked for, in the logarithm, is beside the question.
_ASIDE = 0.25


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One measurement of a search."""

    base: int
    head: int
    floor: float  # Where the edge lay, as a share
    found: Measured | Unusable
    # To which end of the stretch it belongs; of the measurement of both ends themselves `head` where they differ, and
    # `base` where they are equal
    nearer: Nearer


@dataclass(frozen=True, kw_only=True)
class Step:
    """Two positions, between which something changed."""

    before: int  # The last position on this side of it
    after: int  # The first one on the other
    passed_over: tuple[int, ...]  # Positions between them that could not be measured
    size: Measured  # Of `after`, measured beside `before`


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a search came to."""

    steps: tuple[Step, ...]  # In the order of the history
    probes: tuple[Probe, ...]  # All that was measured, in the order in which that was done
    open: Mapping[tuple[int, int], str]  # Stretches of which it is not known whether they hold a step, and why


def find_steps(first: int, last: int, measure: Measure, floor: float) -> Findings:
    """Search the stretch between two positions."""
    search = _Search(measure, floor)
    stretches = [(first, last)]
    while stretches:
        stretches += search.halve(*stretches.pop())
    if search.differing and not search.steps and not search.open:
        why = "its ends differ, and no two neighbours that were judged do as much: it came bit by bit"
        search.open[search.differing[-1]] = why
    steps = sorted(search.steps, key=lambda step: step.before)
    return Findings(steps=tuple(steps), probes=tuple(search.probes), open=search.open)


class _Search:
    def __init__(self, measure: Measure, floor: float) -> None:
        self._measure = measure
        self._floor = floor
        self._may_place = True
        self._least = 0.0  # Below which a step is beside the question, in the logarithm; 0.0 until the ends are judged
        self.steps: list[Step] = []
        self.probes: list[Probe] = []
        self.open: dict[tuple[int, int], str] = {}
        self.differing: list[tuple[int, int]] = []  # Stretches whose ends differ and of which no step was found

    def halve(self, first: int, last: int) -> list[tuple[int, int]]:
        """Find one step of a stretch; the stretches that are still to be searched."""
        whole = self._probe(first, last, self._floor, None)
        if isinstance(whole, Unusable) or (whole.standing == "open" and not self._is_small(whole)):
            self.open[first, last] = whole.reason
        if isinstance(whole, Unusable) or not whole.differs or self._is_small(whole):
            return []
        self._least = self._least or max(math.log1p(self._floor), _ASIDE * abs(whole.centre))
        before, after, passed_over, placed = first, last, set[int](), False
        lies = {first: 0.0, last: whole.centre}
        while (place := middle(before, after, passed_over)) is not None:
            found = self._probe(first, place, edge_of(whole, self._floor), whole)
            nearer = self.probes[-1].nearer
            if isinstance(found, Unusable) or nearer == "unknown":
                passed_over.add(place)
                continue
            lies[place], placed = found.centre, placed or found.placed
            if nearer == "base":
                before = place
            else:
                after = place
        size = self._probe(before, after, self._floor, None)
        if isinstance(size, Measured) and size.differs:
            if self._is_small(size):
                self.differing.append((first, last))
            else:
                between = tuple(place for place in range(before + 1, after) if place in passed_over)
                self.steps.append(Step(before=before, after=after, passed_over=between, size=size))
            return self._left(lies, (before, after), whole.centre - size.centre)
        if isinstance(size, Measured) and placed:
            self._may_place = False  # some lie elsewhere, so the judge has to tell
            return [(first, last)]
        if isinstance(size, Measured) and size.standing == "equal":
            self.differing.append((first, last))  # both lie half way; the steps are before and behind them
        else:
            self.open[before, after] = f"it lies between these, but they do not differ directly: {size.reason}"
        return [(begin, end) for begin, end in ((first, before), (after, last)) if begin != end]

    def _is_small(self, found: Measured) -> bool:
        return max(-found.low, found.high) < self._least

    def _left(self, lies: Mapping[int, float], step: tuple[int, int], rest: float) -> list[tuple[int, int]]:
        """Of what was measured, neighbours beside the step that lie far enough apart, the farthest last."""
        places = sorted(lies)
        apart = {(one, two): abs(lies[two] - lies[one]) for one, two in pairwise(places) if (one, two) != step}
        if abs(rest) >= self._least > max(apart.values(), default=0.0):  # some were placed wrongly
            return [side for side in ((places[0], step[0]), (step[1], places[-1])) if side[0] != side[1]]
        return sorted((pair for pair, log in apart.items() if log >= self._least), key=apart.__getitem__)

    def _probe(self, base: int, head: int, floor: float, whole: Measured | None) -> Measured | Unusable:
        """Measure a position, beside the first one of a stretch whose ends are known, or for itself."""
        found = self._measure(base, head, floor, whole.centre if whole and self._may_place else None)
        nearer: Nearer = "unknown"
        if isinstance(found, Measured) and whole is not None:
            nearer = nearer_end(found, whole)
            if nearer == "unknown" and (found.low if whole.centre > 0 else -found.high) > 0:
                nearer = "between"  # it differs from the first one, so there is a step before it
        elif isinstance(found, Measured) and found.standing != "open":
            nearer = "head" if found.differs else "base"
        self.probes.append(Probe(base=base, head=head, floor=floor, found=found, nearer=nearer))
        return found


def middle(before: int, after: int, passed_over: AbstractSet[int]) -> int | None:
    """The position with as many usable ones on either side; None: there is none between the two."""
    left = [place for place in range(before + 1, after) if place not in passed_over]
    return left[len(left) // 2] if left else None


def edge_of(whole: Measured, floor: float) -> float:
    """Where the edge lies between the ends of a stretch, as a share: half way in the logarithm, at least the floor."""
    least = max(whole.low, -whole.high)  # a whole that may be smaller than half puts the edge there
    edge = math.expm1(min(abs(whole.centre) / 2, max(least, 0.0)))
    return max(floor, float(f"{edge:.4g}"))  # as it is printed


def nearer_end(found: Measured, whole: Measured) -> Nearer:
    """To which end of a stretch a position belongs that was measured beside its first one."""
    if found.placed:
        return "head" if found.centre / whole.centre > 1 / 2 else "base"
    if found.standing == "equal" or (found.differs and found.standing != whole.standing):
        return "base"
    if found.differs:
        return "head"
    low, high, least = found.low, found.high, whole.low
    if whole.centre < 0:
        low, high, least = -high, -low, -whole.high
    if high >= least:
        return "unknown"
    return "between" if low > 0 else "base"


# --- minimal ---


# What a set of parts does, added to the base: as much as all parts together, nothing, or it cannot be told.
Effect = Literal["all", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Parts that make the difference together, and without any of which it is not there."""

    parts: tuple[int, ...]  # In the order given
    untold: bool = False  # Whether a smaller set could not be told, so that there may be one


def minimal_causes(parts: int, effect_of: Callable[[frozenset[int]], Effect]) -> tuple[Cause, ...]:
    """Sets of parts, each of which makes the difference on its own and holds no smaller one that does."""
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
