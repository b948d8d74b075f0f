"""Running serialised ONNX models in tests."""

from __future__ import annotations

from typing import Any

import onnxruntime
from numpy.typing import NDArray


def run_onnx_bytes(model: bytes, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """What ONNX Runtime's results are for these inputs, in order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return list(session.run(None, dict(zip(names, arrays, strict=True))))
