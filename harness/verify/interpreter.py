"""Runs a program on ensembles: functions, calls, globals, parameters, structured control flow, imports and exports."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from harness.models.inputs import from_bf16_bits
from harness.verify.linalg_ops import Bounds
from harness.verify.rounding import Array, Shaker, UnsupportedError, merged
from harness.verify.sampled import ALL, WHOLE, Plan, operand_axes, places
from harness.verify.scalar_ops import dtype_of, extended_op, scalar_op

# Seconds for a multiply-add of a matrix product, for an element that an operation gives, for a step of a loop.
PRODUCT_S, ELEMENT_S, STEP_S = 1.5e-10, 2e-8, 2e-4
_CALLS = ("util.call", "func.call")
_PASSED_ON = {
    "flow.tensor.tie_shape", "flow.tensor.transfer", "hal.tensor.alias", "hal.tensor.barrier", "tensor.cast",
    "util.assume.int", "util.optimization_barrier", "util.numeric.optional_narrow",
}  # fmt: skip
_WITHOUT_VALUE = {"hal.fence.create", "hal.devices.get", "util.null", "hal.fence.await", "hal.fence.signal"}


class TooLongError(Exception):
    """The evaluation would take longer than it may; its text says how long."""


class Exported(NamedTuple):
    """A tensor that the program gives to its caller, with its element type."""

    values: Array
    kind: str


@dataclass
class Scope:
    """The values of a region, and where it is in an iteration space."""

    parent: Scope | None = None
    # Of the space; () outside of one. A scalar has one axis a dimension, behind that of the samples.
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
                    found = found.reshape(found.shape + (1,) * missing) if not is_tensor(value.type) else found
                return found
            scope = scope.parent
        raise UnsupportedError("a value from outside of its region")


Results = Sequence[Any]
Operation = Callable[["Evaluator", Any, Scope], Results]


# What computes the results of an operation, by its name; the modules of other dialects add theirs.
OPERATIONS: dict[str, Operation] = {}


def known(*names: str) -> Callable[[Operation], Operation]:
    """A decorator: the function computes the results of these operations."""

    def keep(function: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return keep


class Program(NamedTuple):
    """A module, and what it reads."""

    module: Any
    resources: Mapping[str, bytes]
    parameters: Callable[[str, str], bytes]
    orders_ties: bool  # Whether a sort has to keep the order of what is equal


class Evaluator:
    """Evaluates functions of a program, at some places only where a plan says so."""

    def __init__(self, program: Program, shaker: Shaker, deadline: float, plan: Plan = WHOLE) -> None:
        from iree.compiler import ir

        self.ir = ir
        self.program = program
        self.shaker = shaker
        self.deadline = deadline
        self.plan = plan
        self.functions: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}
        self.keeps_state = False  # Whether a call writes a global or one of its arguments
        initializers = []
        for operation in program.module.body.operations:
            match operation.operation.name:
                case "util.func" | "func.func":
                    self.functions[_symbol(operation.attributes["sym_name"])] = operation.operation
                case "util.global":
                    attributes = operation.attributes
                    initial = attributes.get("initial_value", None)
                    self.globals[_symbol(attributes["sym_name"])] = (attributes["type"].value, initial)
                case "util.initializer":
                    initializers.append(operation.operation)
        for initializer in initializers:
            self.region(initializer.regions[0], [], Scope())
        self.keeps_state = False

    def call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """The results of a function."""
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
        self.may_take(0.0)
        results = self.results(operation, scope)
        scope.values.update(zip(operation.results, results, strict=False))

    def results(self, operation: Any, scope: Scope) -> Results:
        """The results of one operation."""
        result = operation.results[0] if len(operation.results) else None
        along = self.plan.axes.get(result)
        if result is None or along is None:
            return self._whole(operation, scope)
        picked = places(int(result.type.shape[along]))
        if operation.name == "tensor.empty":
            return [values.take(picked, axis=1 + along) for values in self._whole(operation, scope)]
        inside = Scope(parent=scope, bounds=scope.bounds)
        for value, axis in zip(operation.operands, operand_axes(self.ir, operation, along) or [], strict=True):
            if axis != ALL and value not in self.plan.axes:  # a part of it is enough
                inside.values[value] = scope.get(value).take(picked, axis=1 + axis)
        return self._whole(operation, inside)

    def _whole(self, operation: Any, scope: Scope) -> Results:
        name = operation.name
        if name in _WITHOUT_VALUE:
            return [None] * len(operation.results)
        if name in _PASSED_ON:
            self.keeps_state |= name == "hal.tensor.alias"
            return [scope.get(value) for value in list(operation.operands)[: len(operation.results)]]
        if name in _CALLS:
            return self.call(_symbol(operation.attributes["callee"]), [scope.get(v) for v in operation.operands])
        if name in OPERATIONS:
            return OPERATIONS[name](self, operation, scope)
        if name.startswith(("arith.", "math.")) and len(operation.results) == 1:
            predicate = operation.attributes["predicate"].value if "predicate" in operation.attributes else 0
            operands = [scope.get(value) for value in operation.operands]
            kind, from_kind = kind_of(operation.results[0].type), kind_of(operation.operands[0].type)
            return [scalar_op(name, operands, kind, from_kind, predicate, self.shaker)]
        raise UnsupportedError(name)

    def number(self, values: Array) -> int:
        """A value that all samples agree on."""
        if not (values == values.flat[0]).all():
            raise UnsupportedError("control flow or sizes that hang on rounded values")
        return int(values.flat[0])

    def numbers(self, static: Iterable[int], dynamic: Sequence[Any], scope: Scope) -> list[int]:
        """Numbers, such as a tensor's sizes, of which those that are not known are given by operands."""
        rest = iter(dynamic)
        sentinel = self.ir.ShapedType.get_dynamic_size()
        return [self.number(scope.get(next(rest))) if number == sentinel else int(number) for number in static]

    def over(self, operation: Any, arguments: Sequence[Any], shape: Sequence[int], scope: Scope) -> Any:
        """What the body of an operation yields at every place of a space at once."""
        inside = Scope(parent=scope, bounds=tuple((0, int(size)) for size in shape))
        block = operation.regions[0].blocks[0]
        inside.values.update(zip(block.arguments, arguments, strict=True))
        (result,) = (inside.get(value) for value in self.run(block, inside).operands)
        return result

    def constant(self, attribute: Any, type_: Any) -> Array:
        """A constant's values; a splat takes the place of one element."""
        ir, kind = self.ir, kind_of(type_)
        shape = [int(size) for size in type_.shape] if is_tensor(type_) else []
        if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
            return np.full((1, *shape), attribute.value).astype(dtype_of(kind))
        if isinstance(attribute, ir.DenseElementsAttr):
            if attribute.is_splat:
                value = attribute.get_splat_value()
                return np.broadcast_to(np.array(value.value).astype(dtype_of(kind)), (1, *shape))
            with contextlib.suppress(TypeError):
                return np.asarray(np.array(attribute).reshape(1, *shape).astype(dtype_of(kind)))
        text = str(attribute)
        if found := re.match(r'dense<"0x([0-9A-Fa-f]*)">', text):
            return _decoded(bytes.fromhex(found[1]), kind, shape)
        if kind == "bf16" and text.startswith("dense<"):
            numbers = re.findall(r"[-+0-9.eEx]+", text[: text.rindex(">")])
            return np.array([float(number) for number in numbers]).reshape(1, *shape)
        if found := re.match(r"dense_resource<\"?([^\">]+)\"?>", text):
            return _decoded(self.program.resources[found[1]][4:], kind, shape)
        if found := re.match(r'#(?:flow|stream)\.parameter\.named<(?:"([^"]*)"::)?"([^"]*)">', text):
            return _decoded(self.program.parameters(found[1] or "", found[2]), kind, shape)
        raise UnsupportedError(f"a constant {text[:40]}")

    def may_take(self, seconds: float) -> None:
        """Refuse what would end after the deadline."""
        if time.process_time() + seconds > self.deadline:
            what = f"one operation of about {seconds:.0f} s" if seconds else "more than the time that a check may take"
            raise TooLongError(what)


