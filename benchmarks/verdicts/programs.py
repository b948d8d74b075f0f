"""Programs whose relative cost is known: n(1 + x) iterations of the same work take 1 + x times as long as n."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import process
from harness.cache import cache_root, write_atomically
from harness.compile.iree_compile import REPRODUCIBLE_FLAGS
from harness.measure import LoadableModule
from harness.models import residual_dense_block
from harness.toolchain import Toolchain

SLOWDOWNS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10)

_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A program, with a knob that makes it slower by a known share where it has one.

    Attributes:
        iterations: Of its loop; 0: it has none, and is only compared with itself.
        shape: Of each of its inputs.
    """

    name: str
    title: str
    mlir: str
    shape: tuple[int, ...]
    inputs: int = 2
    iterations: int = 0
    uri: str = "local-sync"
    pin: bool = True
    function: str = "main"


def matmul(size: int) -> str:
    """One product of two square matrices."""
    kind = f"tensor<{size}x{size}xf32>"
    return f"""func.func @main(%x: {kind}, %w: {kind}) -> {kind} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {kind}
  %filled = linalg.fill ins(%zero : f32) outs(%empty : {kind}) -> {kind}
  %product = linalg.matmul ins(%x, %w : {kind}, {kind}) outs(%filled : {kind}) -> {kind}
  return %product : {kind}
}}
"""


def matmul_loop(size: int) -> str:
    """ITERATIONS products, each with the one before it: so many dispatches, one after the other."""
    kind = f"tensor<{size}x{size}xf32>"
    return f"""func.func @main(%x: {kind}, %w: {kind}) -> {kind} {{
  %from = arith.constant 0 : index
  %step = arith.constant 1 : index
  %to = arith.constant ITERATIONS : index
  %zero = arith.constant 0.0 : f32
  %last = scf.for %i = %from to %to step %step iter_args(%y = %x) -> {kind} {{
    %empty = tensor.empty() : {kind}
    %filled = linalg.fill ins(%zero : f32) outs(%empty : {kind}) -> {kind}
    %product = linalg.matmul ins(%y, %w : {kind}, {kind}) outs(%filled : {kind}) -> {kind}
    scf.yield %product : {kind}
  }}
  return %last : {kind}
}}
"""


def spin(size: int) -> str:
    """One dispatch in which every element goes through a chain of ITERATIONS multiplications and additions."""
    kind = f"tensor<{size}xf32>"
    return f"""func.func @main(%x: {kind}) -> {kind} {{
  %from = arith.constant 0 : index
  %step = arith.constant 1 : index
  %to = arith.constant ITERATIONS : index
  %factor = arith.constant 0.999 : f32
  %term = arith.constant 0.001 : f32
  %empty = tensor.empty() : {kind}
  %result = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                             iterator_types = ["parallel"]}} ins(%x : {kind}) outs(%empty : {kind}) {{
  ^bb0(%in: f32, %out: f32):
    %last = scf.for %i = %from to %to step %step iter_args(%y = %in) -> f32 {{
      %scaled = arith.mulf %y, %factor : f32
      %next = arith.addf %scaled, %term : f32
      scf.yield %next : f32
    }}
    linalg.yield %last : f32
  }} -> {kind}
  return %result : {kind}
}}
"""


def softmax_chain() -> str:
    """ITERATIONS softmaxes, each of the one before it."""
    kind = "tensor<8x64xf32>"
    return _chain(
        kind,
        f"""%empty = tensor.empty() : {kind}
    %next = linalg.softmax dimension(1) ins(%y : {kind}) outs(%empty : {kind}) -> {kind}""",
    )


def depthwise_chain() -> str:
    """ITERATIONS depthwise convolutions of 3x3, each put into the middle of the image that it was taken from."""
    image, inside, filter_ = "tensor<1x34x34x32xf32>", "tensor<1x32x32x32xf32>", "tensor<3x3x32xf32>"
    return _chain(
        image,
        f"""%weights = arith.constant dense<0.111> : {filter_}
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {inside}
    %filled = linalg.fill ins(%zero : f32) outs(%empty : {inside}) -> {inside}
    %convolved = linalg.depthwise_conv_2d_nhwc_hwc {{dilations = dense<1> : tensor<2xi64>,
        strides = dense<1> : tensor<2xi64>}} ins(%y, %weights : {image}, {filter_}) outs(%filled : {inside}) -> {inside}
    %next = tensor.insert_slice %convolved into %y[0, 1, 1, 0] [1, 32, 32, 32] [1, 1, 1, 1] : {inside} into {image}""",
    )


