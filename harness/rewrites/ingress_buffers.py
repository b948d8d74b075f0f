"""Ingress: which buffer an elementwise operation writes into."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from harness.rewrites.ingress_ops import (
    body_of,
    copy_annotations,
    find,
    is_elementwise,
    is_number,
    is_positive_zero,
    produced_by,
    producer,
    replace,
)


def fill_init(module: ir.Module) -> int:
    """Let elementwise operations write into a filled buffer instead of a tensor.empty.

    Returns:
        The number of operations whose init was changed.
    """
    matched = 0
    for op in find(module, "linalg.generic"):
        position = len(op.operands) - 1
        init = op.operands[position]
        if is_elementwise(op) and produced_by(init, "tensor.empty") and is_number(init.type.element_type):
            op.operands[position] = _filled(init, op)
            matched += 1
    return matched


def outs_style(module: ir.Module) -> int:
    """Let elementwise operations update the result before them instead of reading it beside an init they do not read.

    Only a result that nothing else reads, as otherwise updating it in place would need a copy first.

    Returns:
        The number of operations that got another init.
    """
    matched = 0
    for op in find(module, "linalg.generic"):
        if not is_elementwise(op) or not produced_by(op.operands[len(op.operands) - 1], "tensor.empty", "linalg.fill"):
            continue
        position = _previous_result(op)
        if position is not None:
            _update(op, position)
            matched += 1
    return matched


def _filled(empty: ir.Value, reader: ir.Operation) -> ir.Value:
    """The buffer filled with zeros: as it is already before the reader, or else filled where it is made."""
    for use in empty.uses:
        fill = use.owner.operation
        if (
            fill.name == "linalg.fill"
            and is_positive_zero(fill.operands[0])
            and fill.block == reader.block
            and fill.is_before_in_block(reader)
        ):
            return fill.result
    origin = empty.owner
    with ir.InsertionPoint.after(origin), origin.location:
        element_type = empty.type.element_type
        zero = arith.ConstantOp(element_type, 0.0 if isinstance(element_type, ir.FloatType) else 0)
        return linalg.fill(zero.result, outs=[empty])


def _previous_result(op: ir.Operation) -> int | None:
    """Position of the first input that is another linalg operation's result, laid out like op's, read by op alone."""
    *inputs, out = op.attributes["indexing_maps"]
    for position, indexing in enumerate(inputs):
        value = op.operands[position]
        origin = producer(value)
        if (
            indexing == out
            and value.type == op.result.type
            and origin is not None
            and origin.name.startswith("linalg.")
            and len(list(value.uses)) == 1
        ):
            return position
    return None


def _update(op: ir.Operation, position: int) -> None:
    """Make the input at `position` the init."""
    maps = list(op.attributes["indexing_maps"])
    inputs = [op.operands[number] for number in range(len(maps) - 1)]
    previous = inputs.pop(position)
    del maps[position]
    with ir.InsertionPoint(op), op.location:
        updating = linalg.GenericOp(
            [op.result.type], inputs, [previous], ir.ArrayAttr.get(maps), op.attributes["iterator_types"]
        ).operation
    body = body_of(op)
    body.append_to(updating.regions[0])
    body.arguments[position].replace_all_uses_with(body.arguments[len(body.arguments) - 1])
    body.erase_argument(position)
    copy_annotations(op, updating)
    replace(op, updating.result)
