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

A slice is taken where it is read, of the newest state of the buffer at that place. So no older state is read after an
insertion, which is what lets the compiler insert in place; and an insertion never waits for a part that comes later.

A concatenation is a `tensor.concat`, or a chain of `tensor.insert_slice` along one dimension that overwrites all of
what it started from. One that is a part of another along the same dimension is replaced by its own parts there. Left
alone are dynamic shapes, elements smaller than a byte, and what stands in the body of a loop or a branch.

A family is a larger concatenation, the host, with every other one that is a run of its parts. The host is the
concatenation of most parts (of two, the earlier in the program), and it takes all that it can; what remains is looked
at in the same way.

The buffer may have a frame. A convolution with zero padding reads `tensor.pad` of its input, which costs a fill and a
copy of the whole input. Where most readers of a family's concatenations pad them alike, and not along the axis of the
concatenation, the buffer is made with that padding around it: filled once, and a padded concatenation is a slice too.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from harness.rewrites.operations import FUNCTIONS, depends, holders_of, operations_of, producer

# A buffer without a frame opens at most so many operations before it is first read, a convolution with all that comes
# with it. Parts that exist by then are copied in earlier, and the compiler then packs the memory of ESRGAN's block
# into 14.0 MB instead of 16.3. One with a frame opens when it is read: it may be in use by another family until then.
_LEAD = 32


def share_concat(module: ir.Module, *, padding: bool = True) -> int:
    """Let concatenations share buffers where one is a contiguous run of a larger one's parts."""
    shared = 0
    for function in module.body.operations:
        if function.operation.name in FUNCTIONS:
            for block in function.regions[0].blocks:
                buffers: list[_Buffer] = []
                while (family := find_family(block)) is not None:
                    buffer = _Buffer(block, family, padding=padding)
                    buffer.write(buffers)
                    buffers.append(buffer)
                    shared += len(family.members) - 1
    return shared


class _Piece(NamedTuple):
    """A value that the buffer holds once it is filled, and its place along the axis."""

    value: ir.Value
    offset: int
    size: int


class _Read(NamedTuple):
    """An operand that becomes a slice of the buffer."""

    position: int  # The position before which the slice is taken
    piece: _Piece  # What is read
    framed: bool  # Whether the padding around it is read as well
    user: ir.Operation  # The operation that reads
    operand: int  # The number of its operand


