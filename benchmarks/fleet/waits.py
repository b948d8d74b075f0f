"""How long hosts wait: what of their time goes by while they do less than they could."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

COMPILE = "compile"


@dataclass(frozen=True, kw_only=True)
class Event:
    """A piece of work of a host, in seconds since 1970.

    Attributes:
        what: `compile`, `check`, `measure`.
    """

    host: str
    what: str
    began: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Shares of the hosts' time.

    Attributes:
        waited: Between the run's begin and a host's last piece of work, in which it waits for the engine.
        after: Between a host's last piece of work and the run's end, of the whole run: the last groups are elsewhere.
    """

    waited: float
    after: float


def waits_of(events: Iterable[Event], hosts: int, cores: int, began: float, ended: float) -> Waits:
    """What hosts wait for the engine.

    A host that checks or measures waits for nobody. As long as any compile of the run has not begun, each core that
    compiles nothing waits. After that a host waits where it does nothing at all, though it has something left to do; it
    may wait for another host's compile then, and this counts too.

    Args:
        hosts: How many there are; one without events waited from begin to end.
        cores: Of each, for compiling.
        began: When the run began, in seconds since 1970.
    """
    by_host: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_host[event.host].append(event)
    all_begun = max((event.began for own in by_host.values() for event in own if event.what == COMPILE), default=began)
    waited, until_last = (hosts - len(by_host)) * (ended - began), (hosts - len(by_host)) * (ended - began)
    for own in by_host.values():
        last = max(event.ended for event in own)
        until_last += last - began
        waited += _idle(own, cores, began, last, all_begun)
    total = hosts * (ended - began)
    return Waits(waited=waited / until_last, after=1 - until_last / total)


def _idle(events: Sequence[Event], cores: int, began: float, last: float, all_begun: float) -> float:
    """Seconds of a host, a core's as that part of the host's."""
    changes: list[tuple[float, int, int]] = [(all_begun, 0, 0)]
    for event in events:
        compiles = int(event.what == COMPILE)
        changes += [(event.began, compiles, 1 - compiles), (event.ended, -compiles, compiles - 1)]
    idle, now, compiling, other = 0.0, began, 0, 0
    for when, more_compiling, more_other in sorted(changes):
        if min(when, last) > now:
            if not other:
                free = max(cores - compiling, 0) / cores if now < all_begun else float(not compiling)
                idle += free * (min(when, last) - now)
            now = min(when, last)
        compiling, other = compiling + more_compiling, other + more_other
    return idle
