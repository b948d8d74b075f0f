"""What a device did, moment by moment -> what of a call's time goes to each dispatch and to each other operation.

Every moment is given away once, so that the shares add up to the time in which the device did anything: where several
operations run at once, each gets an equal share of that time. A command buffer's execution is only what its dispatches
leave of it. The runtime's profile has no events of the copies, fills and updates in a command buffer, so these are in
there too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Span:
    """One operation of the device."""

    what: str  # Dispatches of one name are added up, and operations of one kind
    start_ns: int
    end_ns: int
    encloses: bool = False  # Whether others run within it: it has only the time in which none of those runs


def shares_ns(spans: Sequence[Span]) -> list[float]:
    """What each span has of the time in which any of them runs."""
    shares = [0.0] * len(spans)
    edges: list[tuple[int, bool, int]] = []
    for place, span in enumerate(spans):
        if span.end_ns > span.start_ns:
            edges += [(span.start_ns, True, place), (span.end_ns, False, place)]
    running: tuple[set[int], set[int]] = (set(), set())  # those that others run within come second
    before = 0
    for moment, begins, place in sorted(edges):  # at one moment, ends come first
        sharers = running[0] or running[1]
        for sharer in sharers:
            shares[sharer] += (moment - before) / len(sharers)
        before = moment
        where = running[spans[place].encloses]
        if begins:
            where.add(place)
        else:
            where.discard(place)
    return shares


def per_call_ns(spans: Sequence[Span], calls: int) -> dict[str, float]:
    """What a call spends in each thing, in the order in which these are done first.

    Where all calls do the same things, it is the median over calls: the first call of a process finds its memory
    unmapped, and another process may take the core for a while. Else it is the mean.
    """
    ordered = sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    shares = shares_ns(ordered)
    length, rest = divmod(len(ordered), calls)
    stretches = [range(call * length, (call + 1) * length) for call in range(calls)]
    done = [Counter(ordered[place].what for place in stretch) for stretch in stretches]
    names = dict.fromkeys(span.what for span in ordered)
    if rest or any(each != done[0] for each in done):
        totals = dict.fromkeys(names, 0.0)
        for span, share in zip(ordered, shares, strict=True):
            totals[span.what] += share
        return {name: total / calls for name, total in totals.items()}
    columns = {name: column for column, name in enumerate(names)}
    sums = np.zeros((calls, len(columns)))
    for row, stretch in enumerate(stretches):
        for place in stretch:
            sums[row, columns[ordered[place].what]] += shares[place]
    return {name: float(np.median(sums[:, column])) for name, column in columns.items()}
