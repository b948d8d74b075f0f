"""What peers have in common: whether their package is here, and whether a model has the form that they read."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from harness.peers.values import PeerModel


def missing_package(module: str, distribution: str = "") -> str | None:
    """Why a Python package cannot be used, as a phrase; None: it is installed. Nothing is imported.

    Args:
        distribution: Its name in the package index, where that is not the module's.
    """
    return None if find_spec(module) is not None else f"{distribution or module} is not installed"


def refuses_onnx(model: PeerModel, *, bf16: bool = False) -> str | None:
    """Why there is no ONNX file of a model, or none that numpy arrays can be given to; None: there is.

    Args:
        bf16: Whether the peer takes bf16 arguments.
    """
    if model.onnx is None:
        return "the model has no ONNX form"
    if not bf16 and any(one.dtype == "bf16" for one in model.inputs):
        return "it takes no bf16 arguments"
    return None


def onnx_file(model: PeerModel) -> Path:
    """The ONNX file of a model that `refuses_onnx` does not refuse.

    Raises:
        ValueError: It has none.
    """
    if model.onnx is None:
        raise ValueError("the model has no ONNX form")
    return model.onnx


def compiled_name(model: PeerModel, *parts: object) -> str:
    """A name for what an engine compiles of a model: a hash of its ONNX file, its shapes and whatever else matters.

    Raises:
        OSError: The file cannot be read.
    """
    digest = hashlib.sha256(onnx_file(model).read_bytes())
    digest.update(repr([*parts, *((one.shape, one.dtype) for one in model.inputs)]).encode())
    return digest.hexdigest()[:32]
