"""What a long command prints on stderr while it works, and how long the rest takes. Nobody reports within a turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from harness.text import terminal_line

_SHORT_S = 9.5


def time_left(seconds: Iterable[float | None]) -> str:
    """`about 4 min`, `at least 40 s` where of some nothing is known; "" where nothing is left, or nothing is known."""
    parts = list(seconds)
    known_s, is_known = sum(part for part in parts if part is not None), None not in parts
    if known_s <= 0 or (known_s < _SHORT_S and not is_known):
        return ""
    if known_s < _SHORT_S:
        return "a few seconds"
    return f"{'about' if is_known else 'at least'} {duration(known_s)}"


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


# --- Who is told ---


class Progress:
    """Where a run reports what it is doing; as it is here, nobody hears of it."""

    def stage(self, title: str, total: int) -> None:
        """A new stage begins; it has `total` steps."""

    def step(self, text: str, advance: int = 1) -> None:
        """So many steps are done."""

    def note(self, text: str) -> None:
        """Something that should stay on the screen."""

    def left(self, words: str) -> None:
        """How long the rest of all stages takes, as in `about 4 min`; "": not known."""


class Silent(Progress):
    """Reports nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing."""


class WithTimeLeft(Progress):
    """Reports to another progress, and tells it how long the rest takes; it looks at the clock only when called.

    The steps that are left of a stage take what its others took; of a stage without any yet, the plan says how long.
    """

    def __init__(
        self, progress: Progress, planned_s: Mapping[str, float | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with the seconds that each stage is thought to take; None: not known."""
        self._progress, self._later_s, self._clock = progress, dict(planned_s), clock
        self._planned_s: float | None = 0.0
        self._total, self._done, self._since = 0, 0, clock()

    def stage(self, title: str, total: int) -> None:
        """A new stage begins."""
        self._planned_s = self._later_s.pop(title, 0.0)
        self._total, self._done, self._since = total, 0, self._clock()
        self._tell()
        self._progress.stage(title, total)

    def step(self, text: str, advance: int = 1) -> None:
        """Steps are done."""
        self._done += advance
        self._tell()
        self._progress.step(text, advance)

    def note(self, text: str) -> None:
        """Pass it on."""
        self._progress.note(text)

    def left(self, words: str) -> None:
        """Pass it on."""
        self._progress.left(words)

    def _tell(self) -> None:
        spent_s, own_s = self._clock() - self._since, self._planned_s
        if self._done:
            own_s = spent_s / self._done * (self._total - self._done)
        elif own_s is not None:
            own_s = max(own_s - spent_s, 0.0)
        self._progress.left(time_left([own_s, *self._later_s.values()]))


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
        self._title, self._done, self._total = "", 0, 0
        self._left = ""
        self._last_plain = 0.0

    def __enter__(self) -> Terminal:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def stage(self, title: str, total: int) -> None:
        """Begin a stage."""
        self._title, self._done, self._total = title, 0, total
        self._last_plain = time.monotonic()
        self._bar.reset(self._task, total=total, title=escape(terminal_line(title)), description="")
        self._plain(f"{title}: {total}{self._left}")

    def step(self, text: str, advance: int = 1) -> None:
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
