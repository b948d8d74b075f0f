"""Writes the shared buffer of a family as it was planned."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from harness.rewrites.share_concat_plan import Piece, Plan
from harness.rewrites.share_concat_reuse import Buffer, find_free


def write_buffer(plan: Plan, earlier: Sequence[Buffer]) -> Buffer:
    """Replace a family's concatenations by slices of one buffer.

    Args:
        plan: Made of the block as it is.
        earlier: The buffers that were written in this block so far.
    """
    waiting = deque(plan.insertions)
    slices: dict[tuple[int, int, int, bool], ir.Value] = {}
    with plan.family.host.operations[0].location:
        states = [_start(plan, earlier)]
        for read in plan.reads:
            while waiting and waiting[0].position <= read.position:
                insertion = waiting.popleft()
                with ir.InsertionPoint(plan.order.operations[insertion.position]):
                    states.append(_insert(plan, insertion.part, states[-1]))
            key = len(states), read.piece.offset, read.piece.size, read.framed
            if key not in slices:
                with ir.InsertionPoint(plan.order.operations[read.position]):
                    slices[key] = _slice(plan, read.piece, states[-1], framed=read.framed)
            read.user.operands[read.operand] = slices[key]
    for operation in plan.gone:
        operation.erase()
    return Buffer(frame=plan.frame, states=tuple(states))


def _start(plan: Plan, earlier: Sequence[Buffer]) -> ir.Value:
    """The buffer before anything of the family is in it: one from an earlier family, or a new one."""
    joined = plan.family.host.result.type
    kind = ir.RankedTensorType.get(plan.frame.around(joined.shape), joined.element_type)
    free = find_free(earlier, plan, kind)
    if free is not None:
        return free
    with ir.InsertionPoint(plan.order.operations[plan.insertions[0].position]):
        empty = tensor.empty(kind.shape, kind.element_type)
        if plan.frame.value is None:
            return empty
        return linalg.fill(arith.constant(kind.element_type, plan.frame.value), outs=[empty])


def _insert(plan: Plan, part: Piece, state: ir.Value) -> ir.Value:
    return tensor.insert_slice(part.value, state, [], [], [], *_place(plan, part, framed=False))


def _slice(plan: Plan, piece: Piece, state: ir.Value, *, framed: bool) -> ir.Value:
    offsets, sizes, strides = _place(plan, piece, framed=framed)
    if sizes == state.type.shape:
        return state
    kind = ir.RankedTensorType.get(sizes, state.type.element_type)
    return tensor.extract_slice(kind, state, [], [], [], offsets, sizes, strides)


def _place(plan: Plan, piece: Piece, *, framed: bool) -> tuple[list[int], list[int], list[int]]:
    """Offsets, sizes and strides of a piece in the buffer, with the frame or within it."""
    shape = plan.family.host.result.type.shape
    offsets = [0] * len(shape) if framed else list(plan.frame.low)
    sizes = plan.frame.around(shape) if framed else list(shape)
    offsets[plan.family.host.axis], sizes[plan.family.host.axis] = piece.offset, piece.size
    return offsets, sizes, [1] * len(shape)
