"""The one judge of latencies: estimates of rows that are judged together -> a verdict for each.

`harness run`, `harness report` and `harness compare` all end here. The sample of a row is one number a generation, the
log ratio of head and base. A comparison that measures takes as many generations as its rule asks for
(harness.compare.engine); of the few that a run recorded, `judge` says what follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.compare.pairs import Pair, Side
from harness.compare.rows import blank_row, with_estimate
from harness.errors import UsageError
from harness.metrics import FLOORS, LATENCY
from harness.records.case import Case
from harness.records.comparison import Row, Verdict
from harness.records.run import Header
from harness.stats.intervals import Estimate, estimate_ratio, unpaired_difference
from harness.stats.pairing import FloatArray, GroupTimes, tabulate_rounds
from harness.stats.rule import Rule, Standing, adjust_p, standing

VERDICT_OF: Mapping[Standing, Verdict] = {
    "higher": "regressed",
    "lower": "improved",
    "equal": "unchanged",
    "open": "inconclusive",
}
# Verdicts that a row has when its latency was found to differ; of a module against itself they are false alarms.
CHANGED: frozenset[Verdict] = frozenset({"regressed", "improved"})


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A latency row by what was recorded."""

    row: Row
    estimate: Estimate | None  # The ratio of head and base with its interval; None where nothing usable was recorded


def judge(estimates: Mapping[str, Estimate], rule: Rule) -> dict[str, tuple[Standing, float]]:
    """Where recorded rows that are judged together stand, by name, and their p-values, corrected for their number."""
    corrected = adjust_p([estimate.where.p for estimate in estimates.values()])
    return {
        name: (standing(estimate.where, differs=p <= rule.alpha, floor=rule.floor), p)
        for (name, estimate), p in zip(estimates.items(), map(float, corrected), strict=True)
    }


def rules_of(header: Header, label: str, floor: float | None = None, *, metric: str = LATENCY.name) -> dict[str, Rule]:
    """By metric: the floor that the user gives for one, else the floor of the run's suite, else the metric's own."""
    floors = FLOORS | header.floors
    if floor is not None:
        floors[metric] = floor
    for name, share in floors.items():
        if not (math.isfinite(share) and 0 < share < 1):
            raise UsageError(f"{label}: its floor of {name} is {share:g}, and must lie between 0 and 1; correct it")
    return {name: Rule(floor=share) for name, share in floors.items()}


# --- What runs recorded by themselves -> judged rows: a run's variants against their baseline, or two runs ---


class Timings:
    """A side's recorded turns, tabulated once by group."""

    def __init__(self, side: Side) -> None:
        """Tabulate the rounds of all groups."""
        self.side = side
        self._medians: dict[str, FloatArray] = {}
        self.groups: Mapping[str, GroupTimes] = {
            group: tabulate_rounds(side.evidence.rounds.get(group, ())) for group in side.groups
        }

    def timed(self, case: Case) -> Case:
        """The case whose turns tell what `case` takes: itself, or the one that stands for its module."""
        return case if self._own(case).size else self.side.stand_ins.get(case.name, case)

    def medians(self, case: Case) -> FloatArray:
        """Nanoseconds per call of each generation that measured it, or its stand-in; shape (generations,)."""
        return self._own(self.timed(case))

    def _own(self, case: Case) -> FloatArray:
        if case.name not in self._medians:  # many pairs ask for it
            self._medians[case.name] = self.groups[case.group].medians(case.name)
        return self._medians[case.name]

    def within(self, pair: Pair, rule: Rule) -> Estimate | None:
        """Both sides of a pair were measured side by side in this run; None where no round has both."""
        base, head = pair.both
        generations = self.groups[head.group].log_ratios(self.timed(head).name, self.timed(base).name)
        return estimate_ratio(generations, confidence=rule.confidence)

    def beside(self, other: Timings, pair: Pair, rule: Rule) -> Estimate | None:
        """The head is of this run and the base of another, whose generations have nothing to do with each other."""
        base, head = pair.both
        medians = other.medians(base), self.medians(head)
        if not all(side.size for side in medians):
            return None
        where = unpaired_difference(np.log(medians[0]), np.log(medians[1]), confidence=rule.confidence)
        rounds = self.groups[head.group].rounds(self.timed(head).name)
        return Estimate(where=where, confidence=rule.confidence, rounds=rounds)


def judge_recorded(pairs: Mapping[str, Pair], base: Timings, head: Timings, rule: Rule) -> dict[str, Judged]:
    """Judge the latencies of pairs together, by name; within a run both sides are the same."""
    estimates = {
        name: head.within(pair, rule) if base is head else head.beside(base, pair, rule) for name, pair in pairs.items()
    }
    stand = judge({name: estimate for name, estimate in estimates.items() if estimate is not None}, rule)
    found = {}
    for name, pair in pairs.items():
        row, estimate = blank_row(pair, LATENCY, "inconclusive", rule.floor), estimates[name]
        if estimate is None:
            row = replace(row, reason="no turns of both sides that took any time by the clock were recorded")
        else:
            position, p = stand[name]
            few = " of so few generations" if estimate.generations < rule.first_look else ""
            reason = f"by the interval{few} that was recorded; not confirmed"
            reason = reason if estimate.generations > 1 else "one generation was recorded, and an interval needs two"
            sides = zip((base, head), pair.both, strict=True)
            values = [float(np.median(timings.medians(case))) for timings, case in sides]
            row = replace(row, generations=estimate.generations, rounds=estimate.rounds)
            row = replace(with_estimate(row, estimate, p, *values), verdict=VERDICT_OF[position], reason=reason)
        found[name] = Judged(row=row, estimate=estimate)
    return found
