"""Dispatch regions: one for an operation of its own, and regions that read and write where their tensors lie.

IREE forms dispatches itself, and on the way there may rebuild an operation: a convolution of one image loses its unit
dimension, and its compilation_info with it. What stands in a flow.dispatch.region is left as it is, and becomes one
dispatch; so `isolate` puts an operation into one, with the cheap operations around it that belong into its loops. A
convolution keeps its name and its seven loops there, gets the compiler's configuration for convolutions, and a tuning
spec can match it.

`regions_in_place` moves slices into regions. Around one, a slice that does not lie in one piece costs a dispatch that
copies it out, and an insertion one that copies it in: with the channels last this is so for every part of a
concatenation along the channels. Inside it, the slices are only strides of its loads and stores.

    %in = tensor.extract_slice %buffer[...]                %next = flow.dispatch.region {
    %part = flow.dispatch.region {                           %in = tensor.extract_slice %buffer[...]
      ... %in ...                                     ->     ... %in ...
      flow.return %0                                         %1 = tensor.insert_slice %0 into %buffer[...]
    }                                                        flow.return %1
    %next = tensor.insert_slice %part into %buffer[...]    }

The compiler lets such a result take the place of the buffer.
"""

from collections.abc import Sequence

from iree.compiler import ir

from harness.rewrites.operations import find, holders_of, is_parallel, only_yields, operations_of, producer

_REGION = "flow.dispatch.region"
# What a loop begins with, and what costs nothing in it.
_INITS = ("linalg.fill", "linalg.broadcast")
_STARTS = frozenset({*_INITS, "tensor.empty"})
CONVOLUTION = "linalg.conv_2d_nhwc_hwcf"
DEPTHWISE = "linalg.depthwise_conv_2d_nhwc_hwc"
POOLINGS = ("linalg.pooling_nhwc_max", "linalg.pooling_nhwc_sum")


def in_region(op: ir.Operation) -> bool:
    """Whether an operation stands in a dispatch region already."""
    return any(holder.name.startswith("flow.dispatch.") for holder in holders_of(op))


def isolate_convolutions(module: ir.Module, *, depthwise: bool = False, pooling: bool = True) -> int:
    """Put channels-last convolutions of one image into dispatch regions, with inits and what follows pointwise.

    IREE keeps those of several images as they are, and makes matmuls of those of one point. IREE 3.13 does not compile
    isolated depthwise ones with the channels first, and other such convolutions get slower.
    """
    names = (CONVOLUTION, *([DEPTHWISE] if depthwise else []), *(POOLINGS if pooling else []))
    matched = 0
    for op in find(module, *names):
        kernel, result = op.operands[1].type, op.result.type
        is_of_point = op.name == CONVOLUTION and kernel.shape[:2] == [1, 1]
        is_static_of_one_image = kernel.has_static_shape and result.has_static_shape and result.shape[0] == 1
        if is_static_of_one_image and not is_of_point and not in_region(op):
            isolate(op)
            matched += 1
    return matched


def isolate(op: ir.Operation) -> ir.Operation:
    """Put a structured operation with one result into a region: its init, itself, then what follows pointwise."""
    start = producer(op.operands[-1])
    is_alone = start is not None and start.block == op.block and len(list(start.result.uses)) == 1
    starts = [start] if start is not None and is_alone and start.name in _INITS else []
    chain = [*starts, op, *_pointwise_after(op)]
    last = chain[-1]
    region = ir.Operation.create(
        _REGION,
        results=[last.result.type],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        regions=2,
        loc=op.location,
        ip=ir.InsertionPoint(last),
    )
    # All that the chain reads is defined before its last operation, so before the region.
    last.result.replace_all_uses_with(region.result)
    body = region.regions[0].blocks.append()
    for member in chain:
        body.append(member)
    ir.Operation.create("flow.return", operands=[last.result], loc=op.location, ip=ir.InsertionPoint(body))
    return region


def _pointwise_after(op: ir.Operation) -> list[ir.Operation]:
    """The elementwise operations that follow, as far as each is the only reader of the last."""
    chain: list[ir.Operation] = []
    value = op.result
    while len(uses := list(value.uses)) == 1:
        reader = uses[0].owner.operation
        if reader.name != "linalg.generic" or reader.block != op.block or not _is_pointwise_in(reader, value):
            break
        chain.append(reader)
        value = reader.result
    return chain


def _is_pointwise_in(reader: ir.Operation, value: ir.Value) -> bool:
    if len(reader.results) != 1 or reader.result.type != value.type or not is_parallel(reader):
        return False
    maps = list(reader.attributes["indexing_maps"])
    return all(maps[i] == maps[-1] for i, operand in enumerate(reader.operands) if operand == value)


