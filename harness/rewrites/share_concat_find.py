"""Which concatenations can share a buffer: the ones whose parts are a contiguous run of a larger one's.

A concatenation is a `tensor.concat`, or a chain of `tensor.insert_slice` along one dimension that overwrites all of
what it started from. One that is a part of another along the same dimension is replaced by its own parts there.

A family is a larger concatenation, the host, with every other one that is a run of its parts. Where several choices
exist the choice is greedy: the host is the concatenation of most parts (of two, the earlier in the program), and it
takes all that it can; what remains is looked at in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iree.compiler import ir

from harness.rewrites.operations import FUNCTIONS, find, producer

# A concatenation of concatenations is taken apart up to here: ten doublings would make a thousand parts of two.
_MOST_PARTS = 64


@dataclass(frozen=True, kw_only=True)
class Concat:
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


@dataclass(frozen=True, kw_only=True)
class Member:
    """A concatenation of a family, and the number of the host's part that it starts with."""

    concat: Concat
    first: int


@dataclass(frozen=True, kw_only=True)
class Family:
    """Concatenations that can share one buffer; `members` holds the host as well, as its first."""

    host: Concat
    members: tuple[Member, ...]


def find_family(block: ir.Block) -> Family | None:
    """The first family of a block, by the module's rule; None where no concatenation is a run of another."""
    alike: dict[tuple[object, ...], list[Concat]] = {}
    concats = find_concats(block)
    for concat in concats:
        alike.setdefault(concat.kind, []).append(concat)
    for host in sorted(concats, key=lambda concat: -len(concat.parts)):  # sorted() keeps the program's order otherwise
        members = [Member(concat=host, first=0)]
        for concat in alike[host.kind]:
            first = None if concat is host else _find_run(concat.parts, host.parts)
            if first is not None:
                members.append(Member(concat=concat, first=first))
        if len(members) > 1:
            return Family(host=host, members=tuple(members))
    return None


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
            found[concat.result] = replace(concat, parts=tuple(parts)) if len(parts) <= _MOST_PARTS else concat
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
    return Concat(result=operation.result, axis=axis, parts=parts, operations=(operation,))


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
    return Concat(
        result=last.result,
        axis=axis,
        parts=tuple(parts[offset] for offset in offsets),
        operations=tuple(operations),
    )


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