class _Buffer:
    """The shared buffer of a family: what is inserted and read where, and then its value at each moment."""

    def __init__(self, block: ir.Block, family: "Family", *, padding: bool) -> None:
        host = family.host
        self.order, self.axis, self.shape = Order(block), host.axis, list(host.result.type.shape)
        joining = _find_joining(family, self.order)
        self.frame = choose_frame(family, joining) if padding else no_frame(family)
        self.type = ir.RankedTensorType.get(self.frame.around(self.shape), host.result.type.element_type)
        self.states: list[ir.Value] = []  # Its value before the first insertion and after each
        sizes = [part.type.shape[host.axis] for part in host.parts]
        ends = accumulate(sizes)
        parts = [_Piece(part, end - size, size) for part, size, end in zip(host.parts, sizes, ends, strict=True)]
        concats = []
        for concat, first in family.members:
            run = parts[first : first + len(concat.parts)]
            concats.append(_Piece(concat.result, run[0].offset, sum(part.size for part in run)))
        pads = self._find_pads([*concats, *parts])
        # Operations that nothing needs any more, each before the ones that it uses.
        self.gone = {**pads, **dict.fromkeys(joining)}
        reads = [read for concat in concats for read in self._find_reads(concat) if read.user not in self.gone]
        for pad, piece in pads.items():
            reads += self._find_reads(piece._replace(value=pad.result), framed=True)
        self.reads = sorted(reads, key=itemgetter(0))
        self.insertions = sorted(self._find_insertions(parts), key=itemgetter(0))

    def _find_pads(self, pieces: Sequence[_Piece]) -> dict[ir.Operation, _Piece]:
        """The operations that add the frame to a piece; not those of other blocks, which may come before the buffer."""
        pads: dict[ir.Operation, _Piece] = {}
        for piece in pieces:
            for use in piece.value.uses:
                user = use.owner.operation
                if read_frame(user) == self.frame and self.order.find(user) is not None:
                    pads.setdefault(user, piece)
        return pads

    def _find_reads(self, piece: _Piece, *, framed: bool = False) -> Iterator[_Read]:
        for use in piece.value.uses:
            user = use.owner.operation
            yield _Read(self.order.of_user(user), piece, framed, user, use.operand_number)

    def _find_insertions(self, parts: Sequence[_Piece]) -> Iterator[tuple[int, _Piece]]:
        """Each part goes in right after the operation that computes it, or when the buffer opens if that is later.

        A part may exist long before (a constant, or what conditions every block of a network), and a buffer that opened
        then would be kept for nothing.
        """
        first_read = self.reads[0].position if self.reads else 0
        opening = first_read - (_LEAD if self.frame.value is None else 0)
        for part in parts:
            source = producer(part.value)
            computed = None if source is None else self.order.find(source)
            yield max(opening, 0 if computed is None else computed + 1), part

    def write(self, earlier: Sequence["_Buffer"]) -> None:
        """Replace the family's concatenations by slices of the buffer."""
        slices: dict[tuple[int, int, int, bool], ir.Value] = {}
        operations, waiting = self.order.operations, list(self.insertions)
        with next(iter(self.gone)).location:
            self.states.append(self._start(earlier))
            for read in self.reads:
                while waiting and waiting[0][0] <= read.position:
                    position, part = waiting.pop(0)
                    with ir.InsertionPoint(operations[position]):
                        place = self._place(part, framed=False)
                        self.states.append(tensor.insert_slice(part.value, self.states[-1], [], [], [], *place))
                key = len(self.states), read.piece.offset, read.piece.size, read.framed
                if key not in slices:
                    with ir.InsertionPoint(operations[read.position]):
                        slices[key] = self._slice(read)
                read.user.operands[read.operand] = slices[key]
        for operation in self.gone:
            operation.erase()

    def _start(self, earlier: Sequence["_Buffer"]) -> ir.Value:
        free = self._find_free(earlier)
        if free is not None:
            return free
        with ir.InsertionPoint(self.order.operations[self.insertions[0][0]]):
            empty = tensor.empty(self.type.shape, self.type.element_type)
            if self.frame.value is None:
                return empty
            return linalg.fill(arith.constant(self.type.element_type, self.frame.value), outs=[empty])

    def _slice(self, read: _Read) -> ir.Value:
        offsets, sizes, strides = self._place(read.piece, framed=read.framed)
        if sizes == self.type.shape:
            return self.states[-1]
        kind = ir.RankedTensorType.get(sizes, self.type.element_type)
        return tensor.extract_slice(kind, self.states[-1], [], [], [], offsets, sizes, strides)

    def _place(self, piece: _Piece, *, framed: bool) -> tuple[list[int], list[int], list[int]]:
        """Offsets, sizes and strides of a piece in the buffer, with the frame or within it."""
        offsets = [0] * len(self.shape) if framed else list(self.frame.low)
        sizes = self.frame.around(self.shape) if framed else list(self.shape)
        offsets[self.axis], sizes[self.axis] = piece.offset, piece.size
        return offsets, sizes, [1] * len(sizes)

    def _find_free(self, earlier: Sequence["_Buffer"]) -> ir.Value | None:
        """The last state of a buffer that this family can go on with.

        In a chain of dense blocks, each block's input depends on what was read last from the buffer of the block
        before. Taking that buffer over saves memory: a fill depends on nothing, so the compiler runs it early, while
        the buffer before is still in use.
        """
        if self.frame.value is None:
            return None  # nothing to gain
        opening = self.insertions[0][0]
        first = [part.value for position, part in self.insertions if position == opening]
        for buffer in earlier:
            last = buffer.states[-1]
            uses = ((use.owner.operation.name, use.operand_number) for use in last.uses)
            is_taken = ("tensor.insert_slice", 1) in uses
            if buffer.frame == self.frame and last.type == self.type and not is_taken:
                slices = [
                    use.owner.operation.result
                    for state in buffer.states
                    for use in state.uses
                    if use.owner.operation.name == "tensor.extract_slice"
                ]
                uses_of_all = (use for value in (*buffer.states, *slices) for use in value.uses)
                readers = sorted({self.order.of_user(use.owner.operation) for use in uses_of_all})
                sources = [self.order.operations[position] for position in readers]
                if sources and readers[-1] < opening and any(depends(part, sources, sources[0]) for part in first):
                    return last
        return None


