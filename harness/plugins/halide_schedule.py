"""Halide's schedule of a channelled convolution as a transform library: how IREE lowers the convolution's dispatch.

It is the strategy of chapter H of MLIR's Transform tutorial (https://mlir.llvm.org/docs/Tutorials/transform/ChH/),
stage by stage, in IREE's code generation: the library's @__kernel_config finds the convolution (a linalg.generic of
seven loops, four of them parallel) and has its function lowered by @schedule, not by one of IREE's pipelines.

    tile           loops over output channels, images, rows and tiles of columns; bias, convolution and ReLU fused into
                   them, the reduction's three loops inside; what is left of each operation becomes scalar loops
    vectorize      and two loops around one vector of one column, which are kept
    unroll-early   those two loops are unrolled before vectorisation, on tensors: the tutorial's first version
    unroll-late    they are unrolled after bufferization: its second
    vectors        no such loops: the whole tile is one two-dimensional vector: its last
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated, Literal

from pydantic import Field

from harness.plugins.plugin import PluginFile, written_file
from harness.rewrites.targets import host_vector_unit

_TEXT = Path(__file__).with_suffix(".mlir")
_PART = re.compile(r"^// ----- (.+)\n((?:// .*\n)*)", re.MULTILINE)
_BYTES = 4  # of a float
_MANY_REGISTERS = 32

Step = Literal["tile", "vectorize", "unroll-early", "unroll-late", "vectors"]


@dataclass(frozen=True, kw_only=True)
class HalideScheduleOptions:
    """What the schedule leaves open. Tiles should divide columns and channels: the rest of others is not vectorised."""

    step: Step = "vectors"  # How far the schedule goes; see above
    vectors: Annotated[int, Field(ge=0, le=64)] = 0  # Of channels in a tile; 0: 4 where there are 32 registers, else 2
    columns: Annotated[int, Field(ge=1, le=64)] = 5  # Of the image in a tile
    lanes: Annotated[int, Field(ge=0, le=64)] = 0  # Floats of a vector; 0: of this machine's


# By how far the schedule goes, the parts of it; a part with `op` in it is there for each of the three operations.
_INNER, _LAST = ("tile", "one vector"), ("lower", "finish")
_PARTS: Mapping[Step, tuple[str, ...]] = {
    "tile": ("tile", "simplify", "bufferize", *_LAST),
    "vectorize": (*_INNER, "simplify", "vectorize", "bufferize", *_LAST),
    "unroll-early": (*_INNER, "unroll", "simplify", "vectorize", "bufferize", *_LAST),
    "unroll-late": (*_INNER, "mark", "simplify", "vectorize", "bufferize", "unroll marked", *_LAST),
    "vectors": ("tile", "simplify", "vectorize", "hoist", "bufferize", "lower", "unroll reads", "finish"),
}
_OF_EACH = ("unroll", "mark")


def transform_library(options: HalideScheduleOptions) -> PluginFile:
    """The library as a file."""
    unit = host_vector_unit()
    vectors = options.vectors or (4 if unit.registers >= _MANY_REGISTERS else 2)
    lanes = options.lanes or unit.vector_bytes // _BYTES
    _, *found = _PART.split(_TEXT.read_text())
    texts = dict(zip(found[::3], found[2::3], strict=True))
    schedule = "".join(
        Template(texts[part]).safe_substitute(op=operation)
        for part in _PARTS[options.step]
        for operation in (("init", "conv", "relu") if part in _OF_EACH else ("",))
    )
    sizes = {"vectors": vectors, "columns": options.columns, "lanes": lanes, "channels": vectors * lanes}
    text = Template(texts["library"]).substitute(schedule=Template(schedule).substitute(sizes))
    return written_file("halide-schedule.mlir", text)
