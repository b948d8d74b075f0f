"""ESRGAN's residual dense block as an ONNX model, with the weights of the harness's own builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.models.mlir_text import Tensor
from harness.models.residual_dense_block import DENSE_CONVOLUTIONS, BlockBody, Parameters

Array = NDArray[np.float32]

_SLOPE = 0.2
_OPSET, _IR_VERSION = 17, 8  # which ONNX Runtime 1.17 reads


class _Weights(BlockBody):
    """The builder's own drawing of weights, which keeps them by name."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.values: dict[str, Array] = {}

    def weight(self, name: str, values: NDArray[np.float32]) -> Tensor:
        self.values[name] = values
        return super().weight(name, values)


def block_weights(params: Parameters) -> dict[str, Array]:
    """All weights of a chain of blocks: `block0_conv1_weight` [out, in, 3, 3], `block0_conv1_bias` and so on."""
    body = _Weights(params.seed)
    result = Tensor("%arg0", (1, params.channels, params.height, params.width), "f32")
    for number in range(params.blocks):
        result = body.block(result, params.growth, f"block{number}")
    return body.values


def onnx_model(params: Parameters) -> bytes:
    """The chain of blocks as PyTorch's exporter writes it: Concat, Conv, LeakyRelu, Mul and Add."""
    from onnx import TensorProto, helper, numpy_helper

    weights = {"scale": np.array(_SLOPE, np.float32), **block_weights(params)}
    nodes: list[Any] = []

    def add(kind: str, inputs: list[str], result: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [result], **attributes))
        return result

    def convolution(x: str, name: str) -> str:
        return add("Conv", [x, f"{name}_weight", f"{name}_bias"], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    x = "input"
    for number in range(params.blocks):
        name, parts = f"block{number}", [x]
        for place in range(1, DENSE_CONVOLUTIONS + 1):
            inner = f"{name}_conv{place}"
            joined = add("Concat", list(parts), f"{inner}_input", axis=1) if len(parts) > 1 else x
            y = convolution(joined, inner)
            if place < DENSE_CONVOLUTIONS:
                parts.append(add("LeakyRelu", [y], f"{inner}_active", alpha=_SLOPE))
        x = add("Add", [add("Mul", [y, "scale"], f"{name}_scaled"), x], f"{name}_result")
    shape = [1, params.channels, params.height, params.width]
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    return bytes(model.SerializeToString())


def onnxruntime_block(params: Parameters, x: Array) -> Callable[[], Array]:
    """ONNX Runtime's block on one thread; a function that runs it once, and gives the result."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_model(params), options, providers=["CPUExecutionProvider"])

    def run() -> Array:
        (result,) = session.run(None, {"input": x})
        return np.asarray(result)

    return run


def gflop(params: Parameters) -> float:
    """Of all convolutions; what is pointwise does not count."""
    inner = sum((params.channels + place * params.growth) * params.growth for place in range(DENSE_CONVOLUTIONS - 1))
    last = (params.channels + (DENSE_CONVOLUTIONS - 1) * params.growth) * params.channels
    return 2e-9 * params.blocks * params.height * params.width * 9 * (inner + last)
