"""Rows and a suite's gates -> rows that say which gates they passed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.compare.pairs import Pair
from harness.compare.rows import blank_row
from harness.errors import UsageError
from harness.metrics import LATENCY, metric_named
from harness.records.case import Gate
from harness.records.comparison import Row, Verdict
from harness.suite.cases import matching

# There is nothing to hold against a limit: the other side or the whole case is not there.
_WITHOUT_FIGURES: frozenset[Verdict] = frozenset({"outputs differ", "failed", "missing", "new"})
# Limits are written as decimal fractions, and their product with a value may be off by a rounding.
_ROUNDING = 1e-9
_NS_PER_MS = 1e6


def require_gated_cases(pairs: Sequence[Pair], gates: Sequence[Gate], suite: str, *, partial: bool) -> None:
    """Refuse a gate that no case is of, before anything is measured, and one that only a damaged run has."""
    for gate in gates:
        limits = [limit for limit in (gate.relative, gate.absolute) if limit is not None]
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
    rows: Sequence[Row], gates: Sequence[Gate], left_out: Sequence[Pair] = (), *, upstream: bool = False
) -> tuple[list[Row], list[str]]:
    """The same rows, with `gate` set where a gate's metric and case pattern match, and notes of gates that match none.

    A row of a statistical metric violates a gate if its verdict is a change in the gate's direction and the estimate
    lies beyond the limits; one of an exact metric if its values do. A/A controls and rows without figures have no gate.
    An identical row passes all gates of exact metrics that are of its case: equal modules have no rows of these.
    """
    if upstream and gates:
        return list(rows), ["The suite's gates were not applied: upstream's rule has none"]
    notes = []
    for gate in gates:
        if any(_decides(gate, row) for row in rows):
            continue
        if any(_is_of(gate, row) for row in rows):
            notes.append(f"Gate {gate.name} was not applied: {gate.metric} was not measured")
        elif any(is_of(gate, pair) for pair in left_out):
            notes.append(f"Gate {gate.name} was not applied: its cases were left out")
    return [_gated(row, [gate for gate in gates if _decides(gate, row)]) for row in rows], notes


def is_of(gate: Gate, pair: Pair) -> bool:
    """Whether a gate is of a pair, whatever may be measured of it."""
    return _is_of(gate, blank_row(pair, LATENCY, "identical"))


def _decides(gate: Gate, row: Row) -> bool:
    """Whether a gate is held against a row: its metric's, or an identical one, which stands for all exact figures."""
    stands = row.metric == gate.metric or (row.verdict == "identical" and _is_exact(gate.metric))
    return stands and _is_of(gate, row)


def _is_of(gate: Gate, row: Row) -> bool:
    """Whether a gate is of a row's case; in a run of several toolchains its pattern may leave the toolchain out."""
    match = matching([gate.cases]).match
    if row.control:
        return False
    return bool(match(row.case) or match(f"{row.model}/{row.variant}@{row.device}"))


def _gated(row: Row, gates: Sequence[Gate]) -> Row:
    if not gates or row.verdict in _WITHOUT_FIGURES:
        return row
    violated = [gate for gate in gates if _is_violated(gate, row)]
    if not violated:
        return replace(row, gate="passed")
    words = "; ".join(f"gate {gate.name} allows {allowance(gate)}" for gate in violated)
    return replace(row, gate="violated", reason=f"{row.reason}; {words}" if row.reason else words)


def _is_violated(gate: Gate, row: Row) -> bool:
    if not _is_exact(row.metric) and not _is_found(gate, row):
        return False
    change = _change(row)
    if change is None:  # changed beyond a floor, by how much is not known: no limit can excuse it
        return True
    if gate.direction == "any":
        change = abs(change)
    elif gate.direction == "decrease":
        change = -change
    allowed = max(gate.absolute or 0.0, (gate.relative or 0.0) * (row.base_value or 0.0))
    return change > allowed and not math.isclose(change, allowed, rel_tol=_ROUNDING)


def _is_found(gate: Gate, row: Row) -> bool:
    """Whether the statistics found a change in the gate's direction."""
    if row.verdict == "regressed":
        return gate.direction in ("increase", "any")
    return row.verdict == "improved" and gate.direction in ("decrease", "any")


def _change(row: Row) -> float | None:
    """Head less base, in the metric's unit; of a statistical metric by the estimate of the ratio, where it has one."""
    if row.base_value is None:
        return None
    if not _is_exact(row.metric) and row.ratio is not None:
        return (row.ratio - 1) * row.base_value
    return None if row.head_value is None else row.head_value - row.base_value


def allowance(gate: Gate) -> str:
    """What a gate allows, in words: `+5 %`, `+5 % or +4,096 bytes`, `no increase`."""
    sign = {"increase": "+", "decrease": "-", "any": "±"}[gate.direction]
    limits = []
    if gate.relative:
        limits.append(f"{sign}{gate.relative * 100:g} %")
    if gate.absolute:
        limits.append(f"{sign}{_amount(gate.absolute, gate.metric)}")
    return " or ".join(limits) or f"no {'change' if gate.direction == 'any' else gate.direction}"


def _is_exact(name: str) -> bool:
    metric = metric_named(name)
    return metric is not None and metric.exact


def _amount(value: float, metric: str) -> str:
    unit = definition.unit if (definition := metric_named(metric)) is not None else ""
    if unit == "ns":
        return f"{value / _NS_PER_MS:,.10g} ms"
    return f"{value:,.10g}" if unit == "count" else f"{value:,.10g} {unit}"
