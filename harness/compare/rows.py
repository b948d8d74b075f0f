"""Outcomes -> rows, and what all rows together say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.compare.blank import blank_row
from harness.compare.engine import Outcome
from harness.compare.latency import BASE, HEAD
from harness.compare.pairs import Known, Pair
from harness.metrics import INSTRUCTIONS, LATENCY, Metric
from harness.records.comparison import VERDICTS, GeometricMean, Kind, Row, Verdict, altered
from harness.records.run import Round
from harness.stats import counter_per_call
from harness.stats.estimate import ratio_of


def known_row(pair: Pair, known: Known) -> Row:
    """The latency row of a pair that needs no measuring."""
    return altered(blank_row(pair, LATENCY, known.verdict), reason=known.reason, stderr=known.stderr)


def measured_row(pair: Pair, metric: Metric, outcome: Outcome, floor: float) -> Row:
    """The row of a pair that was measured."""
    row = replace(
        blank_row(pair, metric, outcome.decision, floor),
        reason=outcome.reason,
        stderr=outcome.failure.stderr if outcome.failure is not None else "",
        generations=len(outcome.generations),
        rounds=sum(one.rounds for one in outcome.generations),
        seconds=round(sum(one.seconds for one in outcome.generations), 3),
    )
    if outcome.log_ratio is None:
        return row
    return replace(
        row,
        ratio=ratio_of(outcome.log_ratio),
        ci_low=None if outcome.low is None else ratio_of(outcome.low),
        ci_high=None if outcome.high is None else ratio_of(outcome.high),
        p=outcome.p,
        base_value=_median(one.base for one in outcome.generations),
        head_value=_median(one.head for one in outcome.generations),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def instructions_row(pair: Pair, rounds: Sequence[Round], floor: float) -> Row | None:
    """What instructions per call say of a pair on one thread; None where they were not counted.

    They are exact to parts per million from one process to the next, so there is nothing to estimate: the row is
    changed where all generations lie beyond the floor on one side, and unchanged where all lie within it.

    Args:
        rounds: Of the pair, with cases named base and head.
        floor: Relative change that is not called one.
    """
    logs, values = [], []
    for generation in sorted({one.generation for one in rounds}):
        counts = counter_per_call([one for one in rounds if one.generation == generation], "instructions")
        if counts.get(BASE, 0) > 0 and counts.get(HEAD, 0) > 0:
            logs.append(math.log(counts[HEAD] / counts[BASE]))
            values.append((counts[BASE], counts[HEAD]))
    if not logs:
        return None
    low, high, edge = min(logs), max(logs), math.log1p(floor)
    verdict: Verdict = "inconclusive"
    if -edge <= low and high <= edge:
        verdict = "unchanged"
    elif low > edge:
        verdict = "regressed"
    elif high < -edge:
        verdict = "improved"
    return replace(
        blank_row(pair, INSTRUCTIONS, verdict, floor),
        ratio=ratio_of(float(np.median(logs))),
        ci_low=ratio_of(low),
        ci_high=ratio_of(high),
        base_value=float(np.median([base for base, _ in values])),
        head_value=float(np.median([head for _, head in values])),
        generations=len(logs),
        rounds=len(rounds),
        reason="counted, not timed: the interval is that of all generations",
    )


_CHANGES: Mapping[tuple[Verdict, Verdict], str] = {
    ("regressed", "regressed"): "more work",
    ("regressed", "unchanged"): "same work, slower",
    ("regressed", "improved"): "less work, slower",
    ("improved", "improved"): "less work",
    ("improved", "unchanged"): "same work, faster",
    ("improved", "regressed"): "more work, faster",
}


def with_kind_of_change(latency: Row, instructions: Row | None) -> Row:
    """Say which kind of change a latency row is; instructions never decide its verdict."""
    if instructions is None:
        return latency
    if latency.verdict == "inconclusive" and instructions.verdict == "unchanged":
        return replace(latency, reason=f"{latency.reason}; instructions per call are unchanged")
    change = _CHANGES.get((latency.verdict, instructions.verdict))
    if change is None:
        return latency
    return replace(latency, change=change)


def summarise(rows: Sequence[Row]) -> dict[Verdict, int]:
    """Latency rows by verdict, controls left out; every verdict is there."""
    counted = Counter(row.verdict for row in rows if row.metric == LATENCY.name and not row.control)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def geometric_means(rows: Sequence[Row]) -> tuple[GeometricMean, ...]:
    """Of latency ratios, for each model, device and variant; identical rows count with 1, failed ones not at all."""
    timed = [row for row in rows if row.metric == LATENCY.name]
    counted = [row for row in timed if _counts(row)]
    kinds: tuple[tuple[Kind, Callable[[Row], str]], ...] = (
        ("model", lambda row: row.model),
        ("device", lambda row: row.device),
        ("variant", lambda row: row.variant),
    )
    means = []
    for kind, name_of in kinds:
        ratios: dict[str, list[float]] = {name_of(row): [] for row in timed}
        for row in counted:
            ratios[name_of(row)].append(_ratio(row))
        for name, found in ratios.items():
            if found:
                mean = math.exp(float(np.mean(np.log(found))))
                means.append(GeometricMean(kind=kind, name=name, ratio=mean, rows=len(found)))
    return tuple(means)


def _counts(row: Row) -> bool:
    return not row.control and row.verdict != "failed" and _ratio(row) > 0


def _ratio(row: Row) -> float:
    return 1.0 if row.verdict == "identical" else row.ratio or 0.0
