"""The one judge of latencies: estimates of rows that are judged together -> a verdict for each.

`harness run`, `harness report` and `harness compare` all end here. The sample of a row is one number a generation, the
log ratio of head and base. A comparison that measures takes as many generations as its rule asks for (see
harness.compare.engine, which shares the floor, the correction over rows and `standing` with this). A run has the few
that it recorded; `judge` says what follows from those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError
from harness.metrics import FLOORS, LATENCY
from harness.records.comparison import Verdict
from harness.records.run import Header
from harness.stats import Estimate
from harness.stats.rule import Rule, Standing, adjust_p, standing

# What a run calls the ratio of a variant and its baseline.
Change = Literal["faster", "slower", "same", "unclear"]


@dataclass(frozen=True, kw_only=True)
class Words:
    """One finding in the words of a comparison (head against base) and of a run (variant against baseline)."""

    verdict: Verdict
    change: Change


WORDS: Mapping[Standing, Words] = {
    "higher": Words(verdict="regressed", change="slower"),
    "lower": Words(verdict="improved", change="faster"),
    "equal": Words(verdict="unchanged", change="same"),
    "open": Words(verdict="inconclusive", change="unclear"),
}


# Verdicts that a row has when its latency was found to differ; of a module against itself they are false alarms.
CHANGED: frozenset[Verdict] = frozenset({"regressed", "improved"})


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the recorded generations of one row say."""

    standing: Standing
    estimate: Estimate  # The ratio of head and base with its interval
    p: float  # Two-sided, of no difference, corrected for the number of rows
    reason: str  # Why it is what it is, in plain words

    @property
    def words(self) -> Words:
        """What it is called."""
        return WORDS[self.standing]


def judge(estimates: Mapping[str, Estimate], rule: Rule) -> dict[str, Judgement]:
    """Judge recorded rows together, by name.

    A row is changed where its p-value, corrected for the number of rows (Benjamini and Hochberg), is at most
    `rule.alpha` and its ratio lies beyond the floor; it is unchanged where its whole interval lies within the floor.
    """
    corrected = adjust_p([estimate.where.p for estimate in estimates.values()])
    return {
        name: _judgement(estimate, float(p), rule)
        for (name, estimate), p in zip(estimates.items(), corrected, strict=True)
    }


def _judgement(estimate: Estimate, p: float, rule: Rule) -> Judgement:
    few = " of so few generations" if estimate.generations < rule.first_look else ""
    reason = f"by the interval{few} that was recorded; not confirmed"
    return Judgement(
        standing=standing(estimate.where, differs=p <= rule.alpha, floor=rule.floor),
        estimate=estimate,
        p=p,
        reason="one generation was recorded, and an interval needs two" if estimate.generations < 2 else reason,
    )


def rules_of(header: Header, label: str, floor: float | None = None) -> dict[str, Rule]:
    """By metric: a latency floor that the user gives, else the floor of the run's suite, else the metric's own."""
    floors = FLOORS | header.floors
    if floor is not None:
        floors[LATENCY.name] = floor
    for name, share in floors.items():
        if not (math.isfinite(share) and 0 < share < 1):
            raise UsageError(f"{label}: its floor of {name} is {share:g}, and must lie between 0 and 1; correct it")
    return {name: Rule(floor=share) for name, share in floors.items()}
