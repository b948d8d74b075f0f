"""What belongs together among the changes of a history: one event is seen in several figures, and in many cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.history.values import Change
from harness.history.verdicts import Cause
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE

# What may fail a build: as in comparisons, a time and no counted figure, which a release may change for the better.
GATED = (LATENCY.name, LATENCY_VS_REFERENCE, COMPILE_TIME.name)
# Which of an event's figures stands for it, the first that has changed.
_LEADING = (LATENCY.name, LATENCY_VS_REFERENCE, COMPILE_TIME.name, INSTRUCTIONS.name)
# A ratio of two variants also moves when the other one changes, which has an event of its own.
_TRAILING = (LATENCY_VS_BASELINE,)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The runs of a history in order of time.

    Attributes:
        places: Of each run among all.
        from_end: How many runs of the same suite on machines of the same class came after it.
    """

    places: Mapping[str, int]
    from_end: Mapping[str, int]


def timeline(runs: Iterable[tuple[str, str, str]]) -> Timeline:
    """From id, suite and machine class of each run, in order of time."""
    listed = list(runs)
    seen: dict[tuple[str, str], int] = {}
    from_end = {}
    for run, suite, classed in reversed(listed):
        from_end[run] = seen.get((suite, classed), 0)
        seen[suite, classed] = from_end[run] + 1
    return Timeline(places={run: place for place, (run, _, _) in enumerate(listed)}, from_end=from_end)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One event.

    Attributes:
        changes: The one that stands for it first.
        recent: Whether it is among the last runs that were asked for.
    """

    changes: tuple[Change, ...]
    recent: bool

    @property
    def lead(self) -> Change:
        """The change that stands for it."""
        return self.changes[0]

    @property
    def cause(self) -> Cause:
        """The same for all of its changes."""
        return self.lead.cause

    @property
    def cases(self) -> tuple[str, ...]:
        """Names of the cases in which it was seen."""
        return tuple(dict.fromkeys(change.case for change in self.changes))

    @property
    def ratio(self) -> float:
        """Of what stands for it; over several cases the median of that figure."""
        lead = self.lead
        alike = [one.ratio for one in self.changes if (one.metric, one.role) == (lead.metric, lead.role)]
        return float(np.median(alike))

    @property
    def fails(self) -> bool:
        """Whether it is a reason to stop: recent, the compiler's, and a time of IREE's that became longer."""
        return self.recent and any(map(_stops, self.changes))


def is_worse(change: Change) -> bool:
    """Whether it goes the wrong way; smaller is better in all figures."""
    return change.direction in ("slower", "more")


def _stops(change: Change) -> bool:
    """A peer's time may be longer by IREE's compiler only in a ratio to it, and that is no loss."""
    return is_worse(change) and change.cause == "compiler" and change.metric in GATED and not change.peer


def findings(changes: Sequence[Change], order: Timeline, last: int) -> list[Finding]:
    """Changes put together where their ranges of runs overlap: of one case, or of all cases where it is the machine.

    Args:
        last: How many runs of its suite count as recent.

    Returns:
        The latest first.
    """
    events: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        whose = change.direction if change.cause == "machine" else change.case
        events.setdefault((change.suite, change.machine_class, change.cause, change.kind, whose), []).append(change)
    found = [
        Finding(changes=tuple(sorted(event, key=_rank)), recent=any(_is_recent(one, order, last) for one in event))
        for alike in events.values()
        for event in _overlapping(alike, order.places)
    ]
    return sorted(found, key=lambda one: (-order.places[one.lead.first_bad], not one.fails, one.lead.case))


def _overlapping(changes: Sequence[Change], places: Mapping[str, int]) -> list[list[Change]]:
    """Changes whose ranges overlap, in order of time."""
    joined: list[list[Change]] = []
    reach = -1
    for change in sorted(changes, key=lambda one: places[one.earliest]):
        if joined and places[change.earliest] <= reach:
            joined[-1].append(change)
        else:
            joined.append([change])
            reach = -1
        reach = max(reach, places[change.latest])
    return joined


def _rank(change: Change) -> tuple[bool, int, bool, str]:
    """What stands for an event: what may fail a build, then times before counts, the newest toolchain before others."""
    place = _LEADING.index(change.metric) if change.metric in _LEADING else len(_LEADING)
    return (
        not _stops(change),
        place + len(_LEADING) * (change.metric in _TRAILING),
        change.role != "newest",
        change.case,
    )


def _is_recent(change: Change, order: Timeline, last: int) -> bool:
    return order.from_end[change.until or change.first_bad] < last
