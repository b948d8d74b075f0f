"""Affine expressions and maps: what they are of index values, and as views of operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.verify.interpreter import Evaluator, Operations, Results, Scope
from harness.verify.linalg_ops import Index
from harness.verify.rounding import Array, UnsupportedError

OPERATIONS = Operations()


@OPERATIONS.known("affine.apply")
def _apply(run: Evaluator, op: Any, scope: Scope) -> Results:
    map_ = op.attributes["map"].value
    operands = [scope.get(value) for value in op.operands]
    return [computed(run.ir, map_.results[0], operands[: map_.n_dims], operands[map_.n_dims :])]


def computed(ir: Any, expression: Any, dims: Sequence[Array], symbols: Sequence[Array] = ()) -> Any:
    """An affine expression of index values."""
    match expression:
        case ir.AffineConstantExpr():
            return np.array([expression.value])
        case ir.AffineDimExpr():
            return dims[expression.position]
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
    left, right = (computed(ir, side, dims, symbols) for side in (expression.lhs, expression.rhs))
    match expression:
        case ir.AffineAddExpr():
            return left + right
        case ir.AffineMulExpr():
            return left * right
        case ir.AffineModExpr():
            return left % right
        case ir.AffineFloorDivExpr():
            return left // right
        case ir.AffineCeilDivExpr():
            return -(-left // right)
    raise UnsupportedError(f"the affine expression {expression}")


def indices_of(ir: Any, map_: Any) -> list[Index]:
    """The results of an indexing map."""
    return [_index(ir, expression) for expression in map_.results]


def _index(ir: Any, expression: Any) -> Index:
    try:
        factors, constant = _linear(ir, expression)
        return Index(factors=factors, constant=constant)
    except ValueError:
        return Index(function=lambda dims: computed(ir, expression, dims))


def _linear(ir: Any, expression: Any) -> tuple[dict[int, int], int]:
    """Factors of the dimensions, and the constant; ValueError where it is no such sum."""
    match expression:
        case ir.AffineConstantExpr():
            return {}, int(expression.value)
        case ir.AffineDimExpr():
            return {int(expression.position): 1}, 0
        case ir.AffineAddExpr():
            (a, c), (b, d) = _linear(ir, expression.lhs), _linear(ir, expression.rhs)
            return {key: a.get(key, 0) + b.get(key, 0) for key in {**a, **b}}, c + d
        case ir.AffineMulExpr():
            (a, c), (b, d) = _linear(ir, expression.lhs), _linear(ir, expression.rhs)
            if b:
                (a, c), (b, d) = (b, d), (a, c)
            if not b:
                return {key: factor * d for key, factor in a.items()}, c * d
    raise ValueError
