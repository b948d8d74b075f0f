"""Changes -> events: one event is seen in several figures, and in many cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.history.causes import Cause
from harness.history.changes import Change
from harness.history.series import Runs
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.store.marks import Acknowledgement

EventState = Literal["new", "acknowledged", "fixed", "came back"]

# What may fail a build: as in comparisons, a time and no counted figure, which a release may change for the better.
_GATED = (LATENCY.name, LATENCY_VS_REFERENCE, COMPILE_TIME.name)
# Which of an event's figures stands for it, the first that has changed.
_LEADING = (*_GATED, INSTRUCTIONS.name)


@dataclass(frozen=True, kw_only=True)
class ChangeEvent:
    """One event."""

    changes: tuple[Change, ...]  # The one that stands for it first
    recent: bool  # Whether it is among the last runs that were asked for
    # What people said of it, the earliest first; see harness.history.acknowledged
    marks: tuple[Acknowledgement, ...] = ()
    # Of one that is marked as fixed: the run since which the level is the bad one again; "": it is not
    returned: str = ""

    @property
    def state(self) -> EventState:
        """What people say of it, the last of whom decides; whose word does not hold any more, it has come back."""
        state = self.marks[-1].state if self.marks else "withdrawn"
        if state == "withdrawn":
            return "new"
        return "came back" if self.returned else state

    @property
    def settled(self) -> bool:
        """Whether somebody knows of it, so that it is nothing new."""
        return self.state in ("acknowledged", "fixed")

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
        alike = [change.ratio for change in self.changes if (change.metric, change.role) == (lead.metric, lead.role)]
        return float(np.median(alike))

    @property
    def fails(self) -> bool:
        """Whether it is a reason to stop: new and recent, the compiler's, and a time of IREE's that became longer."""
        return self.recent and not self.settled and any(map(may_fail, self.changes))


def may_fail(change: Change) -> bool:
    """A peer's time may be longer by IREE's compiler only in a ratio to it, and that is no loss."""
    return change.is_worse and change.cause == "compiler" and change.metric in _GATED and not change.peer


def group_changes(changes: Sequence[Change], runs: Runs, last: int) -> list[ChangeEvent]:
    """Changes put together where their ranges of runs overlap: of one case, or of all cases where it is the machine."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        whose = change.direction if change.cause == "machine" else change.case
        groups.setdefault((change.suite, change.machine_class, change.cause, change.kind, whose), []).append(change)
    events = [
        ChangeEvent(
            changes=tuple(sorted(together, key=_rank)),
            recent=any(runs.from_end[change.until or change.first_bad] < last for change in together),
        )
        for group in groups.values()
        for together in _overlapping(group, runs.places)
    ]
    return sorted(events, key=lambda event: (-runs.places[event.lead.first_bad], not event.fails, event.lead.case))


def _overlapping(changes: Sequence[Change], places: Mapping[str, int]) -> list[list[Change]]:
    """Changes whose ranges overlap, in order of time."""
    joined: list[list[Change]] = []
    reach = -1
    for change in sorted(changes, key=lambda change: places[change.earliest]):
        if joined and places[change.earliest] <= reach:
            joined[-1].append(change)
        else:
            joined.append([change])
            reach = -1
        reach = max(reach, places[change.latest])
    return joined


def _rank(change: Change) -> tuple[bool, int, bool, str]:
    """What may fail a build, times before counts, the newest toolchain before others, ratios to the baseline last."""
    place = _LEADING.index(change.metric) if change.metric in _LEADING else len(_LEADING)
    if change.metric == LATENCY_VS_BASELINE:
        place = 2 * len(_LEADING)
    return not may_fail(change), place, change.role != "newest", change.case
