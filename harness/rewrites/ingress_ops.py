"""What the steps of the ingress canonicalisation share: finding, reading, replacing and tidying operations."""

from __future__ import annotations

import math

from iree.compiler import ir

# Without effects, and often of no use to anyone after a rewrite.
_TIDIED = frozenset(
    {
        "arith.cmpf",
        "arith.constant",
        "arith.extf",
        "arith.mulf",
        "arith.select",
        "arith.truncf",
        "linalg.fill",
        "tensor.empty",
    }
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


def produced_by(value: ir.Value, *names: str) -> bool:
    """Whether an operation of one of these names gives the value."""
    op = producer(value)
    return op is not None and op.name in names


def body_of(op: ir.Operation) -> ir.Block:
    """The one block of a structured operation."""
    return op.regions[0].blocks[0]


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


def copy_annotations(source: ir.Operation, target: ir.Operation) -> None:
    """Keep what others have attached to an operation, such as its lowering_config."""
    for name in source.attributes:
        if name not in _INHERENT:
            target.attributes[name] = source.attributes[name]


def replace(op: ir.Operation, value: ir.Value) -> None:
    """Let a value take the place of an operation's one result; the operation goes."""
    op.result.replace_all_uses_with(value)
    erase(op)


def erase(op: ir.Operation) -> None:
    """Erase an operation that has no uses, then what it alone used, as far as that has no effects."""
    waiting = _producers(op)
    op.erase()
    while waiting:
        one = waiting.pop()
        if one.name in _TIDIED and not any(list(result.uses) for result in one.results):
            waiting |= _producers(one)
            one.erase()


def _producers(op: ir.Operation) -> set[ir.Operation]:
    return {one for operand in op.operands if (one := producer(operand)) is not None}
