"""An ordered history -> the steps in it, with as few measurements as it takes.

A search halves a stretch of positions, of which the two ends differ. Every position in between is measured beside the
stretch's first one, and belongs to the end that it is nearer to: the edge lies half way between the two, in the
logarithm, so that the whole step tells them apart and not only what exceeds a floor. What lies clearly between both
ends, or beyond the last one, tells of two steps, and splits the stretch. The step that a search ends with is measured
directly, one side beside the other, unless that was done already, and what is left before and behind it is searched for
more.

Positions that cannot be measured (they do not compile, give other outputs, stay inconclusive) are passed over. Where
they stand at a step, it is known to lie in a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from harness.records.bisection import Nearer
from harness.stats.rule import Standing


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What measuring one position beside another said.

    Attributes:
        standing: By the judge's rule, with the floor that was asked for.
        centre: Estimate of log(head / base).
        low: Lower end of its interval; high the upper one.
        reason: Why it stands so, in plain words.
    """

    standing: Standing
    centre: float
    low: float
    high: float
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether it was found to lie beyond the floor."""
        return self.standing in ("higher", "lower")


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """A position that cannot be measured, and why, in plain words."""

    reason: str


# Measures position `head` beside position `base`; the floor is a share, as a rule's.
Measure = Callable[[int, int, float], Measured | Unusable]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One measurement of a search.

    Attributes:
        floor: Where the edge lay, as a share.
        nearer: To which end of the stretch it belongs; of the measurement of both ends themselves `head` where they
            differ, and `base` where they are equal.
    """

    base: int
    head: int
    floor: float
    found: Measured | Unusable
    nearer: Nearer


