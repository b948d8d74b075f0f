"""linalg.generic and linalg.softmax on ensembles: bodies run on views of the operands, over pieces of the space."""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.ir.sizes import affine_value
from harness.verify.interpreter import ELEMENT_S, PRODUCT_S, STEP_S, Evaluator, Results, Scope, kind_of, known
from harness.verify.linalg_ops import REDUCERS, Bounds, Index, Products, Space, pieces, space_sizes, steps, summed, view
from harness.verify.rounding import Array, UnsupportedError
from harness.verify.scalar_ops import is_float, scalar_op


@known("affine.apply")
def _apply(_: Evaluator, op: Any, scope: Scope) -> Results:
    map_ = op.attributes["map"].value
    return [np.atleast_1d(affine_value(map_.results[0], [scope.get(value) for value in op.operands], map_.n_dims))]


def indices_of(op: Any) -> list[list[Index]]:
    """The results of an operation's indexing maps."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    return [[_index(expression, map_.n_dims) for expression in map_.results] for map_ in maps]


def _index(expression: Any, dimensions: int) -> Index:
    def at(dims: Sequence[Array]) -> Any:
        return affine_value(expression, dims, dimensions)

    if re.search("mod|div", str(expression)):
        return Index(function=at)
    # At the origin, and one step along each dimension from there.
    points = np.vstack([np.zeros(dimensions), np.eye(dimensions)]).astype(int)
    constant, *steps = np.broadcast_to(at(list(points.T)), dimensions + 1).tolist()
    return Index(factors={d: step - constant for d, step in enumerate(steps) if step != constant}, constant=constant)


@known("linalg.index")
def _linalg_index(_: Evaluator, op: Any, scope: Scope) -> Results:
    at = op.attributes["dim"].value
    return [
        np.arange(*scope.bounds[at]).reshape([-1 if axis == 1 + at else 1 for axis in range(1 + len(scope.bounds))])
    ]


class _Reduction(NamedTuple):
    """How a body reduces: with `operation` of what it had and `added`, maybe a product of `factors`."""

    operation: Any
    added: Any
    factors: tuple[Any, ...] = ()
    product: Any = None  # The operation that multiplies them


def _reduction(block: Any) -> _Reduction | None:
    """How a body with one result reduces, where it does so with an operation that can be reordered."""
    operations = [operation.operation for operation in block.operations]
    if len(operations) < 2 or len(operations[-1].operands) != 1:
        return None
    out, last = block.arguments[len(block.arguments) - 1], operations[-2]
    users = [operation for operation in operations if out in list(operation.operands)]
    if users != [last] or operations[-1].operands[0] != last.results[0]:
        return None
    if last.name not in ("arith.addf", "arith.addi") and last.name not in REDUCERS:
        return None
    if last.name in ("arith.maxsi", "arith.minsi") and kind_of(last.results[0].type) == "i1":
        return None  # of which 1 is -1
    added = [value for value in last.operands if value != out]
    if len(added) != 1:
        return None
    maker = next((operation for operation in operations[:-2] if added[0] in list(operation.results)), None)
    is_product = maker is not None and maker.name in ("arith.mulf", "arith.muli") and last.name.startswith("arith.add")
    if maker is None or not is_product or sum(list(user.operands).count(added[0]) for user in operations) != 1:
        return _Reduction(last, added[0])
    return _Reduction(last, added[0], tuple(maker.operands), maker)


@known("linalg.generic")
def _generic(run: Evaluator, op: Any, scope: Scope) -> Results:
    return _Generic(run, op, scope).results()


class _Generic:
    """A linalg.generic with its operands."""

    def __init__(self, run: Evaluator, op: Any, scope: Scope) -> None:
        self.run, self.op, self.scope = run, op, scope
        self.block = op.regions[0].blocks[0]
        self.body = [operation.operation for operation in self.block.operations]
        self.operands = [scope.get(value) for value in op.operands]
        self.inputs = int(op.attributes["operandSegmentSizes"][0])
        self.maps = indices_of(op)
        parallel = tuple("parallel" in str(iterator) for iterator in op.attributes["iterator_types"])
        shapes = [values.shape[1:] for values in self.operands]
        self.space = Space(sizes=space_sizes(self.maps, shapes, len(parallel)), parallel=parallel)
        one_output = len(self.operands) == self.inputs + 1
        self.how = _reduction(self.block) if self.space.reduced and one_output else None
        self.made: dict[int, Array] = {}  # Outputs, by their number

    def results(self) -> list[Array]:
        """Its outputs, put together of pieces of the space."""
        run, space, outs = self.run, self.space, self.operands[self.inputs :]
        if space.points == 0:
            return outs
        for values, indices in zip(outs, self.maps[self.inputs :], strict=True):
            moving = [
                index
                for index, size in zip(indices, values.shape[1:], strict=True)
                if index.factors or index.function is not None or size > 1
            ]
            dimensions = {index.dimension for index in moving}
            if None in dimensions or len(dimensions) < len(moving):
                raise UnsupportedError("an output that is not indexed by its dimensions alone")
        samples = max((values.shape[0] for values in self.operands), default=1)
        if any(is_float(kind_of(value.type)) for value in self.op.operands):
            samples = max(samples, run.shaker.samples)
        if self._is_product():
            run.may_take(2.5 * space.points * samples * PRODUCT_S)
            spans: Any = [tuple((0, size) for size in space.sizes)]
        else:
            loops = 1 if self.how is not None else math.prod(space.sizes[d] for d in space.reduced)
            run.may_take(space.points * samples * len(self.body) * ELEMENT_S + loops * len(self.body) * STEP_S)
            spans = pieces(space, samples, also_reduced=self.how is not None)
        for bounds in spans:
            run.may_take(0.0)
            for number, values in enumerate(self._piece(bounds)):
                self._put(number, values, bounds)
        return [self.made[number] for number in range(len(outs))]

    def _put(self, number: int, values: Array, bounds: Bounds) -> None:
        kept = self.made.get(number)
        if kept is None:
            kept = np.empty((values.shape[0], *self.operands[self.inputs + number].shape[1:]), dtype=values.dtype)
        elif values.shape[0] > kept.shape[0]:
            kept = self.run.shaker.full(kept)
        view(kept, self.maps[self.inputs + number], bounds, writeable=True)[...] = values
        self.made[number] = kept

    def _is_product(self) -> bool:
        """Whether it sums products, each factor of operands that are indexed by all reduced dimensions."""
        if self.how is None or self.how.product is None or not self.inputs:
            return False
        arguments = list(self.block.arguments)
        makers = {result: operation for operation in self.body for result in operation.results}

        def dims(value: Any, depth: int = 0) -> set[int]:
            if value in arguments:
                return {d for index in self.maps[arguments.index(value)] for d in index.factors}
            maker = makers.get(value)
            if maker is None or depth > 16 or maker.name in ("linalg.index", "tensor.extract"):
                return set()
            return set().union(*(dims(operand, depth + 1) for operand in maker.operands))

        needed = {d for d in self.space.reduced if self.space.sizes[d] > 1}
        linear = all(index.function is None for indices in self.maps for index in indices)
        return linear and all(needed <= dims(factor) for factor in self.how.factors)

    def _inside(self, bounds: Bounds, outs: Sequence[Array] | None = None) -> Scope:
        """The body's scope over a piece, in which outputs have these values or what they had before."""
        scope = Scope(parent=self.scope, bounds=bounds)
        given = self.inputs if outs is not None else len(self.operands)
        seen = [view(self.operands[at], self.maps[at], bounds) for at in range(given)]
        scope.values.update(zip(self.block.arguments, [*seen, *(outs or ())], strict=True))
        return scope

    def _yielded(self, scope: Scope) -> list[Array]:
        return [scope.get(value) for value in self.run.run(self.block, scope).operands]

    def _piece(self, bounds: Bounds) -> list[Array]:
        """The results over a piece of the space, with one axis a dimension, of size 1 where it is reduced."""
        if self.how is not None:
            return [self._reduced(self.how, bounds)]
        if not self.space.reduced:
            return self._yielded(self._inside(bounds))
        first = tuple(bound if d not in self.space.reduced else (0, 1) for d, bound in enumerate(bounds))
        values = [view(self.operands[at], self.maps[at], first) for at in range(self.inputs, len(self.operands))]
        for place in steps(self.space):
            where = dict(zip(self.space.reduced, place, strict=True))
            here = tuple((where[d], where[d] + 1) if d in where else bound for d, bound in enumerate(bounds))
            values = self._yielded(self._inside(here, values))
        return values

    def _reduced(self, how: _Reduction, bounds: Bounds) -> Array:
        """What is reduced over a piece: as a product of matrices where it can be, else at once."""
        run, shaker, scope = self.run, self.run.shaker, self._inside(bounds)
        for operation in self.body[:-2]:
            if how.product is None or operation != how.product:
                run.step(operation, scope)
        start = scope.get(self.block.arguments[len(self.block.arguments) - 1])
        kind = kind_of(how.operation.results[0].type)
        part = Space(sizes=tuple(high - low for low, high in bounds), parallel=self.space.parallel)
        full = [size if is_parallel else 1 for size, is_parallel in zip(part.sizes, part.parallel, strict=True)]
        start = np.broadcast_to(start, (start.shape[0], *full))
        if how.product is not None:
            left, right = (scope.get(value) for value in how.factors)
            products = Products(left=left, right=right, space=part, kind=kind)
            if products.fits():
                return products.added_to(start, shaker)
            run.step(how.product, scope)
        axes = tuple(1 + d for d in part.reduced)
        added = scope.get(how.added)
        added = np.broadcast_to(added, (added.shape[0], *part.sizes))
        if how.operation.name not in REDUCERS:
            return summed(added, start, axes, kind, shaker)
        function = REDUCERS[how.operation.name]
        most = function.reduce(added, axis=axes, keepdims=True)
        if is_float(kind):
            return shaker.extreme(function, np.asarray(start), most)
        return np.asarray(function(start, most))


@known("linalg.softmax")
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
