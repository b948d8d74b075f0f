"""The frame around a shared buffer: constant padding that the readers of the concatenations would add one by one.

A convolution with zero padding reads `tensor.pad` of its input, which costs a fill and a copy of the whole input. Where
most readers of a family's concatenations pad them alike, and not along the axis of the concatenation, the shared buffer
is made with that padding around it: filled once, and then a padded concatenation is a slice of it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from harness.rewrites.share_concat_find import Family


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Constant padding.

    Attributes:
        low: Elements before the first, for each dimension.
        high: Elements after the last.
        value: What they are; None where there are none.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: ir.Attribute | None

    def around(self, shape: Sequence[int]) -> list[int]:
        """The shape with the padding."""
        return [low + size + high for low, size, high in zip(self.low, shape, self.high, strict=True)]


def no_frame(family: Family) -> Frame:
    """The frame of a buffer without padding."""
    nothing = (0,) * len(family.host.result.type.shape)
    return Frame(low=nothing, high=nothing, value=None)


def choose_frame(family: Family, dying: Collection[ir.Operation]) -> Frame:
    """The padding that more than half of the readers of a family's concatenations add, if there is such a majority.

    Args:
        family: The concatenations.
        dying: Operations that read a concatenation now and will be gone once it is shared.
    """
    users = (use.owner.operation for member in family.members for use in member.concat.result.uses)
    readers = [read_frame(user) for user in users if user not in dying]
    axis = family.host.axis
    for frame, votes in Counter(readers).most_common(1):
        if frame is not None and 2 * votes > len(readers) and frame.low[axis] == frame.high[axis] == 0:
            return frame
    return no_frame(family)


def read_frame(operation: ir.Operation) -> Frame | None:
    """The padding that an operation adds; None where it is no tensor.pad, or not a static one by a constant."""
    if operation.name != "tensor.pad" or len(operation.operands) > 1 or "nofold" in operation.attributes:
        return None
    *_, end = operation.regions[0].blocks[0].operations
    constant = end.operands[0].owner
    if isinstance(constant, ir.Block) or constant.name != "arith.constant":
        return None
    low, high = (tuple(operation.attributes[name]) for name in ("static_low", "static_high"))
    if min(low + high) < 0 or not any(low + high):
        return None
    return Frame(low=low, high=high, value=constant.attributes["value"])
