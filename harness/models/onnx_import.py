"""ONNX files: what they say of themselves, and their import by iree-import-onnx in a child process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import process
from harness.errors import CaseError, SuiteError, ToolchainError
from harness.models.model import Input
from harness.models.tools import run_tool
from harness.toolchain.values import Toolchain

# torch-mlir's ONNX lowerings are written for opset 17 and later; older files import but often fail to compile.
LEAST_OPSET = 17

_DTYPES = {
    "FLOAT": "f32",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "DOUBLE": "f64",
    "BOOL": "i1",
    "INT8": "i8",
    "INT16": "i16",
    "INT32": "i32",
    "INT64": "i64",
}


@dataclass(frozen=True, kw_only=True)
class OnnxFacts:
    """What an ONNX file says of itself.

    Attributes:
        function: The graph's name, which iree-import-onnx gives to the entry function, whatever characters it has.
        opset: Version of the default operator domain; 0 when the file imports none.
        inputs: The graph's inputs without initialisers, random, the seed being the position.
        unknown_inputs: Why `inputs` is empty although the graph has some, and what to do; else "".
        external_files: Files beside it that hold weights, relative to its folder.
    """

    function: str
    opset: int
    inputs: tuple[Input, ...]
    unknown_inputs: str
    external_files: tuple[str, ...]


def read_onnx(path: Path, where: str) -> OnnxFacts:
    """Read an ONNX file's graph, without weights that lie in files beside it.

    Raises:
        CaseError: The file is no whole ONNX model (stage `model`).
        ToolchainError: The onnx package is missing.
    """
    try:
        import onnx
    except ImportError:
        raise ToolchainError(
            f"{where} onnx: the onnx package is missing; run pip install 'iree-base-compiler[onnx]'"
        ) from None
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise CaseError(
            "model", f"{where} onnx: {path} is no whole ONNX file ({_one_line(error)}); write or download it again"
        ) from None
    if not proto.HasField("graph") or not proto.graph.output:
        raise CaseError("model", f"{where} onnx: {path} holds no ONNX graph; write or download it again")
    inputs, unknown = _graph_inputs(onnx, proto.graph)
    return OnnxFacts(
        function=proto.graph.name,
        opset=next((one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")), 0),
        inputs=inputs,
        unknown_inputs=unknown,
        external_files=_external_files(onnx, proto.graph),
    )


def import_onnx(
    path: Path,
    output: Path,
    *,
    opset: int | None,
    facts: OnnxFacts,
    toolchain: Toolchain,
    limits: process.Limits,
    where: str,
) -> None:
    """Write an ONNX file's MLIR to `output`.

    Args:
        opset: The opset to upgrade to; None: 17 where the file's own is lower.

    Raises:
        SuiteError: The file's opset is above the wanted one.
        CaseError: iree-import-onnx failed (stage `model`).
    """
    if opset is not None and opset < facts.opset:
        raise SuiteError(f"{where} opset is {opset}, but {path} has opset {facts.opset}; remove opset")
    wanted = opset or LEAST_OPSET
    upgrade = [f"--opset-version={wanted}"] if 0 < facts.opset < wanted else []
    run_tool(
        [*toolchain.python_command, "-m", "iree.compiler.tools.import_onnx", path.resolve(), "-o", output, *upgrade],
        cwd=output.parent,  # Python would import an `onnx` or `iree` folder of the user's own working folder
        limits=limits,
        complaint=f"{where} onnx: iree-import-onnx of IREE {toolchain.version} cannot import {path}",
        remedy=f"check the file, or give another opset than {wanted}" if upgrade else "check the file",
    )


def _graph_inputs(onnx: Any, graph: Any) -> tuple[tuple[Input, ...], str]:
    """The inputs as a suite would say them; or none, and why."""
    weights = {one.name for one in graph.initializer}
    inputs: list[Input] = []
    for one in graph.input:
        if one.name in weights:  # old exporters list weights as inputs too; iree-import-onnx drops these
            continue
        if one.type.WhichOneof("value") != "tensor_type":
            return (), f"input {one.name} is not a tensor; export the model with tensors only"
        tensor = one.type.tensor_type
        if not tensor.HasField("shape"):
            return (), f"input {one.name} has no shape; give static inputs"
        sizes = [dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in tensor.shape.dim]
        if any(size is None or size < 0 for size in sizes):
            shape = "x".join("?" if size is None or size < 0 else str(size) for size in sizes)
            return (), f"input {one.name} has the dynamic shape {shape}; give static inputs"
        element = onnx.TensorProto.DataType.Name(tensor.elem_type)
        if element not in _DTYPES:
            known = ", ".join(_DTYPES.values())
            return (), f"input {one.name} has the element type {element.lower()}; export the model with one of {known}"
        shape_known = tuple(size for size in sizes if size is not None)
        inputs.append(Input(shape=shape_known, dtype=_DTYPES[element], seed=len(inputs)))
    return tuple(inputs), ""


def _external_files(onnx: Any, graph: Any) -> tuple[str, ...]:
    found = {
        entry.value
        for weight in graph.initializer
        if weight.data_location == onnx.TensorProto.EXTERNAL
        for entry in weight.external_data
        if entry.key == "location"
    }
    return tuple(sorted(found))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
