"""The channels-last twin of each tensor: the same image, laid out NHWC rather than NCHW."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from harness.rewrites.ingress_constants import transposed
from harness.rewrites.ingress_ops import producer

# Dimension i of NHWC is dimension TO_LAST[i] of NCHW, and the other way round.
TO_LAST = (0, 2, 3, 1)
FROM_LAST = (0, 3, 1, 2)


def to_last(items: Sequence[Any]) -> list[Any]:
    """What there is one of for each dimension, reordered."""
    return [items[dimension] for dimension in TO_LAST]


def permuted_type(old: ir.RankedTensorType, permutation: Sequence[int]) -> ir.RankedTensorType:
    """The type of a transposed tensor."""
    return ir.RankedTensorType.get([old.shape[dimension] for dimension in permutation], old.element_type)


def empty(of: ir.RankedTensorType) -> ir.Value:
    """A tensor without values."""
    return tensor.empty(of.shape, of.element_type)


class Twins:
    """Twins of a block's tensors; new operations go to the insertion point.

    Twins are asked for in the order of the program, so one that was made for an operation dominates all later ones.
    """

    def __init__(self) -> None:
        self._twins: dict[ir.Value, ir.Value] = {}
        self._filters: dict[ir.Value, ir.Value] = {}

    def remember(self, value: ir.Value, twin: ir.Value) -> None:
        """Let an existing value be the twin of another."""
        self._twins[value] = twin

    def known(self, value: ir.Value) -> ir.Value | None:
        """The twin, if there is one already."""
        return self._twins.get(value)

    def of(self, value: ir.Value) -> ir.Value:
        """The twin; where there is none yet it is transposed, or made like the value itself if that costs no more."""
        twin = self._twins.get(value)
        if twin is None:
            twin = self._twins[value] = _make_twin(value)
        return twin

    def filter_of(self, value: ir.Value, permutation: Sequence[int]) -> ir.Value:
        """A convolution's filter, permuted: once for all convolutions that share it in this role."""
        if value not in self._filters:
            stored = _stored(value, permutation)
            self._filters[value] = _transpose(value, permutation) if stored is None else stored
        return self._filters[value]


def _make_twin(value: ir.Value) -> ir.Value:
    op = producer(value)
    if op is not None and op.name == "tensor.empty":
        return empty(permuted_type(value.type, TO_LAST))
    if op is not None and op.name == "linalg.fill":
        return linalg.fill(op.operands[0], outs=[empty(permuted_type(value.type, TO_LAST))])
    if op is not None and op.name == "linalg.transpose" and tuple(op.attributes["permutation"]) == FROM_LAST:
        return op.operands[0]
    stored = _stored(value, TO_LAST)
    return fence(_transpose(value, TO_LAST)) if stored is None else stored


def _stored(value: ir.Value, permutation: Sequence[int]) -> ir.Value | None:
    """A constant, stored transposed; None for what is none."""
    op = producer(value)
    if op is None or op.name != "arith.constant":
        return None
    new_type = permuted_type(value.type, permutation)
    stored = transposed(op.attributes["value"], permutation, new_type)
    return None if stored is None else arith.ConstantOp(new_type, stored).result


def _transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    return linalg.transpose(
        value, outs=[empty(permuted_type(value.type, permutation))], permutation=permutation
    ).results[0]


def fence(value: ir.Value) -> ir.Value:
    """The same value, which the compiler computes before it looks at what is done with it.

    Without it IREE joins a transposition and a convolution in one dispatch, which then is no convolution that it
    knows how to vectorise: seventeen times slower for a 3x3 convolution of an argument.
    """
    return ir.Operation.create("util.optimization_barrier", results=[value.type], operands=[value]).result
