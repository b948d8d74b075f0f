"""Builders: registered names, checked parameters, equal bytes, and the same results in MLIR and in ONNX."""

import re
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir

from harness.errors import SuiteError
from harness.models import BuiltModel
from harness.models.builder import BUILDERS, check_params, find_builder
from harness.models.inputs import load_argument
from harness.models.mlp import Parameters, weights
from harness.models.onnx_file import run_onnx
from tests.models.conftest import Make, RunMain

BLOCK = {"height": 4, "width": 5, "channels": 8, "growth": 4, "seed": 3}
LAYERS = {"layers": 2, "batch": 8, "seed": 3}
CONVOLUTION = {"batch": 2, "height": 4, "width": 5, "channels_in": 3, "channels_out": 6, "seed": 3}
PRODUCT = {"m": 9, "n": 13, "k": 21, "seed": 3}
ATTENTION = {"heads": 2, "queries": 5, "keys": 9, "depth": 8, "causal": True, "seed": 3}
LAYER = {"sequence": 6, "heads": 2, "depth": 8, "inner": 24, "seed": 3}
TWO_DEVICES = {"kind": "whole", "layers": 4, "width": 16, "rows": 4, "seed": 3}
EXAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("residual-dense-block", {**BLOCK, "blocks": 2}),
    ("rrdb-trunk", {**BLOCK, "channels": 4, "growth": 2, "blocks": 2}),
    *(
        ("mlp", {**LAYERS, "dtype": dtype, "form": form, "width": width})
        for dtype in ("f32", "bf16")
        for form, width in (("pytorch", 16), ("mlir-gen", 80))  # 80 floats are a resource, 16 are written in place
    ),
    *(("channelled-convolution", {**CONVOLUTION, "form": form}) for form in ("named", "generic")),
    *(
        ("attention", {**ATTENTION, "dtype": dtype, "form": form, "dynamic": dynamic, **shape})
        for dtype, form, dynamic, shape in (
            ("f32", "fused", False, {}),
            ("f16", "fused", True, {}),
            ("bf16", "decomposed", False, {}),
            ("f32", "decomposed", False, {"queries": 1, "causal": False}),
            ("f32", "fused", True, {"queries": 1, "causal": False}),
        )
    ),
    *(
        ("transformer-block", {**LAYER, "dtype": dtype, "form": form, "dynamic": dynamic})
        for dtype, form, dynamic in (("f32", "fused", True), ("f16", "decomposed", False))
    ),
    *(("layer-norm", {"sequence": 5, "width": 33, "dtype": d, "dynamic": d == "f32"}) for d in ("f32", "bf16")),
    *(("softmax-matmul-gelu", {**PRODUCT, "dtype": d, "dynamic": d == "f32"}) for d in ("f32", "f16")),
    *(("quantized-matmul", {**PRODUCT, "dynamic": dynamic}) for dynamic in (False, True)),
    *(
        ("matmul", {**PRODUCT, "dtype": dtype, "right": right, "dynamic": dynamic})
        for dtype, dynamic in (("f32", ""), ("f16", "m"), ("bf16", ""), ("i8", "m"))
        for right in ("argument", "constant")
    ),
]
EXAMPLE = pytest.mark.parametrize(("name", "params"), EXAMPLES)


def built(name: str, params: dict[str, Any], **changes: Any) -> BuiltModel:
    found = find_builder(name)
    model = found.build(check_params(found, {**params, **changes}))
    assert isinstance(model, BuiltModel)
    return model


@EXAMPLE
def test_it_computes_the_same_in_mlir_and_in_onnx(
    name: str, params: dict[str, Any], make: Make, run_main: RunMain
) -> None:
    """Of types in which ONNX Runtime has no product, what the same weights and inputs give in f32."""
    artifact = make(name, **params)
    has_products = {"f32", "i8", *(["f16"] if name == "matmul" else [])}
    dtype = params.get("dtype", "f32")
    assert (artifact.onnx is not None) == (dtype in has_products)
    twin = artifact.onnx or make(name, **{**params, "dtype": "f32"}).onnx
    assert twin is not None
    inputs = [load_argument(argument) for argument in artifact.arguments]
    (right,) = run_onnx(twin, inputs if artifact.onnx else [values.astype(np.float32) for values in inputs])
    (output,) = run_main(artifact)
    assert output.dtype == right.dtype or not artifact.onnx
    rounding = {"bf16": 0.05, "f16": 0.01 if artifact.onnx is None else 1e-5, "i8": 0.0}.get(dtype, 1e-5)
    np.testing.assert_allclose(output, right, rtol=rounding, atol=rounding)
    assert np.count_nonzero(output) > output.size // 4
    assert ("?" in artifact.mlir.read_text()) == bool(params.get("dynamic"))


