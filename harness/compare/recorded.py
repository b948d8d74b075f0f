"""What two runs recorded by themselves, compared as far as that goes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from harness.compare.blank import blank_row
from harness.compare.pairs import Pair, Side
from harness.metrics import LATENCY
from harness.records.case import Case
from harness.records.comparison import Row, Verdict, altered
from harness.stats import GroupTimes, tabulate_rounds
from harness.stats.medians import Medians, medians_by_case
from harness.stats.multiplicity import adjust_p
from harness.stats.pairing import Ratios
from harness.stats.rule import Look, Rule, standing
from harness.stats.student import Mean, paired_mean, unpaired_difference
from harness.store.evidence import stand_ins

_WORDS: Mapping[str, Verdict] = {
    "higher": "regressed",
    "lower": "improved",
    "equal": "unchanged",
    "open": "inconclusive",
}


@dataclass(frozen=True, kw_only=True)
class _Times:
    """What a side recorded of a case.

    Attributes:
        timed: The case that was timed for it.
    """

    medians: Medians
    group: str
    timed: str


class _Recorded:
    """A side's recorded times, put into arrays once."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._groups: dict[str, list[Case]] = {}
        for case in side.run.header.cases:
            self._groups.setdefault(case.group, []).append(case)
        self._medians = medians_by_case(chain.from_iterable(side.evidence.rounds.values()))
        self._times: dict[str, GroupTimes] = {}
        self._stand_ins: dict[str, dict[str, Case]] = {}

    def of(self, case: Case | None) -> _Times | None:
        """What it took, or the case that stands for it; None where nothing was timed."""
        if case is None:
            return None
        group, timed = case.group, case.name
        if (group, timed) not in self._medians:
            if group not in self._stand_ins:
                self._stand_ins[group] = stand_ins(self._groups[group], self._side.evidence)
            timed = self._stand_ins[group].get(timed, case).name
        medians = self._medians.get((group, timed))
        return None if medians is None else _Times(medians=medians, group=group, timed=timed)

    def log_ratios(self, head: _Times, base: _Times) -> tuple[Ratios, ...]:
        """Those of two cases of one group, round by round."""
        if head.group not in self._times:
            self._times[head.group] = tabulate_rounds(self._side.evidence.rounds.get(head.group, ()))
        return self._times[head.group].log_ratios(head.timed, base.timed)


def recorded_rows(
    pairs: Mapping[str, Pair], base: Side, head: Side, rules: Mapping[str, Rule], *, within: bool
) -> dict[str, Row]:
    """Latency rows from recorded turns: paired by round within a run, else from each side's generations alone.

    Args:
        pairs: By name; both sides of each are there and have another module or runtime.
        rules: By name of the pair.
    """
    of_base, of_head = _Recorded(base), _Recorded(head)
    found = {name: (of_base.of(pair.base), of_head.of(pair.head)) for name, pair in pairs.items()}
    of_both = of_head if within else None
    means = {name: _mean(*found[name], rules[name], of_both) for name in pairs}
    known = [name for name in pairs if means[name] is not None]
    corrected = dict(zip(known, adjust_p([_p(means[name]) for name in known]), strict=True))
    rows = {}
    for name, pair in pairs.items():
        sides = found[name]
        row = altered(
            blank_row(pair, LATENCY, "inconclusive", rules[name].floor),
            reason="no turns of both sides that took any time by the clock were recorded",
        )
        mean = means[name]
        if mean is not None:
            row = _judged(row, mean, float(corrected[name]), rules[name], *sides)
        rows[name] = row
    return rows


def _p(mean: Mean | None) -> float:
    return 1.0 if mean is None else mean.p


def _mean(base: _Times | None, head: _Times | None, rule: Rule, of_both: _Recorded | None) -> Mean | None:
    """Of one pair; `of_both`: the run that both sides are of, where they are of one."""
    if base is None or head is None:
        return None
    if of_both is not None:
        ratios = np.array([one.centre for one in of_both.log_ratios(head, base)])
        mean = paired_mean(ratios, confidence=rule.confidence) if ratios.size else None
    else:
        logs = [[math.log(ns) for ns in side.medians.ns] for side in (base, head)]
        mean = unpaired_difference(*logs, confidence=rule.confidence)
    if mean is not None and mean.low == mean.high:  # nothing timed agrees to the last bit: a clock too coarse
        return replace(mean, low=-math.inf, high=math.inf, p=1.0)
    return mean


def _judged(row: Row, mean: Mean, p: float, rule: Rule, base: _Times | None, head: _Times | None) -> Row:
    look = Look(centre=mean.centre, low=mean.low, high=mean.high, p=p, size=mean.samples)
    verdict = _WORDS[standing(look, differs=p <= rule.alpha, floor=rule.floor)]
    assert base is not None and head is not None  # noqa: S101 (a mean has two sides)
    few = " of so few generations" if mean.samples < rule.first_look else ""
    reason = f"by the interval{few} that was recorded; not confirmed"
    if mean.samples < 2:
        reason = "one generation was recorded, and an interval needs two"
    return altered(
        row,
        verdict=verdict,
        ratio=ratio_of(mean.centre),
        ci_low=ratio_of(mean.low) if math.isfinite(mean.low) else None,
        ci_high=ratio_of(mean.high) if math.isfinite(mean.high) else None,
        p=p,
        base_value=statistics.median(base.medians.ns),
        head_value=statistics.median(head.medians.ns),
        generations=mean.samples,
        rounds=head.medians.rounds,
        reason=reason,
    )


# Beyond this no timing is real, and the ratio has to stay a finite number.
_LARGEST_LOG = 700.0


def ratio_of(log_ratio: float) -> float:
    """exp, kept finite."""
    return math.exp(min(max(log_ratio, -_LARGEST_LOG), _LARGEST_LOG))
