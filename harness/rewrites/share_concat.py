"""Concatenations of the same tensors share one buffer.

ESRGAN's dense block computes cat(x, x1), cat(x, x1, x2), cat(x, x1, x2, x3) and cat(x, x1, x2, x3, x4): x is copied
four times, x1 four times, and so on, each time into a buffer of its own. The first three are the beginning of the last.
So one buffer of the last one's size is enough: every part is inserted once, when it comes to exist, and each
concatenation is a slice of the buffer as far as it is filled.

    %0 = tensor.empty() : tensor<1x192x90x62xf32>
    %1 = tensor.insert_slice %x into %0[0, 0, 0, 0] ...
    %2 = tensor.insert_slice %x1 into %1[0, 64, 0, 0] ...
    %cat1 = tensor.extract_slice %2[0, 0, 0, 0] [1, 96, 90, 62] ...
    %3 = tensor.insert_slice %x2 into %2[0, 96, 0, 0] ...

Left alone are dynamic shapes, elements smaller than a byte, and what stands in the body of a loop or a branch.

share_concat_plan says which concatenations belong together, what padding the buffer has around it and what is inserted
and read where. Here that is written, into a new buffer or into an earlier one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from harness.rewrites.operations import FUNCTIONS, Matched, depends
from harness.rewrites.share_concat_plan import Frame, Order, Piece, Plan, find_concats, find_family, obstacles, plan


def share_concat(module: ir.Module, *, padding: bool = True) -> Matched:
    """Let concatenations share buffers where one is a contiguous run of a larger one's parts."""
    shared, left_alone = 0, [f"concatenations {obstacle}" for obstacle in obstacles(module)]
    for function in module.body.operations:
        if function.operation.name in FUNCTIONS:
            for block in function.regions[0].blocks:
                buffers: list[Buffer] = []
                alone = len(find_concats(block))
                while (family := find_family(block)) is not None:
                    buffers.append(_write_buffer(plan(block, family, padding=padding), buffers))
                    shared += len(family.members) - 1
                    alone -= len(family.members)
                left_alone += ["concatenations with no other to share with"] * alone
    return Matched(shared, left_alone)


def _write_buffer(plan: Plan, earlier: Sequence[Buffer]) -> Buffer:
    """Replace a family's concatenations by slices of one buffer."""
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
    free = _find_free(earlier, plan, kind)
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


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """A shared buffer that was written."""

    frame: Frame  # The padding around it
    states: tuple[ir.Value, ...]  # Its value before the first insertion and after each


def _find_free(earlier: Sequence[Buffer], plan: Plan, kind: ir.Type) -> ir.Value | None:
    """The last state of a buffer that another family can go on with; None where there is none.

    In a chain of dense blocks, each block's input depends on what was read last from the buffer of the block before.
    Taking that buffer over saves filling the frame again, and above all it saves memory: a fill depends on nothing, so
    the compiler runs it early, while the buffer before is still in use.
    """
    if plan.frame.value is None:
        return None  # nothing to gain
    opening = plan.insertions[0].position
    first = [insertion.part.value for insertion in plan.insertions if insertion.position == opening]
    for buffer in earlier:
        last = buffer.states[-1]
        uses = ((use.owner.operation.name, use.operand_number) for use in last.uses)
        is_taken = ("tensor.insert_slice", 1) in uses
        if buffer.frame == plan.frame and last.type == kind and not is_taken:
            readers = sorted(_find_readers(buffer, plan.order))
            sources = [plan.order.operations[position] for position in readers]
            if sources and readers[-1] < opening and any(depends(part, sources, sources[0]) for part in first):
                return last
    return None


def _find_readers(buffer: Buffer, order: Order) -> set[int]:
    """The positions of the operations that read a buffer or a slice of it."""
    values = list(buffer.states)
    values += [
        use.owner.operation.result
        for state in buffer.states
        for use in state.uses
        if use.owner.operation.name == "tensor.extract_slice"
    ]
    return {order.of_user(use.owner.operation) for value in values for use in value.uses}
