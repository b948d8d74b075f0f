"""What a long command prints on stderr while it works. Nobody reports within a turn."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from harness.text import terminal_line

_Self = TypeVar("_Self", bound="Progress")


def duration(seconds: float) -> str:
    """A length of time with the digits that an estimate deserves: `40 s`, `4 min`, `1 h 20 min`."""
    if seconds < 95:
        return f"{max(1, round(seconds / 10)) * 10} s"
    minutes = seconds / 60
    if minutes < 9.5:
        return f"{round(minutes)} min"
    if minutes < 57.5:
        return f"{round(minutes / 5) * 5} min"
    hours, rest = divmod(round(minutes / 10) * 10, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


class Progress:
    """Where a run reports what it is doing; as it is here, nobody hears of it."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stage(self, title: str, total: int) -> None:
        """A new stage begins; it has `total` steps."""

    def step(self, text: str, advance: int = 1) -> None:
        """So many steps are done."""

    def note(self, text: str) -> None:
        """Something that should stay on the screen."""

    def expect(self, planned_s: Mapping[str, float]) -> None:
        """How many seconds stages should take that begin later, by their titles."""

    def left(self, words: str) -> None:
        """How much is left of a budget, from the next step on; "": as long as stages should take."""


class Terminal(Progress):
    """A bar on a terminal, plain lines elsewhere. It draws only when a method is called: no timer, no thread."""

    _PLAIN_EVERY_S = 10.0

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar = Bar(
            TextColumn("{task.fields[title]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", title="", total=None, left="")
        self._title, self._done, self._total, self._since = "", 0, 0, time.monotonic()
        self._planned_s, self._later_s, self._budget = 0.0, dict[str, float](), ""
        self._last_plain = 0.0

    def __enter__(self) -> Terminal:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def stage(self, title: str, total: int) -> None:
        """Begin a stage."""
        self._title, self._done, self._total = title, 0, total
        self._since = self._last_plain = time.monotonic()
        self._planned_s = self._later_s.pop(title, 0.0)
        # rich takes the fields of a reset for all that a task has
        self._bar.reset(self._task, total=total, title=escape(terminal_line(title)), description="", left=self._left())
        self._plain(f"{title}: {total}{self._left()}")

    def step(self, text: str, advance: int = 1) -> None:
        """Count steps and redraw."""
        self._done += advance
        self._bar.update(self._task, advance=advance, description=escape(terminal_line(text)), left=self._left())
        self._bar.refresh()
        if time.monotonic() - self._last_plain > self._PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._plain(f"  {self._title.lower()} {self._done}/{self._total}{self._left()}: {text}")

    def expect(self, planned_s: Mapping[str, float]) -> None:
        """Keep it for those stages."""
        self._later_s = dict(planned_s)

    def left(self, words: str) -> None:
        """Show it from the next step on."""
        self._budget = words

    def _left(self) -> str:
        """Of this stage, what its steps took so far, else what was planned; of later ones, what was planned."""
        spent_s = time.monotonic() - self._since
        own_s = max(self._planned_s - spent_s, 0.0)
        if self._done:
            own_s = spent_s / self._done * (self._total - self._done)
        seconds = own_s + sum(self._later_s.values())
        words = self._budget or (f"about {duration(seconds)}" if seconds >= 1 else "")
        return f" ({words} left)" if words else ""

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(escape(terminal_line(text)), soft_wrap=True)

    def _plain(self, line: str) -> None:
        if not self._console.is_terminal:
            self._console.print(escape(terminal_line(line)), soft_wrap=True)
