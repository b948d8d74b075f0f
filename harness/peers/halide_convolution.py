"""The channelled convolution in Halide: the schedule of its conv_layer example, compiled ahead of the timed calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.models.channelled_convolution import KERNEL

Array = NDArray[np.float32]

_WIDE = 16  # floats of a vector of AVX-512, which has 32 registers where AVX2 has 16


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What the example leaves open.

    Attributes:
        vector: Floats of a vector.
        vectors: Vectors of output channels in one register tile (the example's tile_w).
        columns: Columns of the image in one register tile (the example's tile_h).
        unroll: How often the reduction over input channels is unrolled.
    """

    vector: int
    vectors: int
    columns: int
    unroll: int = 1

    @property
    def name(self) -> str:
        """`tile 4x5, unrolled 2`."""
        return f"tile {self.vectors}x{self.columns}" + (f", unrolled {self.unroll}" if self.unroll > 1 else "")

    def within(self, width: int, channels: int) -> Schedule:
        """The same with a tile that is no larger than an image."""
        vector = min(self.vector, channels)
        return replace(
            self, vector=vector, vectors=min(self.vectors, channels // vector), columns=min(self.columns, width)
        )


def tutorial(vector: int) -> Schedule:
    """The tile of chapter H and of the example: 4x5 in 32 registers; for 16 registers the example has one of 3x4."""
    vectors, columns = (4, 5) if vector >= _WIDE else (3, 4)
    return Schedule(vector=vector, vectors=vectors, columns=columns, unroll=2)


def schedules(vector: int) -> tuple[Schedule, ...]:
    """The tiles that were fastest in sweeps over all that fit the registers."""
    tiles = ((4, 5), (4, 4)) if vector >= _WIDE else ((2, 6), (2, 5))
    return tuple(
        Schedule(vector=vector, vectors=vectors, columns=columns, unroll=unroll)
        for vectors, columns in tiles
        for unroll in (1, 2, 4)
    )


def natural_vector() -> int:
    """Floats of this machine's vectors."""
    import halide as hl

    return int(hl.get_host_target().natural_vector_size(hl.Float(32)))


@dataclass(frozen=True, kw_only=True)
class Program:
    """A compiled convolution.

    Attributes:
        result: The array [n, y, x, c] that a run writes.
        reads: The arrays that it reads where they are; Halide does not keep them.
    """

    pipeline: Any
    target: Any
    output: Any
    result: Array
    reads: tuple[Array, ...]

    def run(self) -> None:
        """Run it once."""
        self.pipeline.realize(self.output, self.target)


def compile_convolution(
    x: Array, weights: Array, bias: Array, schedule: Schedule, *, parallel: bool = False
) -> Program:
    """Compile it for these arguments.

    Args:
        x: [n, height + 2, width + 2, channels_in]
        weights: [channels_in, 3, 3, channels_out], as in the example.
        bias: [channels_out]
        parallel: On HL_NUM_THREADS threads, as in the example; chapter H leaves that out, and its code starts none.
    """
    import halide as hl

    n, padded_height, padded_width, channels_in = x.shape
    channels_out = bias.shape[0]
    height, width = padded_height - KERNEL + 1, padded_width - KERNEL + 1

    # numpy's last dimension is Halide's first.
    inputs, filters, offsets = hl.Buffer(x, "input"), hl.Buffer(weights, "filter"), hl.Buffer(bias, "bias")
    c, column, row, image = hl.Var("c"), hl.Var("x"), hl.Var("y"), hl.Var("n")
    r = hl.RDom([(0, channels_in), (0, KERNEL), (0, KERNEL)])
    conv, relu = hl.Func("conv"), hl.Func("relu")
    conv[c, column, row, image] = offsets[c]
    conv[c, column, row, image] += filters[c, r.y, r.z, r.x] * inputs[r.x, column + r.y, row + r.z, image]
    relu[c, column, row, image] = hl.max(hl.f32(0), conv[c, column, row, image])

    fitted = schedule.within(width, channels_out)
    outer = _schedule(hl, conv, relu, (c, column, row, image), r, fitted)
    if parallel:
        relu.parallel(row).parallel(image).parallel(outer)
    # Static shapes, which IREE knows too.
    stride = 1
    for dimension, size in enumerate((channels_out, width, height, n)):
        relu.output_buffer().dim(dimension).set_bounds(0, size).set_stride(stride)
        stride *= size

    result = np.zeros((n, height, width, channels_out), np.float32)
    target = hl.get_host_target()
    for feature in (hl.TargetFeature.NoAsserts, hl.TargetFeature.NoBoundsQuery):
        target = target.with_feature(feature)
    relu.compile_jit(target)
    return Program(
        pipeline=relu,
        target=target,
        output=hl.Buffer(result, "result"),
        result=result,
        reads=(x, weights, bias),
    )


def _schedule(hl: Any, conv: Any, relu: Any, variables: tuple[Any, Any, Any, Any], r: Any, schedule: Schedule) -> Any:
    """The example's schedule without its parallel loops; its outermost loop."""
    c, column, row, image = variables
    outer_c, inner_c, outer_x, inner_x = hl.Var("co"), hl.Var("ci"), hl.Var("xo"), hl.Var("xi")
    vector = schedule.vector
    (
        relu.split(c, outer_c, inner_c, vector * schedule.vectors)
        .split(column, outer_x, inner_x, schedule.columns)
        .reorder(inner_c, inner_x, outer_x, row, image, outer_c)
        .vectorize(inner_c, vector)
        .unroll(inner_c)
        .unroll(inner_x)
    )
    conv.compute_at(relu, outer_x).vectorize(c, vector).unroll(c).unroll(column).unroll(row)
    (
        conv.update()
        .reorder(c, column, row, r.x, r.y, r.z, image)
        .vectorize(c, vector)
        .unroll(c)
        .unroll(column)
        .unroll(row)
        .unroll(r.x, schedule.unroll)
    )
    return outer_c
