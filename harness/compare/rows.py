"""Rows of a comparison: made from what is known, measured or counted, and what all of them say together."""

import glob
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.compare.engine import BASE, HEAD, Outcome
from harness.compare.options import CompareOptions
from harness.compare.pairs import DecidedRow, Pair, Side, words_of_sides
from harness.errors import UsageError
from harness.metrics import (
    BUILD_FACTS,
    FLOORS,
    INSTRUCTIONS,
    LATENCY,
    METRICS,
    REFERENCE_FACTS,
    TIMED,
    Metric,
    ir_metric,
    metric_named,
)
from harness.records.case import Case, Gate
from harness.records.comparison import VERDICTS, GeometricMean, Kind, Row, Verdict
from harness.records.run import Round
from harness.stats.intervals import Estimate, ratio_of
from harness.stats.pairing import counter_per_call
from harness.text import matching

# One and many of what a metric counts; sizes count bytes.
_NOUNS = {"dispatches": ("dispatch", "dispatches"), "copies": ("copy", "copies"), "fills": ("fill", "fills")}
# Verdicts whose ratio is known; of others it may be anything.
_DECIDED: frozenset[Verdict] = frozenset({"regressed", "improved", "unchanged", "identical"})
_HASH_DIGITS = 12  # as many as people compare by eye
_LONGEST_FLAG = 120


def blank_row(pair: Pair, metric: Metric, verdict: Verdict, floor: float = 0.0) -> Row:
    """A row of a pair, by its name, that has a verdict and no figures yet."""
    case = pair.case
    return Row(
        case=pair.name,
        model=case.model,
        variant=case.variant,
        device=case.device,
        metric=metric.name,
        verdict=verdict,
        floor=floor,
        unit=metric.unit,
    )


def known_row(pair: Pair, known: DecidedRow, *, control: bool = False) -> Row:
    """The latency row of a pair that needs no measuring."""
    return replace(blank_row(pair, LATENCY, known.verdict), reason=known.reason, stderr=known.stderr, control=control)


def measured_row(pair: Pair, metric: Metric, outcome: Outcome, floor: float, *, control: bool = False) -> Row:
    """The row of a pair that was measured."""
    rounds = sum(generation.rounds for generation in outcome.generations)
    by_own_time = sum(generation.by_own_time for generation in outcome.generations)
    taken = [generation.taken for generation in outcome.generations if generation.taken is not None]
    row = replace(
        blank_row(pair, metric, outcome.decision, floor),
        reason=outcome.reason,
        stderr=outcome.failure.stderr if outcome.failure is not None else "",
        generations=len(outcome.generations),
        rounds=rounds,
        taken=round(float(np.mean(taken)), 4) if taken else None,
        own_time=round(by_own_time / rounds, 4) if rounds else 0.0,
        lacked_time=outcome.lacked_time,
        hosts=tuple(dict.fromkeys(generation.host for generation in outcome.generations if generation.host)),
        seconds=round(sum(generation.seconds for generation in outcome.generations), 3),
        control=control,
    )
    if outcome.estimate is None:
        return row
    base = _median(generation.base for generation in outcome.generations)
    head = _median(generation.head for generation in outcome.generations)
    return with_estimate(row, outcome.estimate, outcome.p, base, head)


def with_estimate(row: Row, estimate: Estimate, p: float | None, base: float | None, head: float | None) -> Row:
    """The row with the ratio of its sides, its interval, and what either side takes."""
    return replace(
        row,
        ratio=estimate.ratio,
        ci_low=estimate.low,
        ci_high=estimate.high,
        p=p,
        base_value=base,
        head_value=head,
    )


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.median(present)) if present else None


def instructions_row(pair: Pair, rounds: Sequence[Round], floor: float, *, control: bool = False) -> Row | None:
    """What instructions per call say of a pair on one thread, where all generations agree; None: not counted."""
    logs, values = [], []
    for number in sorted({measured.generation for measured in rounds}):
        counts = counter_per_call((measured for measured in rounds if measured.generation == number), "instructions")
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
        base_value=_median(base for base, _ in values),
        head_value=_median(head for _, head in values),
        generations=len(logs),
        rounds=len(rounds),
        reason="counted, not timed: the interval is that of all generations",
        control=control,
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
    return replace(latency, change=_CHANGES.get((latency.verdict, instructions.verdict)))


