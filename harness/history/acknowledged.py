"""What people say of changes: that they know of one, or that it is fixed; and which change of today that is.

Changes are found anew each time, and what is found of one depends on the runs that have come since: its range of runs
narrows, another figure shows it too, the cause becomes known. So a change is the same as an acknowledged one where one
of its series changed in the same direction within runs that overlap, and by no more than half as much again.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from harness.errors import UsageError
from harness.history.changes import Change
from harness.history.events import ChangeEvent, may_fail
from harness.history.series import History, Runs, SeriesValues, load_values
from harness.metrics import COMPILE_TIME
from harness.store.marks import CHANGES_LIMIT, Acknowledgement, MarkedChange
from harness.text import one_line, shown

# So many runs have to show the bad level for a fixed change to be back: as many as a step needs to be found.
_HELD = 3
# A level is known better with each run, and so a little larger or smaller than it was; log ratios.
_GROWTH, _SMALL_GROWTH = 1.5, 0.01
_LONGEST_NAME = 300
# So many runs the first run with a change may move as more runs come in, and an id that was printed still means it.
_MOVED = 10
_ID_DIGITS = 8


def event_id(event: ChangeEvent) -> str:
    """8 hex digits that name a change on a command line: those of the first word about it, else of its first run."""
    return event.marks[0].id if event.marks else _id_at(event.lead, event.lead.first_bad)


def _id_at(change: Change, run: str) -> str:
    text = f"{change.series} {change.direction} {run}"
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def find_events(events: Sequence[ChangeEvent], wanted: str, runs: Runs) -> list[ChangeEvent]:
    """The events that an id means; also one that was printed when another run near by was taken for the first."""
    if found := [event for event in events if wanted == event_id(event)]:
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


def _span(change: Change, runs: Runs) -> tuple[str, str]:
    """When the first and the last run began in which a change may have happened, with one run on either side."""
    first = min(runs.started[run] for run in (change.last_good, change.earliest))
    return first, max(runs.started[run] for run in (change.first_bad, change.latest))


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
        id=event_id(event),
        state=state,
        note=note,
        suite=suite,
        case=case,
        metric=metric,
        changes=tuple(changes),
        who=who,
    )


def marked_events(events: Sequence[ChangeEvent], history: History, runs: Runs, last: int) -> list[ChangeEvent]:
    """The events with what people said of them; of those marked as fixed, since when the level is back."""
    marked = match_marks(events, history.marks.acknowledgements, runs)
    fixed = {event.lead.series for event in marked if event.state == "fixed"}
    if not fixed:
        return marked
    values = load_values(history, fixed, runs)
    found = []
    for event in marked:
        lead, run = event.lead, ""
        # A later change of the same series is the return, which then is an event of its own.
        again = any(
            (change.series, change.direction) == (lead.series, lead.direction)
            and runs.started[change.earliest] > runs.started[lead.latest]
            for other in marked
            for change in other.changes
        )
        if event.state == "fixed" and lead.series in values and not again:
            run = returned_since(lead, values[lead.series], runs, event.marks[-1].when)
        found.append(replace(event, returned=run, recent=runs.from_end[run] < last) if run else event)
    return found


def match_marks(events: Sequence[ChangeEvent], marks: Sequence[Acknowledgement], runs: Runs) -> list[ChangeEvent]:
    """The events with what people said of them, the earliest first."""
    by_series: dict[str, list[tuple[Acknowledgement, MarkedChange]]] = {}
    for mark in marks:
        for change in mark.changes:
            by_series.setdefault(change.series, []).append((mark, change))
    return [replace(event, marks=_marks_of(event, by_series, runs)) for event in events]


def _marks_of(
    event: ChangeEvent, by_series: Mapping[str, Sequence[tuple[Acknowledgement, MarkedChange]]], runs: Runs
) -> tuple[Acknowledgement, ...]:
    kinds: dict[bool, list[Change]] = {}
    for change in event.changes:
        if may_fail(change):
            kinds.setdefault(change.metric == COMPILE_TIME.name, []).append(change)
    covering = [
        {
            mark
            for change in changes
            for mark, marked in by_series.get(change.series, ())
            if _is_same(change, marked, runs)
        }
        for changes in kinds.values() or [list(event.changes)]
    ]
    return tuple(sorted(set.intersection(*covering), key=lambda mark: (mark.when, mark.who, mark.note)))


def _is_same(change: Change, marked: MarkedChange, runs: Runs) -> bool:
    begin, end = _span(change, runs)
    if change.direction != marked.direction or begin > marked.end or marked.begin > end:
        return False
    if marked.ratio is None or not 0 < change.ratio < math.inf:
        return True
    return abs(math.log(change.ratio)) <= _GROWTH * abs(math.log(marked.ratio)) + _SMALL_GROWTH


def returned_since(change: Change, values: SeriesValues, runs: Runs, when: str) -> str:
    """The run since which a series is back at the bad level of a change that was marked as fixed."""
    known = change.before > 0 and change.after > 0
    middle = math.sqrt(change.before * change.after) if known else (change.before + change.after) / 2
    later = np.array([runs.facts[place].started > when for place in values.places], dtype=bool)
    bad = (values.values[later] > middle) == (change.after > change.before)
    good = np.flatnonzero(~bad)
    first = int(good[-1]) + 1 if good.size else 0
    if bad.size - first < _HELD:
        return ""
    return runs.ids[int(values.places[later][first])]
