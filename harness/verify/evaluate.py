"""A program's right outputs: what is left of it once IREE has turned it into linalg on tensors, evaluated with NumPy.

It knows functions, calls, globals and parameters, structured control flow, tensors, and the ABI's imports and exports;
linalg_ops and scalar_ops know the arithmetic. Values are ensembles (see rounding), so what comes out says how far each
element may be off. It runs in a process of its own, since parsing foreign IR in LLVM's libraries may end that process:

    python -m harness.verify.evaluate REQUEST.json     one JSON object on stdout, arrays in the request's folder
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.models.inputs import Argument, from_bf16_bits, load_argument
from harness.verify.linalg_ops import REDUCERS, Bounds, Index, Products, Space, pieces, space_sizes, steps, summed, view
from harness.verify.rounding import FACTOR, UNIT, Array, Shaker, UnsupportedError, merged, spread
from harness.verify.scalar_ops import dtype_of, is_float, scalar_op

# Seconds for a multiply-add of a matrix product, for an element that an operation gives, for a step of a loop.
_PRODUCT_S, _ELEMENT_S, _STEP_S = 1.5e-10, 2e-8, 2e-4
_SAMPLES = (9, 5, 3)
_CALLS = ("util.call", "func.call")
_PASSED_ON = {
    "flow.tensor.tie_shape", "hal.tensor.alias", "hal.tensor.barrier", "tensor.cast", "util.assume.int",
    "util.optimization_barrier", "flow.tensor.bitcast", "util.numeric.optional_narrow",
}  # fmt: skip
_WITHOUT_VALUE = {"hal.fence.create", "hal.devices.get", "util.null", "hal.fence.await"}
_NOTHING = {"cf.assert", "hal.fence.signal"}


class TooLongError(Exception):
    """The evaluation would take longer than it may; its text says how long."""


class Exported(NamedTuple):
    """A tensor that the program gives to its caller, with its element type."""

    values: Array
    kind: str


@dataclass
class Scope:
    """The values of a region, and where it is in an iteration space.

    Attributes:
        bounds: Of the space; () outside of one. A scalar has one axis a dimension, behind that of the samples.
        reduced: Whether values differ along reduced dimensions that a loop has fixed.
    """

    parent: Scope | None = None
    bounds: Bounds = ()
    values: dict[Any, Any] = field(default_factory=dict)

    def get(self, value: Any) -> Any:
        """A value as operations of this region meet it."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.values:
                found = scope.values[value]
                missing = len(self.bounds) - len(scope.bounds)
                if missing and isinstance(found, np.ndarray) and found.ndim == 1 + len(scope.bounds):
                    found = found.reshape(found.shape + (1,) * missing) if not _is_tensor(value.type) else found
                return found
            scope = scope.parent
        raise UnsupportedError("a value from outside of its region")


