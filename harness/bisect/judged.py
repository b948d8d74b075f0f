"""What the engine of `harness compare` says of two sides -> what a search makes of it, and how sure it has to be."""

from __future__ import annotations

import math
from dataclasses import replace

from harness.bisect.search import Measured, Unusable
from harness.compare.engine import Decision, Outcome
from harness.stats.rule import Rule, Standing

# The chance that a whole search is wrong, by the rule's figures: shared by all of its measurements.
ERROR = 0.01

_STANDINGS: dict[Decision, Standing] = {
    "regressed": "higher",
    "improved": "lower",
    "unchanged": "equal",
    "inconclusive": "open",
}


def rule_of_search(positions: int, floor: float) -> Rule:
    """The rule of each measurement of a search among so many positions.

    A search halves its stretch each time, and looks at the whole, at the step, and at what is left on either side of
    it. The error that all of these may make together is shared by them (Bonferroni), on the side that calls two equal
    ones changed and on the side that calls two different ones equal.

    Args:
        floor: Where the edge lies between one end and the other, as a share.
    """
    measurements = 4 + max(1, math.ceil(math.log2(max(2, positions))))
    share = ERROR / measurements
    return replace(Rule(), floor=floor, alpha=share, confidence=1 - 2 * share)


def measured(outcome: Outcome) -> Measured | Unusable:
    """A row's outcome, for a search."""
    if outcome.decision == "failed" or outcome.estimate is None:
        return Unusable(reason=outcome.reason)
    where = outcome.estimate.where
    return Measured(
        standing=_STANDINGS[outcome.decision],
        centre=where.centre,
        low=where.low,
        high=where.high,
        p=1.0 if outcome.p is None else outcome.p,
        reason=outcome.reason,
    )


def counted(base: float | None, head: float | None, floor: float) -> Measured | Unusable:
    """The same of figures that are exact: counts and bytes, of which either may be zero."""
    if base is None or head is None:
        return Unusable(reason="it has no such figure")
    log = math.log((head + 1) / (base + 1))
    standing: Standing = "equal" if abs(log) <= math.log1p(floor) else "higher" if log > 0 else "lower"
    return Measured(standing=standing, centre=log, low=log, high=log, reason=f"{base:,.10g} and {head:,.10g}")
