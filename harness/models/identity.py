"""A model's identity: a hash of its definition, so that renaming it in a suite changes nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from harness.files import file_sha256
from harness.models.builder import check_params, find_builder
from harness.models.model import Input, Model


def model_id(model: Model, suite: Path) -> str:
    """Hash of what the model computes and is called with.

    A builder counts with its version and all parameters, defaults included; files count with their bytes.

    Args:
        suite: The file that defines it, for error messages.

    Raises:
        SuiteError: The builder or its parameters are wrong.
    """
    definition: dict[str, object] = {
        "function": model.function,
        "inputs": [_input(one) for one in model.inputs],
        "parameters": {scope: file_sha256(path) for scope, path in sorted(model.parameters.items())},
    }
    if model.builder is not None:
        where = f"{suite}: [models.{model.name}]"
        builder = find_builder(model.builder, f"{where} builder")
        definition["builder"] = [
            builder.name,
            builder.version,
            asdict(check_params(builder, model.params, f"{where} params")),
        ]
    else:
        source = model.mlir or model.onnx
        assert source is not None  # noqa: S101 (loading a suite made sure)
        definition["file"] = [file_sha256(source), model.opset, *(["static"] if model.static else [])]
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def _input(one: Input) -> dict[str, object]:
    values: dict[str, object] = {"shape": one.shape, "dtype": one.dtype, "fill": one.fill}
    match one.fill:
        case "random":
            values["seed"] = one.seed
        case "constant":
            values["value"] = one.value
        case "npy":
            values["file"] = file_sha256(one.path) if one.path else None
    return values
