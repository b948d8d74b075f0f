"""linalg.generic and linalg.softmax on ensembles: bodies run on views of the operands, over pieces of the space.

Affine expressions say where: of index values, and as indexing maps of operands.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.verify.interpreter import (
    ELEMENT_S,
    PRODUCT_S,
    STEP_S,
    Evaluator,
    Operations,
    Results,
    Scope,
    TooLongError,
    in_each_sample,
    kind_of,
)
from harness.verify.linalg_ops import REDUCERS, Bounds, Index, Products, Space, pieces, space_sizes, steps, summed, view
from harness.verify.rounding import Array, UnsupportedError
from harness.verify.scalar_ops import is_float, scalar_op

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


@OPERATIONS.known("linalg.index")
def _linalg_index(_: Evaluator, op: Any, scope: Scope) -> Results:
    at = op.attributes["dim"].value
    return [
        np.arange(*scope.bounds[at]).reshape([-1 if axis == 1 + at else 1 for axis in range(1 + len(scope.bounds))])
    ]


class _Combined(NamedTuple):
    """How a body reduces: `name` of what it had and `added`, whose factors are `factors` where it is a product."""

    name: str
    last: Any
    added: Any
    factors: tuple[Any, ...]
    product: Any


def _combined(block: Any, inits: int) -> _Combined | None:
    """How a body with one result reduces, where it does so with an operation that can be reordered."""
    operations = [operation.operation for operation in block.operations]
    if inits != 1 or len(operations) < 2 or len(operations[-1].operands) != 1:
        return None
    out = block.arguments[len(block.arguments) - 1]
    users = [operation for operation in operations if out in list(operation.operands)]
    last = operations[-2]
    if users != [last] or operations[-1].operands[0] != last.results[0]:
        return None
    if last.name not in ("arith.addf", "arith.addi") and last.name not in REDUCERS:
        return None
    if last.name in ("arith.maxsi", "arith.minsi") and kind_of(last.results[0].type) == "i1":
        return None  # of which 1 is -1
    added = [value for value in last.operands if value != out]
    if len(added) != 1:
        return None
    makers = {result: operation for operation in operations[:-2] for result in operation.results}
    maker = makers.get(added[0])
    is_product = maker is not None and maker.name in ("arith.mulf", "arith.muli") and last.name.startswith("arith.add")
    uses = sum(list(operation.operands).count(added[0]) for operation in operations)
    if maker is None or not is_product or uses != 1:
        return _Combined(last.name, last, added[0], (), None)
    return _Combined(last.name, last, added[0], tuple(maker.operands), maker)


@OPERATIONS.known("linalg.generic")
def _generic(run: Evaluator, op: Any, scope: Scope) -> Results:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = [scope.get(value) for value in op.operands]
    maps = [indices_of(run.ir, attribute.value) for attribute in op.attributes["indexing_maps"]]
    parallel = tuple("parallel" in str(iterator) for iterator in op.attributes["iterator_types"])
    shapes = [values.shape[1:] for values in operands]
    space = Space(sizes=space_sizes(maps, shapes, len(parallel)), parallel=parallel)
    block = op.regions[0].blocks[0]
    body = [operation.operation for operation in block.operations]
    how = _combined(block, segments[1]) if space.reduced else None
    results = Assembled([(values, maps[segments[0] + at]) for at, values in enumerate(operands[segments[0] :])], run)
    samples = max((values.shape[0] for values in operands), default=1)
    samples = max(samples, run.shaker.samples if any(is_float(kind_of(value.type)) for value in op.operands) else 1)
    if space.points == 0:
        return operands[segments[0] :]
    if how is not None and how.product is not None and _is_product(how, space, maps, block, segments):
        run.may_take(2.5 * space.points * samples * PRODUCT_S)
        spans: Any = [tuple((0, size) for size in space.sizes)]
    else:
        loops = 1 if how is not None else math.prod(space.sizes[d] for d in space.reduced)
        run.may_take(space.points * samples * len(body) * ELEMENT_S + loops * len(body) * STEP_S)
        spans = pieces(space, samples, also_reduced=how is not None)
    for bounds in spans:
        if time.process_time() > run.deadline:
            raise TooLongError("more than the time that a check may take")
        results.put(bounds, space, _piece(run, scope, block, body, operands, maps, bounds, space, how))
    return results.arrays()


class Assembled:
    """Tensors that are put together of pieces of an iteration space."""

    def __init__(self, outs: Sequence[tuple[Array, Sequence[Index]]], run: Evaluator) -> None:
        self.run = run
        self.outs: list[Array | None] = [None for _ in outs]
        self.shapes = [values.shape[1:] for values, _ in outs]
        self.fixed: list[list[int]] = []
        self.orders: list[list[int]] = []
        for values, indices in outs:
            self.fixed.append([axis for axis, i in enumerate(indices) if not i.factors and values.shape[1 + axis] == 1])
            moving = [index for axis, index in enumerate(indices) if axis not in self.fixed[-1]]
            if not all(i.function is None and i.constant == 0 and list(i.factors.values()) == [1] for i in moving):
                raise UnsupportedError("an output that is not indexed by its dimensions alone")
            self.orders.append([next(iter(index.factors)) for index in indices if index.factors])

    def put(self, bounds: Bounds, space: Space, pieces_: Sequence[Array]) -> None:
        """Keep the results of one piece."""
        for at, (values, order) in enumerate(zip(pieces_, self.orders, strict=True)):
            full = [bounds[d][1] - bounds[d][0] if space.parallel[d] else 1 for d in range(len(bounds))]
            values = np.broadcast_to(values, (values.shape[0], *full))
            rest = [d for d in range(len(bounds)) if d not in order]
            values = values.transpose(0, *(1 + d for d in order), *(1 + d for d in rest))
            places = [slice(*bounds[d]) for d in order]
            values = values.reshape(values.shape[: 1 + len(order)])
            for axis in self.fixed[at]:
                values = np.expand_dims(values, 1 + axis)
                places.insert(axis, slice(0, 1))
            kept = self.outs[at]
            if kept is None and values.shape[1:] == self.shapes[at]:
                self.outs[at] = np.ascontiguousarray(values)
                continue
            if kept is None:
                kept = np.empty((values.shape[0], *self.shapes[at]), dtype=values.dtype)
            elif values.shape[0] > kept.shape[0]:
                kept = self.run.shaker.full(kept)
            kept[in_each_sample(places)] = values
            self.outs[at] = kept

    def arrays(self) -> list[Array]:
        """The whole tensors."""
        return [out for out in self.outs if out is not None]


def _is_product(
    how: _Combined, space: Space, maps: Sequence[Sequence[Index]], block: Any, segments: Sequence[int]
) -> bool:
    """Whether each factor hangs on operands that are indexed by all reduced dimensions."""
    arguments = list(block.arguments)
    makers = {r: operation.operation for operation in block.operations for r in operation.operation.results}

    def dims(value: Any, depth: int = 0) -> set[int]:
        if value in arguments:
            return {d for index in maps[arguments.index(value)] for d in index.factors}
        maker = makers.get(value)
        if maker is None or depth > 16 or maker.name in ("linalg.index", "tensor.extract"):
            return set()
        return set().union(*(dims(operand, depth + 1) for operand in maker.operands))

    needed = {d for d in space.reduced if space.sizes[d] > 1}
    linear = all(index.function is None for indices in maps for index in indices)
    return linear and all(needed <= dims(factor) for factor in how.factors) and segments[0] > 0


def _piece(
    run: Evaluator,
    parent: Scope,
    block: Any,
    body: Sequence[Any],
    operands: Sequence[Array],
    maps: Sequence[Sequence[Index]],
    bounds: Bounds,
    space: Space,
    how: _Combined | None,
) -> list[Array]:
    """The results over a piece of the space, with one axis a dimension, of size 1 where it is reduced."""
    arguments = list(block.arguments)
    inits = [at for at in range(len(arguments)) if at >= len(operands) - len(body[-1].operands)]
    if how is None and space.reduced:
        fixed = [
            view(operands[at], maps[at], tuple(b if p else (0, 1) for b, p in zip(bounds, space.parallel, strict=True)))
            for at in inits
        ]
        for place in steps(space):
            where = dict(zip(space.reduced, place, strict=True))
            here = tuple((where[d], where[d] + 1) if d in where else bound for d, bound in enumerate(bounds))
            scope = Scope(parent=parent, bounds=here)
            for at, argument in enumerate(arguments):
                values = fixed[at - inits[0]] if at in inits else view(operands[at], maps[at], here)
                scope.values[argument] = values
            fixed = [scope.get(value) for value in run.run(block, scope).operands]
        return fixed
    scope = Scope(parent=parent, bounds=bounds)
    for at, argument in enumerate(arguments):
        scope.values[argument] = view(operands[at], maps[at], bounds)
    if how is None:
        return [scope.get(value) for value in run.run(block, scope).operands]
    for operation in body[:-2]:
        if how.product is None or operation != how.product:
            run.step(operation, scope)
    start = scope.get(arguments[-1])
    kind = kind_of(how.last.results[0].type)
    part = Space(sizes=tuple(high - low for low, high in bounds), parallel=space.parallel)
    axes = tuple(1 + d for d in space.reduced)
    full = [size if is_parallel else 1 for size, is_parallel in zip(part.sizes, part.parallel, strict=True)]
    start = np.broadcast_to(start, (start.shape[0], *full))
    if how.product is not None:
        left, right = (scope.get(value) for value in how.factors)
        products = Products(left=left, right=right, space=part, kind=kind)
        if products.fits():
            return [products.added_to(start, run.shaker)]
        run.step(how.product, scope)
    added = scope.get(how.added)
    added = np.broadcast_to(added, (added.shape[0], *part.sizes))
    if how.name in REDUCERS:
        most = REDUCERS[how.name](added, axis=axes, keepdims=True)
        first = {"index": "i"}.get(kind, kind)
        if is_float(first):
            return [run.shaker.extreme(_pairwise(how.name), np.asarray(start), most)]
        return [np.asarray(REDUCERS[how.name](np.stack(np.broadcast_arrays(start, most)), axis=0))]
    return [summed(added, start, axes, kind, run.shaker)]


def _pairwise(name: str) -> Callable[[Array, Array], Array]:
    pairs = {"arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax}
    return pairs.get(name, np.fmin)


@OPERATIONS.known("linalg.softmax")
def _softmax(run: Evaluator, op: Any, scope: Scope) -> Results:
    values, axis = scope.get(op.operands[0]), 1 + op.attributes["dimension"].value
    return [softmax_of(run, values, axis, kind_of(op.results[0].type))]


def softmax_of(run: Evaluator, values: Array, axis: int, kind: str) -> Array:
    """A softmax along an axis, each of its operations rounded."""
    run.may_take(values.size * 3 * ELEMENT_S)
    with np.errstate(all="ignore"):
        shifted = run.shaker.rounded(values - values.max(axis=axis, keepdims=True), kind)
        powers = scalar_op("math.exp", [shifted], kind, kind, 0, run.shaker)
        zero = np.zeros((1, *(1 if at + 1 == axis else size for at, size in enumerate(powers.shape[1:]))))
        return run.shaker.rounded(powers / summed(powers, zero, (axis,), kind, run.shaker), kind)
