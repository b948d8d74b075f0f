"""A row as the engine sees it: what measures its generations, what one of them gives, and what becomes of the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import CaseError
from harness.records.run import Failure
from harness.stats.estimate import Estimate
from harness.stats.rule import Rule

# What the two sides of a row are called, in its rounds too.
BASE, HEAD = "base", "head"

Decision = Literal["regressed", "improved", "unchanged", "inconclusive", "failed"]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What one generation of a row gave."""

    log_ratio: float | None  # Its robust log(head / base); None where it has no usable round
    base: float | None  # What one call (or compile) of the base took, in the row's unit; None without a usable turn
    head: float | None  # The same of the head
    rounds: int  # Pairs of turns behind it
    seconds: float  # Wall time, starting and loading included
    by_own_time: int = 0  # How many of the rounds are compared by own time, see harness.stats.own_time
    taken: float | None = None  # The share of its turns' time that other processes took; None: not known
    host: str = ""  # Where it was measured; "": here


# Measures the generations of these numbers, and gives each as it ends, in any order; a CaseError as of `Task.sample`.
Batch = Callable[[Sequence[int]], Iterable[tuple[int, Generation | CaseError]]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A row to be decided."""

    name: str  # Unique in the comparison
    # Measures generation 0, 1, ... in fresh processes; a CaseError says that a side cannot be measured, and the row has
    # failed.
    sample: Callable[[int], Generation]
    rule: Rule
    # Wall seconds of looking, for as many generations as the engine takes at most; confirming what was found comes on
    # top, with as many generations again, or twice as many where the first ones do not tell
    budget_s: float
    # Wall seconds for a row whose first generations differ plainly, where its budget has no room for a verdict
    cap_s: float = 0.0
    noise: float = 0.0  # The smallest change that this machine was found to see, as a share; 0: not known
    hosts: int = 1  # Of one class, that measure it at the same time
    # Measures a pair of generations on each of them (see harness.compare.spread) in place of `sample`; None: one
    # generation after the other. Seconds of the row are those of the host that takes longest.
    batch: Batch | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a row."""

    name: str
    decision: Decision
    reason: str  # Why it is what it is, in plain words
    estimate: Estimate | None = None  # Over all its generations, confirmation included; None without any
    # Corrected for looks and for the number of rows, and combined with that of the confirmation where it holds; None
    # without generations
    p: float | None = None
    generations: tuple[Generation, ...] = ()  # All that were measured, in order
    confirming: int = 0  # How many of them, the last ones, were the confirmation
    lacked_time: bool = False  # Whether it differs plainly, and only time was lacking to call it changed
    hosts_disagree: bool = False  # Whether it is undecided because its hosts have different ratios
    failure: Failure | None = None


def wall_seconds(generations: Iterable[Generation]) -> float:
    """What generations of a row took on the host that took longest: hosts measure at the same time."""
    return max(map(sum, seconds_by_host(generations).values()), default=0.0)


def seconds_by_host(generations: Iterable[Generation]) -> dict[str, list[float]]:
    """What each generation of a row took, by the host that measured it."""
    seconds: dict[str, list[float]] = {}
    for generation in generations:
        seconds.setdefault(generation.host, []).append(generation.seconds)
    return seconds
