"""The ONNX forms of builders that write MLIR: both compute the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.models import ModelArtifact, find_builder, load_argument, materialize
from harness.models.model import Model
from harness.models.onnx_file import run_onnx
from harness.process import Limits
from harness.toolchain import Toolchain

Run = Callable[[ModelArtifact], list[NDArray[Any]]]

BLOCK = {"height": 4, "width": 5, "channels": 8, "growth": 4, "seed": 3}
LAYERS = {"layers": 2, "width": 16, "batch": 8, "seed": 3}
CONVOLUTION = {"batch": 2, "height": 4, "width": 5, "channels_in": 3, "channels_out": 6, "seed": 3}

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "blocks": ("residual-dense-block", {**BLOCK, "blocks": 2}),
    "a block of other channels": ("residual-dense-block", {**BLOCK, "channels": 3, "growth": 5}),
    "trunk": ("rrdb-trunk", {**BLOCK, "channels": 4, "growth": 2, "blocks": 2}),
    "layers as PyTorch exports them": ("mlp", LAYERS),
    "layers as mlir-gen writes them": ("mlp", {**LAYERS, "form": "mlir-gen"}),
    "convolution": ("channelled-convolution", CONVOLUTION),
    "convolution as a generic": ("channelled-convolution", {**CONVOLUTION, "form": "generic"}),
}


@pytest.mark.parametrize(("builder", "params"), FORMS.values(), ids=list(FORMS))
def test_it_computes_what_the_mlir_does(
    builder: str, params: dict[str, Any], store: Path, toolchain: Toolchain, run_main: Run
) -> None:
    pytest.importorskip("onnxruntime")
    model = Model(name="m", builder=builder, params=params, parameters={})
    artifact = materialize(model, store=store, toolchain=toolchain, limits=Limits(seconds=120), with_onnx=True)
    assert artifact.onnx is not None
    (expected,) = run_main(artifact)
    (output,) = run_onnx(artifact.onnx, [load_argument(artifact.arguments[0])])
    assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("builder", "params"), FORMS.values(), ids=list(FORMS))
def test_equal_parameters_give_equal_bytes_and_another_seed_others(builder: str, params: dict[str, Any]) -> None:
    found = find_builder(builder)
    assert found.onnx is not None
    one = found.onnx(found.parameters(**params))
    assert found.onnx(found.parameters(**params)) == one
    assert found.onnx(found.parameters(**{**params, "seed": 4})) != one


def test_there_is_no_bf16_form_of_the_layers() -> None:
    found = find_builder("mlp")
    assert found.onnx is not None
    assert found.onnx(found.parameters(**LAYERS, dtype="bf16")) is None
