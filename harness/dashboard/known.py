"""Changes that somebody knows of: what was said of them with `harness history acknowledge`, for the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.dashboard.gather import Gathered
from harness.history.acknowledged import marked_events
from harness.history.changes import Change
from harness.history.events import ChangeEvent, EventState, group_changes, order_of

_LAST = 1  # run that counts as recent, which pages do not ask for
_SAID = {"acknowledged": "acknowledged", "fixed": "marked as fixed", "came back": "marked as fixed"}


@dataclass(frozen=True, kw_only=True)
class Word:
    """What was said last of a change."""

    state: EventState
    settled: bool  # Whether it still holds, so that the change is nothing new
    note: str
    who: str
    when: str

    @property
    def text(self) -> str:
        """All of it: `acknowledged by ann on 2026-02-12: the new tiling is wanted`."""
        by = f" by {self.who}" if self.who else ""
        on = f" on {self.when[:10]}" if self.when else ""
        back = "" if self.settled else "; its level is back"
        return f"{_SAID[self.state]}{by}{on}{f': {self.note}' if self.note else ''}{back}"


class Known:
    """What people said of the changes of a history."""

    def __init__(self, gathered: Gathered) -> None:
        """Of all its changes, put together as `harness history --changes` does."""
        history = gathered.history
        events: list[ChangeEvent] = []
        if history.marks.acknowledgements:
            order = order_of(history)
            events = marked_events(group_changes(gathered.changes, order, _LAST), history, order, _LAST)
        self.events = [event for event in events if event.state != "new"]
        self._words: Mapping[Change, Word] = {change: _word(event) for event in self.events for change in event.changes}

    def word(self, change: Change) -> Word | None:
        """What was said of it; None: nothing, or it was withdrawn."""
        return self._words.get(change)

    def settled(self, change: Change) -> bool:
        """Whether somebody knows of it, so that it is nothing new."""
        word = self.word(change)
        return word is not None and word.settled


def _word(event: ChangeEvent) -> Word:
    last = event.marks[-1]
    return Word(state=event.state, settled=event.settled, note=last.note, who=last.who, when=last.when)
