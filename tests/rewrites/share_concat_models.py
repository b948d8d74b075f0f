"""Dense blocks as different front ends hand them over, for the tests of shared concatenations; all of them small."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.models.residual_dense_block import Parameters, build

CHANNELS, GROWTH, HEIGHT, WIDTH = 8, 4, 10, 6
SHAPE = (1, CHANNELS, HEIGHT, WIDTH)
CONVOLUTIONS = 5


def built_block(blocks: int = 1) -> str:
    """The harness's own model: chains of tensor.insert_slice, as in the issue."""
    text = build(Parameters(height=HEIGHT, width=WIDTH, channels=CHANNELS, growth=GROWTH, blocks=blocks)).text
    assert isinstance(text, str)
    return text


def torch_block() -> str:
    """What PyTorch exports, in the torch dialect; 4 channels, growth 2, 5x6."""
    return (Path(__file__).parent / "data" / "dense_block_torch.mlir").read_text()


@dataclass
class _Graph:
    """An ONNX graph while it is written."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append one node; its output."""
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        values = np.asarray(self.rng.standard_normal(shape) / 4, np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def convolution(self, x: str, channels_in: int, channels: int, *, kernel: int = 3) -> str:
        weight, bias = self.weight(channels, channels_in, kernel, kernel), self.weight(channels)
        return self.node("Conv", x, weight, bias, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)

    def add_scaled(self, update: str, x: str) -> str:
        return self.node("Add", self.node("Mul", update, self.weight()), x)

    def dense_block(self, x: str, *, kernel: int = 3) -> str:
        """ESRGAN's; `kernel` is that of the last convolution."""
        parts = [x]
        for number in range(CONVOLUTIONS - 1):
            joined = self.node("Concat", *parts, axis=1) if number else x
            y = self.convolution(joined, CHANNELS + number * GROWTH, GROWTH)
            parts.append(self.node("LeakyRelu", y, alpha=0.2))
        joined = self.node("Concat", *parts, axis=1)
        channels = CHANNELS + (CONVOLUTIONS - 1) * GROWTH
        return self.add_scaled(self.convolution(joined, channels, CHANNELS, kernel=kernel), x)

    def imported(self, output: str) -> str:
        """The graph, saved and imported."""
        graph = helper.make_graph(
            self.nodes,
            "main",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            onnx.save(onnx.shape_inference.infer_shapes(model), str(file))
            command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(file)]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def onnx_block(*, kernel: int = 3) -> str:
    graph = _Graph()
    return graph.imported(graph.dense_block("x", kernel=kernel))


def onnx_esrgan() -> str:
    """ESRGAN's real structure: residuals of three dense blocks each, two of them."""
    graph = _Graph()
    x = "x"
    for _ in range(2):
        y = x
        for _ in range(3):
            y = graph.dense_block(y)
        x = graph.add_scaled(y, x)
    return graph.imported(x)


def onnx_densenet() -> str:
    """DenseNet's way: what was joined is joined again, after a 1x1 convolution between the join and the padding."""
    graph = _Graph()
    joined, channels = "x", CHANNELS
    for _ in range(4):
        y = graph.convolution(graph.node("Relu", joined), channels, 2 * GROWTH, kernel=1)
        joined = graph.node("Concat", joined, graph.convolution(y, 2 * GROWTH, GROWTH), axis=1)
        channels += GROWTH
    return graph.imported(graph.convolution(joined, channels, CHANNELS, kernel=1))


def channels_last_block() -> str:
    """NHWC, with ReLUs and without the residual; a part then lies in the buffer with gaps."""
    lines, sizes = [], [CHANNELS]
    for number, kind in enumerate(channels_last_shapes()[1:]):
        joined = "%x0"
        if number:
            joined = f"%joined{number}"
            names, kinds = ", ".join(f"%x{n}" for n in range(len(sizes))), ", ".join(map(_image, sizes))
            lines.append(f"{joined} = tensor.concat dim(3) {names} : ({kinds}) -> {_image(sum(sizes))}")
        lines.append(_convolve(number, joined, sum(sizes), kind[-1]))
        sizes.append(kind[-1])
    filters = [f"%w{n}: tensor<{'x'.join(map(str, kind))}xf32>" for n, kind in enumerate(channels_last_shapes()[1:])]
    return "\n".join(
        [
            f"func.func @main({', '.join([f'%x0: {_image(CHANNELS)}', *filters])}) -> {_image(CHANNELS)} {{",
            "%zero = arith.constant 0.0 : f32",
            *lines,
            f"return %x{CONVOLUTIONS} : {_image(CHANNELS)}\n}}",
        ]
    )


def channels_last_shapes() -> list[tuple[int, ...]]:
    """Of the arguments of `channels_last_block`: the image and the filters."""
    channels = [CHANNELS + number * GROWTH for number in range(CONVOLUTIONS)]
    filters = [(3, 3, one, GROWTH) for one in channels[:-1]]
    return [(1, HEIGHT, WIDTH, CHANNELS), *filters, (3, 3, channels[-1], CHANNELS)]


def _image(channels: int, *, padding: int = 0) -> str:
    return f"tensor<1x{HEIGHT + 2 * padding}x{WIDTH + 2 * padding}x{channels}xf32>"


def _convolve(number: int, source: str, channels_in: int, channels: int) -> str:
    """%x<number + 1>: a padded 3x3 convolution and a ReLU."""
    kind, padded = _image(channels), _image(channels_in, padding=1)
    return f"""
      %padded{number} = tensor.pad {source} low[0, 1, 1, 0] high[0, 1, 1, 0] {{
      ^bb0(%n: index, %h: index, %w: index, %c: index):
        tensor.yield %zero : f32
      }} : {_image(channels_in)} to {padded}
      %empty{number} = tensor.empty() : {kind}
      %start{number} = linalg.fill ins(%zero : f32) outs(%empty{number} : {kind}) -> {kind}
      %sum{number} = linalg.conv_2d_nhwc_hwcf
          ins(%padded{number}, %w{number} : {padded}, tensor<3x3x{channels_in}x{channels}xf32>)
          outs(%start{number} : {kind}) -> {kind}
      %x{number + 1} = arith.maximumf %sum{number}, %start{number} : {kind}"""