def _find_joining(family: "Family", order: "Order") -> list[ir.Operation]:
    """What computes nothing but the family's concatenations, each before what it uses."""
    ends = {concat.operations[0] for concat, _ in family.members}
    chains = {operation for concat, _ in family.members for operation in concat.operations}
    joining: dict[ir.Operation, None] = {}
    for operation in sorted(chains, key=order.of_user, reverse=True):
        if operation in ends or all(use.owner.operation in joining for use in operation.result.uses):
            joining[operation] = None
    return list(joining)


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
    for host in sorted(concats, key=lambda concat: -len(concat.parts)):  # of equals, in the program's order
        starts = [(concat, _find_run(concat.parts, host.parts)) for concat in alike[host.kind] if concat is not host]
        members = [(concat, first) for concat, first in starts if first is not None]
        if members:
            return Family(host, ((host, 0), *members))
    return None


def find_concats(block: ir.Block) -> list[Concat]:
    """The concatenations of a block in the program's order."""
    found: dict[ir.Value, Concat] = {}
    for view in block.operations:
        concat = _read_concat(view.operation) or _read_chain(view.operation)
        if concat is not None:
            parts: list[ir.Value] = []
            for part in concat.parts:
                inner = found.get(part)
                parts += inner.parts if inner is not None and inner.axis == concat.axis else [part]
            found[concat.result] = concat._replace(parts=tuple(parts)) if len(parts) <= _MOST_PARTS else concat
    return list(found.values())


def _find_run(parts: Sequence[ir.Value], whole: Sequence[ir.Value]) -> int | None:
    """Where `parts` first stands in `whole` without a gap."""
    starts = range(len(whole) - len(parts) + 1)
    return next((start for start in starts if whole[start : start + len(parts)] == parts), None)


def _read_concat(operation: ir.Operation) -> Concat | None:
    parts = tuple(operation.operands)
    is_plain = operation.name == "tensor.concat" and all(_is_plain(value) for value in (operation.result, *parts))
    if not is_plain or len(parts) < 2:
        return None
    return Concat(operation.result, operation.attributes["dim"].value, parts, (operation,))


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
    *_, end = operations_of(operation)
    constant = producer(end.operands[0])
    if constant is None or constant.name != "arith.constant":
        return None
    low, high = (tuple(operation.attributes[name]) for name in ("static_low", "static_high"))
    if min(low + high) < 0 or not any(low + high):
        return None
    return Frame(low, high, constant.attributes["value"])


class Order:
    """The order of a block's operations at one moment; operations that are made later are not in it."""

    def __init__(self, block: ir.Block) -> None:
        # All of them, the terminator last.
        self.operations = [view.operation for view in block.operations]
        self._positions = {operation: position for position, operation in enumerate(self.operations)}

    def find(self, operation: ir.Operation) -> int | None:
        """The position of an operation, or of the one that holds it; None where it is in no region of the block."""
        places = (self._positions.get(holder) for holder in (operation, *holders_of(operation)))
        return next((place for place in places if place is not None), None)

    def of_user(self, user: ir.Operation) -> int:
        """The position of an operation that reads; the terminator's where it is in a later block."""
        position = self.find(user)
        return len(self.operations) - 1 if position is None else position
