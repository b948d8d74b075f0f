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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Count, Seed, Size
from harness.models.mlir_text import Body, Tensor, tensor_type
from harness.models.model import Input
from harness.models.onnx_graph import OnnxGraph

DENSE_CONVOLUTIONS = 5
DENSE_BLOCKS = 3
SLOPE = 0.2  # of the leaky ReLU; what a block adds is scaled by it too
# Half of what keeps the variance through a layer: a chain of 69 blocks then still gives values of order 1.
_WEIGHT_GAIN = 0.5
_BIAS_SCALE = 0.05
_CHANNEL = "#channel"
_SAME = "#same"
_PREAMBLE = """\
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
#same = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
"""
_COPY_BODY = """\
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32"""
_LEAKY_RELU_BODY = """\
    ^bb0(%in: f32, %out: f32):
      %positive = arith.cmpf ugt, %in, %zero : f32
      %above = arith.select %positive, %in, %zero : f32
      %below = arith.select %positive, %zero, %in : f32
      %scaled = arith.mulf %below, %slope : f32
      %sum = arith.addf %above, %scaled : f32
      linalg.yield %sum : f32"""
_SCALE_AND_ADD_BODY = """\
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %scaled = arith.mulf %in, %slope : f32
      %sum = arith.addf %scaled, %in_0 : f32
      linalg.yield %sum : f32"""


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


class BlockBody(Body):
    """The body of a function of such blocks."""

    def __init__(self, shape: Sequence[int], seed: int) -> None:
        super().__init__("f32", inline_bytes=0)
        self.input = Input(shape=tuple(shape), dtype="f32", seed=seed)
        self.argument = Tensor("%arg0", self.input.shape, "f32")
        self.rng = np.random.default_rng(seed)

    def random(self, name: str, shape: Sequence[int], scale: float) -> Tensor:
        """A weight of random values."""
        return self.weight(name, self.rng.standard_normal(shape, dtype=np.float32) * np.float32(scale))

    def pointwise(self, inputs: Sequence[Tensor], maps: Sequence[str], out: Tensor, body: str) -> Tensor:
        """A linalg.generic that is parallel in all four dimensions."""
        return self.generic(maps, ["parallel"] * 4, inputs, out, body)

    def pad(self, x: Tensor) -> Tensor:
        """One row or column of zeros on every side."""
        n, channels, height, width = x.shape
        shape = (n, channels, height + 2, width + 2)
        return self.add(
            f"tensor.pad {x.name} low[0, 0, 1, 1] high[0, 0, 1, 1] {{\n"
            "    ^bb0(%n: index, %c: index, %h: index, %w: index):\n"
            "      tensor.yield %zero : f32\n"
            f"    }} : {x.type} to {tensor_type(shape, self.dtype)}",
            shape,
        )

    def parameters(self, channels_in: int, channels: int, name: str) -> tuple[Tensor, Tensor]:
        """Bias and weight of a convolution."""
        bias = self.random(f"{name}_bias", (channels,), _BIAS_SCALE)
        scale = _WEIGHT_GAIN / math.sqrt(9 * channels_in)
        return bias, self.random(f"{name}_weight", (channels, channels_in, 3, 3), scale)

    def convolution(self, x: Tensor, channels: int, name: str, *, activate: bool) -> Tensor:
        """A padded 3x3 convolution with bias, then a leaky ReLU if wanted."""
        n, channels_in, height, width = x.shape
        padded = self.pad(x)
        bias, weight = self.parameters(channels_in, channels, name)
        empty = self.empty((n, channels, height, width))
        start = self.pointwise([bias], [_CHANNEL, _SAME], empty, _COPY_BODY)
        result = self.add(
            "linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} "
            f"ins({padded.name}, {weight.name} : {padded.type}, {weight.type}) "
            f"outs({start.name} : {start.type}) -> {start.type}",
            start.shape,
        )
        return self.pointwise([result], [_SAME, _SAME], empty, _LEAKY_RELU_BODY) if activate else result

    def concatenate(self, parts: Sequence[Tensor]) -> Tensor:
        """Join along the channels: every part is inserted into a fresh tensor."""
        n, _, height, width = parts[0].shape
        whole = self.empty((n, sum(part.shape[1] for part in parts), height, width))
        offset = 0
        for part in parts:
            whole = self.add(
                f"tensor.insert_slice {part.name} into {whole.name}[0, {offset}, 0, 0] "
                f"[{', '.join(map(str, part.shape))}] [1, 1, 1, 1] : {part.type} into {whole.type}",
                whole.shape,
            )
            offset += part.shape[1]
        return whole

    def block(self, x: Tensor, growth: int, name: str) -> Tensor:
        """One residual dense block."""
        parts = [x]
        for number in range(1, DENSE_CONVOLUTIONS):
            joined = self.concatenate(parts) if len(parts) > 1 else x
            parts.append(self.convolution(joined, growth, f"{name}_conv{number}", activate=True))
        last = f"{name}_conv{DENSE_CONVOLUTIONS}"
        update = self.convolution(self.concatenate(parts), x.shape[1], last, activate=False)
        return self.scale_and_add(update, x)

    def scale_and_add(self, update: Tensor, x: Tensor) -> Tensor:
        """0.2 * update + x."""
        return self.pointwise([update, x], [_SAME, _SAME, _SAME], self.empty(x.shape), _SCALE_AND_ADD_BODY)

    def built(self, result: Tensor) -> BuiltModel:
        """The whole module."""
        scalars = ["%zero = arith.constant 0.0 : f32", f"%slope = arith.constant {SLOPE} : f32"]
        text = self.module(_PREAMBLE, self.argument, scalars, result)
        return BuiltModel(text=text, function="main", inputs=(self.input,))


