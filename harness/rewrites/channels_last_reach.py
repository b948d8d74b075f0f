"""How far the channels-last layout is carried: the operations that can take it, and those among them that should.

An operation should where its result goes, through others that can, into a convolution, or comes from one. It can where
it does the same to every dimension of an image whatever their order, or where the order is one of its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from harness.rewrites.channels_last_twins import FROM_LAST
from harness.rewrites.ingress_ops import body_of, is_parallel, producer

DEPTHWISE = frozenset({"linalg.depthwise_conv_2d_nchw_chw"})
CONVOLUTIONS = frozenset({"linalg.conv_2d_nchw_fchw"}) | DEPTHWISE
POOLINGS = frozenset({"linalg.pooling_nchw_max", "linalg.pooling_nchw_sum"})

_RANK = 4


def find_reach(convolutions: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The operations that change their layout, in the program's order.

    Args:
        convolutions: Known ones, of one block.
    """
    reached = dict.fromkeys(convolutions)
    waiting = list(convolutions)
    while waiting:
        for neighbour in _neighbours(waiting.pop()):
            if neighbour not in reached and neighbour.block == convolutions[0].block and is_known(neighbour):
                reached[neighbour] = None
                waiting.append(neighbour)
    return [view.operation for view in convolutions[0].block.operations if view.operation in reached]


def _neighbours(op: ir.Operation) -> list[ir.Operation]:
    """What computes the images that an operation reads, and what reads the image that it computes."""
    before = [producer(op.operands[number]) for number in image_operands(op)]
    after = [use.owner.operation for use in op.result.uses if use.operand_number in image_operands(use.owner.operation)]
    return [one for one in before if one is not None] + after


def is_known(op: ir.Operation) -> bool:
    """Whether an operation can take the layout."""
    numbers = image_operands(op)
    return (
        bool(numbers)
        and len(op.results) == 1
        and _is_image(op.result)
        and all(_is_image(op.operands[number]) for number in numbers)
    )


def image_operands(op: ir.Operation) -> tuple[int, ...]:
    """The numbers of the operands that are laid out as the result is; none for what is not known."""
    match op.name:
        case name if name in CONVOLUTIONS or name in POOLINGS:
            return (0, 2) if op.operands[1].type.has_static_shape else ()
        case "tensor.pad":
            return (0,) if len(op.operands) == 1 and pad_value(op) is not None else ()
        case "tensor.extract_slice":
            return (0,) if len(op.operands) == 1 else ()
        case "tensor.insert_slice":
            return (0, 1) if len(op.operands) == 2 else ()
        case "tensor.concat":
            return tuple(range(len(op.operands)))
        case "linalg.broadcast":
            return (1,) if _keeps_order(op) else ()
        case "linalg.generic":
            return _images_of_generic(op)
        case _:
            return ()


def pad_value(op: ir.Operation) -> ir.Value | None:
    """What a tensor.pad puts around its operand, the same everywhere; None if it is computed for each element."""
    *before, end = body_of(op).operations
    value = end.operands[0]
    if not before and value not in list(body_of(op).arguments):
        return value
    if len(before) == 1 and before[0].operation.name == "arith.constant":
        return value
    return None


def _images_of_generic(op: ir.Operation) -> tuple[int, ...]:
    """Those operands of an operation in four parallel loops, one a dimension, that are read as they are written."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    identity = ir.AffineMap.get_identity(_RANK)
    if len(op.results) != 1 or not is_parallel(op) or maps[-1] != identity or _knows_position(op):
        return ()
    return tuple(number for number, one in enumerate(maps) if one == identity)


def _knows_position(op: ir.Operation) -> bool:
    """Whether a body computes with the numbers of the loops."""
    return any(view.operation.name == "linalg.index" or view.operation.regions for view in body_of(op).operations)


def _keeps_order(op: ir.Operation) -> bool:
    """Whether what is broadcast has its dimensions in the same order in both layouts."""
    added = tuple(op.attributes["dimensions"])
    kept = [FROM_LAST[dimension] for dimension in range(_RANK) if dimension not in added]
    return op.result.type.rank == _RANK and kept == sorted(kept)


def _is_image(value: ir.Value) -> bool:
    """Whether a value is a tensor of four dimensions, of known extents and laid out plainly."""
    type_ = value.type
    return (
        isinstance(type_, ir.RankedTensorType)
        and type_.rank == _RANK
        and type_.has_static_shape
        and type_.encoding is None
    )
