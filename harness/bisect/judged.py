"""What was measured of two positions -> what a search makes of it, and how sure each measurement has to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from harness.bisect.search import Measured, Unusable
from harness.compare.task import Task
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.stats.rule import Rule, Standing

# The chance that a whole search is wrong, by the rule's figures: shared by all measurements that are judged.
ERROR = 0.01
# Of a search with one step: its ends and the step; and of a small one what cannot be placed.
JUDGED_OF_SEARCH = 8
# Generations that may place a position, and how far they may lie from an end: a share of the distance of both ends.
_PLACING, _BY_AN_END = 2, 0.25

_STANDINGS: Mapping[Verdict, Standing] = {
    "regressed": "higher",
    "improved": "lower",
    "unchanged": "equal",
    "identical": "equal",
    "inconclusive": "open",
}


def rule_of_measurements(number: int, floor: float) -> Rule:
    """The rule of each of so many measurements.

    The error that all of them may make together is shared by them (Bonferroni), on the side that calls two equal ones
    changed, before any confirmation, and on the side that calls two different ones equal. So what is called changed has
    an interval without zero in it, as a rule. A plain change is found at the level of a comparison: its confirmation
    makes that less than a share.
    """
    share = ERROR / number
    return replace(Rule(), floor=floor, alpha=share, plain_alpha=Rule().alpha, confidence=1 - 2 * share)


def error_of(measured: int, planned: int) -> float:
    """The chance that any of so many measurements is wrong, of which so many were planned for."""
    return min(1.0, ERROR * measured / planned)


def place(asked: Trial, task: Task, whole: float) -> Trial | Task:
    """Place a position that lies plainly by one of two ends of this log ratio; else its task, begun, to be judged."""
    taken = [task.sample(number) for number in range(_PLACING)]
    logs = np.array([generation.log_ratio for generation in taken if generation.log_ratio is not None])
    shares = logs / whole
    if len(logs) < _PLACING or not (np.all(shares < _BY_AN_END) or np.all(shares > 1 - _BY_AN_END)):
        return replace(task, sample=lambda number: taken[number] if number < _PLACING else task.sample(number))
    return replace(
        asked,
        placed=True,
        reason=f"{_PLACING} generations lie by this end; not judged",
        ratio=math.exp(float(logs.mean())),
        base_value=taken[-1].base,
        head_value=taken[-1].head,
        generations=_PLACING,
        seconds=round(sum(generation.seconds for generation in taken), 3),
    )


def as_measured(trial: Trial) -> Measured | Unusable:
    """A measurement that was kept, for a search."""
    standing = _STANDINGS.get(trial.verdict)
    if standing is None:
        return Unusable(reason=trial.reason)
    if trial.exact:
        return counted(trial.base_value, trial.head_value, trial.floor)
    if trial.verdict == "identical":
        return Measured(standing="equal", centre=0.0, low=0.0, high=0.0, reason=trial.reason)
    centre = trial.log_ratio
    if centre is None:
        return Unusable(reason=trial.reason or "it has no figure")
    return Measured(
        standing=standing,
        centre=centre,
        low=math.log(trial.ci_low) if trial.ci_low else -math.inf,
        high=math.log(trial.ci_high) if trial.ci_high else math.inf,
        reason=trial.reason,
        placed=trial.placed,
    )


def counted(base: float | None, head: float | None, floor: float) -> Measured | Unusable:
    """The same of figures that are exact: counts and bytes. Either may be zero, which stands as a half."""
    if base is None or head is None:
        return Unusable(reason="it has no such figure")
    log = math.log(max(head, 0.5) / max(base, 0.5))
    standing: Standing = "equal" if abs(log) <= math.log1p(floor) else "higher" if log > 0 else "lower"
    return Measured(standing=standing, centre=log, low=log, high=log, reason=f"{base:,.10g} and {head:,.10g}")
