"""How long the rest of a long command takes: the steps that are left, times what a step of their stage takes.

That is the mean of the stage's steps that are done, else the mean of the last runs, if there is any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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


_SHORT_S = 9.5


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