def reduction_chain() -> str:
    """ITERATIONS times the sums of all rows, by which the rows are then divided."""
    kind, sums = "tensor<64x64xf32>", "tensor<64xf32>"
    maps = "[affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]"
    return _chain(
        kind,
        f"""%one = arith.constant 1.0 : f32
    %small = tensor.empty() : {sums}
    %filled = linalg.fill ins(%one : f32) outs(%small : {sums}) -> {sums}
    %summed = linalg.generic {{indexing_maps = {maps}, iterator_types = ["parallel", "reduction"]}}
        ins(%y : {kind}) outs(%filled : {sums}) {{
    ^bb0(%in: f32, %sum: f32):
      %added = arith.addf %in, %sum : f32
      linalg.yield %added : f32
    }} -> {sums}
    %empty = tensor.empty() : {kind}
    %next = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                            affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        ins(%y, %summed : {kind}, {sums}) outs(%empty : {kind}) {{
    ^bb0(%in: f32, %sum: f32, %out: f32):
      %divided = arith.divf %in, %sum : f32
      linalg.yield %divided : f32
    }} -> {kind}""",
    )


def _chain(kind: str, body: str) -> str:
    """A loop of ITERATIONS steps, each of which makes %next of %y."""
    return f"""func.func @main(%x: {kind}) -> {kind} {{
  %from = arith.constant 0 : index
  %step = arith.constant 1 : index
  %to = arith.constant ITERATIONS : index
  %last = scf.for %i = %from to %to step %step iter_args(%y = %x) -> {kind} {{
    {body}
    scf.yield %next : {kind}
  }}
  return %last : {kind}
}}
"""


def workloads() -> dict[str, Workload]:
    """All of them by name; what they take is that of a core of the machine of docs/statistics.md."""
    block = residual_dense_block.build(residual_dense_block.Parameters(height=90, width=62))
    every = (
        Workload(
            name="matmul",
            title="matmul 640",
            mlir=matmul(640),
            shape=(640, 640),
        ),
        Workload(
            name="block",
            title="ESRGAN block",
            mlir=str(block.text),
            shape=(1, 64, 90, 62),
            inputs=1,
            function=block.function,
        ),
        Workload(
            name="loop",
            title="loop of small matmuls",
            mlir=matmul_loop(64),
            iterations=800,
            shape=(64, 64),
        ),
        Workload(
            name="tiny",
            title="one tiny dispatch",
            mlir=spin(32),
            iterations=1600,  # in steps of 16, so that no unrolled loop has a rest
            shape=(32,),
            inputs=1,
        ),
        Workload(
            name="long",
            title="loop of larger matmuls",
            mlir=matmul_loop(256),
            iterations=500,
            shape=(256, 256),
        ),
        Workload(
            name="softmax",
            title="chain of softmaxes",
            mlir=softmax_chain(),
            iterations=200,
            shape=(8, 64),
            inputs=1,
        ),
        Workload(
            name="depthwise",
            title="chain of depthwise convolutions",
            mlir=depthwise_chain(),
            iterations=800,
            shape=(1, 34, 34, 32),
            inputs=1,
        ),
        Workload(
            name="reduction",
            title="chain of reductions",
            mlir=reduction_chain(),
            iterations=800,
            shape=(64, 64),
            inputs=1,
        ),
        Workload(
            name="slow",
            title="loop of larger matmuls",
            mlir=matmul_loop(256),
            iterations=6000,
            shape=(256, 256),
        ),
        Workload(
            name="threads",
            title="loop of matmuls on all cores",
            uri="local-task",
            pin=False,
            mlir=matmul_loop(128),
            iterations=200,
            shape=(128, 128),
        ),
    )
    return {one.name: one for one in every}


def prepare(workload: Workload, slowdown: float, name: str, toolchain: Toolchain) -> LoadableModule:
    """Compile a workload with (1 + slowdown) times its iterations; kept in the cache.

    Raises:
        RuntimeError: It does not compile.
    """
    iterations = round(workload.iterations * (1 + slowdown))
    mlir = workload.mlir.replace("ITERATIONS", str(iterations))
    key = hashlib.sha256(f"{mlir}{_FLAGS}{toolchain.compiler_sha256}".encode()).hexdigest()[:24]
    folder = cache_root() / "benchmarks" / key
    module, values = folder / "module.vmfb", folder / "input.npy"
    if not module.is_file():
        write_atomically(folder / "model.mlir", mlir.encode())
        command = [str(toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", *_FLAGS, *REPRODUCIBLE_FLAGS]
        done = process.run(command, cwd=folder, limits=process.Limits(seconds=600))
        if not done.ok:
            raise RuntimeError(f"{workload.name} does not compile: {done.stderr[-2000:]}")
    if not values.is_file():
        array = np.random.default_rng(0).standard_normal(workload.shape, dtype=np.float32) / workload.shape[-1]
        np.save(values, array)
    return LoadableModule(
        name=name,
        module=Path(module),
        function=workload.function,
        arguments=({"file": str(values)},) * workload.inputs,
        parameters={},
        run_flags=(),
        toolchain=toolchain,
    )
