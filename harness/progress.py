"""What a long command prints on stderr while it works. Callers report only between timed turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from harness.remaining import Remaining
from harness.text import terminal_line


class Progress(Protocol):
    """Where a run reports what it is doing."""

    def stage(self, title: str, total: int) -> None:
        """A new stage begins; it has `total` steps."""

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:
        """So many steps are done."""

    def note(self, text: str) -> None:
        """Something that should stay on the screen."""

    def left(self, words: str) -> None:
        """How long the rest of all stages takes, as in `about 4 min`; "": not known."""


class Silent:
    """Reports nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing."""

    def stage(self, title: str, total: int) -> None:
        """Nothing."""

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def left(self, words: str) -> None:
        """Nothing."""


class WithTimeLeft:
    """Reports to another progress, and tells it how long the rest takes; it looks at the clock only when called."""

    def __init__(self, progress: Progress, remaining: Remaining, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._remaining, self._clock = progress, remaining, clock
        self._stage, self._since = "", clock()

    def stage(self, title: str, total: int) -> None:
        """A new stage begins."""
        self._stage, self._since = title, self._clock()
        self._tell()
        self._progress.stage(title, total)

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:
        """Steps are done; where a stage does one at a time, the clock says what each took."""
        if advance:
            now = self._clock()
            took = now - self._since if self._remaining.is_alone(self._stage) else seconds
            self._remaining.end(self._stage, text, took)
            self._since = now
        self._tell()
        self._progress.step(text, advance)

    def note(self, text: str) -> None:
        """Pass it on."""
        self._progress.note(text)

    def left(self, words: str) -> None:
        """Pass it on."""
        self._progress.left(words)

    def _tell(self) -> None:
        self._progress.left(self._remaining.left(self._stage, self._clock() - self._since).words)


class Terminal:
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
        self._title, self._done, self._total = "", 0, 0
        self._left = ""
        self._last_plain = 0.0

    def __enter__(self) -> Terminal:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def stage(self, title: str, total: int) -> None:
        """Begin a stage."""
        self._title, self._done, self._total = title, 0, total
        self._last_plain = time.monotonic()
        self._bar.reset(self._task, total=total, title=escape(terminal_line(title)), description="")
        self._plain(f"{title}: {total}{self._left}")

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:  # noqa: ARG002
        """Count steps and redraw."""
        self._done += advance
        self._bar.update(self._task, advance=advance, description=escape(terminal_line(text)))
        self._bar.refresh()
        if time.monotonic() - self._last_plain > self._PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._plain(f"  {self._title.lower()} {self._done}/{self._total}{self._left}: {text}")

    def left(self, words: str) -> None:
        """Show it from the next step on."""
        self._left = f" ({words} left)" if words else ""
        self._bar.update(self._task, left=f"{words} left" if words else "")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(escape(terminal_line(text)), soft_wrap=True)

    def _plain(self, line: str) -> None:
        if not self._console.is_terminal:
            self._console.print(escape(terminal_line(line)), soft_wrap=True)