class Evaluator:
    """Evaluates functions of one module.

    Args:
        module: As `iree.compiler.ir` parses it.
        resources: The bytes of its dense resources, by name.
        parameters: Gives the bytes of an external weight, by scope and key.
        deadline: On time.monotonic's clock.
    """

    def __init__(
        self,
        module: Any,
        resources: Mapping[str, bytes],
        parameters: Callable[[str, str], bytes],
        shaker: Shaker,
        deadline: float,
    ) -> None:
        from iree.compiler import ir

        self.ir = ir
        self.resources = resources
        self.parameters = parameters
        self.shaker = shaker
        self.deadline = deadline
        self.functions: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}
        initializers = []
        for operation in module.body.operations:
            match operation.operation.name:
                case "util.func" | "func.func":
                    self.functions[_symbol(operation.attributes["sym_name"])] = operation.operation
                case "util.global":
                    attributes = operation.attributes
                    initial = attributes["initial_value"] if "initial_value" in attributes else None
                    self.globals[_symbol(attributes["sym_name"])] = (attributes["type"].value, initial)
                case "util.initializer":
                    initializers.append(operation.operation)
        for initializer in initializers:
            self.region(initializer.regions[0], [], Scope())

    def call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """The results of a function.

        Raises:
            UnsupportedError: It has what is not known here.
            TooLongError: The deadline would pass.
        """
        function = self.functions.get(name)
        if function is None or not len(function.regions[0].blocks):
            raise UnsupportedError(f"a call of @{name}, which is not in the program")
        return self.region(function.regions[0], arguments, Scope())

    def region(self, region: Any, arguments: Sequence[Any], parent: Scope) -> list[Any]:
        """What a region's terminator has, its blocks run as branches say."""
        block = region.blocks[0]
        scope = Scope(parent=parent, bounds=parent.bounds)
        while True:
            scope.values.update(zip(block.arguments, arguments, strict=True))
            terminator = self.run(block, scope)
            operands = [scope.get(value) for value in terminator.operands]
            if terminator.name == "cf.br":
                block, arguments = terminator.successors[0], operands
            elif terminator.name == "cf.cond_br":
                first = terminator.attributes["operandSegmentSizes"][1]
                taken = bool(self.number(operands[0]))
                block = terminator.successors[0 if taken else 1]
                arguments = operands[1 : 1 + first] if taken else operands[1 + first :]
            else:
                return operands

    def run(self, block: Any, scope: Scope) -> Any:
        """Run a block's operations; its terminator, which is not run."""
        operations = [operation.operation for operation in block.operations]
        for operation in operations[:-1]:
            self.step(operation, scope)
        return operations[-1]

    def step(self, operation: Any, scope: Scope) -> None:
        """Run one operation, and keep its results in the scope."""
        if time.monotonic() > self.deadline:
            raise TooLongError("more than the time that a check may take")
        results = self.results(operation, scope)
        scope.values.update(zip(operation.results, results, strict=False))

    def results(self, operation: Any, scope: Scope) -> Sequence[Any]:
        """The results of one operation."""
        name = operation.name
        if name in _NOTHING:
            return ()
        if name in _WITHOUT_VALUE:
            return [None] * len(operation.results)
        if name in _PASSED_ON:
            return [scope.get(value) for value in list(operation.operands)[: len(operation.results)]]
        if name in _CALLS:
            return self.call(_symbol(operation.attributes["callee"]), [scope.get(v) for v in operation.operands])
        if name in _OPERATIONS:
            return _OPERATIONS[name](self, operation, scope)
        if name.startswith(("arith.", "math.")) and len(operation.results) == 1:
            predicate = operation.attributes["predicate"].value if "predicate" in operation.attributes else 0
            operands = [scope.get(value) for value in operation.operands]
            kinds = [_kind(operation.results[0].type), _kind(operation.operands[0].type)]
            return [scalar_op(name, operands, *kinds, predicate, self.shaker)]
        raise UnsupportedError(name)

    def number(self, values: Array) -> int:
        """A value that all samples agree on.

        Raises:
            UnsupportedError: They do not: the program goes one way or another after a rounding.
        """
        if not (values == values.flat[0]).all():
            raise UnsupportedError("control flow or sizes that hang on rounded values")
        return int(values.flat[0])

    def numbers(self, operation: Any, scope: Scope, dynamic: Sequence[Any], attribute: str) -> list[int]:
        """A list of numbers of which some are attributes and the others operands."""
        rest = iter(dynamic)
        sentinel = self.ir.ShapedType.get_dynamic_size()
        static = list(operation.attributes[attribute])
        return [self.number(scope.get(next(rest))) if size == sentinel else int(size) for size in static]

    def sizes(self, tensor: Any, dynamic: Sequence[Any], scope: Scope) -> list[int]:
        """A tensor's shape, whose unknown sizes operands give."""
        rest = iter(dynamic)
        sentinel = self.ir.ShapedType.get_dynamic_size()
        return [self.number(scope.get(next(rest))) if size == sentinel else int(size) for size in tensor.shape]

    def constant(self, attribute: Any, type_: Any) -> Array:
        """A constant's values; a splat takes the place of one element.

        Raises:
            UnsupportedError: Its form is not known.
        """
        ir, kind, text = self.ir, _kind(type_), ""
        shape = [int(size) for size in type_.shape] if _is_tensor(type_) else []
        if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
            return np.full((1, *shape), attribute.value).astype(dtype_of(kind))
        if isinstance(attribute, ir.DenseElementsAttr):
            if attribute.is_splat:
                value = attribute.get_splat_value()
                return np.broadcast_to(np.array(value.value).astype(dtype_of(kind)), (1, *shape))
            try:
                return np.asarray(np.array(attribute).reshape(1, *shape).astype(dtype_of(kind)))
            except TypeError:
                text = str(attribute)
        text = text or str(attribute)
        if found := re.match(r'dense<"0x([0-9A-Fa-f]*)">', text):
            return _decoded(bytes.fromhex(found[1]), kind, shape)
        if kind == "bf16" and text.startswith("dense<"):
            numbers = re.findall(r"[-+0-9.eEx]+", text[: text.rindex(">")])
            return np.array([float(number) for number in numbers]).reshape(1, *shape)
        if found := re.match(r"dense_resource<\"?([^\">]+)\"?>", text):
            return _decoded(self.resources[found[1]][4:], kind, shape)
        if found := re.match(r'#(?:flow|stream)\.parameter\.named<(?:"([^"]*)"::)?"([^"]*)">', text):
            return _decoded(self.parameters(found[1] or "", found[2]), kind, shape)
        raise UnsupportedError(f"a constant {text[:40]}")

    def may_take(self, seconds: float) -> None:
        """Refuse what would end after the deadline.

        Raises:
            TooLongError: It would.
        """
        if time.monotonic() + seconds > self.deadline:
            raise TooLongError(f"one operation of about {seconds:.0f} s")


def _symbol(attribute: Any) -> str:
    return str(attribute.value)


def _is_tensor(type_: Any) -> bool:
    return hasattr(type_, "shape")


def _kind(type_: Any) -> str:
    return str(type_.element_type if _is_tensor(type_) else type_)