class OnnxBlockBody(BlockBody):
    """The same blocks, and the same drawing of weights, with nodes of ONNX for operations of linalg."""

    def __init__(self, shape: Sequence[int], seed: int) -> None:
        super().__init__(shape, seed)
        self.argument = Tensor("input0", self.input.shape, "f32")
        self._graph = OnnxGraph(name="main", inputs=(self.input,))
        self._slope = self._graph.weight(SLOPE)

    def weight(self, name: str, values: NDArray[np.float32]) -> Tensor:  # noqa: ARG002 (ONNX needs no names of ours)
        """A constant tensor."""
        return Tensor(self._graph.weight(values), values.shape, "f32")

    def convolution(self, x: Tensor, channels: int, name: str, *, activate: bool) -> Tensor:
        """A padded 3x3 convolution with bias, then a leaky ReLU if wanted."""
        bias, weight = self.parameters(x.shape[1], channels, name)
        result = self._graph.node("Conv", x.name, weight.name, bias.name, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if activate:
            result = self._graph.node("LeakyRelu", result, alpha=SLOPE)
        return Tensor(result, (x.shape[0], channels, *x.shape[2:]), "f32")

    def concatenate(self, parts: Sequence[Tensor]) -> Tensor:
        """Join along the channels."""
        n, _, height, width = parts[0].shape
        result = self._graph.node("Concat", *(part.name for part in parts), axis=1)
        return Tensor(result, (n, sum(part.shape[1] for part in parts), height, width), "f32")

    def scale_and_add(self, update: Tensor, x: Tensor) -> Tensor:
        """0.2 * update + x."""
        scaled = self._graph.node("Mul", update.name, self._slope)
        return Tensor(self._graph.node("Add", scaled, x.name), x.shape, "f32")

    def serialised(self, result: Tensor) -> bytes:
        """The whole model."""
        return self._graph.finish(result.name)


def _chain(params: Parameters, body: BlockBody) -> Tensor:
    """Dense blocks one after the other; in a trunk three of them and a residual at a time."""
    x = body.argument
    for number in range(params.blocks):
        if isinstance(params, TrunkParameters):
            inner = x
            for dense in range(DENSE_BLOCKS):
                inner = body.block(inner, params.growth, f"block{number}_dense{dense}")
            x = body.scale_and_add(inner, x)
        else:
            x = body.block(x, params.growth, f"block{number}")
    return x


def _image(params: Parameters) -> tuple[int, ...]:
    return 1, params.channels, params.height, params.width


def build(params: Parameters) -> BuiltModel:
    """Write `blocks` blocks, one after the other, with random weights of the seed."""
    body = BlockBody(_image(params), params.seed)
    return body.built(_chain(params, body))


def write_onnx(params: Parameters) -> bytes:
    """The same blocks in ONNX."""
    body = OnnxBlockBody(_image(params), params.seed)
    return body.serialised(_chain(params, body))


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
