"""Model -> MLIR and arguments in files: builders, MLIR files, ONNX files."""

from harness.models.builder import Builder, BuiltModel, BuiltOnnx

__all__ = ["Builder", "BuiltModel", "BuiltOnnx"]
