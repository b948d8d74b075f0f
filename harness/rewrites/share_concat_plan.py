"""Which concatenations can share a buffer, and what padding it has around it.

A concatenation is a `tensor.concat`, or a chain of `tensor.insert_slice` along one dimension that overwrites all of
what it started from. One that is a part of another along the same dimension is replaced by its own parts there.

A family is a larger concatenation, the host, with every other one that is a run of its parts. Where several choices
exist the choice is greedy: the host is the concatenation of most parts (of two, the earlier in the program), and it
takes all that it can; what remains is looked at in the same way.

The buffer may have a frame: constant padding that the readers of the concatenations would add one by one. A convolution
with zero padding reads `tensor.pad` of its input, which costs a fill and a copy of the whole input. Where most readers
of a family's concatenations pad them alike, and not along the axis of the concatenation, the shared buffer is made with
that padding around it: filled once, and then a padded concatenation is a slice of it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from iree.compiler import ir

from harness.rewrites.operations import FUNCTIONS, body_of, find, producer

# A concatenation of concatenations is taken apart up to here: ten doublings would make a thousand parts of two.
_MOST_PARTS = 64


class Concat(NamedTuple):
    """One concatenation of a block."""

    result: ir.Value  # The joined tensor
    axis: int  # The dimension along which it is joined
    # What is joined, in the order of the buffer; none of them is a concatenation along the same dimension
    parts: tuple[ir.Value, ...]
    # What computes it, the last one first, from the tensor.empty on where it begins with one
    operations: tuple[ir.Operation, ...]

    @property
    def kind(self) -> tuple[object, ...]:
        """What two concatenations must agree in to share a buffer: all of their type but the extent of the axis."""
        shape = list(self.result.type.shape)
        shape[self.axis] = 0
        return self.axis, tuple(shape), self.result.type.element_type


class Family(NamedTuple):
    """Concatenations that can share one buffer, each with the number of the host's part that it starts with."""

    host: Concat
    members: tuple[tuple[Concat, int], ...]  # The host is the first


def find_family(block: ir.Block) -> Family | None:
    """The first family of a block, by the module's rule; None where no concatenation is a run of another."""
    concats = find_concats(block)
    alike: dict[tuple[object, ...], list[Concat]] = {}
    for concat in concats:
        alike.setdefault(concat.kind, []).append(concat)
    for host in sorted(concats, key=_fewer_parts):  # of equals, in the program's order
        starts = [(concat, _find_run(concat.parts, host.parts)) for concat in alike[host.kind] if concat is not host]
        members = [(concat, first) for concat, first in starts if first is not None]
        if members:
            return Family(host, ((host, 0), *members))
    return None


def _fewer_parts(concat: Concat) -> int:
    return -len(concat.parts)


def find_concats(block: ir.Block) -> list[Concat]:
    """The concatenations of a block in the program's order."""
    found: dict[ir.Value, Concat] = {}
    for view in block.operations:
        concat = _read_concat(view.operation)
        if concat is not None:
            parts: list[ir.Value] = []
            for part in concat.parts:
                inner = found.get(part)
                parts += inner.parts if inner is not None and inner.axis == concat.axis else [part]
            found[concat.result] = concat._replace(parts=tuple(parts)) if len(parts) <= _MOST_PARTS else concat
    return list(found.values())


def obstacles(module: ir.Module) -> list[str]:
    """Why each `tensor.concat` that is not looked at is not, as what follows `concatenations`."""
    found = ((op, _obstacle(op)) for op in find(module, "tensor.concat"))
    return [obstacle for _, obstacle in found if obstacle]


def _obstacle(concat: ir.Operation) -> str:
    kinds = [value.type for value in (*concat.operands, concat.results[0])]
    if not all(isinstance(kind, ir.RankedTensorType) and kind.has_static_shape for kind in kinds):
        return "with dynamic sizes"
    if concat.parent.name not in FUNCTIONS:
        return "in loops or branches"
    if _read_tensor_concat(concat) is None:
        return "of one tensor, of empty ones, with encodings or of elements smaller than a byte"
    return ""


def _find_run(parts: Sequence[ir.Value], whole: Sequence[ir.Value]) -> int | None:
    """Where `parts` first stands in `whole` without a gap."""
    starts = range(len(whole) - len(parts) + 1)
    return next((start for start in starts if whole[start : start + len(parts)] == parts), None)


def _read_concat(operation: ir.Operation) -> Concat | None:
    if operation.name == "tensor.concat":
        return _read_tensor_concat(operation)
    if operation.name == "tensor.insert_slice":
        return _read_chain(operation)
    return None