def _decoded(data: bytes, kind: str, shape: Sequence[int]) -> Array:
    count = math.prod(shape)
    if kind == "i1":
        values = np.frombuffer(data, dtype=np.uint8)
        if values.size < count:
            values = np.unpackbits(values, bitorder="little")
        return np.resize(values.astype(bool), count).reshape(1, *shape)
    if kind == "bf16":
        values = from_bf16_bits(np.frombuffer(data, dtype="<u2")).astype(np.float64)
    else:
        stored = {"f16": "<f2", "f32": "<f4", "f64": "<f8"}.get(kind, dtype_of(kind))
        values = np.frombuffer(data, dtype=stored).astype(dtype_of(kind))
    return np.resize(values, count).reshape(1, *shape) if values.size in (1, count) else _wrong_size(kind)


def _wrong_size(kind: str) -> Array:
    raise UnsupportedError(f"a constant of {kind} whose data has another size")


# --- operations -------------------------------------------------------------------------------------------------------

_Results = Sequence[Any]
_OPERATIONS: dict[str, Callable[[Evaluator, Any, Scope], _Results]] = {}


def _operation(*names: str) -> Callable[[Callable[[Evaluator, Any, Scope], _Results]], Any]:
    def known(function: Callable[[Evaluator, Any, Scope], _Results]) -> Any:
        _OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return known


@_operation("arith.constant", "util.unfoldable_constant", "flow.tensor.constant")
def _constant(run: Evaluator, op: Any, scope: Scope) -> _Results:
    values = run.constant(op.attributes["value"], op.results[0].type)
    return [values.reshape(values.shape + (1,) * len(scope.bounds)) if values.ndim == 1 else values]


@_operation("arith.select")
def _select(_: Evaluator, op: Any, scope: Scope) -> _Results:
    condition, yes, no = (scope.get(value) for value in op.operands)
    if _is_tensor(op.results[0].type) and condition.ndim < yes.ndim:
        condition = condition.reshape(condition.shape + (1,) * (yes.ndim - condition.ndim))
    return [merged(np.where(condition, yes, no))]


@_operation("hal.tensor.import")
def _import(_: Evaluator, op: Any, scope: Scope) -> _Results:
    given = scope.get(op.operands[0])
    return [given.values if isinstance(given, Exported) else given]


@_operation("hal.tensor.export")
def _export(_: Evaluator, op: Any, scope: Scope) -> _Results:
    return [Exported(scope.get(op.operands[0]), _kind(op.operands[0].type))]


@_operation("hal.buffer_view.dim")
def _buffer_dim(_: Evaluator, op: Any, scope: Scope) -> _Results:
    return [np.array([scope.get(op.operands[0]).shape[1 + op.attributes["index"].value]])]


@_operation("util.global.load")
def _load(run: Evaluator, op: Any, _: Scope) -> _Results:
    name = _symbol(op.attributes["global"])
    found = run.globals[name]
    if isinstance(found, tuple):
        type_, initial = found
        if initial is None:
            raise UnsupportedError(f"the global @{name}, which has no value")
        found = run.globals[name] = run.constant(initial, type_)
    return [found]


@_operation("util.global.store")
def _store(run: Evaluator, op: Any, scope: Scope) -> _Results:
    run.globals[_symbol(op.attributes["global"])] = scope.get(op.operands[0])
    return ()


@_operation("scf.if")
def _if(run: Evaluator, op: Any, scope: Scope) -> _Results:
    condition = scope.get(op.operands[0])
    if not scope.bounds or (condition == condition.flat[0]).all():
        taken = 0 if run.number(condition) else 1
        return run.region(op.regions[taken], [], scope) if len(op.regions[taken].blocks) else ()
    yes, no = (run.region(region, [], scope) for region in op.regions)
    return [merged(np.where(condition, a, b)) for a, b in zip(yes, no, strict=True)]


@_operation("scf.for")
def _for(run: Evaluator, op: Any, scope: Scope) -> _Results:
    low, high, step = (run.number(scope.get(value)) for value in list(op.operands)[:3])
    carried = [scope.get(value) for value in list(op.operands)[3:]]
    for at in range(low, high, step):
        place = np.full((1,) * (1 + len(scope.bounds)), at)
        carried = run.region(op.regions[0], [place, *carried], scope)
    return carried


@_operation("scf.while")
def _while(run: Evaluator, op: Any, scope: Scope) -> _Results:
    carried: Sequence[Any] = [scope.get(value) for value in op.operands]
    while True:
        condition, *passed = run.region(op.regions[0], carried, scope)
        if not run.number(condition):
            return passed
        carried = run.region(op.regions[1], passed, scope)


@_operation("tensor.empty")
def _empty(run: Evaluator, op: Any, scope: Scope) -> _Results:
    tensor = op.results[0].type
    shape = run.sizes(tensor, list(op.operands), scope)
    return [np.broadcast_to(np.zeros((), dtype=dtype_of(_kind(tensor))), (1, *shape))]


@_operation("tensor.splat", "flow.tensor.splat")
def _splat(run: Evaluator, op: Any, scope: Scope) -> _Results:
    value, *dynamic = op.operands
    shape = run.sizes(op.results[0].type, dynamic, scope)
    values = scope.get(value)
    return [np.broadcast_to(values.reshape(-1, *(1,) * len(shape)), (values.shape[0], *shape))]


