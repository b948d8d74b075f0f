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

A slice is taken where it is read, of the newest state of the buffer at that place. So no older state is read after an
insertion, which is what lets the compiler insert in place; and an insertion never waits for a part that comes later.

share_concat_plan says which concatenations belong together and what padding the buffer has around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from harness.rewrites.operations import FUNCTIONS, Matched, depends
from harness.rewrites.share_concat_plan import (
    Family,
    Order,
    choose_frame,
    find_concats,
    find_family,
    no_frame,
    obstacles,
    read_frame,
)

# A buffer without a frame opens at most so many operations before it is first read, a convolution with all that comes
# with it. Parts that exist by then are copied in earlier, and the compiler then packs the memory of ESRGAN's block
# into 14.0 MB instead of 16.3. One with a frame opens when it is read: it may be in use by another family until then.
_LEAD = 32


def share_concat(module: ir.Module, *, padding: bool = True) -> Matched:
    """Let concatenations share buffers where one is a contiguous run of a larger one's parts."""
    shared, left_alone = 0, [f"concatenations {obstacle}" for obstacle in obstacles(module)]
    for function in module.body.operations:
        if function.operation.name in FUNCTIONS:
            for block in function.regions[0].blocks:
                buffers: list[_Buffer] = []
                alone = len(find_concats(block))
                while (family := find_family(block)) is not None:
                    buffer = _Buffer(block, family, padding=padding)
                    buffer.write(buffers)
                    buffers.append(buffer)
                    shared += len(family.members) - 1
                    alone -= len(family.members)
                left_alone += ["concatenations with no other to share with"] * alone
    return Matched(shared, left_alone)


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

    def __init__(self, block: ir.Block, family: Family, *, padding: bool) -> None:
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
        self.reads = sorted(reads, key=_position)
        self.insertions = sorted(self._find_insertions(parts), key=_position)

    def _find_pads(self, pieces: Sequence[_Piece]) -> dict[ir.Operation, _Piece]:
        """The operations that add the frame to a piece; not those of other blocks, which may come before the buffer."""
        pads: dict[ir.Operation, _Piece] = {}
        for piece in pieces:
            for use in piece.value.uses:
                user = use.owner.operation
                if read_frame(user) == self.frame and self.order.holds(user):
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
            computed = self.order.of_definition(part.value)
            yield max(opening, 0 if computed is None else computed + 1), part

    def write(self, earlier: Sequence[_Buffer]) -> None:
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

    def _start(self, earlier: Sequence[_Buffer]) -> ir.Value:
        """The buffer before anything of the family is in it: one from an earlier family, or a new one."""
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

    def _find_free(self, earlier: Sequence[_Buffer]) -> ir.Value | None:
        """The last state of a buffer that this family can go on with; None where there is none.

        In a chain of dense blocks, each block's input depends on what was read last from the buffer of the block
        before. Taking that buffer over saves filling the frame again, and above all it saves memory: a fill depends on
        nothing, so the compiler runs it early, while the buffer before is still in use.
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
                readers = sorted(_find_readers(buffer, self.order))
                sources = [self.order.operations[position] for position in readers]
                if sources and readers[-1] < opening and any(depends(part, sources, sources[0]) for part in first):
                    return last
        return None


def _position(item: _Read | tuple[int, _Piece]) -> int:
    return item[0]


def _find_joining(family: Family, order: Order) -> list[ir.Operation]:
    """What computes nothing but the family's concatenations, each before what it uses."""
    ends = {concat.operations[0] for concat, _ in family.members}
    chains = {operation for concat, _ in family.members for operation in concat.operations}
    joining: dict[ir.Operation, None] = {}
    for operation in sorted(chains, key=order.of_user, reverse=True):
        if operation in ends or all(use.owner.operation in joining for use in operation.result.uses):
            joining[operation] = None
    return list(joining)


def _find_readers(buffer: _Buffer, order: Order) -> set[int]:
    """The positions of the operations that read a buffer or a slice of it."""
    values = list(buffer.states)
    values += [
        use.owner.operation.result
        for state in buffer.states
        for use in state.uses
        if use.owner.operation.name == "tensor.extract_slice"
    ]
    return {order.of_user(use.owner.operation) for value in values for use in value.uses}
