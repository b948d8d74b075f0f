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
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Count, Seed, Size, render
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

_BIAS_SCALE = 0.05


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


def _argument(params: Parameters) -> Input:
    return Input(shape=(params.batch, params.width), dtype=params.dtype, seed=params.seed)


def write_onnx(params: Parameters) -> bytes | None:
    """The same layers in ONNX as Gemm and Relu; None for bf16, in which ONNX Runtime has no product on the CPU."""
    if params.dtype != "f32":
        return None
    graph = OnnxGraph(name="main", inputs=(_argument(params),))
    x, turned = "input0", params.form == "pytorch"
    for weight, bias in weights(params):
        stored = graph.weight(weight if turned else weight.T)
        x = graph.node("Relu", graph.node("Gemm", x, stored, graph.weight(bias), transB=int(turned)))
    return graph.finish(x)


def build(params: Parameters) -> BuiltModel:
    """Write the layers with random weights of the seed."""
    layers = [(weight if params.form == "pytorch" else weight.T, bias) for weight, bias in weights(params)]
    text = render("mlp.mlir", **{**asdict(params), "layers": layers})
    return BuiltModel(text=text, function="main", inputs=(_argument(params),))


BUILDER = Builder(
    name="mlp",
    description="A multi-layer perceptron with ReLU, as PyTorch exports it or as tpp-mlir generates it.",
    parameters=Parameters,
    build=build,
    onnx=write_onnx,
)
