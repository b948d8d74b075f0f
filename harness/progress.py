"""What a long command prints on stderr while it works, and how long the rest takes. Callers report only between turns.

What is left is the steps that are left, times what a step of their stage takes: the mean of the stage's steps that are
done, else the mean of the last runs, if there is any.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from harness.text import terminal_line

_SHORT_S = 9.5


@dataclass(frozen=True, kw_only=True)
class Left:
    """Seconds of the clock that are left."""

    seconds: float
    unknown: int = 0  # Steps of which nothing is known, and which are not in the seconds

    @property
    def words(self) -> str:
        """`about 4 min`, `at least 40 s`; "" where nothing is left, or nothing is known."""
        if self.seconds <= 0 or (self.unknown and self.seconds < _SHORT_S):
            return ""
        if self.seconds < _SHORT_S:
            return "a few seconds"
        return f"{'at least' if self.unknown else 'about'} {duration(self.seconds)}"


class Remaining:
    """The steps that are left of each stage of a command."""

    def __init__(
        self,
        steps: Mapping[str, Iterable[str]] | None = None,
        step_s: Mapping[str, float] | None = None,
        at_once: Mapping[str, int] | None = None,
    ) -> None:
        """Begin with the names of the steps of each stage, and the mean seconds of a step in the last runs."""
        self._steps = {stage: Counter(names) for stage, names in (steps or {}).items()}
        self._step_s, self._at_once = dict(step_s or {}), dict(at_once or {})
        self._done_s: dict[str, list[float]] = {stage: [] for stage in self._steps}

    def is_alone(self, stage: str) -> bool:
        """Whether the steps of a stage are worked on one after the other."""
        return self._at_once.get(stage, 1) == 1

    def end(self, stage: str, name: str, seconds: float | None) -> None:
        """A step is done; what was not planned is passed over."""
        if stage in self._steps and self._steps[stage][name]:
            self._steps[stage][name] -= 1
            self._done_s[stage] += [] if seconds is None else [seconds]

    def forget(self, names: Iterable[str]) -> None:
        """These steps, of any stage, will not come."""
        for name in names:
            for steps in self._steps.values():
                steps.pop(name, None)

    def left(self, stage: str = "", spent_s: float = 0.0) -> Left:
        """What is left of all stages together, of which one has spent so long on its step."""
        seconds, unknown = 0.0, 0
        for title, steps in self._steps.items():
            done_s, at_once = self._done_s[title], self._at_once.get(title, 1)
            step_s = sum(done_s) / len(done_s) if done_s else self._step_s.get(title)
            rounds = -(-steps.total() // at_once)
            if step_s is None:
                unknown += steps.total()
            else:
                seconds += rounds * step_s - (min(spent_s, step_s) if title == stage and rounds else 0.0)
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


class Progress:
    """Where a run reports what it is doing; as it is here, nobody hears of it."""

    def stage(self, title: str, total: int) -> None:
        """A new stage begins; it has `total` steps."""

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:
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
