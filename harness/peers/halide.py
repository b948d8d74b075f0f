"""Halide beside IREE: its conv_layer example, which is the channelled convolution, with its own schedule or the best.

`tutorial` is the schedule that chapter H of MLIR's Transform tutorial reproduces: vectors as wide as the machine's, a
register tile of 4 vectors by 5 columns where there are 32 registers, the reduction unrolled by 2. `best` is the fastest
of that family on this machine, found by a trial when a model is made ready for the first time, and kept.
"""

import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from timeit import timeit
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.cache import read_memo, write_memo
from harness.models.channelled_convolution import KERNEL, Parameters, weights
from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting, missing_package

Floats = NDArray[np.float32]
_WIDE = 16  # floats of a vector of AVX-512, which has 32 registers where AVX2 has 16
_TRIALS = 5


@dataclass(frozen=True, kw_only=True)
class HalideOptions:
    """See above."""

    schedule: Literal["tutorial", "best"] = "best"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What the example leaves open."""

    vector: int  # Floats of a vector
    vectors: int  # Vectors of output channels in one register tile (the example's tile_w)
    columns: int  # Columns of the image in one register tile (the example's tile_h)
    unroll: int  # How often the reduction over input channels is unrolled

    @property
    def name(self) -> str:
        """`tile 4x5, unrolled 2`."""
        return f"tile {self.vectors}x{self.columns}, unrolled {self.unroll}"

    def within(self, width: int, channels: int) -> "Schedule":
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


def compile_convolution(
    x: Floats, weights: Floats, bias: Floats, schedule: Schedule, *, parallel: bool = False
) -> Ready:
    """Compile it for these arguments, which are read where they are."""
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

    outer = _schedule(hl, conv, relu, (c, column, row, image), r, schedule.within(width, channels_out))
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
    # Halide does not keep the arrays that it reads.
    call = partial(_realize, relu, hl.Buffer(result, "result"), target, (x, weights, bias))
    return Ready(call=call, outputs=lambda: [result.copy()])


def _realize(pipeline: Any, output: Any, target: Any, _: Sequence[Floats]) -> None:
    pipeline.realize(output, target)


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


def _refuses(model: PeerModel, _: HalideOptions) -> str | None:
    is_convolution = model.builder == "channelled-convolution"
    return None if is_convolution else "it is given programs for the builder channelled-convolution only"


def _prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: HalideOptions) -> Ready:
    filter_, bias = weights(Parameters(**model.params))
    x = np.ascontiguousarray(arguments[0], np.float32)
    filter_ = np.ascontiguousarray(filter_.transpose(2, 0, 1, 3))

    def compiled(schedule: Schedule) -> Ready:
        return compile_convolution(x, filter_, bias, schedule, parallel=setting.threads > 1)

    vector = natural_vector()
    if options.schedule == "tutorial":
        return compiled(tutorial(vector))
    # Kept, so that all processes of a run take the same.
    sizes = "x".join(map(str, [*x.shape, *bias.shape]))
    memo = setting.cache / f"best-{sizes}-{setting.threads}-{_version()}.json"
    candidates, kept = schedules(vector), read_memo(memo)
    best = next((schedule for schedule in candidates if asdict(schedule) == kept), None)
    if best is None:
        # Where others work on the same core, a thread's own time says more than the clock on the wall.
        clock = time.process_time_ns if setting.threads == 1 else time.perf_counter_ns
        best = fastest(candidates, [compiled(schedule).call for schedule in candidates], clock)
        write_memo(memo, asdict(best))
    return compiled(best)


def fastest(
    candidates: Sequence[Schedule], calls: Sequence[Callable[[], object]], clock: Callable[[], int]
) -> Schedule:
    """The schedule whose call has the least time, in turns, after a first call each that is not timed."""
    times = [[timeit(call, timer=clock, number=1) for call in calls] for _ in range(1 + _TRIALS)][1:]
    least = [min(column) for column in zip(*times, strict=True)]
    return candidates[least.index(min(least))]


_version = partial(importlib.metadata.version, "halide")

PEER = Peer(
    name="halide",
    title="Halide",
    description="its conv_layer example, for the builder channelled-convolution",
    install="pip install 'iree-harness[halide]'",
    options=HalideOptions,
    missing=partial(missing_package, "halide"),
    version=_version,
    refuses=_refuses,
    prepare=_prepare,
)
