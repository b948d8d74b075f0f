"""ESRGAN's residual dense blocks in ONNX, as PyTorch's exporter writes them, with the weights that their MLIR has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.models.mlir_text import Tensor
from harness.models.onnx_graph import OnnxGraph
from harness.models.residual_dense_block import SLOPE, BlockBody


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
