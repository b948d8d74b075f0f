"""Convolutions with the channels last: all channels of a pixel lie next to each other, as CPUs read them best.

    conv(image: 1x64x92x64, filter: 32x64x3x3)  ->  conv(image: 1x92x64x64, filter: 3x3x64x32)

IREE's own pass does so to each convolution alone. Here whole graphs change their layout: padding, concatenation, slices
and elementwise arithmetic around the convolutions go along, and a tensor is transposed only where it comes from or goes
to something else, such as the function's caller. Constant filters are stored in their new order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from harness.rewrites.operations import (
    FUNCTIONS,
    body_of,
    empty_permuted,
    erase,
    find,
    is_parallel,
    operations_of,
    permuted_type,
    producer,
    transpose,
    transposed,
)

# Dimension i of NHWC is dimension TO_LAST[i] of NCHW, and the other way round.
TO_LAST = (0, 2, 3, 1)
FROM_LAST = (0, 3, 1, 2)
DEPTHWISE = frozenset({"linalg.depthwise_conv_2d_nchw_chw"})
CONVOLUTIONS = frozenset({"linalg.conv_2d_nchw_fchw"}) | DEPTHWISE
POOLINGS = frozenset({"linalg.pooling_nchw_max", "linalg.pooling_nchw_sum"})
_RANK = 4

# The name with channels last, and which dimension of the filter each dimension of the new filter is.
_TURNED = {
    "linalg.conv_2d_nchw_fchw": ("linalg.conv_2d_nhwc_hwcf", (2, 3, 1, 0)),
    "linalg.depthwise_conv_2d_nchw_chw": ("linalg.depthwise_conv_2d_nhwc_hwc", (1, 2, 0)),
}
# What has a number for each dimension.
_SLICE = ("static_offsets", "static_sizes", "static_strides")
_BY_DIMENSION = {
    "tensor.pad": ("static_low", "static_high"),
    "tensor.extract_slice": _SLICE,
    "tensor.insert_slice": _SLICE,
}
# They speak of loops, and the loops have another order now.
_LOOPS = frozenset({"compilation_info", "linalg.memoized_indexing_maps", "lowering_config"})


def channels_last(module: ir.Module, *, depthwise: bool = True) -> int:
    """Turn NCHW convolutions into NHWC ones.

    Every product stays the same; a compiler may add them up in another order. Convolutions of other layouts, with
    groups, without a static shape or in a dispatch region are left alone; and so is a function with loops or branches,
    since IREE 3.13 overwrites what stands before a loop if a convolution in the loop starts from it.
    """
    names = CONVOLUTIONS if depthwise else CONVOLUTIONS - DEPTHWISE
    convolutions = [op for op in find(module, *names) if is_known(op) and _is_in_straight_code(op)]
    blocks = {op.parent: op.block for op in convolutions}  # each is the only one of its function
    for block in blocks.values():
        _turn(find_reach([op for op in convolutions if op.block == block]))
    return len(convolutions)


def _is_in_straight_code(convolution: ir.Operation) -> bool:
    function = convolution.parent
    return (
        function.name in FUNCTIONS
        and len(function.regions[0].blocks) == 1
        and not any(inner.name.startswith("scf.") for inner in operations_of(function))
    )


def _turn(reach: list[ir.Operation]) -> None:
    twins = Twins()
    for op in reach:
        with ir.InsertionPoint(op), op.location:
            twins[op.result] = convert(op, twins)
    before = [producer(operand) for op in reach for operand in op.operands]
    skipped = dict.fromkeys(op for op in before if op is not None and op.name == "linalg.transpose")
    # Last ones first, so that what still reads a result has not been turned.
    for op in reversed(reach):
        _restore(op, twins, skipped)
        erase(op)
    for op in skipped:
        if not list(op.result.uses):
            erase(op)


def _restore(op: ir.Operation, twins: "Twins", skipped: dict[ir.Operation, None]) -> None:
    """Give what still reads an old result that layout again, unless it is about to transpose it to the new one."""
    twin = twins[op.result]
    for use in list(op.result.uses):
        user = use.owner.operation
        if (
            user.name == "linalg.transpose"
            and use.operand_number == 0
            and tuple(user.attributes["permutation"]) == TO_LAST
        ):
            user.result.replace_all_uses_with(twin)
            skipped.pop(user, None)
            erase(user)
    if list(op.result.uses):
        with ir.InsertionPoint(op), op.location:
            op.result.replace_all_uses_with(transpose(fence(twin), FROM_LAST))


# How far the layout is carried. An operation should take it where its result goes, through others that can, into a
# convolution, or comes from one. It can where it does the same to every dimension of an image whatever their order, or
# where the order is one of its attributes.


def find_reach(convolutions: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The operations that change their layout, in the program's order."""
    reached = dict.fromkeys(convolutions)
    waiting = list(convolutions)
    while waiting:
        for neighbour in _neighbours(waiting.pop()):
            if neighbour not in reached and neighbour.block == convolutions[0].block and is_known(neighbour):
                reached[neighbour] = None
                waiting.append(neighbour)
    return [view.operation for view in convolutions[0].block.operations if view.operation in reached]


