"""Sizes of tensors whose types do not say them, from the shapes of a program's real inputs.

It runs under a toolchain's own Python, for harness.ir.child.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from iree.compiler import ir


class Unknown(Exception):
    """A size that cannot be found out; the message is a phrase about it."""


def _ceil_div(left: int, right: int) -> int:
    return -(-left // right)


def _trunc_div(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _trunc_div,
    "arith.divui": operator.floordiv,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": _ceil_div,
    "arith.ceildivui": _ceil_div,
    "arith.remsi": operator.mod,
    "arith.remui": operator.mod,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
}
# By arith's number of the predicate; sizes are not negative, so signed and unsigned are alike.
_PREDICATES = (
    *(operator.eq, operator.ne),
    *(operator.lt, operator.le, operator.gt, operator.ge) * 2,
)
_SAME = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_DIMS = ("tensor.dim", "hal.buffer_view.dim")
_SAME_BY_POSITION = ("util.assume.int", "util.optimization_barrier", "hal.tensor.barrier")


class Sizes:
    """What is known of a program's sizes. Values have to be asked for in the program's order, or nearly."""

    def __init__(self) -> None:
        self._shapes: dict[Any, tuple[int, ...]] = {}
        self._numbers: dict[Any, int] = {}
        self._dynamic: dict[Any, bool] = {}

    def bind(self, value: Any, other: Any) -> None:
        """Say that a value is another one: an argument that is passed, or a result that is returned."""
        if isinstance(value.type, ir.ShapedType):
            if not _is_static(value.type):
                self._shapes[value] = self.shape(other)
        elif other in self._shapes:  # a buffer view
            self._shapes[value] = self._shapes[other]
        else:
            with suppress(Unknown):
                self._numbers[value] = self.number(other)

    def give(self, value: Any, shape: Sequence[int]) -> None:
        """Say which shape an argument of the program has."""
        self._shapes[value] = tuple(shape)

    def shape(self, value: Any) -> tuple[int, ...]:
        """Of a tensor; of a scalar, ()."""
        if not isinstance(value.type, ir.ShapedType):
            return ()
        if _is_static(value.type):
            return tuple(value.type.get_dim_size(dim) for dim in range(value.type.rank))
        if value not in self._shapes:
            self._shapes[value] = self._find_shape(value)
        return self._shapes[value]

    def elements(self, value: Any) -> int:
        """How many a tensor has."""
        return math.prod(self.shape(value))

    def number(self, value: Any) -> int:
        """Of an integer that sizes are computed with."""
        if value not in self._numbers:
            self._numbers[value] = self._find_number(value)
        return self._numbers[value]

    def is_decided_by_inputs(self, value: Any) -> bool:
        """Whether an integer that sizes are computed with follows from the shape of an input."""
        if isinstance(value, ir.BlockArgument):
            return False
        if value not in self._dynamic:
            op = value.owner.operation
            self._dynamic[value] = op.name in _DIMS or any(map(self.is_decided_by_inputs, op.operands))
        return self._dynamic[value]

    def mixed(self, op: Any, static: str, segment: int) -> list[int]:
        """Numbers that an operation has partly as an attribute, partly as operands of a segment."""
        return self._filled(op.attributes[static], segments(op)[segment])

    def _filled(self, sizes: Iterable[int], dynamic: Sequence[Any]) -> list[int]:
        values, marker = iter(dynamic), ir.ShapedType.get_dynamic_size()
        return [self.number(next(values)) if size == marker else size for size in sizes]

    def _find_number(self, value: Any) -> int:
        if isinstance(value, ir.BlockArgument):
            raise Unknown(f"an argument of type {value.type} does not follow from the inputs")
        op = value.owner.operation
        operands = op.operands
        name = op.name
        if name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            return int(op.attributes["value"].value)
        if name in _NUMBERS:
            left, right = map(self.number, operands)
            if right or not name.startswith(("arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv")):
                return _NUMBERS[name](left, right)
        if name in _SAME:
            return self.number(operands[0])
        if name in _SAME_BY_POSITION:
            return self.number(operands[value.result_number])
        if name == "arith.cmpi":
            predicate = _PREDICATES[int(op.attributes["predicate"].value)]
            return int(predicate(self.number(operands[0]), self.number(operands[1])))
        if name == "arith.select":
            return self.number(operands[1 if self.number(operands[0]) else 2])
        if name in ("affine.apply", "affine.min", "affine.max"):
            affine_map = op.attributes["map"].value
            numbers = [self.number(operand) for operand in operands]
            values: list[int] = [affine_value(expr, numbers, affine_map.n_dims) for expr in affine_map.results]
            return max(values) if name == "affine.max" else min(values)
        if name in _DIMS:
            tensor = name == "tensor.dim"
            shape = self.shape(operands[0]) if tensor else self._shapes.get(operands[0], ())
            dim = self.number(operands[1]) if tensor else int(op.attributes["index"].value)
            if dim < len(shape):
                return shape[dim]
        raise Unknown(f"the result of {name} does not follow from the inputs")

    def _find_shape(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, ir.BlockArgument):
            raise Unknown(f"the shape of an argument of type {value.type} does not follow from the inputs")
        op = value.owner.operation  # of an OpView, `name` may be an attribute of the operation
        if op.name in ("tensor.empty", "tensor.splat", "tensor.generate", "hal.tensor.import"):
            return self._from_operands(value)
        if op.name == "tensor.pad":
            low, high = self.mixed(op, "static_low", 1), self.mixed(op, "static_high", 2)
            return tuple(map(sum, zip(low, self.shape(op.operands[0]), high, strict=True)))
        if op.name == "tensor.extract_slice":
            sizes = self.mixed(op, "static_sizes", 2)
            dropped = len(sizes) - value.type.rank
            for position in [at for at, size in enumerate(sizes) if size == 1][:dropped][::-1]:
                del sizes[position]
            return tuple(sizes)
        if op.name in ("tensor.insert_slice", "tensor.insert"):
            return self.shape(op.operands[1])
        if op.name in ("tensor.cast", "tensor.bitcast"):
            return self.shape(op.operands[0])
        if op.name == "tensor.expand_shape":
            return tuple(self._filled(op.attributes["static_output_shape"], list(op.operands)[1:]))
        if op.name == "tensor.collapse_shape":
            source = self.shape(op.operands[0])
            groups = op.attributes["reassociation"]
            return tuple(math.prod(source[dim.value] for dim in group) for group in groups)
        if op.name == "tensor.reshape" and not isinstance(op.operands[1], ir.BlockArgument):
            made = op.operands[1].owner.operation
            if made.name == "tensor.from_elements":
                return tuple(map(self.number, made.operands))
        if op.name == "tensor.concat":
            dim = int(op.attributes["dim"].value)
            shapes = [self.shape(operand) for operand in op.operands]
            return (*shapes[0][:dim], sum(shape[dim] for shape in shapes), *shapes[0][dim + 1 :])
        if op.name in _SAME_BY_POSITION:
            return self.shape(op.operands[value.result_number])
        if op.name.startswith(("arith.", "math.")):
            return self.shape(op.operands[-1])
        if op.name.startswith(("linalg.", "iree_linalg_ext.")):
            return self.shape(inits(op)[value.result_number])
        raise Unknown(f"the shape of a result of {op.name} does not follow from the inputs")

    def _from_operands(self, value: Any) -> tuple[int, ...]:
        """Of an operation whose operands, or its last ones, are the dynamic sizes of its result."""
        kind, op = value.type, value.owner.operation
        operands = list(op.operands)
        if op.name == "hal.tensor.import":
            source, operands = operands[0], segments(op)[1]
            if len(self._shapes.get(source, ())) == kind.rank:
                return self._shapes[source]
        sizes = [kind.get_dim_size(dim) for dim in range(kind.rank)]
        dynamic = sizes.count(ir.ShapedType.get_dynamic_size())
        return tuple(self._filled(sizes, operands[len(operands) - dynamic :]))


def segments(op: Any) -> list[list[Any]]:
    """An operation's operands by segment; one with a single segment need not say so."""
    operands = list(op.operands)
    if "operandSegmentSizes" not in op.attributes:
        return [operands]
    parts = []
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(operands[:size])
        operands = operands[size:]
    return parts


