"""Lowering configurations put on channels-last convolutions: tile sizes of their shapes, instead of IREE's.

An operation that carries `compilation_info` keeps it through dispatch formation, and the CPU backend then takes its
tile sizes and its pipeline from there (`iree-compile --compile-to=executable-configurations` shows what was taken).

A register tile is some columns or rows of the image times some vectors of output channels: that many accumulators live
in registers through the whole reduction. For each input channel it loads every vector of the filter once and broadcasts
one value of every column or row, so tiles with few loads a multiplication are best, as long as the registers hold out
and there are enough accumulators to hide the latency of a multiplication.

Whether tiles may have rows was measured, for each instruction set by itself (`OF_ROWS`).

IREE's CPU backend recognises a convolution by its named operation's operand order and layout. Any other form (a
linalg.generic with the filter first, say, or its input channels outermost) runs as scalar loops, thirty times as long.
So `name_convolutions` first gives such generics their names.
"""

from collections.abc import Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import linalg

from harness.rewrites.operations import body_of, find, operations_of, transpose
from harness.rewrites.regions import CONVOLUTION, in_region, isolate
from harness.rewrites.targets import compilation_info, divisors, target_vector_unit

ATTRIBUTE = "compilation_info"
PIPELINE = "ConvTileAndDecomposeExpert"

# Two multiply-add units with a latency of four cycles need eight accumulators. Beyond twice as many, tiles of several
# vectors were slower on Zen 4, and a single vector was not.
_ENOUGH = 8
_MANY = 16
# Longer unrolled reductions were slower on Zen 4, and the backend refuses very large vectors.
_UNROLL = 8
# Vectors of output channels in a tile: the backend makes slow code of other numbers.
_VECTORS = (1, 2, 4, 8)
# Rows of a distributed tile: enough to find its input rows in the second-level cache again, few enough for threads.
_ROWS = 8
# Output channels of a distributed tile, at least: each row of the filter is then read in a few whole cache lines.
_CHANNELS = 64

# What was measured (a Zen 4, and one that runs AVX2 code), by bytes of a vector register and number of registers:
# whether a tile may have rows of the image where these divide better than columns. On AVX-512 none was tried.
OF_ROWS = {(64, 32): False, (32, 16): True}


def register_tile(
    width: int, channels: int, *, lanes: int, registers: int, height: int = 1
) -> tuple[int, int, int] | None:
    """The tile that loads least for each multiplication: rows and columns of the image by output channels."""
    tiles = [
        (_cost(pixels, vectors), -pixels * vectors, of_rows, pixels, vectors)
        for vectors in _VECTORS
        if channels % (vectors * lanes) == 0
        for of_rows, extent in enumerate((width, height))
        for pixels in divisors(extent)
        if _fits(pixels, vectors, registers)
    ]
    if not tiles:
        return None
    *_, of_rows, pixels, vectors = min(tiles)
    rows, columns = (pixels, 1) if of_rows else (1, pixels)
    return rows, columns, vectors * lanes


def _fits(pixels: int, vectors: int, registers: int) -> bool:
    accumulators = pixels * vectors
    if vectors == 1:  # broadcasts come from memory
        return accumulators + 1 <= registers
    return accumulators <= _MANY and accumulators + vectors + 1 <= registers


def _cost(pixels: int, vectors: int) -> float:
    """Loads a multiplication, a broadcast of one element at half the price of a whole vector; more if it must wait."""
    return (1 / pixels + 0.5 / vectors) * max(1.0, _ENOUGH / (pixels * vectors))


def _largest_divisor(number: int, limit: int) -> int:
    return max(divisor for divisor in divisors(number) if divisor <= limit)


