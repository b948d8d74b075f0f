"""What becomes of a family: when each part is inserted into the shared buffer, and which operands become slices of it.

A slice is taken where it is read, of the newest state of the buffer at that place. So no older state is read after an
insertion, which is what lets the compiler insert in place; and an insertion never waits for a part that comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from iree.compiler import ir

from harness.rewrites.share_concat_find import Family
from harness.rewrites.share_concat_frame import Frame, choose_frame, no_frame, read_frame
from harness.rewrites.share_concat_order import Order

# A buffer without a frame opens at most so many operations before it is first read, a convolution with all that comes
# with it. Parts that exist by then are copied in earlier, and the compiler then packs the memory of ESRGAN's block
# into 14.0 MB instead of 16.3. One with a frame opens when it is read: it may be in use by another family until then.
_LEAD = 32


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A value that the buffer holds once it is filled, and its place along the axis."""

    value: ir.Value
    offset: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """A part, and the position of the operation before which it is inserted."""

    part: Piece
    position: int


@dataclass(frozen=True, kw_only=True)
class Read:
    """An operand that becomes a slice of the buffer, with the frame or without.

    Attributes:
        piece: What is read.
        framed: Whether the padding around it is read as well.
        user: The operation that reads.
        operand: The number of its operand.
        position: The position before which the slice is taken.
    """

    piece: Piece
    framed: bool
    user: ir.Operation
    operand: int
    position: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that it takes to write a family's buffer.

    Attributes:
        family: The concatenations.
        order: Of the block, before anything is written.
        frame: The padding that the buffer has around it.
        insertions: In the order of the program.
        reads: In the order of the program.
        gone: Operations that nothing needs any more, each before the ones that it uses.
    """

    family: Family
    order: Order
    frame: Frame
    insertions: tuple[Insertion, ...]
    reads: tuple[Read, ...]
    gone: tuple[ir.Operation, ...]


def plan(block: ir.Block, family: Family, *, padding: bool) -> Plan:
    """Plan the buffer of a family of a block; `padding` says whether it may have a frame."""
    order = Order(block)
    joining = _find_joining(family, order)
    frame = choose_frame(family, joining) if padding else no_frame(family)
    parts = _lay_out(family)
    concats = _find_runs(family, parts)
    pads = _find_pads([*concats, *parts], frame, order)
    gone = {**pads, **dict.fromkeys(joining)}
    reads = [read for concat in concats for read in _find_reads(concat, order) if read.user not in gone]
    for pad, piece in pads.items():
        reads += _find_reads(Piece(value=pad.result, offset=piece.offset, size=piece.size), order, framed=True)
    insertions = _find_insertions(parts, reads, frame, order)
    return Plan(
        family=family,
        order=order,
        frame=frame,
        insertions=tuple(sorted(insertions, key=lambda insertion: insertion.position)),
        reads=tuple(sorted(reads, key=lambda read: read.position)),
        gone=tuple(gone),
    )


def _find_joining(family: Family, order: Order) -> list[ir.Operation]:
    """What computes nothing but the family's concatenations, each before what it uses."""
    ends = {member.concat.operations[0] for member in family.members}
    chains = {operation for member in family.members for operation in member.concat.operations}
    joining: dict[ir.Operation, None] = {}
    for operation in sorted(chains, key=order.of_user, reverse=True):
        if operation in ends or all(use.owner.operation in joining for use in operation.result.uses):
            joining[operation] = None
    return list(joining)


def _lay_out(family: Family) -> list[Piece]:
    """The host's parts, one after the other."""
    sizes = [part.type.shape[family.host.axis] for part in family.host.parts]
    return [
        Piece(value=part, offset=end - size, size=size)
        for part, size, end in zip(family.host.parts, sizes, accumulate(sizes), strict=True)
    ]


def _find_runs(family: Family, parts: Sequence[Piece]) -> list[Piece]:
    """The concatenations, each of them a run of the host's parts."""
    pieces = []
    for member in family.members:
        run = parts[member.first : member.first + len(member.concat.parts)]
        size = sum(part.size for part in run)
        pieces.append(Piece(value=member.concat.result, offset=run[0].offset, size=size))
    return pieces


def _find_pads(pieces: Sequence[Piece], frame: Frame, order: Order) -> dict[ir.Operation, Piece]:
    """The operations that add the frame to a piece; not those of other blocks, which may come before the buffer."""
    pads: dict[ir.Operation, Piece] = {}
    for piece in pieces:
        for use in piece.value.uses:
            user = use.owner.operation
            if read_frame(user) == frame and order.holds(user):
                pads.setdefault(user, piece)
    return pads


def _find_reads(piece: Piece, order: Order, *, framed: bool = False) -> Iterator[Read]:
    for use in piece.value.uses:
        user = use.owner.operation
        yield Read(piece=piece, framed=framed, user=user, operand=use.operand_number, position=order.of_user(user))


def _find_insertions(parts: Sequence[Piece], reads: Sequence[Read], frame: Frame, order: Order) -> Iterator[Insertion]:
    """Each part goes in right after the operation that computes it, or when the buffer opens if that is later.

    A part may exist long before (a constant, or what conditions every block of a network), and a buffer that opened
    then would be kept for nothing.
    """
    opening = min((read.position for read in reads), default=0) - (_LEAD if frame.value is None else 0)
    for part in parts:
        computed = order.of_definition(part.value)
        yield Insertion(part=part, position=max(opening, 0 if computed is None else computed + 1))