def operations_in(op: Any) -> list[Any]:
    """The operations that stand in an operation's regions."""
    return [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]


def nested(op: Any) -> Iterator[Any]:
    """All operations in an operation's regions, at any depth."""
    for inner in operations_in(op):
        yield inner
        yield from nested(inner)


def inits(op: Any) -> list[Any]:
    """The operands that an operation in destination style writes to, one for each result."""
    return list(op.operands)[len(op.operands) - len(op.results) :]


def _is_static(kind: Any) -> bool:
    return bool(kind.has_rank) and not any(kind.is_dynamic_dim(dim) for dim in range(kind.rank))


def affine_value(expr: Any, numbers: Sequence[Any], dims: int) -> Any:
    """An affine expression of numbers, or of arrays of them: so many dimensions, and then symbols."""
    if isinstance(expr, ir.AffineDimExpr):
        return numbers[int(expr.position)]
    if isinstance(expr, ir.AffineSymbolExpr):
        return numbers[dims + int(expr.position)]
    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    left, right = (affine_value(side, numbers, dims) for side in (expr.lhs, expr.rhs))
    if isinstance(expr, ir.AffineAddExpr):
        return left + right
    if isinstance(expr, ir.AffineMulExpr):
        return left * right
    if isinstance(expr, ir.AffineModExpr):
        return left % right
    return _ceil_div(left, right) if isinstance(expr, ir.AffineCeilDivExpr) else left // right
