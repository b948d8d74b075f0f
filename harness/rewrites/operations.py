"""What rewrites share: finding, reading, replacing and tidying operations; transposed constants.

It runs under a toolchain's own Python, as all of this package does: the standard library, numpy and iree.compiler only.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

FUNCTIONS = ("util.func", "func.func")
# Without effects, and often of no use to anyone after a rewrite.
_TIDIED = (
    *("arith.cmpf", "arith.constant", "arith.extf", "arith.mulf", "arith.select", "arith.truncf"),
    *("linalg.fill", "tensor.empty"),
)
_INHERENT = frozenset({"cast", "indexing_maps", "iterator_types", "operandSegmentSizes"})


def find(module: ir.Module, *names: str) -> list[ir.Operation]:
    """All operations of these names, in the order of the text."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def producer(value: ir.Value) -> ir.Operation | None:
    """The operation that gives a value; None for a block's argument."""
    return value.owner.operation if isinstance(value, ir.OpResult) else None


def holders_of(op: ir.Operation) -> Iterator[ir.Operation]:
    """The operations in whose regions an operation stands, the innermost first."""
    while (parent := op.parent) is not None:
        op = parent.operation
        yield op


def produced_by(value: ir.Value, *names: str) -> bool:
    """Whether an operation of one of these names gives the value."""
    op = producer(value)
    return op is not None and op.name in names


def body_of(op: ir.Operation) -> ir.Block:
    """The one block of a structured operation, or the first of a function."""
    return op.regions[0].blocks[0]


def operations_of(op: ir.Operation) -> list[ir.Operation]:
    """The operations in the one block of a structured operation or a function."""
    return [view.operation for view in body_of(op).operations]


def is_parallel(op: ir.Operation) -> bool:
    """Whether a linalg.generic has parallel loops only."""
    return all("parallel" in str(kind) for kind in op.attributes["iterator_types"])


def is_elementwise(op: ir.Operation) -> bool:
    """Whether a linalg.generic computes its one result from inputs alone, at least one of them laid out like it.

    So its init is not read, and a broadcast, a transposition or a mere copy is none.
    """
    if len(op.results) != 1 or not is_parallel(op):
        return False
    *inputs, out = op.attributes["indexing_maps"]
    body = body_of(op)
    return (
        out in inputs
        and bool(out.value.is_permutation)
        and not list(body.arguments[len(inputs)].uses)
        and len(body.operations) > 1
    )


def only_yields(op: ir.Operation) -> bool:
    """Whether a linalg.generic does nothing but pass its first input on."""
    body = body_of(op)
    return len(body.operations) == 1 and body.operations[0].operands[0] == body.arguments[0]


def depends(value: ir.Value, sources: Collection[ir.Operation], earliest: ir.Operation) -> bool:
    """Whether a value is computed, by whatever steps, from what some operations of a block compute."""
    waiting, seen = [value], set[ir.Operation]()
    while waiting:
        op = producer(waiting.pop())
        if op is None or op in seen or op.block != earliest.block:
            continue
        if op in sources:
            return True
        if not op.is_before_in_block(earliest):
            seen.add(op)
            waiting += list(op.operands)
    return False


def is_number(type_: ir.Type) -> bool:
    """Whether a scalar or element type is float or integer; the bindings cannot read constants of some others."""
    return isinstance(type_, ir.FloatType | ir.IntegerType)


def constant_number(value: ir.Value) -> float | None:
    """A scalar constant, looked up through conversions between float types; None where it is not known."""
    op = producer(value)
    if op is None or not is_number(value.type):
        return None
    if op.name in {"arith.extf", "arith.truncf"}:
        return constant_number(op.operands[0])
    return float(op.attributes["value"].value) if op.name == "arith.constant" else None


def is_positive_zero(value: ir.Value) -> bool:
    """Whether a scalar is the constant 0, and not -0.0."""
    number = constant_number(value)
    return number == 0 and math.copysign(1, number) > 0


