"""ONNX Runtime as a reference: what an ONNX model's outputs should be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError

_INSTALL = "pip install onnxruntime"


def onnxruntime_version() -> str | None:
    """The installed ONNX Runtime's version; None where there is none."""
    try:
        import onnxruntime
    except ImportError:
        return None
    return str(onnxruntime.__version__)


def run_onnx(path: Path, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Run an ONNX file once, on one thread of the CPU.

    Args:
        arrays: The graph's inputs in order, weights not counted.

    Returns:
        The graph's outputs in order.

    Raises:
        CaseError: ONNX Runtime is not installed, or it refuses the file or the inputs (stage `verify`).
    """
    try:
        import onnxruntime
    except ImportError:
        raise CaseError(
            "verify", f"{path}: the reference needs ONNX Runtime, which is not installed; run {_INSTALL}"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph as it is written: what its rewriting changes is for the engine that is timed to answer for.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4  # fatal; what goes wrong is raised too
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_inputs()]
        if len(names) != len(arrays):
            raise CaseError(
                "verify",
                f"{path}: the graph takes {len(names)} inputs ({', '.join(names)}), not {len(arrays)}; correct inputs",
            )
        outputs = session.run(None, dict(zip(names, arrays, strict=True)))
    except CaseError:
        raise
    except Exception as error:  # its exceptions have no common base but this
        message = " ".join(str(error).split()).rstrip(".")
        raise CaseError(
            "verify", f"{path}: ONNX Runtime {onnxruntime.__version__} cannot run it ({message}); check file and inputs"
        ) from error
    return [np.asarray(one) for one in outputs]
