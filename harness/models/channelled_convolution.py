"""One 3x3 convolution with bias and ReLU over channels-last images: the program of Halide's conv_layer example.

MLIR's Transform tutorial (chapter H, https://mlir.llvm.org/docs/Tutorials/transform/ChH/) reproduces Halide's schedule
for it, so one number here can be held against two other compilers.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Seed, Size, render
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

KERNEL = 3
_BIAS_SCALE = 0.05


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes of the convolution; the defaults are those of the tutorial, 11.8 GFLOP."""

    batch: Size = 5  # Images
    height: Size = 80  # Rows of the result; the input has 2 more, since nothing is padded
    width: Size = 100  # Columns of the result; the input has 2 more
    channels_in: Size = 128  # Channels of the input
    channels_out: Size = 128  # Channels of the result
    # `named` is linalg.conv_2d_nhwc_hwcf, filter [kh, kw, channels_in, channels_out]; `generic` is the tutorial's
    # linalg.generic, filter [channels_in, kh, kw, channels_out]. Both hold the same weights.
    form: Literal["named", "generic"] = "named"
    seed: Seed = 0  # Of the weights and of the input


def weights(params: Parameters) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Filter [kh, kw, channels_in, channels_out] and bias [channels_out]; the result's values are of order 1."""
    rng = np.random.default_rng(params.seed)
    shape = (KERNEL, KERNEL, params.channels_in, params.channels_out)
    scale = np.float32(1 / math.sqrt(KERNEL * KERNEL * params.channels_in))
    bias = rng.standard_normal(params.channels_out, dtype=np.float32) * np.float32(_BIAS_SCALE)
    return rng.standard_normal(shape, dtype=np.float32) * scale, bias


def _image(params: Parameters) -> Input:
    shape = (params.batch, params.height + KERNEL - 1, params.width + KERNEL - 1, params.channels_in)
    return Input(shape=shape, dtype="f32", seed=params.seed)


def write_onnx(params: Parameters) -> bytes:
    """The same function in ONNX, whose convolutions have channels first: the image is turned before and after."""
    filter_, bias = weights(params)
    graph = OnnxGraph(name="main", inputs=(_image(params),))
    turned = graph.node("Transpose", "input0", perm=[0, 3, 1, 2])
    convolved = graph.node("Conv", turned, graph.weight(filter_.transpose(3, 2, 0, 1)), graph.weight(bias))
    return graph.finish(graph.node("Transpose", graph.node("Relu", convolved), perm=[0, 2, 3, 1]))


def build(params: Parameters) -> BuiltModel:
    """Write the convolution with random weights of the seed."""
    filter_, bias = weights(params)
    image = _image(params)
    text = render(
        "channelled_convolution.mlir",
        form=params.form,
        image=image.shape,
        output=(params.batch, params.height, params.width, params.channels_out),
        filter=filter_ if params.form == "named" else filter_.transpose(2, 0, 1, 3),
        bias=bias,
    )
    return BuiltModel(text=text, function="main", inputs=(image,))


BUILDER = Builder(
    name="channelled-convolution",
    description="A 3x3 channels-last convolution with bias and ReLU, as in MLIR's Transform tutorial, chapter H.",
    parameters=Parameters,
    build=build,
    onnx=write_onnx,
)