@_operation("tensor.dim")
def _dim(run: Evaluator, op: Any, scope: Scope) -> _Results:
    at = run.number(scope.get(op.operands[1]))
    return [np.full((1,) * (1 + len(scope.bounds)), scope.get(op.operands[0]).shape[1 + at])]


@_operation("tensor.extract")
def _extract(_: Evaluator, op: Any, scope: Scope) -> _Results:
    tensor, *places = (scope.get(value) for value in op.operands)
    axes = [np.clip(place, 0, size - 1) for place, size in zip(places, tensor.shape[1:], strict=True)]
    samples = max(tensor.shape[0], *(place.shape[0] for place in axes), 1) if axes else tensor.shape[0]
    if not axes:
        return [tensor.reshape(tensor.shape[0], *(1,) * len(scope.bounds))]
    taken = [tensor[s % tensor.shape[0]][tuple(place[s % place.shape[0]] for place in axes)] for s in range(samples)]
    return [merged(np.stack([np.asarray(values) for values in taken]))]


@_operation("tensor.insert")
def _insert(run: Evaluator, op: Any, scope: Scope) -> _Results:
    value, tensor, *places = (scope.get(operand) for operand in op.operands)
    result = run.shaker.full(tensor) if value.shape[0] > tensor.shape[0] else tensor.copy()
    result[(slice(None), *(run.number(place) for place in places))] = value
    return [result]


@_operation("tensor.from_elements")
def _from_elements(_: Evaluator, op: Any, scope: Scope) -> _Results:
    values = [scope.get(value) for value in op.operands]
    samples = max(value.shape[0] for value in values)
    rows = np.stack([np.broadcast_to(value, (samples,)) for value in values], axis=1)
    return [rows.reshape(samples, *op.results[0].type.shape)]


@_operation("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape")
def _reshape(run: Evaluator, op: Any, scope: Scope) -> _Results:
    values = scope.get(op.operands[0])
    if op.name == "tensor.expand_shape":
        shape = run.numbers(op, scope, list(op.operands)[1:], "static_output_shape")
    elif op.name == "tensor.reshape":
        shape = [run.number(size[None]) for size in scope.get(op.operands[1])[0]]
    else:
        groups = [[int(d.value) for d in group] for group in op.attributes["reassociation"]]
        shape = [math.prod(values.shape[1 + d] for d in group) for group in groups]
    return [values.reshape(values.shape[0], *shape)]


def _slices(run: Evaluator, op: Any, scope: Scope) -> tuple[tuple[slice, ...], list[int]]:
    segments = list(op.attributes["operandSegmentSizes"])
    groups, at = [], 0
    for size in segments:
        groups.append(list(op.operands)[at : at + size])
        at += size
    offsets, sizes, strides = (
        run.numbers(op, scope, group, f"static_{name}")
        for group, name in zip(groups[-3:], ("offsets", "sizes", "strides"), strict=True)
    )
    spans = zip(offsets, sizes, strides, strict=True)
    return tuple(slice(low, low + (size - 1) * step + 1 if size else low, step) for low, size, step in spans), sizes


@_operation("tensor.extract_slice")
def _extract_slice(run: Evaluator, op: Any, scope: Scope) -> _Results:
    values = scope.get(op.operands[0])
    slices, sizes = _slices(run, op, scope)
    taken = values[(slice(None), *slices)]
    if list(taken.shape[1:]) != sizes:
        raise UnsupportedError("a slice that leaves its tensor")
    tensor = op.results[0].type
    shape = sizes if len(tensor.shape) == len(sizes) else _dropped(sizes, list(tensor.shape))
    return [taken.reshape(taken.shape[0], *shape)]