def test_a_norm_by_the_root_mean_square_neither_subtracts_nor_adds(make: Make, run_main: RunMain) -> None:
    artifact = make("layer-norm", kind="rms", sequence=5, width=33, seed=3)
    x, weight = (load_argument(argument) for argument in artifact.arguments)
    (output,) = run_main(artifact)
    np.testing.assert_allclose(output, x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + 1e-5) * weight, rtol=1e-5)


@EXAMPLE
def test_equal_parameters_give_equal_bytes_and_another_seed_other_weights_only(
    name: str, params: dict[str, Any]
) -> None:
    text, same, other = (str(built(name, params, seed=seed).text) for seed in (3, 3, 4))
    assert text == same
    without_weights = re.sub('"0x[0-9a-f]+"', "", text)
    assert without_weights == re.sub('"0x[0-9a-f]+"', "", other)
    assert (text == other) == (text == without_weights)  # a program without weights has seeded arguments only
    with ir.Context():
        assert ir.Module.parse(text).operation.verify()


def test_on_one_device_and_on_two_it_computes_the_same(make: Make, run_main: RunMain) -> None:
    one, two = ("dev_a=local[0]",), ("dev_a=local[0]", "dev_b=local[1]")
    for kind, targets in (("whole", one), ("pipeline", two), ("transfers", two)):
        artifact = make("two-devices", **{**TWO_DEVICES, "kind": kind, "batches": 2})
        (x,) = (load_argument(argument) for argument in artifact.arguments)
        for matrix, _ in weights(Parameters(layers=4, width=16, seed=3)):
            x = np.maximum(x @ matrix, 0)
        (output,) = run_main(artifact, targets=targets, uris=("local-sync", "local-task")[: len(targets)])
        np.testing.assert_allclose(output, x, rtol=1e-5, atol=1e-5)
        assert ("flow.tensor.transfer" in artifact.mlir.read_text()) == (kind != "whole")


def test_each_is_registered_under_its_own_name() -> None:
    points = entry_points(group=BUILDERS.group)
    names = {point.name for point in points if point.value.startswith("harness.models")}
    assert len(names) == 18
    assert {find_builder(name).name for name in names} == names


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "residual-dense-block",
        {"hieght": 4},
        "params.hieght is not a parameter of builder 'residual-dense-block'; did you mean \"height\"?",
    ),
    ("mlp", {"batch": -1}, "params.batch: input should be greater than or equal to 1, not '-1'"),
    ("attention", {"dtype": "i8"}, "params.dtype: input should be 'f32', 'f16' or 'bf16', not 'i8'"),
    (
        "attention",
        {"causal": True, "keys": 8},
        "params: queries is 256, of which the first would see none of 8 keys; give more keys, or fewer queries",
    ),
    ("matmul", {"dynamic": "km"}, "params.dynamic: string should match pattern '^m?n?k?$', not 'km'"),
    (
        "matmul",
        {"dynamic": "mnk", "right": "constant"},
        "params: dynamic is 'mnk', but of a constant n and k are known; write 'm' or ''",
    ),
    (
        "realesrgan-block",
        {"network": "x4plus-anime", "part": "rrdb", "which": 6},
        "params: which is 6, and x4plus-anime has 6 blocks of part 'rrdb'; give a number from 0 to 5",
    ),
]


@pytest.mark.parametrize(("name", "params", "message"), WRONG)
def test_wrong_parameters_are_named(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_params(find_builder(name), params, "[models.m] params")
    assert str(caught.value) == f"[models.m] {message}"
