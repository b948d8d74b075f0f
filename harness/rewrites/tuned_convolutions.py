"""Register tiles for channels-last convolutions, derived from their shapes and from the target's registers.

A register tile is some columns or rows of the image times some vectors of output channels: that many accumulators live
in registers through the whole reduction. For each input channel it loads every vector of the filter once and broadcasts
one value of every column or row, so tiles with few loads a multiplication are best, as long as the registers hold out
and there are enough accumulators to hide the latency of a multiplication.

What else is chosen was measured, for each instruction set by itself (`CHOICES`).

IREE's CPU backend recognises a convolution by its named operation's operand order and layout. Any other form (a
linalg.generic with the filter first, say, or its input channels outermost) runs as scalar loops, thirty times as long.
So `name_convolutions` first gives such generics their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg

from harness.rewrites.host import host_vector_unit, target_vector_unit
from harness.rewrites.operations import Matched, body_of, find, loops_of, operations_of, structured_ops, transpose
from harness.rewrites.tuned import tune

CONVOLUTION = "linalg.conv_2d_nhwc_hwcf"
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


def count_channelled(module: ir.Module) -> int:
    """How many operations have four parallel loops and three of a reduction; nothing is changed."""
    return sum(sorted(loops.kinds) == ["parallel"] * 4 + ["reduction"] * 3 for _, loops in structured_ops(module))


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What was found to be fast with an instruction set."""

    of_rows: bool = False  # Whether a tile may have rows of the image where these divide better than columns
    measured_on: str = ""  # The processor; "": on none


# By bytes of a vector register and number of registers. On AVX-512 no tile of rows was tried.
CHOICES = {
    (64, 32): Choices(measured_on="a Zen 4"),
    (32, 16): Choices(of_rows=True, measured_on="a Zen 4 that runs AVX2 code"),
}
_NOT_MEASURED = Choices()


@dataclass(frozen=True, kw_only=True)
class RegisterTile:
    """Columns of the image, or rows, by output channels."""

    columns: int
    channels: int
    rows: int = 1


def register_tile(width: int, channels: int, *, lanes: int, registers: int, height: int = 1) -> RegisterTile | None:
    """The tile that loads least for each multiplication.

    Only divisors count, since what does not divide is not vectorised.
    """
    tiles = [
        (_cost(pixels, vectors), -pixels * vectors, of_rows, pixels, vectors)
        for vectors in _VECTORS
        if channels % (vectors * lanes) == 0
        for of_rows, extent in enumerate((width, height))
        for pixels in _divisors(extent)
        if _fits(pixels, vectors, registers)
    ]
    if not tiles:
        return None
    *_, of_rows, pixels, vectors = min(tiles)
    columns, rows = (1, pixels) if of_rows else (pixels, 1)
    return RegisterTile(columns=columns, rows=rows, channels=vectors * lanes)


def _fits(pixels: int, vectors: int, registers: int) -> bool:
    accumulators = pixels * vectors
    if vectors == 1:  # broadcasts come from memory
        return accumulators + 1 <= registers
    return accumulators <= _MANY and accumulators + vectors + 1 <= registers


def _cost(pixels: int, vectors: int) -> float:
    """Loads a multiplication, a broadcast of one element at half the price of a whole vector; more if it must wait."""
    return (1 / pixels + 0.5 / vectors) * max(1.0, _ENOUGH / (pixels * vectors))


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _largest_divisor(number: int, limit: int) -> int:
    return max(divisor for divisor in _divisors(number) if divisor <= limit)


