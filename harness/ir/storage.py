"""What encodings cost in memory: bytes of encoded tensors against those of the same tensors as they are.

An encoding lays a tensor out in tiles, and rounds sizes up to whole ones. How many bytes that adds is known where each
encoding has got the layout that its device wants: a tensor of 70x90 f32 in tiles of 16x16 takes 5x6 tiles, 30,720 bytes
instead of 25,200. Where sizes are dynamic it depends on the inputs, and is worst where a size is 1 and its tile whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from harness.errors import CaseError
from harness.ir.tools import ask
from harness.metrics import ENCODINGS
from harness.process import Limits
from harness.records.run import EncodedTensor, Storage
from harness.toolchain import Toolchain

# What IREE rounds a size up to, where a microkernel says at run time how large its tiles are.
RUN_TIME_TILE = 16
_PACKED_BITS = (2, 4)  # elements that share a byte; i1 has one of its own


def encoded_tensor(
    name: str, *, element_bits: int, sizes: Sequence[tuple[int, bool]], layouts: Sequence[Sequence[int]]
) -> EncodedTensor:
    """What a tensor costs."""
    tiled = [[tile or RUN_TIME_TILE for tile in tiles] for tiles in layouts]

    def bytes_of(numbers: Sequence[int]) -> int:
        bits = element_bits if element_bits in _PACKED_BITS else max(element_bits, 8)
        return -(-math.prod(numbers) * bits // 8)

    def worst(size: int, is_dynamic: bool, tile: int) -> float:
        return tile if is_dynamic else padded(size, tile) / size if size else 1.0

    return EncodedTensor(
        name=name,
        encoded_bytes=max(
            bytes_of([padded(size, tile) for (size, _), tile in zip(sizes, tiles, strict=True)]) for tiles in tiled
        ),
        unpadded_bytes=bytes_of([size for size, _ in sizes]),
        worst_ratio=max(
            math.prod(worst(*size, tile) for size, tile in zip(sizes, tiles, strict=True)) for tiles in tiled
        ),
    )


def padded(size: int, tile: int) -> int:
    """A size rounded up to whole tiles."""
    return -(-size // tile) * tile


def read_storage(file: Path, inputs: Sequence[Sequence[int]], *, toolchain: Toolchain, limits: Limits) -> Storage:
    """Find the encoded tensors in a program's IR at phase `encodings`, as `dump_phases` gives it."""
    answers = ask(
        "layouts",
        {ENCODINGS: file},
        name="the reader of layouts",
        toolchain=toolchain,
        limits=limits,
        where="",
        remedy="leave storage out",
        inputs=[list(shape) for shape in inputs],
    )
    if "unknown" in answers:
        raise CaseError("ir", f"what encodings cost in memory is not known: {answers['unknown']}; leave storage out")
    return Storage(tensors=tuple(encoded_tensor(**tensor) for tensor in answers[ENCODINGS]))
