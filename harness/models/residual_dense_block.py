"""ESRGAN's residual dense block and the trunk of its generator, in linalg and in ONNX.

    x1 = lrelu(conv1(x))                       x4 = lrelu(conv4(cat(x, x1, x2, x3)))
    x2 = lrelu(conv2(cat(x, x1)))              x5 =       conv5(cat(x, x1, x2, x3, x4))
    x3 = lrelu(conv3(cat(x, x1, x2)))          block(x) = 0.2 * x5 + x

The linalg is the form in which PyTorch exporters hand the block to IREE. Each result is inserted anew into every later
concatenation, so x is copied four times, x1 four times, x2 three times: what IREE makes of those tensor.insert_slice is
what this model measures (https://github.com/iree-org/iree/issues/11102).

The trunk is a chain of residual-in-residual dense blocks, each 0.2 * block(block(block(x))) + x. The published network
has 23 of them, and so 345 convolutions, before and after which come a few that matter little.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Count, Seed, Size, render
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

Floats = NDArray[np.float32]
DENSE_CONVOLUTIONS = 5
DENSE_BLOCKS = 3
SLOPE = 0.2  # of the leaky ReLU; what a block adds is scaled by it too
# Half of what keeps the variance through a layer: a chain of 69 blocks then still gives values of order 1.
_WEIGHT_GAIN = 0.5
_BIAS_SCALE = 0.05


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes of the block; the defaults are those of the ESRGAN that IREE's issue 11102 shows."""

    height: Size = 90  # Rows of the image
    width: Size = 62  # Columns of the image
    channels: Size = 64  # Channels of the block's input and output
    growth: Size = 32  # Channels that each inner convolution adds
    blocks: Count = 1  # How many blocks follow each other; ESRGAN has 69
    seed: Seed = 0  # Of the weights and of the input


@dataclass(frozen=True, kw_only=True)
class TrunkParameters(Parameters):
    """Sizes of the trunk; `blocks` counts its residual-in-residual blocks, of which the published one has 23."""

    height: Size = 64
    width: Size = 64
    blocks: Count = 23


def weights(params: Parameters) -> Iterator[tuple[Floats, Floats]]:
    """Bias and weight of each convolution, in order."""
    rng = np.random.default_rng(params.seed)
    blocks = params.blocks * (DENSE_BLOCKS if isinstance(params, TrunkParameters) else 1)
    for number in range(blocks * DENSE_CONVOLUTIONS):
        place = number % DENSE_CONVOLUTIONS
        inputs = params.channels + place * params.growth
        outputs = params.channels if place == DENSE_CONVOLUTIONS - 1 else params.growth
        bias = rng.standard_normal(outputs, dtype=np.float32) * np.float32(_BIAS_SCALE)
        scale = np.float32(_WEIGHT_GAIN / math.sqrt(9 * inputs))
        yield bias, rng.standard_normal((outputs, inputs, 3, 3), dtype=np.float32) * scale


def _image(params: Parameters) -> Input:
    return Input(shape=(1, params.channels, params.height, params.width), seed=params.seed)


def build(params: Parameters) -> BuiltModel:
    """Write `blocks` blocks, one after the other, with random weights of the seed."""
    text = render(
        "residual_dense_block.mlir",
        **asdict(params),
        is_trunk=isinstance(params, TrunkParameters),
        slope=SLOPE,
        weights=weights(params),
    )
    return BuiltModel(text=text, function="main", inputs=(_image(params),))


def write_onnx(params: Parameters) -> bytes:
    """The same blocks in ONNX."""
    graph = OnnxGraph(name="main", inputs=(_image(params),))
    drawn, slope = weights(params), graph.weight(SLOPE)

    def convolution(parts: list[str], *, activate: bool) -> str:
        x = graph.node("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
        bias, weight = map(graph.weight, next(drawn))
        y = graph.node("Conv", x, weight, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        return graph.node("LeakyRelu", y, alpha=SLOPE) if activate else y

    def scale_and_add(update: str, x: str) -> str:
        return graph.node("Add", graph.node("Mul", update, slope), x)

    def block(x: str) -> str:
        parts = [x]
        for _ in range(1, DENSE_CONVOLUTIONS):
            parts.append(convolution(parts, activate=True))
        return scale_and_add(convolution(parts, activate=False), x)

    x = "input0"
    for _ in range(params.blocks):
        x = scale_and_add(block(block(block(x))), x) if isinstance(params, TrunkParameters) else block(x)
    return graph.finish(x)


BUILDER = Builder(
    name="residual-dense-block",
    description="ESRGAN's residual dense block(s): five 3x3 convolutions over growing concatenations.",
    parameters=Parameters,
    build=build,
    onnx=write_onnx,
)
TRUNK_BUILDER = Builder(
    name="rrdb-trunk",
    description="The trunk of ESRGAN's generator: residual-in-residual dense blocks.",
    parameters=TrunkParameters,
    build=build,
    onnx=write_onnx,
)
