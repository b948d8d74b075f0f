"""How long a run on a fleet still takes: what each kind of step takes on its hosts, and what each host has left.

A host does one step at a time, so what lies between two of its answers is what a step took; that it stood idle now and
then does not matter to a median. What is still to be compiled is not foreseen.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from harness.fleet.state import GroupState, Step
from harness.progress import Left

_GENERATION = "generation"


class Pace:
    """What steps took so far."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answered: dict[str, float] = {}  # by host, when it answered last
        self._seconds: dict[str, list[float]] = {}  # by kind

    def end(self, host: str, step: Step) -> None:
        """A host has done a step."""
        now, before = self._clock(), self._answered.get(host)
        self._answered[host] = now
        if before is not None:
            self._seconds.setdefault(_kind(step), []).append(now - before)

    def left(self, groups: Iterable[GroupState]) -> Left:
        """Of the host that has most to do."""
        usual = {kind: statistics.median(seconds) for kind, seconds in self._seconds.items()}
        hosts: dict[str, float] = defaultdict(float)
        unknown = 0
        for group in groups:
            unknown += len(group.uncompiled)
            for kind in map(_kind, group.todo):
                unknown += kind not in usual
                hosts[group.host] += usual.get(kind, 0.0)
        return Left(seconds=max(hosts.values(), default=0.0), unknown=unknown)


def _kind(step: Step) -> str:
    return step if isinstance(step, str) else _GENERATION
