"""What a bisect found, as values; the same names as in its JSON."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.comparison import Verdict

# What is searched: releases of IREE, its commits, or the parts in which two variants differ.
Over = Literal["releases", "commits", "flags"]
# To which end of a stretch a position belongs.
Nearer = Literal["base", "head", "between", "unknown"]


@dataclass(frozen=True, kw_only=True)
class CommitPoint:
    """A commit that is searched, and what it is built as."""

    name: str  # `2b05c5dbb2`
    toolchain: str  # The word for what CI built, or the build's folder
    revision: str = ""  # All of its digits
    subject: str = ""  # The first line of its message; "": not known
    repository: str = ""  # On GitHub, that has it; "": not known
    unbuilt: int = 0  # Commits between the one before and this one of which there is no build


@dataclass(frozen=True, kw_only=True)
class Position:
    """Something that was compiled to be measured: a release, a commit, or a variant with some of the parts."""

    name: str  # `3.7.0`, `2b05c5dbb2`; of parts their numbers, `1+3`, or `none`
    revision: str = ""  # The commit of IREE that it was built from; "": not known, or no toolchain
    run: str = ""  # Id of the run in which its case was compiled and checked; "" where there is none
    unusable: str = ""  # Why it cannot be measured, in plain words; "": it can


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measurement: position `head` beside position `base`."""

    base: str
    head: str
    floor: float  # Where the edge lay between one end and the other, as a share
    verdict: Verdict  # Of `head`, by the judge, or why it cannot be measured
    reason: str = ""  # Why the verdict is what it is, in plain words
    ratio: float | None = None  # Head divided by base; None where it was not measured, or the base's figure is zero
    ci_low: float | None = None  # Of the ratio's interval, at the confidence of the whole search
    ci_high: float | None = None
    p: float | None = None  # Of no difference; None where nothing is estimated
    base_value: float | None = None  # In the metric's unit; head_value likewise
    head_value: float | None = None
    exact: bool = False  # Whether it was counted and not timed
    generations: int = 0  # Independent samples behind it
    seconds: float = 0.0  # Wall time that it took
    belongs: Nearer | Literal[""] = ""  # To which end of its stretch `head` belongs; "": it is of no search
    attempt: int = 0  # How often the bisect had gone on after its end when this was measured
    placed: bool = False  # A few generations placed it, and it was not judged

    @property
    def is_open(self) -> bool:
        """Whether it was judged, and more time may tell more."""
        return self.verdict == "inconclusive" and not self.placed

    @property
    def key(self) -> tuple[str, str, float]:
        """What was asked."""
        return self.base, self.head, self.floor

    @property
    def log_ratio(self) -> float | None:
        """log(head / base); None where there is no ratio that has one."""
        return math.log(self.ratio) if self.ratio is not None and 0 < self.ratio < math.inf else None


@dataclass(frozen=True, kw_only=True)
class FoundStep:
    """Two positions, in the order of the history, between which something changed."""

    before: str
    after: str
    size: Trial  # `after`, measured beside `before`
    passed_over: tuple[str, ...] = ()  # Positions between them that could not be measured
    explanation: str = ""  # What the compiler does differently there, in a sentence; "" where that is not known
    explanation_id: str = ""  # Of the explanation that says more; "" likewise


@dataclass(frozen=True, kw_only=True)
class OpenStretch:
    """A stretch of the history of which it is not known whether it holds a step, and why."""

    first: str
    last: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class FoundCause:
    """Parts that make a difference together, and without any of which it is not there."""

    parts: tuple[int, ...]  # Their numbers, from 1
    size: Trial  # The base variant with these parts, measured beside the one without
    beside: tuple[int, ...] = ()  # Numbers of the parts that both sides have: causes that were found before
    alone: tuple[Trial, ...] = ()  # Of several parts, each of them alone, likewise
    untold: bool = False  # Whether a smaller set could not be told, so that there may be one
    inside: tuple[str, ...] = ()  # Of an optimisation level, the flags among what it sets that make the difference
    explanation: str = ""  # What the compiler does differently with them, in a sentence; "" where that is not known
    explanation_id: str = ""  # Of the explanation that says more; "" likewise


@dataclass(frozen=True, kw_only=True)
class Bisection:
    """Since when a case's figure is what it is, or through which parts of its variant."""

    id: str  # Name of the folder that it is kept in
    created: str  # ISO 8601, UTC
    suite: str
    case: str  # Its name, as `harness list` shows it
    metric: str  # Its registered name, see harness.metrics; `unit` is that of its figures
    unit: str
    floor: float  # Relative change below which nothing counts as a step
    over: Over
    ends: tuple[str, ...]  # Good, bad, and fixed if given; of parts the base variant and the case's
    positions: tuple[Position, ...]  # All that were compiled, in the order of the history
    trials: tuple[Trial, ...]  # All that was measured, in the order in which that was done
    steps: tuple[FoundStep, ...] = ()
    open: tuple[OpenStretch, ...] = ()
    parts: tuple[str, ...] = ()  # Of a variant, in words; number 1 comes first
    causes: tuple[FoundCause, ...] = ()
    commits: tuple[CommitPoint, ...] = ()  # From end to end, the oldest first; () of another search
    error: float = 0.0  # The chance that any of the measurements is wrong; 0: all were counted
    finished: bool = True  # Whether it had time for all that it asked
    attempt: int = 0  # How often it went on after it had come to its end
    machine: str = ""  # Processor and system, in words
    notes: tuple[str, ...] = ()  # What bears on all of it, in plain words
    settings: dict[str, Any] = field(default_factory=dict)  # The user's choices
    command: tuple[str, ...] = ()  # The command line

    @property
    def is_open(self) -> bool:
        """Whether more time may tell more: something was not measured or searched, or stayed open."""
        return not self.finished or any(trial.is_open for trial in self.trials)

    @property
    def is_known(self) -> bool:
        """Whether what was asked is known, whatever is not known beside that."""
        is_told = self.finished or {step.passed_over for step in self.steps} == {()}
        return is_told and not self.open
