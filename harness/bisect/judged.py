"""What was measured of two positions -> what a search makes of it, and how sure each measurement has to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from harness.bisect.search import Measured, Unusable
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.stats.rule import Rule, Standing

# The chance that a whole search is wrong, by the rule's figures: shared by all of its measurements.
ERROR = 0.01

_STANDINGS: Mapping[Verdict, Standing] = {
    "regressed": "higher",
    "improved": "lower",
    "unchanged": "equal",
    "identical": "equal",
    "inconclusive": "open",
}


def measurements_of_search(positions: int) -> int:
    """How many measurements a search among so many positions takes.

    A search halves its stretch each time, and looks at the whole, at the step, and at what is left on either side of
    it. A second step takes more, and `harness bisect` says what that makes of the error.
    """
    return 4 + max(1, math.ceil(math.log2(max(2, positions))))


def rule_of_measurements(number: int, floor: float) -> Rule:
    """The rule of each of so many measurements.

    The error that all of them may make together is shared by them (Bonferroni), on the side that calls two equal ones
    changed, before any confirmation, and on the side that calls two different ones equal. So what is called changed has
    an interval without zero in it, as a rule.

    Args:
        floor: Where the edge lies between one end and the other, as a share.
    """
    share = ERROR / number
    return replace(Rule(), floor=floor, alpha=share, confidence=1 - 2 * share)


def error_of(measured: int, planned: int) -> float:
    """The chance that any of so many measurements is wrong, of which so many were planned for."""
    return min(1.0, ERROR * measured / planned)


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
    )


def counted(base: float | None, head: float | None, floor: float) -> Measured | Unusable:
    """The same of figures that are exact: counts and bytes. Either may be zero, which stands as a half."""
    if base is None or head is None:
        return Unusable(reason="it has no such figure")
    log = math.log(max(head, 0.5) / max(base, 0.5))
    standing: Standing = "equal" if abs(log) <= math.log1p(floor) else "higher" if log > 0 else "lower"
    return Measured(standing=standing, centre=log, low=log, high=log, reason=f"{base:,.10g} and {head:,.10g}")
