"""A multi-layer perceptron in two forms: as PyTorch's exporters write it, and as a hand-written generator does.

    y = relu(x * transposed(weight) + bias), `layers` times

https://github.com/plaidml/tpp-mlir could fuse the second form and not the first. They differ in five ways:

                        pytorch                               mlir-gen
    weight              stored [out, in], linalg.transpose    stored [in, out]
    product             linalg.matmul                         linalg.generic of mulf and addf
    bias and ReLU       read the result before them           update the result before them
    what they write to  a tensor.empty                        that result, which began as a linalg.fill
    ReLU                cmpf ugt and select                   maximumf

harness.rewrites.ingress turns the first form into the second, one difference at a time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Count, Seed, Size
from harness.models.mlir_text import Body, Tensor
from harness.models.model import Input
from harness.models.onnx_graph import OnnxGraph

_BIAS_SCALE = 0.05

_BIAS = "#bias"
_SAME = "#same"
_PREAMBLE = """\
#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#product = affine_map<(d0, d1, d2) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>
"""
_PARALLEL = ["parallel", "parallel"]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes and form; the default sizes are those of the tpp-mlir issue."""

    layers: Count = 3  # How many, each with a ReLU
    width: Size = 1024  # Inputs and outputs of each layer
    batch: Size = 256  # Rows of the input
    dtype: Literal["f32", "bf16"] = "f32"  # Of all tensors; sums are in this type too, as in the issue
    form: Literal["pytorch", "mlir-gen"] = "pytorch"  # See above; both compute the same, up to rounding
    seed: Seed = 0  # Of the weights and of the input


def weights(params: Parameters) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Each layer's weight [out, in] and bias [out], not yet rounded to `dtype`; they keep the values of order 1."""
    rng = np.random.default_rng(params.seed)
    for _ in range(params.layers):
        values = rng.standard_normal((params.width, params.width), dtype=np.float32)
        values *= np.float32(math.sqrt(2 / params.width))
        yield values, rng.standard_normal(params.width, dtype=np.float32) * np.float32(_BIAS_SCALE)


def write_onnx(params: Parameters) -> bytes | None:
    """The same layers in ONNX as Gemm and Relu; None for bf16, in which ONNX Runtime has no product on the CPU."""
    if params.dtype != "f32":
        return None
    shape = (params.batch, params.width)
    graph = OnnxGraph(name="main", inputs=(Input(shape=shape, dtype="f32", seed=params.seed),))
    x, turned = "input0", params.form == "pytorch"
    for weight, bias in weights(params):
        stored = graph.weight(weight if turned else weight.T)
        x = graph.node("Relu", graph.node("Gemm", x, stored, graph.weight(bias), transB=int(turned)))
    return graph.finish(x)


def build(params: Parameters) -> BuiltModel:
    """Write the layers with random weights of the seed."""
    body = Body(params.dtype)
    shape = (params.batch, params.width)
    x = argument = Tensor("%arg0", shape, params.dtype)
    empty = body.empty(shape)
    zeros = body.add(
        f"linalg.fill ins(%zero : {params.dtype}) outs({empty.name} : {empty.type}) -> {empty.type}", shape
    )
    for layer, (values, offsets) in enumerate(weights(params)):
        bias = body.weight(f"layer{layer}_bias", offsets)
        weight = body.weight(f"layer{layer}_weight", values if params.form == "pytorch" else values.T)
        if params.form == "pytorch":
            x = _pytorch_layer(body, x, weight, bias, empty, zeros)
        else:
            x = _generated_layer(body, x, weight, bias, zeros)
    text = body.module(_PREAMBLE, argument, [f"%zero = arith.constant 0.0 : {params.dtype}"], x)
    return BuiltModel(text=text, function="main", inputs=(Input(shape=shape, dtype=params.dtype, seed=params.seed),))


def _pytorch_layer(body: Body, x: Tensor, weight: Tensor, bias: Tensor, empty: Tensor, zeros: Tensor) -> Tensor:
    turned = body.empty(weight.shape[::-1])
    turned = body.add(
        f"linalg.transpose ins({weight.name} : {weight.type}) outs({turned.name} : {turned.type}) permutation = [1, 0]",
        turned.shape,
    )
    product = body.matmul(x, turned, zeros)
    dtype = body.dtype
    add = f"""\
    ^bb0(%in: {dtype}, %in_0: {dtype}, %out: {dtype}):
      %sum = arith.addf %in, %in_0 : {dtype}
      linalg.yield %sum : {dtype}"""
    summed = body.generic([_BIAS, _SAME, _SAME], _PARALLEL, [bias, product], empty, add)
    relu = f"""\
    ^bb0(%in: {dtype}, %out: {dtype}):
      %positive = arith.cmpf ugt, %in, %zero : {dtype}
      %above = arith.select %positive, %in, %zero : {dtype}
      linalg.yield %above : {dtype}"""
    return body.generic([_SAME, _SAME], _PARALLEL, [summed], empty, relu)


def _generated_layer(body: Body, x: Tensor, weight: Tensor, bias: Tensor, zeros: Tensor) -> Tensor:
    dtype = body.dtype
    multiply_and_add = f"""\
    ^bb0(%in: {dtype}, %in_0: {dtype}, %out: {dtype}):
      %multiplied = arith.mulf %in, %in_0 : {dtype}
      %sum = arith.addf %out, %multiplied : {dtype}
      linalg.yield %sum : {dtype}"""
    loops = [*_PARALLEL, "reduction"]
    product = body.generic(["#left", "#right", "#product"], loops, [x, weight], zeros, multiply_and_add)
    add = f"""\
    ^bb0(%in: {dtype}, %out: {dtype}):
      %sum = arith.addf %in, %out : {dtype}
      linalg.yield %sum : {dtype}"""
    summed = body.generic([_BIAS, _SAME], _PARALLEL, [bias], product, add)
    relu = f"""\
    ^bb0(%out: {dtype}):
      %above = arith.maximumf %out, %zero : {dtype}
      linalg.yield %above : {dtype}"""
    return body.generic([_SAME], _PARALLEL, [], summed, relu)


BUILDER = Builder(
    name="mlp",
    description="A multi-layer perceptron with ReLU, as PyTorch exports it or as tpp-mlir generates it.",
    parameters=Parameters,
    build=build,
    onnx=write_onnx,
)
