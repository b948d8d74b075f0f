"""What a long command prints on stderr while it works, and how long the rest takes. Callers report only between turns.

Each piece of work is expected to take as long as pieces like it took in earlier runs. What is done now corrects that:
where this run's checks take twice as long as expected, the checks that are left are expected to do so too. Where
nothing is known of a piece, it is expected to take as long as those of its stage that this run has done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from harness.text import terminal_line

# So many seconds of a stage have to be done before its correction weighs as much as what was expected.
_DOUBT_S = 2.0
_SHORT_S = 9.5


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of work."""

    stage: str  # The title of its stage of progress
    name: str  # What its step of that stage is called
    seconds: float | None  # That it is expected to take; None: nothing like it is known


@dataclass(frozen=True, kw_only=True)
class Left:
    """Seconds of the clock that are left."""

    seconds: float
    unknown: int = 0  # Pieces of which nothing is known, and which are not in the seconds

    @property
    def words(self) -> str:
        """`about 4 min`, `at least 40 s`; "" where nothing is left, or nothing is known."""
        if self.seconds <= 0 or (self.unknown and self.seconds < _SHORT_S):
            return ""
        if self.seconds < _SHORT_S:
            return "a few seconds"
        return f"{'at least' if self.unknown else 'about'} {duration(self.seconds)}"


@dataclass
class _Stage:
    pieces: dict[str, list[float | None]] = field(default_factory=dict)
    done_s: float = 0.0
    done: int = 0
    expected_s: float = 0.0
    of_expected_s: float = 0.0

    @property
    def correction(self) -> float:
        return (self.of_expected_s + _DOUBT_S) / (self.expected_s + _DOUBT_S)

    def left(self, at_once: int) -> Left:
        """Of the whole stage, where so many pieces are worked on at once."""
        every = [seconds for alike in self.pieces.values() for seconds in alike]
        known = [seconds * self.correction for seconds in every if seconds is not None]
        unknown = len(every) - len(known)
        if self.done:
            known += [self.done_s / self.done] * unknown
            unknown = 0
        seconds = max(sum(known) / min(at_once, len(known)), *known) if known else 0.0
        return Left(seconds=seconds, unknown=unknown)


class Remaining:
    """The pieces of work that are left."""

    def __init__(self, pieces: Iterable[Piece] = (), at_once: Mapping[str, int] | None = None) -> None:
        """Begin with these pieces."""
        self._at_once = dict(at_once or {})
        self._stages: dict[str, _Stage] = {}
        for piece in pieces:
            stage = self._stages.setdefault(piece.stage, _Stage())
            stage.pieces.setdefault(piece.name, []).append(piece.seconds)

    def is_alone(self, stage: str) -> bool:
        """Whether the pieces of a stage are worked on one after the other."""
        return self._at_once.get(stage, 1) == 1

    def end(self, stage: str, name: str, seconds: float | None) -> None:
        """A piece is done; what was not planned is passed over."""
        of = self._stages.get(stage)
        if of is None or not of.pieces.get(name):
            return
        expected = of.pieces[name].pop()
        if seconds is None:
            return
        of.done += 1
        of.done_s += seconds
        if expected is not None:
            of.expected_s += expected
            of.of_expected_s += seconds

    def forget(self, names: Iterable[str]) -> None:
        """These pieces, of any stage, will not come."""
        for name in names:
            for stage in self._stages.values():
                stage.pieces.pop(name, None)

    def left(self, stage: str = "", spent_s: float = 0.0) -> Left:
        """What is left of all stages together."""
        seconds, unknown = 0.0, 0
        for title, of in self._stages.items():
            at_once = self._at_once.get(title, 1)
            left = of.left(at_once)
            seconds += left.seconds
            unknown += left.unknown
            if title == stage and (number := sum(map(len, of.pieces.values()))):
                seconds -= min(spent_s, left.seconds / -(-number // at_once))
        return Left(seconds=seconds, unknown=unknown)


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
