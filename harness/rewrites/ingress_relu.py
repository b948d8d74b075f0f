"""Ingress: ReLU and leaky ReLU, written as a comparison and a selection, as arith.maximumf.

With P one of `x > 0`, `x >= 0`, in the ordered or the unordered sense:

    form                                                   becomes               matched for
    select(P, x, 0)                                        maximumf(x, 0)        unordered > only
    select(P, x, slope * x)                                maximumf(x, slope*x)  any P, 2**-14 <= slope <= 1
    select(P, x, 0) + slope * select(P, 0, x)              maximumf(x, slope*x)  any P, 2**-14 <= slope <= 1

The comparison may have its operands the other way round, and a selection its values. What does not match is left alone:

- The ordered ReLU gives 0 for a NaN, where maximumf gives NaN; maxnumf may give either zero for -0.0, and is not
  the form that is wanted. The unordered one gives NaN, and so does maximumf.
- Every leaky form gives NaN for a NaN. The last form gives 0.0 for -0.0 (and where slope * x is too small for its
  type), where the maximum is -0.0; these compare equal. All else is the same value, on a target that keeps
  subnormal numbers: one that reads them as 0 may still pass them on unread in a selection, and not in a maximum.
- A slope of 0 would turn infinity into NaN. 2**-14 is the smallest normal f16, which rounding to any type leaves
  above 0.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith

from harness.rewrites.operations import Matched, constant_number, find, is_positive_zero, producer, replace

_SMALLEST_SLOPE = 2.0**-14

# Predicates of arith.cmpf by number.
_OGT, _OGE, _OLT, _OLE, _UGT, _UGE, _ULT, _ULE = 2, 3, 4, 5, 9, 10, 11, 12
_SWAPPED = {_OLT: _OGT, _OLE: _OGE, _OGT: _OLT, _OGE: _OLE, _ULT: _UGT, _ULE: _UGE, _UGT: _ULT, _UGE: _ULE}
_NEGATED = {_OLT: _UGE, _OLE: _UGT, _OGT: _ULE, _OGE: _ULT, _ULT: _OGE, _ULE: _OGT, _UGT: _OLE, _UGE: _OLT}
_POSITIVE = frozenset({_OGT, _OGE, _UGT, _UGE})


class _Choice(NamedTuple):
    """A value by the sign of x: `above` where the predicate holds between x and 0, else `below`."""

    x: ir.Value
    predicate: int
    above: ir.Value
    below: ir.Value


def relu_to_maximum(module: ir.Module) -> Matched:
    """Write each ReLU and leaky ReLU inside a linalg.generic as arith.maximumf."""
    sums = _leaky_sums(module)
    selections = _selections(module)
    return Matched(sums + selections, Counter(selections.left_alone).elements())


def _leaky_sums(module: ir.Module) -> int:
    """select(P, x, 0) + slope * select(P, 0, x), before its first half counts as a ReLU."""
    matched = 0
    for op in _inside_generics(module, "arith.addf"):
        first, second = op.operands
        found = _leaky_sum(first, second) or _leaky_sum(second, first)
        if found is not None:
            x, slope = found
            with ir.InsertionPoint(op), op.location:
                _replace_by_maximum(op, x, arith.MulFOp(x, slope).result)
            matched += 1
    return matched


def _selections(module: ir.Module) -> Matched:
    """select(P, x, 0) and select(P, x, slope * x)."""
    matched, left_alone = 0, []
    for op in _inside_generics(module, "arith.select"):
        choice = _choice(op)
        if choice is None or choice.above != choice.x:
            continue
        is_relu = choice.predicate == _UGT and is_positive_zero(choice.below)
        factors = _factors_of(choice.x, choice.below)
        if is_relu or any(map(_is_slope, factors)):
            with ir.InsertionPoint(op), op.location:
                _replace_by_maximum(op, choice.x, choice.below)
            matched += 1
        elif is_positive_zero(choice.below):
            left_alone.append("ReLUs that a maximum differs from for a NaN or for -0.0")
        elif factors:
            left_alone.append("ReLUs with a slope that is no constant between 2**-14 and 1")
    return Matched(matched, left_alone)


def _inside_generics(module: ir.Module, name: str) -> list[ir.Operation]:
    return [op for op in find(module, name) if op.parent.name == "linalg.generic"]


def _replace_by_maximum(op: ir.Operation, x: ir.Value, other: ir.Value) -> None:
    replace(op, arith.MaximumFOp(x, other).result)


def _leaky_sum(positive: ir.Value, negative: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """What a leaky ReLU that adds one part for x above 0 and a scaled one for x below is of: x and the slope."""
    above, product = _choice(producer(positive)), producer(negative)
    if above is None or above.above != above.x or not is_positive_zero(above.below):
        return None
    if product is None or product.name != "arith.mulf":
        return None
    for value, slope in _both_ways(product):
        below = _choice(producer(value))
        if (
            below is not None
            and (below.x, below.predicate, below.below) == (above.x, above.predicate, above.x)
            and is_positive_zero(below.above)
            and _is_slope(slope)
        ):
            return above.x, slope
    return None


def _choice(op: ir.Operation | None) -> _Choice | None:
    """An arith.select by a comparison of a number with 0, so turned that it asks whether x is above (or at) 0."""
    if op is None or op.name != "arith.select":
        return None
    condition, above, below = op.operands
    comparison = producer(condition)
    if comparison is None or comparison.name != "arith.cmpf":
        return None
    x, zero = comparison.operands
    predicate = comparison.attributes["predicate"].value
    if is_positive_zero(x):
        x, zero, predicate = zero, x, _SWAPPED.get(predicate)
    if not is_positive_zero(zero):
        return None
    if predicate not in _POSITIVE:
        above, below, predicate = below, above, _NEGATED.get(predicate)
    return _Choice(x, predicate, above, below) if predicate in _POSITIVE else None


def _factors_of(x: ir.Value, value: ir.Value) -> list[ir.Value]:
    """What x is multiplied by in a product; [] where the value is no product of x."""
    product = producer(value)
    if product is None or product.name != "arith.mulf":
        return []
    return [other for factor, other in _both_ways(product) if factor == x]


def _both_ways(op: ir.Operation) -> tuple[tuple[ir.Value, ir.Value], tuple[ir.Value, ir.Value]]:
    first, second = op.operands
    return (first, second), (second, first)


def _is_slope(value: ir.Value) -> bool:
    number = constant_number(value)
    return number is not None and _SMALLEST_SLOPE <= number <= 1
