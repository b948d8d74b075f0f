"""What two runs recorded by themselves, compared as far as that goes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.compare.blank import blank_row
from harness.compare.metrics import LATENCY
from harness.compare.pairs import Pair, Side
from harness.compare.values import Row, Verdict
from harness.plan.values import Case
from harness.results.evidence import stand_ins
from harness.stats import GroupTimes, tabulate_rounds
from harness.stats.multiplicity import adjust_p
from harness.stats.pairing import FloatArray
from harness.stats.rule import Look, Rule, standing
from harness.stats.student import Mean, paired_mean, unpaired_difference

_WORDS: Mapping[str, Verdict] = {
    "higher": "regressed",
    "lower": "improved",
    "equal": "unchanged",
    "open": "inconclusive",
}


@dataclass(frozen=True, kw_only=True)
class _Times:
    """What a side recorded of a case: its group's rounds, and the case that was timed for it."""

    times: GroupTimes
    timed: str

    def medians(self) -> FloatArray:
        """Nanoseconds per call, the median of each generation."""
        return np.array([np.median(values) for values in self.times.ns_per_call(self.timed)])


def recorded_rows(
    pairs: Mapping[str, Pair], base: Side, head: Side, rules: Mapping[str, Rule], *, within: bool
) -> dict[str, Row]:
    """Latency rows from recorded turns: paired by round within a run, else from each side's generations alone.

    Args:
        pairs: By name; both sides of each are there and have another module or runtime.
        rules: By name of the pair.
    """
    found = {name: _times_of(pair, base, head) for name, pair in pairs.items()}
    means = {name: _mean(*found[name], rules[name], within=within) for name in pairs}
    known = [name for name in pairs if means[name] is not None]
    corrected = dict(zip(known, adjust_p([_p(means[name]) for name in known]), strict=True))
    rows = {}
    for name, pair in pairs.items():
        sides = found[name]
        row = replace(
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


def _times_of(pair: Pair, base: Side, head: Side) -> tuple[_Times | None, _Times | None]:
    return _times(pair.base, base), _times(pair.head, head)


def _times(case: Case | None, side: Side) -> _Times | None:
    if case is None:
        return None
    group = [one for one in side.run.header.cases if one.group == case.group]
    times = tabulate_rounds(side.evidence.rounds.get(case.group, ()))
    timed = case if case.name in times.columns else stand_ins(group, side.evidence).get(case.name, case)
    return _Times(times=times, timed=timed.name) if times.ns_per_call(timed.name) else None


def _mean(base: _Times | None, head: _Times | None, rule: Rule, *, within: bool) -> Mean | None:
    if base is None or head is None:
        return None
    if within:
        ratios = np.array([one.centre for one in head.times.log_ratios(head.timed, base.timed)])
        mean = paired_mean(ratios, confidence=rule.confidence) if ratios.size else None
    else:
        mean = unpaired_difference(np.log(base.medians()), np.log(head.medians()), confidence=rule.confidence)
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
    return replace(
        row,
        verdict=verdict,
        ratio=ratio_of(mean.centre),
        ci_low=ratio_of(mean.low) if math.isfinite(mean.low) else None,
        ci_high=ratio_of(mean.high) if math.isfinite(mean.high) else None,
        p=p,
        base_value=float(np.median(base.medians())),
        head_value=float(np.median(head.medians())),
        generations=mean.samples,
        rounds=sum(values.size for values in head.times.ns_per_call(head.timed)),
        reason=reason,
    )


# Beyond this no timing is real, and the ratio has to stay a finite number.
_LARGEST_LOG = 700.0


def ratio_of(log_ratio: float) -> float:
    """exp, kept finite."""
    return math.exp(min(max(log_ratio, -_LARGEST_LOG), _LARGEST_LOG))