def _symbol(attribute: Any) -> str:
    return str(attribute.value)


def is_tensor(type_: Any) -> bool:
    """Whether it is a tensor's type, and no scalar's."""
    return hasattr(type_, "shape")


def with_equal_samples(parts: Sequence[Array]) -> list[Array]:
    """Ensembles with as many samples as the one that has most."""
    samples = max(part.shape[0] for part in parts)
    return [np.broadcast_to(part, (samples, *part.shape[1:])) for part in parts]


def in_each_sample(places: Iterable[Any]) -> tuple[Any, ...]:
    """An index into an ensemble, of an index into its tensor."""
    return (slice(None), *places)


def kind_of(type_: Any) -> str:
    """The element type of a tensor, or the scalar's own, as a word such as f32."""
    return str(type_.element_type if is_tensor(type_) else type_)


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
    if values.size not in (1, count):
        raise UnsupportedError(f"a constant of {kind} whose data has another size")
    return np.resize(values, count).reshape(1, *shape)


@known("arith.constant", "util.unfoldable_constant", "flow.tensor.constant")
def _constant(run: Evaluator, op: Any, scope: Scope) -> Results:
    type_ = op.results[0].type
    values = run.shaker.flushed(run.constant(op.attributes["value"], type_), kind_of(type_))
    return [values.reshape(values.shape + (1,) * len(scope.bounds)) if values.ndim == 1 else values]


