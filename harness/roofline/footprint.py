"""How many elements of a tensor an operation touches through an indexing map, and how many bytes they take.

Part of harness.roofline.counter, which runs under a toolchain's own Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir

Interval = tuple[int, int]


def element_bits(kind: Any) -> int:
    """Bits that IREE takes to store an element: a byte for i1, eight for an index."""
    if isinstance(kind, ir.IndexType):
        return 64
    if isinstance(kind, ir.ComplexType):
        return 2 * element_bits(kind.element_type)
    if isinstance(kind, ir.IntegerType) and kind.width == 1:
        return 8
    return int(kind.width)


def bytes_of(elements: int, kind: Any) -> int:
    """Of so many elements of a tensor type, rounded up."""
    return -(-elements * element_bits(kind.element_type) // 8)


def loop_ranges(maps: Sequence[Any], shapes: Sequence[Sequence[int]]) -> dict[int, int]:
    """How often each loop of an iteration space runs, by its number: a size that it indexes by itself.

    Args:
        maps: One for each operand.
        shapes: Of the operands; a scalar has ().
    """
    ranges: dict[int, int] = {}
    for affine_map, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(affine_map.results, shape, strict=False):
            if isinstance(expr, ir.AffineDimExpr):
                ranges.setdefault(expr.position, size)
    return ranges


def touched(affine_map: Any, ranges: Mapping[int, int]) -> int:
    """How many elements a map reaches over an iteration space, at most.

    It is exact where each loop is in one result of the map, as in contractions, convolutions and broadcasts.
    """
    return math.prod(_distinct(expr, ranges) for expr in affine_map.results)


def _distinct(expr: Any, ranges: Mapping[int, int]) -> int:
    """Of the values that an expression takes: no more than its span, and no more than its loops have iterations."""
    low, high = _interval(expr, ranges)
    return min(high - low + 1, math.prod(ranges[dim] for dim in _dims(expr)))


def _interval(expr: Any, ranges: Mapping[int, int]) -> Interval:
    if isinstance(expr, ir.AffineDimExpr):
        return 0, max(ranges[expr.position] - 1, 0)
    if isinstance(expr, ir.AffineConstantExpr):
        value = int(expr.value)
        return value, value
    left, right = _interval(expr.lhs, ranges), _interval(expr.rhs, ranges)
    if isinstance(expr, ir.AffineAddExpr):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(expr, ir.AffineMulExpr):
        corners = [one * other for one in left for other in right]
        return min(corners), max(corners)
    divisor = max(right[1], 1)
    if isinstance(expr, ir.AffineModExpr):
        return 0, min(divisor - 1, left[1])
    return left[0] // divisor, -(-left[1] // divisor)


def _dims(expr: Any) -> set[int]:
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineConstantExpr | ir.AffineSymbolExpr):
        return set()
    return _dims(expr.lhs) | _dims(expr.rhs)
