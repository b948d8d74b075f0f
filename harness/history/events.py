"""Changes -> events: one event is seen in several figures, and in many cases; and what people say of it.

Changes are found anew each time, and what is found of one depends on the runs that have come since: its range of runs
narrows, another figure shows it too, the cause becomes known. So a change is the same as an acknowledged one where one
of its series changed in the same direction within runs that overlap, and by no more than half as much again.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.errors import UsageError
from harness.history.changes import Change
from harness.history.series import Runs
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.store.marks import CHANGES_LIMIT, Acknowledgement, MarkedChange
from harness.text import one_line, shown

EventState = Literal["new", "acknowledged", "fixed"]

# What may fail a build: as in comparisons, a time and no counted figure, which a release may change for the better.
_GATED = (LATENCY.name, LATENCY_VS_REFERENCE, COMPILE_TIME.name)
# Which of an event's figures stands for it, the first that has changed.
_LEADING = (*_GATED, INSTRUCTIONS.name)
# A level is known better with each run, and so a little larger or smaller than it was; log ratios.
_GROWTH, _SMALL_GROWTH = 1.5, 0.01
_LONGEST_NAME = 300
# So many runs the first run with a change may move as more runs come in, and an id that was printed still means it.
_MOVED = 10
_ID_DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class ChangeEvent:
    """One event."""

    changes: tuple[Change, ...]  # The one that stands for it first
    recent: bool  # Whether it is among the last runs that were asked for
    marks: tuple[Acknowledgement, ...] = ()  # What people said of it, the earliest first

    @property
    def state(self) -> EventState:
        """What people say of it, the last of whom decides."""
        state = self.marks[-1].state if self.marks else "withdrawn"
        return "new" if state == "withdrawn" else state

    @property
    def settled(self) -> bool:
        """Whether somebody knows of it, so that it is nothing new."""
        return self.state != "new"

    @property
    def lead(self) -> Change:
        """The change that stands for it; all have its cause."""
        return self.changes[0]

    @property
    def id(self) -> str:
        """8 hex digits that name it on a command line: those of the first word about it, else of its first run."""
        return self.marks[0].id if self.marks else _id_at(self.lead, self.lead.first_bad)

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


def group_changes(
    changes: Sequence[Change], runs: Runs, last: int, marks: Sequence[Acknowledgement] = ()
) -> list[ChangeEvent]:
    """Changes put together where their ranges of runs overlap: of one case, or of all cases where it is the machine."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        whose = change.direction if change.cause == "machine" else change.case
        groups.setdefault((change.suite, change.machine_class, change.cause, change.kind, whose), []).append(change)
    by_series: dict[str, list[tuple[Acknowledgement, MarkedChange]]] = {}
    for mark in marks:
        for marked in mark.changes:
            by_series.setdefault(marked.series, []).append((mark, marked))
    events = [
        ChangeEvent(
            changes=tuple(sorted(together, key=_rank)),
            recent=any(runs.from_end[change.until or change.first_bad] < last for change in together),
            marks=_marks_of(together, by_series, runs),
        )
        for group in groups.values()
        for together in _overlapping(group, runs.places)
    ]
    return sorted(events, key=lambda event: (-runs.places[event.lead.first_bad], not event.fails, event.lead.case))


def _overlapping(changes: Sequence[Change], places: Mapping[str, int]) -> list[list[Change]]:
    joined: list[list[Change]] = []
    reach = -1
    for change in sorted(changes, key=lambda change: places[change.earliest]):
        if places[change.earliest] > reach:
            joined.append([])
        joined[-1].append(change)
        reach = max(reach, places[change.latest])
    return joined


def _rank(change: Change) -> tuple[bool, int, bool, str]:
    """What may fail a build, times before counts, the newest toolchain before others, ratios to the baseline last."""
    place = _LEADING.index(change.metric) if change.metric in _LEADING else len(_LEADING)
    if change.metric == LATENCY_VS_BASELINE:
        place = 2 * len(_LEADING)
    return not may_fail(change), place, change.role != "newest", change.case


# --- What people say of them ---


def find_events(events: Sequence[ChangeEvent], wanted: str, runs: Runs) -> list[ChangeEvent]:
    """The events that an id means; also one that was printed when another run near by was taken for the first."""
    if found := [event for event in events if event.id == wanted]:
        return found
    near = [
        (abs(place - runs.from_end[change.first_bad]), number)
        for number, event in enumerate(events)
        for change in event.changes
        for run, place in runs.from_end.items()
        if abs(place - runs.from_end[change.first_bad]) <= _MOVED and _id_at(change, run) == wanted
    ]
    if not near:
        why = "is no id of a change that is found now; `harness history --changes` has them"
        raise UsageError(f"{shown(wanted)!r}: {why}")
    return [events[min(near)[1]]]


def _id_at(change: Change, run: str) -> str:
    text = f"{change.series} {change.direction} {run}"
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def acknowledge(
    event: ChangeEvent, runs: Runs, state: Literal["acknowledged", "fixed", "withdrawn"], note: str, who: str
) -> Acknowledgement:
    """What somebody says of an event, to be kept; it has no time yet."""
    changes = []
    for change in event.changes[:CHANGES_LIMIT]:
        begin, end = _span(change, runs)
        ratio = change.ratio if 0 < change.ratio < math.inf else None
        marked = MarkedChange(series=change.series, direction=change.direction, begin=begin, end=end, ratio=ratio)
        changes.append(marked)
    lead = event.lead
    suite, case, metric = (one_line(name)[:_LONGEST_NAME] for name in (lead.suite, lead.case, lead.metric))
    return Acknowledgement(
        id=event.id, state=state, note=note, suite=suite, case=case, metric=metric, changes=tuple(changes), who=who
    )


def _span(change: Change, runs: Runs) -> tuple[str, str]:
    """When the first and the last run began in which a change may have happened, with one run on either side."""
    names = change.last_good, change.earliest, change.first_bad, change.latest
    started = [runs.facts[runs.places[run]].started for run in names]
    return min(started[:2]), max(started[2:])


def _marks_of(
    changes: Sequence[Change], by_series: Mapping[str, Sequence[tuple[Acknowledgement, MarkedChange]]], runs: Runs
) -> tuple[Acknowledgement, ...]:
    """What covers every kind of figure of an event that may fail, the earliest first."""
    kinds: dict[bool, list[Change]] = {}
    for change in changes:
        if may_fail(change):
            kinds.setdefault(change.metric == COMPILE_TIME.name, []).append(change)
    covering = [
        {
            mark
            for change in alike
            for mark, marked in by_series.get(change.series, ())
            if _is_same(change, marked, runs)
        }
        for alike in kinds.values() or [list(changes)]
    ]
    return tuple(sorted(set.intersection(*covering), key=lambda mark: (mark.when, mark.who, mark.note)))


def _is_same(change: Change, marked: MarkedChange, runs: Runs) -> bool:
    begin, end = _span(change, runs)
    if change.direction != marked.direction or begin > marked.end or marked.begin > end:
        return False
    if marked.ratio is None or not 0 < change.ratio < math.inf:
        return True
    return abs(math.log(change.ratio)) <= _GROWTH * abs(math.log(marked.ratio)) + _SMALL_GROWTH