def regions_in_place(module: ir.Module) -> int:
    """Move slices into the dispatch regions that read or make them."""
    moved = 0
    for region in find(module, _REGION):
        if len(region.regions[0].blocks) == 1 and not list(region.operands):  # which would be dynamic sizes
            moved += _take_reads(region) + _take_write(region)
    return moved


def _take_reads(region: ir.Operation) -> int:
    """Copy into a region what gives it its operands and costs nothing there."""
    own = operations_of(region)
    copies: dict[ir.Value, ir.Value] = {}
    originals: list[ir.Operation] = []

    def take(value: ir.Value) -> ir.Value:
        """A value's copy in the region, in front of all that was there; the value itself if it is not to be copied."""
        source = producer(value)
        if source is None or not _costs_nothing(source) or source.block == own[0].block:
            return value
        if value not in copies:
            operands = [take(operand) for operand in source.operands]
            copy = source.clone(ip=ir.InsertionPoint(own[0]))
            _set_operands(copy, operands)
            copies[value] = copy.result
            originals.append(source)
        return copies[value]

    for op in own:
        _set_operands(op, [take(operand) for operand in op.operands])
    for original in reversed(originals):
        if not list(original.result.uses):
            original.erase()
    return len(copies)


def _costs_nothing(op: ir.Operation) -> bool:
    """Whether a dispatch reads as quickly through this operation as it reads the operation's result."""
    if op.name == "tensor.extract_slice":
        return _is_plain(op, op.operands[0])
    if op.name != "linalg.generic" or len(op.operands) != 2 or not is_parallel(op) or not only_yields(op):
        return op.name in _STARTS
    source = op.operands[0].type  # which is only repeated where it has fewer dimensions
    return isinstance(source, ir.RankedTensorType) and source.rank < op.result.type.rank


def _take_write(region: ir.Operation) -> int:
    uses = list(region.results[0].uses) if len(region.results) == 1 else []
    if len(uses) != 1 or uses[0].operand_number != 0:
        return 0
    insertion = uses[0].owner.operation
    if insertion.name != "tensor.insert_slice" or insertion.block != region.block or len(insertion.operands) != 2:
        return 0
    readers = [use.owner.operation for use in insertion.operands[1].uses]
    inside = [reader for reader in readers if region in holders_of(reader)]
    if not _can_store(insertion) or not all(_is_apart(reader, insertion) for reader in inside):
        return 0
    new = ir.Operation.create(
        _REGION,
        results=[insertion.result.type],
        attributes={name: region.attributes[name] for name in region.attributes},
        regions=len(region.regions),
        loc=region.location,
        ip=ir.InsertionPoint(insertion),
    )
    insertion.result.replace_all_uses_with(new.result)
    for old_region, new_region in zip(region.regions, new.regions, strict=True):
        for block in list(old_region.blocks):
            block.append_to(new_region)
    end = operations_of(new)[-1]
    insertion.move_before(end)
    insertion.operands[0] = end.operands[0]
    end.operands[0] = insertion.result
    region.erase()
    return 1


def _can_store(insertion: ir.Operation) -> bool:
    """Whether the compiler can store a dispatch's result by this insertion.

    IREE 3.13 joins dimensions of one element with their neighbours, and then fails to compile most insertions that
    leave a gap. What it does compile are those without such dimensions, and those where they come first and the part
    does not fill the next one, such as a padded image.
    """
    if not _is_plain(insertion, insertion.operands[0]):
        return False
    sizes = list(zip(insertion.operands[0].type.shape, insertion.result.type.shape, strict=True))
    while sizes[0] == (1, 1) and len(sizes) > 1:
        sizes.pop(0)
    has_ones = len(sizes) < insertion.result.type.rank
    return all(part > 1 for part, _ in sizes) and (not has_ones or sizes[0][0] < sizes[0][1])


def _is_apart(reader: ir.Operation, insertion: ir.Operation) -> bool:
    """Whether an operation reads nothing of a buffer but a slice that the insertion leaves as it is."""
    if reader.name != "tensor.extract_slice" or not _is_plain(reader, reader.operands[0]):
        return False
    return any(
        first.stop <= second.start or second.stop <= first.start
        for first, second in zip(_extents(reader), _extents(insertion), strict=True)
    )


def _extents(op: ir.Operation) -> list[range]:
    offsets, sizes = op.attributes["static_offsets"], op.attributes["static_sizes"]
    return [range(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True)]


def _is_plain(op: ir.Operation, operand: ir.Value) -> bool:
    """Whether a slice has constant offsets and sizes, leaves nothing out in between, and keeps all dimensions."""
    dynamic = len(op.operands) - (2 if op.name == "tensor.insert_slice" else 1)
    return dynamic == 0 and set(op.attributes["static_strides"]) == {1} and operand.type.rank == op.result.type.rank


def _set_operands(op: ir.Operation, operands: Sequence[ir.Value]) -> None:
    for number, operand in enumerate(operands):
        op.operands[number] = operand
