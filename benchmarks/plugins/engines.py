"""The engines beside IREE: whether they are there, and their programs for a group."""

import importlib.metadata
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.plugins.recorded import SGEMM
from harness.models import channelled_convolution, residual_dense_block
from harness.models.channelled_convolution import KERNEL
from harness.models.model import Input
from harness.peers import PeerModel, Ready, Setting, halide, onnxruntime
from harness.plugins.options import NoOptions

Array = NDArray[np.float32]
Benchmark = Literal["esrgan", "convolution"]

ONNX_RUNTIME, HALIDE = "ONNX Runtime", "Halide"
PEERS: dict[Benchmark, str] = {"esrgan": ONNX_RUNTIME, "convolution": HALIDE}
_PACKAGES = {ONNX_RUNTIME: "onnxruntime", HALIDE: "halide"}
# Depth and columns of matrices of which a whole number of rows makes just the work of the suites' models: a long one,
# as im2col would make it, and one that is nearer to a cube. The fastest stands for sgemm.
SGEMM_SHAPES: dict[Benchmark, tuple[tuple[int, int], ...]] = {
    "esrgan": ((576, 416), (576, 1664)),
    "convolution": ((1152, 128), (1600, 1920)),
}
_INSTALL = ".venv/bin/python -m pip install --editable '.[peers]'"


@dataclass(frozen=True, kw_only=True)
class Program:
    """Something that can be called again and again.

    Attributes:
        result: What the last call gave; None where it is not to be compared.
    """

    name: str
    run: Callable[[], object]
    result: Callable[[], Array] | None


def versions(benchmark: Benchmark) -> dict[str, str]:
    """Of the engines beside IREE that are installed."""
    peer = PEERS[benchmark]
    package = _PACKAGES[peer]
    found = {peer: importlib.metadata.version(package)} if find_spec(package) else {}
    build: Any = np.show_config(mode="dicts")
    blas = build["Build Dependencies"]["blas"]
    return {**found, SGEMM: f"{blas['name']} {blas['version']}"}


def missing(benchmark: Benchmark) -> tuple[str, ...]:
    """What the benchmark has to do without: one sentence each."""
    peer = PEERS[benchmark]
    return () if find_spec(_PACKAGES[peer]) else (f"{peer} is not installed; {_INSTALL}",)


def programs(benchmark: Benchmark, parameters: dict[str, Any], x: Array) -> Iterator[Program]:
    """The programs of the engines that are installed, sgemm's last.

    Args:
        parameters: Of the model's builder.
        x: What IREE's modules are called with.
    """
    if benchmark == "esrgan":
        yield from _block(residual_dense_block.BUILDER.parameters(**parameters), x)
    else:
        yield from _convolution(channelled_convolution.BUILDER.parameters(**parameters), x)
    for depth, columns in SGEMM_SHAPES[benchmark]:
        yield _sgemm(gflop(benchmark, parameters), depth, columns)


def gflop(benchmark: Benchmark, parameters: dict[str, Any]) -> float:
    """Of one call of a model; a multiplication and an addition are two."""
    if benchmark == "esrgan":
        return _block_gflop(residual_dense_block.BUILDER.parameters(**parameters))
    params = channelled_convolution.BUILDER.parameters(**parameters)
    pixels = params.batch * params.height * params.width
    return 2e-9 * pixels * KERNEL * KERNEL * params.channels_in * params.channels_out


def _block_gflop(params: residual_dense_block.Parameters) -> float:
    """Of all convolutions; what is pointwise does not count."""
    dense = residual_dense_block.DENSE_CONVOLUTIONS
    inner = sum((params.channels + place * params.growth) * params.growth for place in range(dense - 1))
    last = (params.channels + (dense - 1) * params.growth) * params.channels
    return 2e-9 * params.blocks * params.height * params.width * 9 * (inner + last)


def _block(params: residual_dense_block.Parameters, x: Array) -> Iterator[Program]:
    if onnxruntime.PEER.missing() is not None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        file.write_bytes(residual_dense_block.write_onnx(params))
        model = PeerModel(name="blocks", builder=None, onnx=file, inputs=(Input(shape=x.shape, dtype="f32"),))
        ready = onnxruntime.PEER.prepare(model, [x], Setting(threads=1, cache=file.parent), NoOptions())
    yield Program(name=ONNX_RUNTIME, run=ready.call, result=partial(_result, ready))


def _result(ready: Ready) -> Array:
    return np.asarray(ready.outputs()[0])


def _convolution(params: channelled_convolution.Parameters, x: Array) -> Iterator[Program]:
    if find_spec(_PACKAGES[HALIDE]):
        weights, bias = channelled_convolution.weights(params)
        filters = np.ascontiguousarray(weights.transpose(2, 0, 1, 3))
        for schedule in halide.schedules(halide.natural_vector()):
            made = halide.compile_convolution(x, filters, bias, schedule)
            yield Program(name=f"{HALIDE}: {schedule.name}", run=made.call, result=partial(_result, made))


def _sgemm(total_gflop: float, depth: int, columns: int) -> Program:
    """A product of matrices of random values by numpy, with as many rows as make the given work."""
    rows = round(total_gflop * 1e9 / (2 * depth * columns))
    random = np.random.default_rng(0)
    left = random.standard_normal((rows, depth), dtype=np.float32)
    right = random.standard_normal((depth, columns), dtype=np.float32)
    out = np.empty((rows, columns), np.float32)
    name = f"{SGEMM}: {rows}x{depth} by {depth}x{columns}"
    return Program(name=name, run=lambda: np.matmul(left, right, out=out), result=None)