def generic_like(
    op: ir.Operation, inputs: Sequence[ir.Value], inits: Sequence[ir.Value], maps: Sequence[ir.Attribute], kinds: object
) -> ir.Operation:
    """A linalg.generic in front of a structured operation, with its body and what it has, such as a lowering_config."""
    results = [init.type for init in inits]
    with ir.InsertionPoint(op), op.location:
        generic = linalg.GenericOp(results, inputs, inits, ir.ArrayAttr.get(maps), kinds).operation
    body_of(op).append_to(generic.regions[0])
    for name in op.attributes:
        if name not in _INHERENT:
            generic.attributes[name] = op.attributes[name]
    return generic


def replace(op: ir.Operation, value: ir.Value) -> None:
    """Let a value take the place of an operation's one result; the operation goes."""
    op.result.replace_all_uses_with(value)
    erase(op)


def erase(op: ir.Operation) -> None:
    """Erase an operation that has no uses, then what it alone used, as far as that has no effects."""
    waiting = _producers(op)
    op.erase()
    while waiting:
        unused = waiting.pop()
        if unused.name in _TIDIED and not any(list(result.uses) for result in unused.results):
            waiting |= _producers(unused)
            unused.erase()


def _producers(op: ir.Operation) -> set[ir.Operation]:
    return {source for operand in op.operands if (source := producer(operand)) is not None}


def permuted_type(old: ir.RankedTensorType, permutation: Sequence[int]) -> ir.RankedTensorType:
    """The type of a transposed tensor of known extents."""
    return ir.RankedTensorType.get([old.shape[dimension] for dimension in permutation], old.element_type)


def empty_permuted(old: ir.RankedTensorType, permutation: Sequence[int]) -> ir.Value:
    """A tensor without values for a transposed one, at the insertion point."""
    return tensor.empty(permuted_type(old, permutation).shape, old.element_type)


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """A transposed tensor, at the insertion point: its dimension i is dimension permutation[i] of the value."""
    return linalg.transpose(value, outs=[empty_permuted(value.type, permutation)], permutation=permutation).results[0]


_HEX = re.compile(r'"0x(?P<digits>[0-9A-Fa-f]+)"')
_ALIGNMENT_BYTES = 4  # in front of a resource's values


def transposed(value: ir.Attribute, permutation: Sequence[int], result: ir.RankedTensorType) -> ir.Attribute | None:
    """A constant tensor with its dimensions permuted; None where its elements cannot be got at."""
    is_dense = isinstance(value, ir.DenseElementsAttr)
    if is_dense and value.is_splat:
        return ir.DenseElementsAttr.get_splat(result, value.get_splat_value())
    # A module of this constant alone, as text: the one way to a resource's values, and to those of bf16.
    with ir.Location.unknown(value.context):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            arith.ConstantOp(value.type, value)
    written = _HEX.search(str(module.operation.get_asm()))
    if written is None and is_dense and 0 not in value.type.shape:
        text = str(value).removeprefix("dense<").removesuffix(f"> : {value.type}")
        numbers = np.array(re.findall(r"[^\[\],\s]+", text), dtype=object).reshape(value.type.shape)
        new = json.dumps(numbers.transpose(permutation).tolist()).replace('"', "")
        return ir.Attribute.parse(f"dense<{new}> : {result}")
    data = b"" if written is None else bytes.fromhex(written["digits"])[0 if is_dense else _ALIGNMENT_BYTES :]
    size = -(-int(value.type.element_type.width) // 8)
    if not data or len(data) != size * math.prod(value.type.shape):
        return None  # elements share bytes, or were left out
    moved = np.frombuffer(data, dtype=f"V{size}").reshape(value.type.shape).transpose(permutation).tobytes()
    if is_dense:
        return ir.Attribute.parse(f'dense<"0x{moved.hex()}"> : {result}')
    name = str(value).removeprefix("dense_resource<").removesuffix(f"> : {value.type}").strip('"')
    array = np.frombuffer(moved, dtype=np.uint8)
    return ir.DenseResourceElementsAttr.get_from_buffer(array, f"{name}_transposed", result, alignment=size)