def _rows(height: int, tile: int) -> int:
    """The most rows up to _ROWS that are whole tiles and divide all of them."""
    return tile * _largest_divisor(height // tile, max(1, _ROWS // tile))


def _distributed(channels: int, tile: int) -> int:
    """The fewest channels from _CHANNELS up that are whole tiles and divide all channels."""
    return min(tile * n for n in _divisors(channels // tile) if tile * n >= min(_CHANNELS, channels))


def configure(
    ranges: Sequence[int], *, lanes: int, registers: int, choices: Choices = _NOT_MEASURED
) -> dict[str, Any] | None:
    """An entry of tune's `configurations` for linalg.conv_2d_nhwc_hwcf of these loop ranges."""
    if len(ranges) != 7 or min(ranges) < 1:
        return None
    images, height, width, channels, kernel_height, kernel_width, channels_in = ranges
    if kernel_height == kernel_width == 1:
        return None
    rows = height if choices.of_rows else 1
    tile = register_tile(width, channels, lanes=lanes, registers=registers, height=rows)
    if tile is None:
        return None
    return {
        "op": CONVOLUTION,
        "loops": list(ranges),
        "pipeline": PIPELINE,
        "isolate": images == 1,
        "distribution": [1, _rows(height, tile.rows), width, _distributed(channels, tile.channels), 0, 0, 0],
        "vector_common_parallel": [1, tile.rows, tile.columns, tile.channels, 0, 0, 0],
        "vector_reduction": [0, 0, 0, 0, 1, 1, _largest_divisor(channels_in, _UNROLL)],
    }


def _obstacle(ranges: Sequence[int]) -> str:
    """Why `configure` gives none, as what follows `convolutions`."""
    if min(ranges) < 1:
        return "with dynamic sizes"
    return "of one point, which IREE makes matmuls of" if tuple(ranges[4:6]) == (1, 1) else "that no tile fits"


def tune_convolutions(
    module: ir.Module, *, vector_bytes: int = 0, registers: int = 0, target: Mapping[str, str] | None = None
) -> Matched:
    """Put derived lowering configurations on all linalg.conv_2d_nhwc_hwcf whose shapes are known."""
    unit = host_vector_unit() if target is None else target_vector_unit(target)
    vector_bytes, registers = vector_bytes or unit.vector_bytes, registers or unit.registers
    if registers < 4 or vector_bytes not in (16, 32, 64, 128):
        raise ValueError(f"{registers} registers of {vector_bytes} bytes are none of a vector unit")
    choices = CHOICES.get((vector_bytes, registers), _NOT_MEASURED)
    if not choices.measured_on:
        print(f"Tiles for {registers} registers of {vector_bytes} bytes come from a rule that was not measured on any.")
    entries: list[dict[str, Any]] = []
    left_alone: list[str] = []
    for op, loops in structured_ops(module):
        if op.name != CONVOLUTION:
            continue
        bits = getattr(op.result.type.element_type, "width", 0)  # a complex type has none
        if not bits:
            continue
        lanes = vector_bytes * 8 // bits
        entry = configure(loops.ranges, lanes=lanes, registers=registers, choices=choices)
        if entry is None:
            left_alone.append(f"convolutions {_obstacle(loops.ranges)}")
        elif entry not in entries:
            entries.append(entry)
    return Matched(tune(module, configurations=entries), left_alone)


# ---------------------------------------------------------------------------------------------------------------- forms


# By the layouts of the image and of the result: the named operation, and the layout of its filter. A letter an axis:
# image n, row y, column x, output channel o, input channel i, kernel row v, kernel column u.
_NAMED = {
    ("nyxi", "nyxo"): ("conv_2d_nhwc_hwcf", "vuio"),
    ("niyx", "noyx"): ("conv_2d_nchw_fchw", "oivu"),
}


@dataclass(frozen=True, kw_only=True)
class _Window:
    """An axis that a kernel slides over: output loop * stride + kernel loop * dilation."""

    output: int
    stride: int
    kernel: int
    dilation: int


@dataclass(frozen=True, kw_only=True)
class _Convolution:
    """What a generic turned out to be."""

    named: str
    image: ir.Value
    filter: ir.Value
    permutation: list[int]
    strides: list[int]
    dilations: list[int]


def name_convolutions(module: ir.Module) -> int:
    """Turn generics that are 2-D convolutions into linalg.conv_2d_nhwc_hwcf or linalg.conv_2d_nchw_fchw.

    The image may be channels-last or channels-first, and the result must be like it. The filter's axes and the order of
    the operands are free: where the filter's axes stand otherwise, it is transposed first (for a constant, IREE does
    that at compile time). All operands must have the same float type. The sums are those of the generic, but their
    order is now the compiler's choice for the named operation, so the last bits may differ.
    """
    generics = find(module, "linalg.generic")
    found = [(op, convolution) for op in generics if (convolution := _recognise(op)) is not None]
    for op, convolution in found:
        with ir.InsertionPoint(op), op.location:
            filter_ = convolution.filter
            if convolution.permutation != sorted(convolution.permutation):
                filter_ = transpose(filter_, convolution.permutation)
            named = getattr(linalg, convolution.named)(
                convolution.image,
                filter_,
                outs=[op.operands[2]],
                strides=convolution.strides,
                dilations=convolution.dilations,
            )
        op.result.replace_all_uses_with(getattr(named, "result", named))
        op.erase()
    return len(found)


def _recognise(op: ir.Operation) -> _Convolution | None:
    """The convolution that a generic is; None where it is none, or none that has a name."""
    loops = loops_of(op)
    if loops is None or sorted(loops.kinds) != ["parallel"] * 4 + ["reduction"] * 3 or len(op.operands) != 3:
        return None
    if not _are_alike([operand.type for operand in op.operands]) or not _multiplies_and_adds(op):
        return None
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    slid = [any(not isinstance(axis, ir.AffineDimExpr) for axis in map_.results) for map_ in maps]
    if slid not in ([True, False, False], [False, True, False]):
        return None
    image, filter_ = (0, 1) if slid[0] else (1, 0)
    axes = [_axis(expression, loops.kinds) for expression in maps[image].results]
    out = [e.position for e in maps[2].results]
    letters = _letters(axes, out, loops.kinds)
    if letters is None:
        return None
    layouts = (
        "".join(letters[axis.output if isinstance(axis, _Window) else axis] for axis in axes if axis is not None),
        "".join(letters[loop] for loop in out),
    )
    named, wanted = _NAMED.get(layouts, ("", ""))
    layout = "".join(letters[e.position] for e in maps[filter_].results)
    if not named or sorted(layout) != sorted(wanted):
        return None
    windows = [axis for axis in axes if isinstance(axis, _Window)]
    return _Convolution(
        named=named,
        image=op.operands[image],
        filter=op.operands[filter_],
        permutation=[layout.index(letter) for letter in wanted],
        strides=[window.stride for window in windows],
        dilations=[window.dilation for window in windows],
    )


def _are_alike(types: Sequence[ir.Type]) -> bool:
    """Whether all are tensors of four known sizes, of one float type."""
    tensors = all(isinstance(t, ir.RankedTensorType) and t.rank == 4 and t.has_static_shape for t in types)
    return tensors and len({str(t.element_type) for t in types}) == 1


def _letters(axes: Sequence[int | _Window | None], out: Sequence[int], kinds: Sequence[str]) -> dict[int, str] | None:
    """What each loop is for, by loop; None where the image's axes do not say so."""
    windows = [axis for axis in axes if isinstance(axis, _Window)]
    plain = [axis for axis in axes if isinstance(axis, int)]
    if len(windows) != 2 or len(plain) != 2 or {kinds[loop] for loop in plain} != {"parallel", "reduction"}:
        return None
    if any(kinds[window.output] != "parallel" or kinds[window.kernel] != "reduction" for window in windows):
        return None
    letters = {loop: "n" if kinds[loop] == "parallel" else "i" for loop in plain}
    for window, (output, kernel) in zip(windows, (("y", "v"), ("x", "u")), strict=True):
        letters |= {window.output: output, window.kernel: kernel}
    left = [loop for loop in out if loop not in letters]
    if len(letters) != 6 or len(left) != 1:
        return None
    return letters | {left[0]: "o"}


def _axis(expression: ir.AffineExpr, kinds: Sequence[str]) -> int | _Window | None:
    """One axis of the image: a loop, a window over it, or something else."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(expression.position)
    if not isinstance(expression, ir.AffineAddExpr):
        return None
    terms = [_term(expression.lhs), _term(expression.rhs)]
    if terms[0] is None or terms[1] is None:
        return None
    (output, stride), (kernel, dilation) = sorted((terms[0], terms[1]), key=lambda term: kinds[term[0]])
    return _Window(output=output, stride=stride, kernel=kernel, dilation=dilation)


def _term(expression: ir.AffineExpr) -> tuple[int, int] | None:
    """A loop and its positive factor."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(expression.position), 1
    if isinstance(expression, ir.AffineMulExpr):
        loop, factor = expression.lhs, expression.rhs
        if isinstance(loop, ir.AffineDimExpr) and isinstance(factor, ir.AffineConstantExpr) and factor.value > 0:
            return int(loop.position), int(factor.value)
    return None


def _multiplies_and_adds(op: ir.Operation) -> bool:
    """Whether a generic's body is out + a * b, in whichever order."""
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
