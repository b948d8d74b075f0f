"""What all builders have in common: registered names, checked parameters, equal bytes, two forms of one function."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir

from harness.errors import SuiteError
from harness.models import BuiltModel, check_params, find_builder, load_argument
from harness.models.builder import BUILDERS
from harness.models.onnx_file import run_onnx
from harness.models.residual_dense_block import BUILDER, Parameters
from tests.builders import register
from tests.models.conftest import Make, RunMain

# Builders of MLIR by a small model of theirs.
BLOCK = {"height": 4, "width": 5, "channels": 8, "growth": 4, "seed": 3}
LAYERS = {"layers": 2, "width": 48, "batch": 8, "seed": 3}
CONVOLUTION = {"batch": 2, "height": 4, "width": 5, "channels_in": 3, "channels_out": 6, "seed": 3}
PRODUCT = {"m": 9, "n": 13, "k": 21, "right": "constant", "seed": 3}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "blocks": ("residual-dense-block", {**BLOCK, "blocks": 2}),
    "a block of other channels": ("residual-dense-block", {**BLOCK, "channels": 3, "growth": 5}),
    "trunk": ("rrdb-trunk", {**BLOCK, "channels": 4, "growth": 2, "blocks": 2}),
    "layers as PyTorch exports them": ("mlp", LAYERS),
    "layers as mlir-gen writes them": ("mlp", {**LAYERS, "form": "mlir-gen"}),
    "layers of bf16": ("mlp", {**LAYERS, "dtype": "bf16"}),
    "convolution": ("channelled-convolution", CONVOLUTION),
    "convolution as a generic": ("channelled-convolution", {**CONVOLUTION, "form": "generic"}),
    "product": ("matmul", PRODUCT),
    "product of bf16": ("matmul", {**PRODUCT, "dtype": "bf16"}),
    "layers on two devices": ("two-devices", {"layers": 4, "width": 16, "rows": 4, "seed": 3}),
}
WITHOUT_ONNX = {"layers of bf16", "product of bf16", "layers on two devices"}

MODEL = pytest.mark.parametrize(("name", "params"), MODELS.values(), ids=list(MODELS))


def built(name: str, params: dict[str, Any]) -> BuiltModel:
    found = find_builder(name)
    model = found.build(check_params(found, params))
    assert isinstance(model, BuiltModel)
    return model


def test_each_is_registered_under_its_own_name() -> None:
    points = entry_points(group=BUILDERS.group)
    names = {point.name for point in points if point.value.startswith("harness.models")}
    assert len(names) == 13
    assert {find_builder(name).name for name in names} == names
    assert find_builder("residual-dense-block") is BUILDER


def test_names_that_stand_for_no_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = (
        "[models.rdb] builder: there is no builder 'residual-dense-blocks'; did you mean \"residual-dense-block\"?"
    )
    with pytest.raises(SuiteError, match=re.escape(unknown)):
        find_builder("residual-dense-blocks", "[models.rdb] builder")
    register(monkeypatch, BUILDERS.group, ("odd", SuiteError))
    with pytest.raises(SuiteError, match=r"builder 'odd': a_package:ODD is not a harness\.models\.Builder"):
        find_builder("odd")


def test_parameters_have_defaults() -> None:
    assert check_params(BUILDER, {}) == Parameters()
    assert check_params(BUILDER, {"height": 4, "blocks": 2}) == Parameters(height=4, blocks=2)


AT_LEAST_ONE = "input should be greater than or equal to 1"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "residual-dense-block",
        {"hieght": 4},
        "params.hieght is not a parameter of builder 'residual-dense-block'; did you mean \"height\"?",
    ),
    ("residual-dense-block", {"height": 0}, f"params.height: {AT_LEAST_ONE}, not '0'"),
    ("residual-dense-block", {"seed": -1}, "params.seed: input should be greater than or equal to 0, not '-1'"),
    ("rrdb-trunk", {"blocks": 0}, f"params.blocks: {AT_LEAST_ONE}, not '0'"),
    ("mlp", {"layers": 0}, f"params.layers: {AT_LEAST_ONE}, not '0'"),
    ("mlp", {"batch": -1}, f"params.batch: {AT_LEAST_ONE}, not '-1'"),
    ("mlp", {"dtype": "f16"}, "params.dtype: input should be 'f32' or 'bf16', not 'f16'"),
    ("mlp", {"form": "onnx"}, "params.form: input should be 'pytorch' or 'mlir-gen', not 'onnx'"),
    ("matmul", {"m": 0}, f"params.m: {AT_LEAST_ONE}, not '0'"),
    ("matmul", {"dtype": "f64"}, "params.dtype: input should be 'f32', 'f16', 'bf16' or 'i8', not 'f64'"),
    ("matmul", {"dynamic": "km"}, "params.dynamic: string should match pattern '^m?n?k?$', not 'km'"),
    (
        "matmul",
        {"dynamic": "mnk", "right": "constant"},
        "params: dynamic is 'mnk', but of a constant n and k are known; write 'm' or ''",
    ),
    ("two-devices", {"kind": "three"}, "params.kind: input should be 'whole', 'pipeline' or 'transfers', not 'three'"),
    ("minilm", {"layers": 4}, "params.layers: input should be 3 or 6, not '4'"),
    ("minilm", {"sequence": 513}, "params.sequence: input should be less than or equal to 512, not '513'"),
    ("efficientnet-lite0", {"size": 16}, "params.size: input should be greater than or equal to 32, not '16'"),
    ("crepe", {"batch": 0}, f"params.batch: {AT_LEAST_ONE}, not '0'"),
    ("paddle-ocr", {"part": "reader"}, "params.part: input should be 'detector' or 'classifier', not 'reader'"),
    ("silero", {"form": "both"}, "params.form: input should be 'branches' or 'straight', not 'both'"),
    (
        "realesrgan-block",
        {"which": 69},
        "params: which is 69, and x4plus has 69 blocks of part 'dense'; give a number from 0 to 68",
    ),
    (
        "realesrgan-block",
        {"network": "x4plus-anime", "part": "rrdb", "which": 6},
        "params: which is 6, and x4plus-anime has 6 blocks of part 'rrdb'; give a number from 0 to 5",
    ),
    (
        "realesrgan-block",
        {"network": "animevideov3-x2"},
        "params.network: input should be 'x4plus' or 'x4plus-anime', not 'animevideov3-x2'",
    ),
]


@pytest.mark.parametrize(("name", "params", "message"), WRONG)
def test_wrong_parameters_are_named(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_params(find_builder(name), params, "[models.m] params")
    assert str(caught.value) == f"[models.m] {message}"


@MODEL
def test_equal_parameters_give_equal_bytes_and_another_seed_other_weights_only(
    name: str, params: dict[str, Any]
) -> None:
    text, same, other = (str(built(name, {**params, "seed": seed}).text) for seed in (3, 3, 4))
    assert text == same
    assert text != other
    assert re.sub('"0x[0-9a-f]+"', "", text) == re.sub('"0x[0-9a-f]+"', "", other)
    with ir.Context():
        assert ir.Module.parse(text).operation.verify()


@MODEL
def test_its_onnx_form_computes_what_its_mlir_does(
    name: str, params: dict[str, Any], make: Make, run_main: RunMain, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.id in WITHOUT_ONNX:
        found = find_builder(name)
        assert found.onnx is None or found.onnx(check_params(found, params)) is None
        return
    artifact = make(name, **params)
    assert artifact.onnx is not None
    (expected,) = run_main(artifact)
    (output,) = run_onnx(artifact.onnx, [load_argument(argument) for argument in artifact.arguments])
    assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
