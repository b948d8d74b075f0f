"""Register tiles for channels-last convolutions, derived from their shapes and from the target's registers.

A register tile is some columns of the image times some vectors of output channels: that many accumulators live in
registers through the whole reduction. For each input channel it loads every vector of the filter once and broadcasts
one value of every column, so tiles with few loads a multiplication are best, as long as the registers hold out and
there are enough accumulators to hide the latency of a multiplication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from harness.rewrites.host import host_vector_unit
from harness.rewrites.tuned import tune
from harness.rewrites.tuned_loops import structured_ops

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


@dataclass(frozen=True, kw_only=True)
class RegisterTile:
    """Columns of the image by output channels."""

    columns: int
    channels: int


def register_tile(width: int, channels: int, *, lanes: int, registers: int) -> RegisterTile | None:
    """The tile that loads least for each multiplication.

    Only divisors count, since what does not divide is not vectorised.

    Args:
        width: Columns of the image.
        channels: Output channels.
        lanes: Elements of a vector register.
        registers: How many of them there are.

    Returns:
        None where no whole vector divides the channels.
    """
    tiles = [
        (_cost(columns, vectors), -columns * vectors, columns, vectors)
        for vectors in _VECTORS
        if channels % (vectors * lanes) == 0
        for columns in _divisors(width)
        if _fits(columns, vectors, registers)
    ]
    if not tiles:
        return None
    *_, columns, vectors = min(tiles)
    return RegisterTile(columns=columns, channels=vectors * lanes)


def _fits(columns: int, vectors: int, registers: int) -> bool:
    accumulators = columns * vectors
    if vectors == 1:  # broadcasts come from memory
        return accumulators + 1 <= registers
    return accumulators <= _MANY and accumulators + vectors + 1 <= registers


def _cost(columns: int, vectors: int) -> float:
    """Loads a multiplication, a broadcast of one element at half the price of a whole vector; more if it must wait."""
    return (1 / columns + 0.5 / vectors) * max(1.0, _ENOUGH / (columns * vectors))


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _largest_divisor(number: int, limit: int) -> int:
    return max(divisor for divisor in _divisors(number) if divisor <= limit)


def _distributed(channels: int, tile: int) -> int:
    """The fewest channels from _CHANNELS up that are whole tiles and divide all channels."""
    return min(tile * n for n in _divisors(channels // tile) if tile * n >= min(_CHANNELS, channels))


def configure(ranges: Sequence[int], *, lanes: int, registers: int) -> dict[str, Any] | None:
    """An entry of tune's `configurations` for linalg.conv_2d_nhwc_hwcf of these loop ranges.

    Args:
        ranges: Images, rows, columns, output channels, kernel rows, kernel columns, input channels.
        lanes: Elements of a vector register.
        registers: How many of them there are.

    Returns:
        None where a range is not known, no whole vector divides the output channels, or the kernel is one point, since
        IREE turns such a convolution into a matmul.
    """
    if len(ranges) != 7 or min(ranges) < 1:
        return None
    images, height, width, channels, kernel_height, kernel_width, channels_in = ranges
    if kernel_height == kernel_width == 1:
        return None
    tile = register_tile(width, channels, lanes=lanes, registers=registers)
    if tile is None:
        return None
    return {
        "op": CONVOLUTION,
        "loops": list(ranges),
        "pipeline": PIPELINE,
        "isolate": images == 1,
        "distribution": [1, _largest_divisor(height, _ROWS), width, _distributed(channels, tile.channels), 0, 0, 0],
        "vector_common_parallel": [1, 1, tile.columns, tile.channels, 0, 0, 0],
        "vector_reduction": [0, 0, 0, 0, 1, 1, _largest_divisor(channels_in, _UNROLL)],
    }


def tune_convolutions(module: ir.Module, *, vector_bytes: int = 0, registers: int = 0) -> int:
    """Put derived lowering configurations on all linalg.conv_2d_nhwc_hwcf whose shapes are known.

    Args:
        module: At phase `input`; its context is active.
        vector_bytes: Of the target's vector registers: 64 for AVX-512, 32 for AVX2, 16 for SSE and NEON; 0: of this
            machine's.
        registers: How many the target has: 32 for AVX-512 and NEON, 16 for AVX2; 0: as many as this machine.

    Returns:
        How many operations were given a configuration. What carries one already keeps it.

    Raises:
        ValueError: There are fewer than 4 registers, or vector_bytes is none of a vector register.
    """
    host = host_vector_unit()
    vector_bytes, registers = vector_bytes or host.vector_bytes, registers or host.registers
    if registers < 4 or vector_bytes not in (16, 32, 64, 128):
        raise ValueError(f"{registers} registers of {vector_bytes} bytes are none of a vector unit")
    entries: list[dict[str, Any]] = []
    for op, loops in structured_ops(module):
        if op.name != CONVOLUTION:
            continue
        bits = getattr(op.result.type.element_type, "width", 0)  # a complex type has none
        if not bits:
            continue
        lanes = vector_bytes * 8 // bits
        entry = configure(loops.ranges, lanes=lanes, registers=registers)
        if entry is not None and entry not in entries:
            entries.append(entry)
    return tune(module, configurations=entries)