def exact_rows(pair: Pair, base: Side, head: Side, floors: Mapping[str, float] = FLOORS) -> list[Row]:
    """One row for each exact metric (sizes, counts, peak memory) that both cases of a pair have a value of."""
    before, after = (_exact_figures(case, side) for case, side in zip(pair.both, (base, head), strict=True))
    return [
        _exact_row(pair, metric, before[metric], after[metric], floors.get(metric.name, 0.0))
        for metric in before
        if metric in after
    ]


def unknown_row(pair: Pair, base: Side, head: Side) -> Row | None:
    """The row of a pair's transient memory where it is not known; None where it is, or the compiler said nothing."""
    builds = (side.evidence.builds.get(case.name) for case, side in zip(pair.both, (base, head), strict=True))
    found = [build.statistics for build in builds if build is not None and build.statistics is not None]
    if all(statistics.transient_bytes is not None for statistics in found):
        return None
    return replace(
        blank_row(pair, METRICS["transient-memory"], "inconclusive"),
        reason="not known, since it depends on sizes that only a call has",
    )


def _exact_figures(case: Case, side: Side) -> dict[Metric, float]:
    build, reference = side.evidence.builds.get(case.name), side.evidence.references.get(case.name)
    figures = {metric: of(build) for metric, of in BUILD_FACTS.items()} if build is not None else {}
    if reference is not None:
        figures |= {metric: of_reference(reference) for metric, of_reference in REFERENCE_FACTS.items()}
    counted = side.evidence.ir.get(case.name)
    counts = {ir_metric(op): count for op, count in counted.counts.items()} if counted is not None else {}
    return {metric: value for metric, value in (figures | counts).items() if value is not None}


def _exact_row(pair: Pair, metric: Metric, base: float, head: float, floor: float) -> Row:
    singular, plural = _NOUNS.get(metric.name, ("op", "ops") if metric.unit == "count" else ("byte", "bytes"))
    text = f"{head:,.0f} {singular if head == 1 else plural}"
    # The floor is symmetric in the logarithm, and nothing is no base for a share.
    is_within = head == base or (base > 0 and head > 0 and abs(math.log(head / base)) <= math.log1p(floor))
    verdict: Verdict = "unchanged" if is_within else "regressed" if head > base else "improved"
    before = "on both sides" if head == base else f"where there {'was' if base == 1 else 'were'} {base:,.0f}"
    return replace(
        blank_row(pair, metric, verdict, floor),
        ratio=head / base if base else None,
        base_value=base,
        head_value=head,
        reason=f"{text} {before}",
    )


def with_repro(row: Row, pair: Pair, base: Side, head: Side, options: CompareOptions) -> Row:
    """The row with the command that repeats it and one comment line for each side; timed rows alone have any."""
    if row.metric not in TIMED:
        return row
    sides = words_of_sides(base, head) if options.within is None else ["--within", head.label]
    more = ["--controls", "1"] if row.control else []
    more += [] if row.metric == LATENCY.name else ["--metric", row.metric]
    command = ["harness", "compare", *sides, "--filter", glob.escape(row.case), *more, *options.again()]
    return replace(row, repro=(shlex.join(command), _module("base", pair.base, base), _module("head", pair.head, head)))


def _module(word: str, case: Case | None, side: Side) -> str:
    """A comment of one line, whatever a flag holds; the run's builds.jsonl has each flag whole."""
    if case is None:
        return f"# {word}: has no such case"
    build = side.evidence.builds.get(case.name)
    if build is None or not build.command:
        return f"# {word}: was never compiled"
    module = f"module {build.module_sha256[:_HASH_DIGITS]}" if build.module_sha256 else "no module"
    # A host's CPU has 200 features, which a fleet's compiles are told by name.
    words = (flag if len(flag) <= _LONGEST_FLAG else f"{flag[:_LONGEST_FLAG]}..." for flag in build.command)
    return f"# {word}: {module}, {' '.join(shlex.join(words).split())}"


