"""A framed buffer that is no longer read goes on to the next family that needs one like it.

In a chain of dense blocks, each block's input depends on what was read last from the buffer of the block before. Taking
that buffer over saves filling the frame again, and above all it saves memory: a fill depends on nothing, so the
compiler runs it early, while the buffer before is still in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from harness.rewrites.share_concat_frame import Frame
from harness.rewrites.share_concat_order import Order
from harness.rewrites.share_concat_plan import Plan


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """A shared buffer that was written.

    Attributes:
        frame: The padding around it.
        states: Its value before the first insertion and after each.
    """

    frame: Frame
    states: tuple[ir.Value, ...]


def find_free(earlier: Sequence[Buffer], plan: Plan, kind: ir.Type) -> ir.Value | None:
    """The last state of a buffer that another family can go on with; None where there is none.

    Args:
        earlier: The buffers of the block that were written so far.
        plan: Of the other family. What goes into the buffer first must have been computed from what was read last:
            else the two might run at the same time, and taking over would put one after the other.
        kind: The type that the buffer must have.
    """
    if plan.frame.value is None:
        return None  # nothing to gain
    opening = plan.insertions[0].position
    first = [insertion.part.value for insertion in plan.insertions if insertion.position == opening]
    for buffer in earlier:
        last = buffer.states[-1]
        if buffer.frame == plan.frame and last.type == kind and not _is_taken(last):
            readers = _find_readers(buffer, plan.order)
            is_over = readers and max(readers) < opening
            if is_over and any(_depends(part, readers, plan.order) for part in first):
                return last
    return None


def _is_taken(state: ir.Value) -> bool:
    return any(use.owner.operation.name == "tensor.insert_slice" and use.operand_number == 1 for use in state.uses)


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


def _depends(value: ir.Value, readers: set[int], order: Order) -> bool:
    """Whether a value is computed, by whatever steps, from what one of the readers computes."""
    earliest = min(readers)
    waiting, seen = [value], set()
    while waiting:
        position = order.of_definition(waiting.pop())
        if position is None or position < earliest or position in seen:
            continue
        if position in readers:
            return True
        seen.add(position)
        waiting += order.operations[position].operands
    return False