@known("cf.assert")
def _assert(_: Evaluator, op: Any, scope: Scope) -> Results:
    if not scope.get(op.operands[0])[0].all():
        raise UnsupportedError(f"inputs that the program asserts not to be given: {op.attributes['msg'].value}")
    return ()


@known("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended")
def _extended(_: Evaluator, op: Any, scope: Scope) -> Results:
    return extended_op(op.name, *(scope.get(value) for value in op.operands))


@known("arith.select")
def _select(_: Evaluator, op: Any, scope: Scope) -> Results:
    condition, yes, no = (scope.get(value) for value in op.operands)
    if is_tensor(op.results[0].type) and condition.ndim < yes.ndim:
        condition = condition.reshape(condition.shape + (1,) * (yes.ndim - condition.ndim))
    return [merged(np.where(condition, yes, no))]


@known("hal.tensor.import")
def _import(run: Evaluator, op: Any, scope: Scope) -> Results:
    given = scope.get(op.operands[0])
    values = given.values if isinstance(given, Exported) else given
    tensor, sizes = op.results[0].type, list(op.operands)[1:]
    shape = run.numbers(tensor.shape, [size for size in sizes if str(size.type) == "index"], scope)
    if math.prod(shape) != math.prod(values.shape[1:]):
        raise UnsupportedError(f"an input of shape {values.shape[1:]} that the program takes for {tensor}")
    return [values.reshape(values.shape[0], *shape)]


@known("hal.tensor.export")
def _export(_: Evaluator, op: Any, scope: Scope) -> Results:
    return [Exported(scope.get(op.operands[0]), kind_of(op.operands[0].type))]


@known("hal.buffer_view.dim")
def _buffer_dim(_: Evaluator, op: Any, scope: Scope) -> Results:
    return [np.array([scope.get(op.operands[0]).shape[1 + op.attributes["index"].value]])]


@known("util.global.load")
def _load(run: Evaluator, op: Any, _: Scope) -> Results:
    name = _symbol(op.attributes["global"])
    found = run.globals[name]
    if isinstance(found, tuple):
        type_, initial = found
        if initial is None:
            raise UnsupportedError(f"the global @{name}, which has no value")
        found = run.globals[name] = run.constant(initial, type_)
    return [found]


@known("util.global.store")
def _store(run: Evaluator, op: Any, scope: Scope) -> Results:
    run.globals[_symbol(op.attributes["global"])] = scope.get(op.operands[0])
    run.keeps_state = True
    return ()


@known("scf.if")
def _if(run: Evaluator, op: Any, scope: Scope) -> Results:
    condition = scope.get(op.operands[0])
    if not scope.bounds or (condition == condition.flat[0]).all():
        taken = 0 if run.number(condition) else 1
        return run.region(op.regions[taken], [], scope) if len(op.regions[taken].blocks) else ()
    yes, no = (run.region(region, [], scope) for region in op.regions)
    return [merged(np.where(condition, a, b)) for a, b in zip(yes, no, strict=True)]


@known("scf.for")
def _for(run: Evaluator, op: Any, scope: Scope) -> Results:
    low, high, step = (run.number(scope.get(value)) for value in list(op.operands)[:3])
    carried = [scope.get(value) for value in list(op.operands)[3:]]
    for at in range(low, high, step):
        place = np.full((1,) * (1 + len(scope.bounds)), at)
        carried = run.region(op.regions[0], [place, *carried], scope)
    return carried


@known("scf.while")
def _while(run: Evaluator, op: Any, scope: Scope) -> Results:
    carried: Sequence[Any] = [scope.get(value) for value in op.operands]
    while True:
        condition, *passed = run.region(op.regions[0], carried, scope)
        if not run.number(condition):
            return passed
        carried = run.region(op.regions[1], passed, scope)