def summarise(rows: Sequence[Row]) -> dict[Verdict, int]:
    """Latency rows by verdict, controls left out; every verdict is there."""
    counted = Counter(row.verdict for row in rows if row.metric == LATENCY.name and not row.control)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def geometric_means(rows: Sequence[Row]) -> tuple[GeometricMean, ...]:
    """Of latency ratios, for each model, device and variant."""
    kinds: tuple[Kind, ...] = ("model", "device", "variant")
    timed = [row for row in rows if row.metric == LATENCY.name and not row.control]
    means = (
        geometric_mean([row for row in timed if getattr(row, kind) == name], kind, name)
        for kind in kinds
        for name in dict.fromkeys(getattr(row, kind) for row in timed)
    )
    return tuple(mean for mean in means if mean is not None)


def geometric_mean(rows: Iterable[Row], kind: Kind = "variant", name: str = "") -> GeometricMean | None:
    """Of the ratios of decided rows of one metric, equal modules counting with 1; None where no row is decided.

    The ends of its interval are the geometric means of the rows' own ends: they hold whatever rows have in common,
    since the standard deviation of a mean is at most the mean of the standard deviations.
    """
    ratios, lows, highs = [], [], []
    for row in rows:
        ratio, low, high = (1.0, 1.0, 1.0) if row.verdict == "identical" else (row.ratio, row.ci_low, row.ci_high)
        if row.verdict in _DECIDED and ratio is not None and ratio > 0:
            ratios.append(ratio)
            lows.append(low)
            highs.append(high)
    if not ratios:
        return None
    ratio = _mean(ratios) or math.nan
    return GeometricMean(kind=kind, name=name, ratio=ratio, rows=len(ratios), low=_mean(lows), high=_mean(highs))


def _mean(ratios: Sequence[float | None]) -> float | None:
    """None where one of them has none, or none that has a logarithm."""
    found = [ratio for ratio in ratios if ratio is not None and 0 < ratio < math.inf]
    return math.exp(math.fsum(map(math.log, found)) / len(found)) if len(found) == len(ratios) else None


# --- Rows and a suite's gates -> rows that say which gates they passed ---


# Directions of gates that a verdict of a statistical metric is against.
_FOUND: Mapping[Verdict, tuple[str, str]] = {"regressed": ("increase", "any"), "improved": ("decrease", "any")}
# There is nothing to hold against a limit: the other side or the whole case is not there.
_WITHOUT_FIGURES: frozenset[Verdict] = frozenset({"outputs differ", "failed", "missing", "new"})
# Limits are written as decimal fractions, and their product with a value may be off by a rounding.
_ROUNDING = 1e-9
_NS_PER_MS = 1e6


def require_gated_cases(pairs: Sequence[Pair], gates: Sequence[Gate], suite: str, *, partial: bool) -> None:
    """Refuse a gate that no case is of, before anything is measured, and one that only a damaged run has."""
    for gate in gates:
        limits = [limit for limit in (gate.relative, gate.absolute, gate.at_most) if limit is not None]
        if metric_named(gate.metric) is None or not all(0 <= limit < math.inf for limit in limits):
            raise UsageError(f"{suite}: [gates.{gate.name}] names no metric, or a limit that is none; correct it")
        if not partial and not any(is_of(gate, pair) for pair in pairs):
            names = sorted(pair.name for pair in pairs)
            example = f", and has {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}" if names else ""
            raise UsageError(
                f"{suite}: [gates.{gate.name}] cases: this comparison has no case that {gate.cases!r} matches"
                f"{example}; correct the pattern or remove the gate"
            )