def _read_tensor_concat(operation: ir.Operation) -> Concat | None:
    parts = tuple(operation.operands)
    if len(parts) < 2 or not all(_is_plain(value) for value in (operation.result, *parts)):
        return None
    axis = operation.attributes["dim"].value
    return Concat(operation.result, axis, parts, (operation,))


def _read_chain(last: ir.Operation) -> Concat | None:
    """The chain of insert_slice that ends in `last`, as far back as it takes to overwrite all of the tensor."""
    axis = _inserted_axis(last)
    if axis is None:
        return None
    extent = last.result.type.shape[axis]
    parts: dict[int, ir.Value] = {}  # by offset along the axis
    operations = []
    operation = last
    while sum(part.type.shape[axis] for part in parts.values()) < extent:
        if operation is None or operation.block != last.block or _inserted_axis(operation) != axis:
            return None
        part, base = operation.operands
        offset = operation.attributes["static_offsets"][axis]
        if offset in parts:
            return None
        parts[offset] = part
        operations.append(operation)
        operation = producer(base)
    offsets = sorted(parts)
    ends = [offset + parts[offset].type.shape[axis] for offset in offsets]
    if [*offsets, extent] != [0, *ends]:
        return None  # parts overlap
    if operation is not None and operation.name == "tensor.empty" and operation.block == last.block:
        operations.append(operation)
    return Concat(last.result, axis, tuple(parts[offset] for offset in offsets), tuple(operations))


def _inserted_axis(operation: ir.Operation) -> int | None:
    """The one dimension that an operation inserts a part of; None where it is no plain tensor.insert_slice."""
    if operation.name != "tensor.insert_slice" or len(operation.operands) > 2:
        return None
    part = operation.operands[0]
    if not _is_plain(part) or not _is_plain(operation.result):
        return None
    sizes, strides = list(operation.attributes["static_sizes"]), operation.attributes["static_strides"]
    if sizes != part.type.shape or set(strides) != {1}:
        return None  # of a lower rank, or with gaps
    axes = [number for number, size in enumerate(sizes) if size != operation.result.type.shape[number]]
    return axes[0] if len(axes) == 1 else None


def _is_plain(value: ir.Value) -> bool:
    """Whether a value is a tensor of a static shape and of whole bytes, not empty and without an encoding."""
    kind = value.type
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape or kind.encoding is not None:
        return False
    bits = getattr(kind.element_type, "width", 8)  # an index, for one, has no width
    return 0 not in kind.shape and bits % 8 == 0


# ---------------------------------------------------------------------------------------------------------------- frame


class Frame(NamedTuple):
    """Constant padding."""

    low: tuple[int, ...]  # Elements before the first, for each dimension
    high: tuple[int, ...]  # Elements after the last
    value: ir.Attribute | None  # What they are; None where there are none

    def around(self, shape: Sequence[int]) -> list[int]:
        """The shape with the padding."""
        return [low + size + high for low, size, high in zip(self.low, shape, self.high, strict=True)]


def no_frame(family: Family) -> Frame:
    """The frame of a buffer without padding."""
    nothing = (0,) * len(family.host.result.type.shape)
    return Frame(nothing, nothing, None)


def choose_frame(family: Family, dying: Collection[ir.Operation]) -> Frame:
    """The padding that more than half of the readers of a family's concatenations add, if there is such a majority."""
    users = (use.owner.operation for concat, _ in family.members for use in concat.result.uses)
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
    *_, end = body_of(operation).operations
    constant = producer(end.operands[0])
    if constant is None or constant.name != "arith.constant":
        return None
    low, high = (tuple(operation.attributes[name]) for name in ("static_low", "static_high"))
    if min(low + high) < 0 or not any(low + high):
        return None
    return Frame(low, high, constant.attributes["value"])


# ---------------------------------------------------------------------------------------------------------------- order


class Order:
    """The order of a block's operations at one moment; operations that are made later are not in it."""

    def __init__(self, block: ir.Block) -> None:
        # All of them, the terminator last.
        self.operations = [view.operation for view in block.operations]
        self._positions = {operation: position for position, operation in enumerate(self.operations)}

    def of_user(self, user: ir.Operation) -> int:
        """The position of an operation, or of the one that holds it; the terminator's where it is in a later block."""
        position = self._find(user)
        return len(self.operations) - 1 if position is None else position

    def holds(self, user: ir.Operation) -> bool:
        """Whether an operation is in the block, or in a region of one that is."""
        return self._find(user) is not None

    def of_definition(self, value: ir.Value) -> int | None:
        """The position of the operation that computes a value; None for one from before the block."""
        return None if isinstance(value.owner, ir.Block) else self._positions.get(value.owner.operation)

    def _find(self, user: ir.Operation) -> int | None:
        holder = user
        while holder is not None:
            position = self._positions.get(holder.operation)
            if position is not None:
                return position
            holder = holder.operation.parent
        return None
