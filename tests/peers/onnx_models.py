"""Small ONNX models in files, as peers read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save, shape_inference

from harness.models.model import Input
from harness.models.onnx_graph import IR_VERSION, OPSET
from harness.peers import PeerModel
from harness.peers.peer import Array

_DTYPES = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "i1"}


def write_model(
    folder: Path,
    nodes: Sequence[Any],
    arguments: dict[str, Array],
    weights: dict[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    *,
    opset: int = OPSET,
) -> PeerModel:
    """A graph of these nodes whose inputs are the arguments, by name."""
    graph = helper.make_graph(
        list(nodes),
        "main",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in arguments.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)
    path = folder / "model.onnx"
    save(shape_inference.infer_shapes(model), str(path))
    inputs = tuple(Input(shape=value.shape, dtype=_DTYPES[value.dtype.name]) for value in arguments.values())
    return PeerModel(name="m", builder=None, onnx=path, inputs=inputs)


def random(*shape: int, seed: int = 0) -> Array:
    """Standard normal values of f32."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
