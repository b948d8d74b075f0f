"""A dispatch region of its own for one operation, with the cheap operations around it that belong into its loops.

IREE forms dispatches itself, and on the way there may rebuild an operation: a convolution of one image loses its unit
dimension, and its compilation_info with it. What stands in a flow.dispatch.region is left as it is.
"""

from __future__ import annotations

from iree.compiler import ir

from harness.rewrites.tuned_loops import loops_of

_REGION = "flow.dispatch.region"
_STARTS = ("linalg.fill", "linalg.broadcast")


def in_region(op: ir.Operation) -> bool:
    """Whether an operation stands in a dispatch region already."""
    parent = op.parent
    while parent is not None:
        if parent.name.startswith("flow.dispatch."):
            return True
        parent = parent.parent
    return False


def isolate(op: ir.Operation) -> ir.Operation:
    """Put a structured operation with one result into a dispatch region: its init, itself, then what follows pointwise.

    What follows pointwise is a chain of elementwise operations, each the only reader of the one before.

    Returns:
        The region.
    """
    chain = [*_init_of(op), op, *_pointwise_after(op)]
    last = chain[-1]
    region = ir.Operation.create(
        _REGION,
        results=[last.result.type],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        regions=2,
        loc=op.location,
        ip=ir.InsertionPoint(last),
    )
    # All that the chain reads is defined before its last operation, so before the region.
    last.result.replace_all_uses_with(region.result)
    body = region.regions[0].blocks.append()
    for one in chain:
        body.append(one)
    ir.Operation.create("flow.return", operands=[last.result], loc=op.location, ip=ir.InsertionPoint(body))
    return region


def _init_of(op: ir.Operation) -> list[ir.Operation]:
    """The fill or broadcast that an operation alone starts from, if there is one."""
    start = op.operands[-1].owner
    if not isinstance(start, ir.Operation | ir.OpView) or start.operation.block != op.block:
        return []
    start = start.operation
    return [start] if start.name in _STARTS and len(list(start.result.uses)) == 1 else []


def _pointwise_after(op: ir.Operation) -> list[ir.Operation]:
    """The elementwise operations that follow, as far as each is the only reader of the last."""
    chain: list[ir.Operation] = []
    value = op.result
    while len(uses := list(value.uses)) == 1:
        reader = uses[0].owner.operation
        if reader.name != "linalg.generic" or reader.block != op.block or not _is_pointwise_in(reader, value):
            break
        chain.append(reader)
        value = reader.result
    return chain


def _is_pointwise_in(reader: ir.Operation, value: ir.Value) -> bool:
    """Whether a generic reads a value just where it writes its one result, in parallel loops only."""
    loops = loops_of(reader)
    if loops is None or "reduction" in loops.kinds or len(reader.results) != 1 or reader.result.type != value.type:
        return False
    maps = list(reader.attributes["indexing_maps"])
    return all(maps[i] == maps[-1] for i, operand in enumerate(reader.operands) if operand == value)