def configure(
    ranges: Sequence[int], *, lanes: int, registers: int, of_rows: bool = False
) -> dict[str, Sequence[int]] | None:
    """Tile sizes by level of a linalg.conv_2d_nhwc_hwcf of these loop ranges; all divide their loops."""
    _, height, width, channels, kernel_height, kernel_width, channels_in = ranges
    if min(ranges) < 1 or kernel_height == kernel_width == 1:
        return None
    tile = register_tile(width, channels, lanes=lanes, registers=registers, height=height if of_rows else 1)
    if tile is None:
        return None
    tile_rows, tile_columns, tile_channels = tile
    # Most rows up to _ROWS, fewest channels from _CHANNELS up: both are whole tiles and divide all there are.
    rows = tile_rows * _largest_divisor(height // tile_rows, max(1, _ROWS // tile_rows))
    wholes = (tile_channels * number for number in divisors(channels // tile_channels))
    distributed = min(whole for whole in wholes if whole >= min(_CHANNELS, channels))
    return {
        "distribution": [1, rows, width, distributed, 0, 0, 0],
        "vector_common_parallel": [1, tile_rows, tile_columns, tile_channels, 0, 0, 0],
        "vector_reduction": [0, 0, 0, 0, 1, 1, _largest_divisor(channels_in, _UNROLL)],
    }


def tune_convolutions(module: ir.Module, *, target: Mapping[str, str]) -> int:
    """Put lowering configurations on all linalg.conv_2d_nhwc_hwcf whose shapes are known, and that have none.

    One of a single image stands in a region, else IREE drops its configuration together with the unit dimension.
    """
    unit = target_vector_unit(target)
    of_rows = OF_ROWS.get(unit)
    if of_rows is None:
        print(f"Tiles for {unit.registers} registers of {unit.vector_bytes} bytes were not measured on any processor.")
    matched = 0
    for op in find(module, CONVOLUTION):
        *kernel, _ = op.operands[1].type.shape
        result = op.result.type
        bits = getattr(result.element_type, "width", 0)
        if not bits or ATTRIBUTE in op.attributes:  # a complex type has none
            continue
        lanes = unit.vector_bytes * 8 // bits
        tiles = configure((*result.shape, *kernel), lanes=lanes, registers=unit.registers, of_rows=bool(of_rows))
        if tiles is not None:
            op.attributes[ATTRIBUTE] = ir.Attribute.parse(compilation_info(PIPELINE, tiles))
            if result.shape[0] == 1 and not in_region(op):
                isolate(op)
            matched += 1
    return matched


# By the layouts of the image and of the result: the named operation, and the layout of its filter. A letter an axis:
# image n, row y, column x, output channel o, input channel i, kernel row v, kernel column u.
_NAMED = {
    ("nyxi", "nyxo"): ("conv_2d_nhwc_hwcf", "vuio"),
    ("niyx", "noyx"): ("conv_2d_nchw_fchw", "oivu"),
}


def name_convolutions(module: ir.Module) -> int:
    """Turn generics that are 2-D convolutions into linalg.conv_2d_nhwc_hwcf or linalg.conv_2d_nchw_fchw.

    The image may be channels-last or channels-first, and the result must be like it. The filter's axes and the order of
    the operands are free: where the filter's axes stand otherwise, it is transposed first (for a constant, IREE does
    that at compile time). All operands must have the same float type. The sums are those of the generic, but their
    order is now the compiler's choice for the named operation, so the last bits may differ.
    """
    return sum(map(_name, find(module, "linalg.generic")))


def _name(op: ir.Operation) -> bool:
    """Put a named operation in the place of a generic, if that is a convolution which has a name."""
    operands = list(op.operands)
    types = [operand.type for operand in operands]
    known = all(isinstance(t, ir.RankedTensorType) and t.rank == 4 and t.has_static_shape for t in types)
    if not known or len(types) != 3 or len({str(t.element_type) for t in types}) > 1 or not _multiplies_and_adds(op):
        return False
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    image, filter_ = (1, 0) if all(isinstance(axis, ir.AffineDimExpr) for axis in maps[0].results) else (0, 1)
    found = linalg.infer_convolution_dimensions_from_maps([maps[image], maps[filter_], maps[2]])
    if found is None:
        return False
    batch, outputs, inputs = list(found.batch), list(found.output_channel), list(found.input_channel)
    out = [axis.position for axis in maps[2].results]
    slid = {
        pixel: (tap, stride, dilation)
        for pixel, tap, stride, dilation in zip(
            found.output_image, found.filter_loop, found.strides, found.dilations, strict=True
        )
    }
    windows = [(loop, *slid[loop]) for loop in out if loop in slid]
    if [len(batch), len(windows), len(outputs), len(inputs)] != [1, 2, 1, 1] or list(found.depth):
        return False
    letters = {batch[0]: "n", outputs[0]: "o", inputs[0]: "i"}
    for (pixel, tap, *_), (of_pixel, of_tap) in zip(windows, (("y", "v"), ("x", "u")), strict=True):
        letters |= {pixel: of_pixel, tap: of_tap}
    layouts = (_layout(maps[image], letters), _layout(maps[2], letters))
    named, wanted = _NAMED.get(layouts, ("", ""))
    layout = _layout(maps[filter_], letters)
    strides, dilations = ([window[number] for window in windows] for number in (2, 3))
    if not named or min(strides + dilations) < 1:
        return False
    permutation = [layout.index(letter) for letter in wanted]
    with ir.InsertionPoint(op), op.location:
        taps = operands[filter_]
        if permutation != sorted(permutation):
            taps = transpose(taps, permutation)
        convolve = getattr(linalg, named)
        result = convolve(operands[image], taps, outs=[operands[2]], strides=strides, dilations=dilations)
    op.result.replace_all_uses_with(getattr(result, "result", result))
    op.erase()
    return True


def _layout(indexing: ir.AffineMap, letters: Mapping[int, str]) -> str:
    """A letter an axis; of a window over the image, that of the result's loop."""
    return "".join(min((letters[loop] for loop in _loops(axis)), key="nyxoivu".index) for axis in indexing.results)


def _loops(expression: ir.AffineExpr) -> list[int]:
    if isinstance(expression, ir.AffineDimExpr):
        return [int(expression.position)]
    if isinstance(expression, ir.AffineBinaryExpr):
        return [*_loops(expression.lhs), *_loops(expression.rhs)]
    return []


def _multiplies_and_adds(op: ir.Operation) -> bool:
    operations = operations_of(op)
    if [operation.name for operation in operations] != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    product, total, given = operations
    left, right, out = body_of(op).arguments
    return (
        set(product.operands) == {left, right}
        and set(total.operands) == {product.result, out}
        and list(given.operands) == [total.result]
    )