def apply_gates(
    rows: Sequence[Row], gates: Sequence[Gate], left_out: Sequence[Pair] = ()
) -> tuple[list[Row], list[str]]:
    """The rows, with `gate` set where a gate is of them, and notes of gates that match none; controls have no gate."""
    notes = []
    for gate in gates:
        if any(_decides(gate, row) for row in rows):
            continue
        if any(_is_of(gate, row.case, row) for row in rows if not row.control):
            notes.append(f"Gate {gate.name} was not applied: {gate.metric} was not measured")
        elif any(is_of(gate, pair) for pair in left_out):
            notes.append(f"Gate {gate.name} was not applied: its cases were left out")
    return [_gated(row, [gate for gate in gates if _decides(gate, row)]) for row in rows], notes


def is_of(gate: Gate, pair: Pair) -> bool:
    """Whether a gate is of a pair, whatever may be measured of it."""
    return _is_of(gate, pair.name, pair.case)


def _is_of(gate: Gate, name: str, case: Row | Case) -> bool:
    """Whether a gate is of a case; in a run of several toolchains its pattern may leave the toolchain out."""
    return matches(gate, name, f"{case.model}/{case.variant}@{case.device}")


def matches(gate: Gate, *names: str) -> bool:
    """Whether a gate's pattern matches one of a case's names."""
    return any(matching([gate.cases]).match(name) for name in names)


def _decides(gate: Gate, row: Row) -> bool:
    stands = row.metric == gate.metric or (row.verdict == "identical" and _is_exact(gate.metric))
    return stands and not row.control and _is_of(gate, row.case, row)


def _gated(row: Row, gates: Sequence[Gate]) -> Row:
    gates = [gate for gate in gates if gate.at_most is None or row.head_value is not None or row.verdict == "identical"]
    if not gates or row.verdict in _WITHOUT_FIGURES:
        return row
    violated = [gate for gate in gates if _is_violated(gate, row)]
    if not violated:
        return replace(row, gate="passed")
    words = "; ".join(f"gate {gate.name} allows {allowance(gate)}" for gate in violated)
    return replace(row, gate="violated", reason=f"{row.reason}; {words}" if row.reason else words)


def _is_violated(gate: Gate, row: Row) -> bool:
    if gate.at_most is not None:
        return row.head_value is not None and row.head_value > gate.at_most  # of equal modules it is not known
    is_exact = _is_exact(row.metric)
    if not is_exact and gate.direction not in _FOUND.get(row.verdict, ()):
        return False
    base, ratio = row.base_value, None if is_exact else row.ratio  # of a statistical metric by its estimate
    if base is None or (ratio is None and row.head_value is None):
        return True  # changed beyond a floor, by how much is not known: no limit can excuse it
    change = (ratio - 1) * base if ratio is not None else (row.head_value or 0.0) - base
    if gate.direction != "increase":
        change = abs(change) if gate.direction == "any" else -change
    allowed = max(gate.absolute or 0.0, (gate.relative or 0.0) * base)
    return change > allowed and not math.isclose(change, allowed, rel_tol=_ROUNDING)


def allowance(gate: Gate) -> str:
    """What a gate allows, in words: `+5 %`, `+5 % or +4,096 bytes`, `no increase`, `at most 74`."""
    if gate.at_most is not None:
        return f"at most {amount(gate, gate.at_most)}"
    sign = {"increase": "+", "decrease": "-", "any": "±"}[gate.direction]
    limits = []
    if gate.relative:
        limits.append(f"{sign}{gate.relative * 100:g} %")
    if gate.absolute:
        limits.append(f"{sign}{amount(gate, gate.absolute)}")
    return " or ".join(limits) or f"no {'change' if gate.direction == 'any' else gate.direction}"


def _is_exact(name: str) -> bool:
    metric = metric_named(name)
    return metric is not None and metric.exact


def amount(gate: Gate, value: float) -> str:
    """A value of the gate's metric, with its unit."""
    unit = metric.unit if (metric := metric_named(gate.metric)) is not None else ""
    value, unit = (value / _NS_PER_MS, "ms") if unit == "ns" else (value, unit)
    return f"{value:,.10g}{f' {unit}' if unit not in ('', 'count') else ''}"
