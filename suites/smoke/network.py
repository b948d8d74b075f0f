"""Write network.onnx, which is there so that something is imported: `python suites/smoke/network.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

FILE = Path(__file__).with_name("network.onnx")


def network() -> bytes:
    """An image of 3x16x16 through a convolution with ReLU, the mean over its pixels, and a product: four scores."""
    rng = np.random.default_rng(0)
    graph = OnnxGraph(name="network", inputs=(Input(shape=(1, 3, 16, 16)),))
    filters = graph.weight(rng.standard_normal((8, 3, 3, 3), dtype=np.float32))
    features = graph.node("Relu", graph.node("Conv", "input0", filters, pads=[1, 1, 1, 1]))
    means = graph.node("Flatten", graph.node("GlobalAveragePool", features))
    return graph.finish(graph.node("Gemm", means, graph.weight(rng.standard_normal((8, 4), dtype=np.float32))))


if __name__ == "__main__":
    FILE.write_bytes(network())