def _dropped(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Sizes without as many ones as the result's type has fewer dimensions; a size of the type may be unknown."""
    left, surplus = [], len(sizes) - len(shape)
    for size in sizes:
        expected = shape[len(left)] if len(left) < len(shape) else None
        if surplus and size == 1 and expected != 1:
            surplus -= 1
        else:
            left.append(size)
    if surplus:
        raise UnsupportedError("a slice whose dropped dimensions are not plain")
    return left


@_operation("tensor.insert_slice")
def _insert_slice(run: Evaluator, op: Any, scope: Scope) -> _Results:
    source, target = scope.get(op.operands[0]), scope.get(op.operands[1])
    slices, sizes = _slices(run, op, scope)
    result = run.shaker.full(target) if source.shape[0] > target.shape[0] else target.copy()
    result[(slice(None), *slices)] = source.reshape(source.shape[0], *sizes)
    return [result]


@_operation("tensor.concat")
def _concat(_: Evaluator, op: Any, scope: Scope) -> _Results:
    parts = [scope.get(value) for value in op.operands]
    samples = max(part.shape[0] for part in parts)
    parts = [np.broadcast_to(part, (samples, *part.shape[1:])) for part in parts]
    return [np.concatenate(parts, axis=1 + op.attributes["dim"].value)]


@_operation("tensor.pad")
def _pad(run: Evaluator, op: Any, scope: Scope) -> _Results:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    low = run.numbers(op, scope, operands[1 : 1 + segments[1]], "static_low")
    high = run.numbers(op, scope, operands[1 + segments[1] :], "static_high")
    values = scope.get(operands[0])
    (fill,) = run.region(op.regions[0], [np.zeros(1, dtype=np.int64)] * len(low), scope)
    samples = max(values.shape[0], fill.shape[0])
    shape = [a + size + b for a, size, b in zip(low, values.shape[1:], high, strict=True)]
    result = np.empty((samples, *shape), dtype=values.dtype)
    result[...] = fill.reshape(-1, *(1,) * len(shape))
    places = [(slice(max(0, a), a + size + min(0, b)), slice(max(0, -a), size + min(0, b) if b < 0 else None))
              for a, size, b in zip(low, values.shape[1:], high, strict=True)]  # fmt: skip
    result[(slice(None), *(into for into, _ in places))] = values[(slice(None), *(taken for _, taken in places))]
    return [result]


@_operation("affine.apply")
def _apply(run: Evaluator, op: Any, scope: Scope) -> _Results:
    map_ = op.attributes["map"].value
    operands = [scope.get(value) for value in op.operands]
    return [_computed(run.ir, map_.results[0], operands[: map_.n_dims], operands[map_.n_dims :])]


def _computed(ir: Any, expression: Any, dims: Sequence[Array], symbols: Sequence[Array] = ()) -> Array:
    """An affine expression of index values."""
    match expression:
        case ir.AffineConstantExpr():
            return np.array([expression.value])
        case ir.AffineDimExpr():
            return dims[expression.position]
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
    left, right = (_computed(ir, side, dims, symbols) for side in (expression.lhs, expression.rhs))
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


def _indices(ir: Any, map_: Any) -> list[Index]:
    """The results of an indexing map."""
    return [_index(ir, expression) for expression in map_.results]


def _index(ir: Any, expression: Any) -> Index:
    try:
        factors, constant = _linear(ir, expression)
        return Index(factors=factors, constant=constant)
    except ValueError:
        return Index(function=lambda dims: _computed(ir, expression, dims))


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


# --- linalg -----------------------------------------------------------------------------------------------------------


@_operation("linalg.index")
def _linalg_index(_: Evaluator, op: Any, scope: Scope) -> _Results:
    at = op.attributes["dim"].value
    return [np.arange(*scope.bounds[at]).reshape([-1 if axis == 1 + at else 1 for axis in range(1 + len(scope.bounds))])]


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
    added = [value for value in last.operands if value != out]
    if len(added) != 1:
        return None
    makers = {result: operation for operation in operations[:-2] for result in operation.results}
    maker = makers.get(added[0])
    is_product = maker is not None and maker.name in ("arith.mulf", "arith.muli") and last.name.startswith("arith.add")
    uses = sum(list(operation.operands).count(added[0]) for operation in operations)
    if not is_product or uses != 1:
        return _Combined(last.name, last, added[0], (), None)
    return _Combined(last.name, last, added[0], tuple(maker.operands), maker)


@_operation("linalg.generic")
def _generic(run: Evaluator, op: Any, scope: Scope) -> _Results:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = [scope.get(value) for value in op.operands]
    maps = [_indices(run.ir, attribute.value) for attribute in op.attributes["indexing_maps"]]
    parallel = tuple("parallel" in str(iterator) for iterator in op.attributes["iterator_types"])
    shapes = [values.shape[1:] for values in operands]
    space = Space(sizes=space_sizes(maps, shapes, len(parallel)), parallel=parallel)
    block = op.regions[0].blocks[0]
    body = [operation.operation for operation in block.operations]
    how = _combined(block, segments[1]) if space.reduced else None
    results = _Results_of([(values, maps[segments[0] + at]) for at, values in enumerate(operands[segments[0] :])], run)
    samples = max((values.shape[0] for values in operands), default=1)
    samples = max(samples, run.shaker.samples if any(is_float(_kind(value.type)) for value in op.operands) else 1)
    if space.points == 0:
        return [values if space.reduced else values for values in operands[segments[0] :]]
    if how is not None and how.product is not None and _is_product(how, space, maps, block, segments):
        run.may_take(2.5 * space.points * samples * _PRODUCT_S)
        spans: Any = [tuple((0, size) for size in space.sizes)]
    else:
        loops = 1 if how is not None else math.prod(space.sizes[d] for d in space.reduced)
        run.may_take(space.points * samples * len(body) * _ELEMENT_S + loops * len(body) * _STEP_S)
        spans = pieces(space, samples, also_reduced=how is not None)
    for bounds in spans:
        if time.monotonic() > run.deadline:
            raise TooLongError("more than the time that a check may take")
        results.put(bounds, space, _piece(run, scope, block, body, operands, maps, bounds, space, how))
    return results.arrays()


class _Results_of:  # noqa: N801 (a private maker of results)
    """Tensors that are put together of pieces of an iteration space."""

    def __init__(self, outs: Sequence[tuple[Array, Sequence[Index]]], run: Evaluator) -> None:
        self.run = run
        self.outs: list[Array | None] = [None for _ in outs]
        self.shapes = [values.shape[1:] for values, _ in outs]
        self.orders = []
        for _, indices in outs:
            if not all(i.function is None and i.constant == 0 and list(i.factors.values()) == [1] for i in indices):
                raise UnsupportedError("an output that is not indexed by its dimensions alone")
            self.orders.append([next(iter(index.factors)) for index in indices])

    def put(self, bounds: Bounds, space: Space, pieces_: Sequence[Array]) -> None:
        """Keep the results of one piece."""
        for at, (values, order) in enumerate(zip(pieces_, self.orders, strict=True)):
            full = [bounds[d][1] - bounds[d][0] if space.parallel[d] else 1 for d in range(len(bounds))]
            values = np.broadcast_to(values, (values.shape[0], *full))
            rest = [d for d in range(len(bounds)) if d not in order]
            values = values.transpose(0, *(1 + d for d in order), *(1 + d for d in rest))
            values = values.reshape(values.shape[: 1 + len(order)])
            kept = self.outs[at]
            if kept is None and values.shape[1:] == self.shapes[at]:
                self.outs[at] = np.ascontiguousarray(values)
                continue
            if kept is None:
                kept = np.empty((values.shape[0], *self.shapes[at]), dtype=values.dtype)
            elif values.shape[0] > kept.shape[0]:
                kept = self.run.shaker.full(kept)
            kept[(slice(None), *(slice(*bounds[d]) for d in order))] = values
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
        if operation != how.product:
            run.step(operation, scope)
    start = scope.get(arguments[-1])
    kind = _kind(how.last.results[0].type)
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


@_operation("linalg.softmax")
def _softmax(run: Evaluator, op: Any, scope: Scope) -> _Results:
    values, axis = scope.get(op.operands[0]), 1 + op.attributes["dimension"].value
    return [_softmax_of(run, values, axis, _kind(op.results[0].type))]


def _softmax_of(run: Evaluator, values: Array, axis: int, kind: str) -> Array:
    run.may_take(values.size * 3 * _ELEMENT_S)
    with np.errstate(all="ignore"):
        shifted = run.shaker.rounded(values - values.max(axis=axis, keepdims=True), kind)
        powers = scalar_op("math.exp", [shifted], kind, kind, 0, run.shaker)
        zero = np.zeros((1, *(1 if at + 1 == axis else size for at, size in enumerate(powers.shape[1:]))))
        return run.shaker.rounded(powers / summed(powers, zero, (axis,), kind, run.shaker), kind)


# --- iree_linalg_ext --------------------------------------------------------------------------------------------------


@_operation("iree_linalg_ext.attention")
def _attention(run: Evaluator, op: Any, scope: Scope) -> _Results:
    ir = run.ir
    maps = [_indices(ir, attribute.value) for attribute in op.attributes["indexing_maps"]]
    operands = [scope.get(value) for value in op.operands]
    masked = len(operands) == 6
    query, key, value, scale = operands[:4]
    ranks = attribute_dims(op.attributes["indexing_maps"][0])
    letters = [[next(iter(index.factors)) for index in indices] for indices in maps]
    query_dims, key_dims, value_dims = letters[:3]
    out_dims = letters[5] if masked else letters[4]
    kind = _kind(op.results[0].type)
    batch = [d for d in range(ranks) if d in query_dims and d in key_dims and d in value_dims]
    keys = [d for d in key_dims if d in value_dims and d not in batch]
    inner = [d for d in query_dims if d in key_dims and d not in batch]
    rows = [d for d in query_dims if d not in batch and d not in inner]
    columns = [d for d in value_dims if d not in batch and d not in keys]
    if len(op.regions[0].blocks[0].operations) != 1 or any(d not in [*batch, *rows, *columns] for d in out_dims):
        raise UnsupportedError("an attention that changes its scores")
    sizes = {d: n for dims, values in ((query_dims, query), (key_dims, key), (value_dims, value))
             for d, n in zip(dims, values.shape[1:], strict=True)}  # fmt: skip
    run.may_take(5 * math.prod(sizes.values()) * run.shaker.samples * _PRODUCT_S * 4)

    def full(values: Array, dims: Sequence[int], order: Sequence[int]) -> Array:
        places = [dims.index(d) for d in order if d in dims]
        shape = [sizes[d] if d in dims else 1 for d in order]
        return values.transpose(0, *(1 + p for p in places)).reshape(values.shape[0], *shape)

    def product(a: Array, b: Array, order: Sequence[int], reduced: Sequence[int]) -> Array:
        space = Space(sizes=tuple(sizes[d] for d in order), parallel=tuple(d not in reduced for d in order))
        start = np.zeros((1, *(1 if d in reduced else sizes[d] for d in order)))
        sums = Products(left=a, right=b, space=space, kind="f32").added_to(start, run.shaker)
        return sums.reshape(sums.shape[0], *(sizes[d] for d in order if d not in reduced))

    query = run.shaker.rounded(query * scale.reshape(-1, *(1,) * (query.ndim - 1)), _kind(op.operands[0].type))
    order = [*batch, *rows, *keys, *inner]
    scores = product(full(query, query_dims, order), full(key, key_dims, order), order, inner)
    order = [*batch, *rows, *keys]
    if masked:
        mask = full(operands[4], letters[4], order)
        scores = scores + (np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask)
    flat = scores.reshape(*scores.shape[: 1 + len(batch) + len(rows)], -1)
    weights = run.shaker.rounded(_softmax_of(run, flat, flat.ndim - 1, "f32"), _kind(op.operands[2].type))
    order = [*batch, *rows, *columns, *keys]
    weights = full(weights.reshape(weights.shape[0], *scores.shape[1:]), [*batch, *rows, *keys], order)
    sums = product(weights, full(value, value_dims, order), order, keys)
    result = run.shaker.rounded(sums, kind)
    at = [[*batch, *rows, *columns].index(d) for d in out_dims]
    return [result.transpose(0, *(1 + a for a in at))]


def attribute_dims(attribute: Any) -> int:
    """How many dimensions an indexing map has."""
    return int(attribute.value.n_dims)


@_operation("iree_linalg_ext.scatter")
def _scatter(run: Evaluator, op: Any, scope: Scope) -> _Results:
    updates, places, target = (scope.get(value) for value in list(op.operands)[:3])
    dims = list(op.attributes["dimension_map"])
    places = places if places.ndim > 1 + 1 or len(dims) > 1 else places.reshape(*places.shape[:2], 1)
    batch = places.shape[1:-1]
    run.may_take(math.prod(batch) * _STEP_S)
    result = run.shaker.full(target) if updates.shape[0] > target.shape[0] else target.copy()
    for at in np.ndindex(*batch):
        place = [run.number(places[(slice(None), *at, column)]) for column in range(len(dims))]
        where: list[Any] = [slice(None)] * (target.ndim - 1)
        for d, index in zip(dims, place, strict=True):
            where[d] = index
        window = updates[(slice(None), *at)]
        old = result[(slice(None), *where)]
        shape = old.shape[1:]
        inside = Scope(parent=scope, bounds=tuple((0, size) for size in shape))
        block = op.regions[0].blocks[0]
        inside.values.update(zip(block.arguments, [window.reshape(-1, *shape), old], strict=True))
        (new,) = (inside.get(value) for value in run.run(block, inside).operands)
        if new.shape[0] > result.shape[0]:
            result = run.shaker.full(result)
        result[(slice(None), *where)] = new
    return [result]


@_operation("iree_linalg_ext.arg_compare")
def _arg_compare(run: Evaluator, op: Any, scope: Scope) -> _Results:
    segments = list(op.attributes["operandSegmentSizes"]) if "operandSegmentSizes" in op.attributes else [1, 2, 0]
    values = scope.get(op.operands[0])
    if segments[0] != 1:
        raise UnsupportedError("iree_linalg_ext.arg_compare of given indices")
    axis = 1 + op.attributes["dimension"].value
    base = run.number(scope.get(list(op.operands)[-1])) if len(segments) > 2 and segments[2] else 0
    block = op.regions[0].blocks[0]
    shape = tuple(size for at, size in enumerate(values.shape) if at not in (0, axis))
    best = np.take(values, 0, axis=axis)
    found = np.zeros((1, *shape), dtype=np.int64) + base
    run.may_take(values.shape[axis] * _STEP_S + values.size * 4 * _ELEMENT_S)
    for at in range(1, values.shape[axis]):
        inside = Scope(parent=scope, bounds=tuple((0, size) for size in shape))
        here = np.take(values, at, axis=axis)
        inside.values.update(zip(block.arguments, [here, best], strict=True))
        (better,) = (inside.get(value) for value in run.run(block, inside).operands)
        best = merged(np.where(better, here, best))
        found = merged(np.where(better, at + base, found))
    return [best, found.astype(dtype_of(_kind(op.results[1].type)))][: len(op.results)]


# --- the process ------------------------------------------------------------------------------------------------------


def split_resources(text: str) -> tuple[str, dict[str, bytes]]:
    """A module's text without its resources, and the bytes of each, which the bindings do not give."""
    head, mark, tail = text.partition("{-#")
    found = re.findall(r'"?([\w.$-]+)"?\s*:\s*"0x([0-9A-Fa-f]*)"', tail) if mark else []
    return head, {name: bytes.fromhex(data) for name, data in found}


def parameter_reader(files: Mapping[str, str]) -> Callable[[str, str], bytes]:
    """Reads external weights with IREE's own readers of .irpa, .gguf and .safetensors files."""
    from iree import runtime

    indices: dict[str, dict[str, Any]] = {}

    def read(scope: str, key: str) -> bytes:
        if scope not in indices:
            if scope not in files:
                raise UnsupportedError(f"parameters of the scope {scope!r}, which the suite does not give")
            index = runtime.ParameterIndex()
            index.load(files[scope])
            indices[scope] = dict(index.items())
        if key not in indices[scope]:
            raise UnsupportedError(f"the parameter {key!r}, which is not in its file")
        entry = indices[scope][key]
        return bytes(entry.file_view if entry.is_file else entry.splat_pattern)

    return read


def evaluate(
    text: str, function: str, inputs: Sequence[Array], files: Mapping[str, str], seconds: float
) -> tuple[list[Exported], int]:
    """The outputs of a program as ensembles, and the number of their samples.

    Args:
        text: The module at the phase `input`, its named operations generalised.
        inputs: As load_argument gives them.
        files: External weights by scope.
        seconds: What it may take; fewer samples are taken where it would be longer.

    Raises:
        UnsupportedError: It has what is not known here.
        TooLongError: It would take longer even with the fewest samples.
    """
    from iree.compiler import ir

    head, resources = split_resources(text)
    deadline = time.monotonic() + seconds
    read = parameter_reader(files)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(head)
        for samples in (1, *_SAMPLES):
            # The first, exact pass costs little and tells how many samples there is time for.
            began = time.monotonic()
            shaker = Shaker(samples=samples, rng=np.random.default_rng(0))
            run = Evaluator(module, resources, read, shaker, deadline)
            entry = run.functions.get(function)
            if entry is None:
                raise UnsupportedError(f"a program without @{function}")
            arguments: list[Any] = [
                _argument(values, argument.type)
                for values, argument in zip(inputs, entry.regions[0].blocks[0].arguments, strict=False)
            ]
            missing = len(entry.regions[0].blocks[0].arguments) - len(arguments)
            results = run.call(function, [*arguments, *[None] * missing])
            took = time.monotonic() - began
            if samples == 1:
                affordable = [s for s in _SAMPLES if took * s * 1.3 < deadline - time.monotonic()]
                if not affordable:
                    raise TooLongError(f"about {took * _SAMPLES[-1]:.0f} s with the fewest samples")
                chosen = affordable[0]
                continue
            if samples != chosen:
                continue
            types = list(entry.attributes["function_type"].value.results)
            exported = [
                result if isinstance(result, Exported) else Exported(result, _kind(type_))
                for result, type_ in zip(results, types, strict=True)
            ]
            return exported, samples
    raise AssertionError


def _argument(values: Array, type_: Any) -> Array:
    """An input as an ensemble; what the program has as another type (f64 that is demoted) is converted."""
    kind = _kind(type_)
    if kind in UNIT or values.dtype.kind == "f":
        return np.asarray(values, dtype=np.float64)[None]
    return np.asarray(values).astype(dtype_of(kind) if kind[:1] in "sui" else values.dtype)[None]


def tolerances(output: Exported) -> tuple[Array, Array]:
    """The exact values of an output, and by how much each element may be off.

    A spread that happens to be small among few samples is not believed: an element has at least the typical spread
    (geometric mean) of the elements of similar magnitude.
    """
    values = output.values
    exact = values[0]
    if values.shape[0] == 1:
        return exact, np.zeros(exact.shape)
    samples = values.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        own = spread(samples)
        farthest = np.nan_to_num(np.abs(samples[1:] - samples[:1]).max(axis=0), nan=np.inf, posinf=np.inf)
    same = (np.isnan(samples).all(axis=0)) | (np.isinf(samples) & (samples == samples[:1])).all(axis=0)
    shaken = (own > 0) & np.isfinite(own) & ~same
    allowed = np.where(same, 0.0, np.maximum(FACTOR * own, farthest))
    if shaken.any() and output.kind in UNIT:
        allowed[shaken] = np.maximum(allowed[shaken], FACTOR * _typical(np.abs(samples[0][shaken]), own[shaken]))
    return exact, allowed


def _typical(magnitudes: Array, spreads: Array) -> Array:
    """The geometric mean of the spreads of elements of similar magnitude."""
    order = np.argsort(magnitudes, kind="stable")
    bins = np.array_split(order, max(1, min(64, order.size // 64)))
    typical = np.empty(spreads.shape)
    for members in bins:
        typical[members] = np.exp(np.mean(np.log(spreads[members])))
    return typical


def main(request: Path) -> None:
    """Answer a request: what harness.verify.reference writes."""
    asked = json.loads(request.read_text())
    arguments = [Argument(**{**value, "file": Path(value["file"]), "shape": tuple(value["shape"])})
                 for value in asked["arguments"]]  # fmt: skip
    answer: dict[str, Any]
    try:
        outputs, samples = evaluate(
            Path(asked["program"]).read_text(),
            asked["function"],
            [load_argument(argument) for argument in arguments],
            asked["parameters"],
            asked["seconds"],
        )
        kinds = []
        for position, output in enumerate(outputs):
            exact, allowed = tolerances(output)
            np.save(request.parent / f"right{position}.npy", exact)
            np.save(request.parent / f"allowed{position}.npy", allowed)
            kinds.append(output.kind)
        answer = {"kinds": kinds, "samples": samples}
    except UnsupportedError as error:
        answer = {"unsupported": str(error)}
    except TooLongError as error:
        answer = {"too_long": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