@dataclass(frozen=True, kw_only=True)
class Step:
    """Two positions, between which something changed.

    Attributes:
        before: The last position on this side of it.
        after: The first one on the other.
        passed_over: Positions between them that could not be measured.
        size: Of `after`, measured beside `before`.
    """

    before: int
    after: int
    passed_over: tuple[int, ...]
    size: Measured


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a search came to.

    Attributes:
        steps: In the order of the history.
        probes: All that was measured, in the order in which that was done.
        open: Stretches of which it is not known whether they hold a step, and why.
    """

    steps: tuple[Step, ...]
    probes: tuple[Probe, ...]
    open: Mapping[tuple[int, int], str]


def find_steps(first: int, last: int, measure: Measure, floor: float) -> Findings:
    """Search the stretch between two positions, either of which may be the later one.

    Args:
        floor: Relative change below which nothing counts as a step, a share.
    """
    search = _Search(measure, floor)
    stretches = [(first, last)]
    while stretches:
        stretches += search.halve(*stretches.pop())
    order = 1 if last >= first else -1
    return Findings(
        steps=tuple(sorted(search.steps, key=lambda step: order * step.before)),
        probes=tuple(search.probes),
        open=search.open | search.gradual(),
    )


class _Search:
    def __init__(self, measure: Measure, floor: float) -> None:
        self._measure = measure
        self._floor = floor
        self._without: list[tuple[int, int]] = []
        self.steps: list[Step] = []
        self.probes: list[Probe] = []
        self.open: dict[tuple[int, int], str] = {}

    def gradual(self) -> dict[tuple[int, int], str]:
        """The widest stretches whose ends differ though no step and nothing unknown is in them, and why."""
        found: dict[tuple[int, int], str] = {}
        told = [*((step.before, step.after) for step in self.steps), *self.open]
        for first, last in self._without:
            within = {first, last, *_inside(first, last)}
            in_wider = any(within <= {*wide, *_inside(*wide)} for wide in found)
            if not in_wider and not any(set(pair) <= within for pair in told):
                found[first, last] = "its ends differ, but no two neighbours by more than the floor: it came bit by bit"
        return found

    def halve(self, first: int, last: int) -> list[tuple[int, int]]:
        """Find one step of a stretch; the stretches that are still to be searched."""
        whole = self._probe(first, last, self._floor)
        if isinstance(whole, Unusable) or not whole.differs:
            if isinstance(whole, Unusable) or whole.standing == "open":
                self.open[first, last] = whole.reason
            return []
        edge = edge_of(whole, self._floor)
        before, after, passed_over = first, last, set[int]()
        while (place := middle(before, after, passed_over)) is not None:
            nearer = self._nearer(first, place, edge, whole)
            if nearer == "between":
                self._without.append((first, last))
                return [(first, place), (place, last)]
            if nearer == "base":
                before = place
            elif nearer == "head":
                after = place
            else:
                passed_over.add(place)
        size = self._probe(before, after, self._floor)
        if isinstance(size, Measured) and size.differs:
            between = tuple(place for place in _inside(before, after) if place in passed_over)
            self.steps.append(Step(before=before, after=after, passed_over=between, size=size))
        elif isinstance(size, Measured) and size.standing == "equal":
            self._without.append((first, last))  # both lie half way; the steps are before and behind them
        else:
            self.open[before, after] = f"it lies between these, but they do not differ directly: {size.reason}"
        return [(begin, end) for begin, end in ((first, before), (after, last)) if begin != end]

    def _nearer(self, first: int, place: int, edge: float, whole: Measured) -> Nearer:
        found = self._measure(first, place, edge)
        nearer: Nearer = "unknown" if isinstance(found, Unusable) else nearer_end(found, whole)
        if nearer == "head" and isinstance(found, Measured) and _is_beyond(found, whole, self._floor):
            nearer = "between"  # and so a step from the last position too
        self.probes.append(Probe(base=first, head=place, floor=edge, found=found, nearer=nearer))
        return nearer

    def _probe(self, base: int, head: int, floor: float) -> Measured | Unusable:
        for probe in self.probes:
            if (probe.base, probe.head) == (base, head) and _tells(probe, floor):
                return probe.found
        found = self._measure(base, head, floor)
        nearer: Nearer = "unknown"
        if isinstance(found, Measured) and found.standing != "open":
            nearer = "head" if found.differs else "base"
        self.probes.append(Probe(base=base, head=head, floor=floor, found=found, nearer=nearer))
        return found


def _tells(probe: Probe, floor: float) -> bool:
    """Whether a measurement that was made with another edge says what one with this floor would."""
    found, edge = probe.found, math.log1p(floor)
    if isinstance(found, Unusable) or found.standing == "open":
        return False
    if found.differs:  # what lies beyond a farther edge lies beyond this one too
        return probe.floor >= floor
    return -edge <= found.low and found.high <= edge


def _is_beyond(found: Measured, whole: Measured, floor: float) -> bool:
    """Whether a position lies farther from the first one than the last one does, by more than the floor."""
    if whole.centre > 0:
        return found.low > whole.high + math.log1p(floor)
    return found.high < whole.low - math.log1p(floor)


def middle(before: int, after: int, passed_over: AbstractSet[int]) -> int | None:
    """The position with as many usable ones on either side; None: there is none between the two."""
    left = [place for place in _inside(before, after) if place not in passed_over]
    return left[len(left) // 2] if left else None


def _inside(before: int, after: int) -> range:
    return range(before + 1, after) if before < after else range(before - 1, after, -1)


def edge_of(whole: Measured, floor: float) -> float:
    """Where the edge lies between the two ends of a stretch, as a share: half way in the logarithm.

    Where the whole is known so roughly that it may be smaller than that, it is the least that it can be, so that what
    lies within the edge is not the last position; but never less than the floor, below which nothing is told apart.

    Args:
        whole: The last one, beside the first.
    """
    least = max(whole.low, -whole.high)
    edge = math.expm1(min(abs(whole.centre) / 2, max(least, 0.0)))
    return max(floor, float(f"{edge:.4g}"))  # as it is printed


def nearer_end(found: Measured, whole: Measured) -> Nearer:
    """To which end of a stretch a position belongs that was measured beside its first one.

    Args:
        whole: The last one, beside the first.
    """
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
