"""A model's table of a suite -> the model, with its files looked up beside the suite."""

from __future__ import annotations

from pathlib import Path

from harness.errors import SuiteError
from harness.models.model import Expectation, Input, Model, Tolerance
from harness.suite.checks import file_beside, refuse, value_of
from harness.suite.schema import InputTable, ModelTable
from harness.suite.toml_file import shown


def model_of(path: Path, name: str, table: ModelTable) -> Model:
    """The model of `[models.NAME]`.

    Args:
        path: The suite, beside which its files are.
    """
    where = f"[models.{name}]"
    sources = [key for key in ("builder", "mlir", "onnx") if getattr(table, key) is not None]
    builder, mlir, onnx = (sources == [key] for key in ("builder", "mlir", "onnx"))
    for_files = "for mlir and onnx files; a builder gives its own, so remove"
    needs = "missing; an mlir file needs its entry function and inputs"
    refuse(
        where,
        (len(sources) != 1, f"needs exactly one of builder, mlir and onnx, and has {' and '.join(sources) or 'none'}"),
        (builder and bool(table.function), f"function is {for_files} it"),
        (builder and bool(table.inputs), f"inputs are {for_files} them"),
        (builder and bool(table.parameters), f"parameters are {for_files} them"),
        (not builder and bool(table.params), "params are for builders; remove them or name a builder"),
        (mlir and not table.function, f"function is {needs}"),
        (mlir and table.inputs is None, f"inputs are {needs}"),
        (table.opset is not None and not onnx, "opset is for onnx files; remove it"),
        (
            table.static and not (onnx and table.inputs),
            "static is for onnx files whose inputs are given; remove it, or give inputs",
        ),
        (
            table.reference == "onnxruntime" and mlir,
            'reference = "onnxruntime" is for onnx files and builders; leave it out',
        ),
        (bool(table.why) and table.check != "none", 'why is for check = "none"; remove it'),
    )
    return value_of(
        Model,
        table,
        name=name,
        mlir=file_beside(path, f"{where} mlir", table.mlir) if table.mlir is not None else None,
        onnx=file_beside(path, f"{where} onnx", table.onnx) if table.onnx is not None else None,
        inputs=tuple(
            _input(path, f"{where} inputs[{position}]", argument, position)
            for position, argument in enumerate(table.inputs or ())
        ),
        parameters={
            scope: file_beside(path, f"{where} parameters.{scope}", name) for scope, name in table.parameters.items()
        },
        expected=tuple(file_beside(path, f"{where} expected", file) for file in table.expected),
        tolerance=value_of(Tolerance, table.tolerance) if table.tolerance is not None else None,
        integers=table.values == "integers",
        expectation=None if table.expect is None else _model_expectation(name, table.expect),
    )


def _model_expectation(model: str, text: str) -> Expectation:
    """What `mismatch` or `fail: part of the message` says of all cases of a model."""
    if text == "mismatch":
        return Expectation(cases=f"{model}/*", message=None)
    message = text.removeprefix("fail:").strip()
    if not text.startswith("fail:") or not message:
        raise SuiteError(
            f"[models.{model}] expect: {shown(text)} must be 'mismatch', or 'fail: ' and a part of the message"
        )
    return Expectation(cases=f"{model}/*", message=message)


def _input(path: Path, where: str, table: InputTable, position: int) -> Input:
    fills = [key for key in ("seed", "value", "npy") if getattr(table, key) is not None]
    is_scalar = table.shape is None and table.npy is None
    refuse(
        where,
        (len(fills) > 1, f"has {' and '.join(fills)}; keep one of them"),
        (
            table.npy is not None and table.shape is not None,
            "has shape and npy; the .npy file says its shape, so remove shape",
        ),
        (
            table.shape is None and table.npy is None and table.value is None,
            "shape is missing; add it, values from an npy file, or the value of an argument that is no tensor",
        ),
        (
            is_scalar and table.dtype in ("f16", "bf16"),
            f"is a number of {table.dtype}, which IREE takes in tensors only",
        ),
        (table.dtype == "index" and not is_scalar, "dtype: index is for an argument that is no tensor; take i64"),
    )
    if table.npy is not None:
        return Input(dtype=table.dtype or "", fill="npy", path=file_beside(path, f"{where} npy", table.npy))
    shape, dtype = tuple(table.shape or ()), table.dtype or "f32"
    if table.value is not None:
        return Input(shape=shape, scalar=is_scalar, dtype=dtype, fill="constant", value=table.value)
    return Input(shape=shape, dtype=dtype, seed=position if table.seed is None else table.seed)