def _neighbours(op: ir.Operation) -> list[ir.Operation]:
    before = [producer(op.operands[number]) for number in image_operands(op)]
    after = [use.owner.operation for use in op.result.uses if use.operand_number in image_operands(use.owner.operation)]
    return [op for op in before if op is not None] + after


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
            return (0,) if len(op.operands) == 1 and _pads_evenly(op) else ()
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


def _pads_evenly(op: ir.Operation) -> bool:
    """Whether a tensor.pad puts one value around its operand, and none that is computed for each element."""
    *before, end = operations_of(op)
    if before:
        return [inner.name for inner in before] == ["arith.constant"]
    return end.operands[0] not in list(body_of(op).arguments)


def _images_of_generic(op: ir.Operation) -> tuple[int, ...]:
    """Those operands of an operation in four parallel loops, one a dimension, that are read as they are written."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    identity = ir.AffineMap.get_identity(_RANK)
    if len(op.results) != 1 or not is_parallel(op) or maps[-1] != identity or _knows_position(op):
        return ()
    return tuple(number for number, indexing in enumerate(maps) if indexing == identity)


def _knows_position(op: ir.Operation) -> bool:
    return any(inner.name == "linalg.index" or inner.regions for inner in operations_of(op))


def _keeps_order(op: ir.Operation) -> bool:
    """Whether what is broadcast has its dimensions in the same order in both layouts."""
    added = tuple(op.attributes["dimensions"])
    kept = [FROM_LAST[dimension] for dimension in range(_RANK) if dimension not in added]
    return op.result.type.rank == _RANK and kept == sorted(kept)


def _is_image(value: ir.Value) -> bool:
    type_ = value.type
    return (
        isinstance(type_, ir.RankedTensorType)
        and type_.rank == _RANK
        and type_.has_static_shape
        and type_.encoding is None
    )


def convert(op: ir.Operation, twins: "Twins") -> ir.Value:
    """Write a known operation once more, at the insertion point and with the channels last."""
    if op.name == "linalg.generic":
        return _generic(op, twins)
    images = image_operands(op)
    name, permutation = _TURNED.get(op.name, (op.name.replace("nchw", "nhwc"), ()))  # poolings have no filter
    operands = []
    for number, operand in enumerate(op.operands):
        if number in images:
            operands.append(twins[operand])
        else:
            operands.append(twins.filter_of(operand, permutation) if permutation else operand)
    attributes: dict[str, ir.Attribute] = {
        key: ir.DenseI64ArrayAttr.get(to_last(list(op.attributes[key]))) for key in _BY_DIMENSION.get(name, ())
    }
    if name == "tensor.concat":
        old = op.attributes["dim"]
        attributes = {"dim": ir.IntegerAttr.get(old.type, FROM_LAST[old.value])}
    elif name == "linalg.broadcast":
        added = sorted(FROM_LAST[dimension] for dimension in op.attributes["dimensions"])
        attributes = {"dimensions": ir.DenseI64ArrayAttr.get(added)}
    return _rewrite(op, name, operands, attributes)


def _generic(op: ir.Operation, twins: "Twins") -> ir.Value:
    """Elementwise arithmetic: the loops are renamed, and operands with a twin are read through it."""
    identity = ir.AffineMap.get_identity(len(TO_LAST))
    renaming = ir.AffineMap.get_permutation(FROM_LAST)
    operands, maps = [], []
    for operand, attribute in zip(op.operands, op.attributes["indexing_maps"], strict=True):
        results = [result.compose(renaming) for result in attribute.value.results]
        twin = twins[operand] if attribute.value == identity else twins.get(operand)
        operands.append(operand if twin is None else twin)
        maps.append(ir.AffineMap.get(len(TO_LAST), 0, results if twin is None else to_last(results)))
    attributes = {"indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(indexing) for indexing in maps])}
    return _rewrite(op, op.name, operands, attributes)


def _rewrite(
    op: ir.Operation, name: str, operands: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute]
) -> ir.Value:
    kept = {key: op.attributes[key] for key in op.attributes if key not in _LOOPS}
    new = ir.Operation.create(
        name,
        results=[permuted_type(op.result.type, TO_LAST)],
        operands=operands,
        attributes={**kept, **attributes},
        regions=len(op.regions),
    )
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        old_region.blocks[0].append_to(new_region)
    return new.result


def to_last(items: Sequence[Any]) -> list[Any]:
    """What there is one of for each dimension, reordered."""
    return [items[dimension] for dimension in TO_LAST]


class Twins(dict[ir.Value, ir.Value]):
    """The tensors of a block laid out NHWC rather than NCHW; a twin that is not there is made at the insertion point.

    Twins are asked for in the order of the program, so one that was made for an operation dominates all later ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._filters: dict[ir.Value, ir.Value] = {}

    def __missing__(self, value: ir.Value) -> ir.Value:
        """Transposed, or made like the value itself if that costs no more."""
        twin = self[value] = _make_twin(value)
        return twin

    def filter_of(self, value: ir.Value, permutation: Sequence[int]) -> ir.Value:
        """A convolution's filter, permuted: once for all convolutions that share it in this role."""
        if value not in self._filters:
            stored = _stored(value, permutation)
            self._filters[value] = transpose(value, permutation) if stored is None else stored
        return self._filters[value]


