"""Model -> MLIR and arguments in files: builders, MLIR files, ONNX files."""

from harness.models.builder import Builder, BuiltModel, BuiltOnnx, check_params, find_builder
from harness.models.inputs import Argument, describe, load_argument
from harness.models.materialize import ModelArtifact, materialize, record

__all__ = [
    "Argument",
    "Builder",
    "BuiltModel",
    "BuiltOnnx",
    "ModelArtifact",
    "check_params",
    "describe",
    "find_builder",
    "load_argument",
    "materialize",
    "record",
]
