"""What a bisect found, as values; the same names as in its JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.comparison import Verdict

# What is searched: releases of IREE, or the parts in which two variants differ.
Over = Literal["releases", "flags"]
# To which end of a stretch a position belongs.
Nearer = Literal["base", "head", "between", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Position:
    """Something that was compiled to be measured: a release, or a variant with some of the parts.

    Attributes:
        name: `3.7.0`; of parts their numbers, `1+3`, or `none`.
        revision: The commit of IREE that a release was built from; "": not known, or no release.
        run: Id of the run in which its case was compiled and checked; "" where there is none.
        unusable: Why it cannot be measured, in plain words; "": it can.
    """

    name: str
    revision: str = ""
    run: str = ""
    unusable: str = ""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measurement: position `head` beside position `base`.

    Attributes:
        floor: Where the edge lay between one end and the other, as a share.
        verdict: Of `head`, by the judge; `failed`, `outputs differ`, `new` and `missing` where it cannot be measured.
        reason: Why the verdict is what it is, in plain words.
        ratio: Head divided by base; None where it was not measured, or the base's figure is zero.
        ci_low: Lower end of the ratio's interval, which holds at the confidence of the whole search; None: none.
        p: Of no difference; None where nothing is estimated.
        base_value: In the metric's unit; head_value likewise.
        exact: Whether it was counted and not timed.
        generations: Independent samples behind it.
        seconds: Wall time that it took.
        belongs: To which end of its stretch `head` belongs; "": it is of no search.
        attempt: How often the bisect had gone on after its end when this was measured.
        placed: Whether a few generations placed it beside an end, and it was not judged: `verdict` says nothing.
    """

    base: str
    head: str
    floor: float
    verdict: Verdict
    reason: str = ""
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    base_value: float | None = None
    head_value: float | None = None
    exact: bool = False
    generations: int = 0
    seconds: float = 0.0
    belongs: Nearer | Literal[""] = ""
    attempt: int = 0
    placed: bool = False

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
    """Two positions, in the order of the history, between which something changed.

    Attributes:
        size: `after`, measured beside `before`.
        passed_over: Positions between them that could not be measured.
        explanation: What the compiler does differently there, in a sentence; "" where that is not known.
        explanation_id: Of the explanation that says more; "" likewise.
    """

    before: str
    after: str
    size: Trial
    passed_over: tuple[str, ...] = ()
    explanation: str = ""
    explanation_id: str = ""


@dataclass(frozen=True, kw_only=True)
class OpenStretch:
    """A stretch of the history of which it is not known whether it holds a step, and why.

    Attributes:
        aside: Whether its ends differ too little for the step that was asked for.
    """

    first: str
    last: str
    reason: str
    aside: bool = False


@dataclass(frozen=True, kw_only=True)
class FoundCause:
    """Parts that make a difference together, and without any of which it is not there.

    Attributes:
        parts: Their numbers, from 1.
        beside: Numbers of the parts that both sides have: causes that were found before.
        size: The base variant with these parts, measured beside the one without.
        alone: Of several parts, each of them alone, likewise.
        untold: Whether a smaller set could not be told, so that there may be one.
        inside: Of an optimisation level, the flags among what it sets that make the difference.
        explanation: What the compiler does differently with them, in a sentence; "" where that is not known.
        explanation_id: Of the explanation that says more; "" likewise.
    """

    parts: tuple[int, ...]
    size: Trial
    beside: tuple[int, ...] = ()
    alone: tuple[Trial, ...] = ()
    untold: bool = False
    inside: tuple[str, ...] = ()
    explanation: str = ""
    explanation_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Bisection:
    """Since when a case's figure is what it is, or through which parts of its variant.

    Attributes:
        id: Name of the folder that it is kept in.
        created: ISO 8601, UTC.
        case: Its name, as `harness list` shows it.
        metric: Its registered name, see harness.metrics; `unit` is that of its figures.
        floor: Relative change below which nothing counts as a step.
        ends: Of releases: good, bad, and fixed where one was given. Of parts: the base variant and the case's.
        positions: All that were compiled, in the order of the history.
        trials: All that was measured, in the order in which that was done.
        parts: Of a variant, in words; number 1 comes first.
        error: The chance that any of the measurements is wrong, by the figures of the rule; 0 where all were counted.
        finished: Whether it had time for all that it asked.
        attempt: How often it went on after it had come to its end.
        machine: Processor and system, in words.
        notes: What bears on all of it, in plain words.
        settings: The user's choices.
        command: The command line.
    """

    id: str
    created: str
    suite: str
    case: str
    metric: str
    unit: str
    floor: float
    over: Over
    ends: tuple[str, ...]
    positions: tuple[Position, ...]
    trials: tuple[Trial, ...]
    steps: tuple[FoundStep, ...] = ()
    open: tuple[OpenStretch, ...] = ()
    parts: tuple[str, ...] = ()
    causes: tuple[FoundCause, ...] = ()
    error: float = 0.0
    finished: bool = True
    attempt: int = 0
    machine: str = ""
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether more time may tell more: something was not measured or searched, or stayed open."""
        unknown = (*(trial.is_open for trial in self.trials), *(stretch.aside for stretch in self.open))
        return not self.finished or any(unknown)

    @property
    def is_known(self) -> bool:
        """Whether what was asked is known, whatever is not known beside that."""
        is_told = self.finished or {step.passed_over for step in self.steps} == {()}
        return is_told and all(stretch.aside for stretch in self.open)