def _make_twin(value: ir.Value) -> ir.Value:
    op = producer(value)
    if op is not None and op.name == "tensor.empty":
        return empty_permuted(value.type, TO_LAST)
    if op is not None and op.name == "linalg.fill":
        return linalg.fill(op.operands[0], outs=[empty_permuted(value.type, TO_LAST)])
    if op is not None and op.name == "linalg.transpose" and tuple(op.attributes["permutation"]) == FROM_LAST:
        return op.operands[0]
    stored = _stored(value, TO_LAST)
    return fence(transpose(value, TO_LAST)) if stored is None else stored


def _stored(value: ir.Value, permutation: Sequence[int]) -> ir.Value | None:
    op = producer(value)
    if op is None or op.name != "arith.constant":
        return None
    new_type = permuted_type(value.type, permutation)
    stored = transposed(op.attributes["value"], permutation, new_type)
    return None if stored is None else arith.ConstantOp(new_type, stored).result


def fence(value: ir.Value) -> ir.Value:
    """The same value, which the compiler computes before it looks at what is done with it.

    Without it IREE joins a transposition and a convolution in one dispatch, which then is no convolution that it
    knows how to vectorise: seventeen times slower for a 3x3 convolution of an argument.
    """
    return ir.Operation.create("util.optimization_barrier", results=[value.type], operands=[value]).result
