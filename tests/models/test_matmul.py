"""The product builder: its numbers, what the compiler knows of its sizes, and its ONNX form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from numpy.typing import NDArray

from harness import process
from harness.errors import SuiteError
from harness.models import check_params, find_builder, load_argument
from harness.models.inputs import from_bf16_bits, make_array, write_arguments
from harness.models.matmul import BUILDER, Parameters, build, right_constant, write_onnx
from harness.models.model import Input
from harness.toolchain import Toolchain
from harness.verify.outputs import run_command, run_once

Array = NDArray[Any]

LIMITS = process.Limits(seconds=120)
LOCAL = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
SIZES: dict[str, Any] = {"m": 9, "n": 13, "k": 21}


def text_of(**params: Any) -> str:
    return str(build(Parameters(**params)).text)


def product(params: Parameters, arguments: list[Array]) -> NDArray[np.float64]:
    """In double precision; exact for whole numbers."""
    if params.right == "constant":
        elements = right_constant(params)
        arguments = [*arguments, from_bf16_bits(elements) if params.dtype == "bf16" else elements]
    left, right = arguments
    return np.asarray(left.astype(np.float64) @ right.astype(np.float64), dtype=np.float64)


@pytest.mark.parametrize("right", ["argument", "constant"])
@pytest.mark.parametrize(("dtype", "dynamic"), [("f32", ""), ("f16", "m"), ("bf16", ""), ("i8", "m")])
def test_it_multiplies(tmp_path: Path, toolchain: Toolchain, dtype: str, dynamic: str, right: str) -> None:
    params = check_params(BUILDER, {**SIZES, "dtype": dtype, "dynamic": dynamic, "right": right, "seed": 3})
    model = build(params)
    arguments = write_arguments(model.inputs, tmp_path)
    folder = arguments[0].file.parent
    (folder / "model.mlir").write_text(str(model.text))
    command = [str(toolchain.iree_compile), *LOCAL, "model.mlir", "-o", "module.vmfb"]
    compiled = process.run(command, cwd=folder, limits=LIMITS)
    assert compiled.ok, compiled.stderr
    inputs = [argument.flag for argument in arguments]
    once = run_command(function="main", inputs=inputs, parameters=[], uri="local-sync", run_flags=[], outputs=1)
    output: NDArray[Any] = run_once(toolchain, once, folder, limits=LIMITS, cpus=None)[0]
    assert output.dtype == (np.int32 if dtype == "i8" else np.float32)
    expected = product(params, [load_argument(argument) for argument in arguments])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=0 if dtype == "i8" else 1e-5)


@pytest.mark.parametrize("right", ["argument", "constant"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_its_onnx_form_is_the_same_function(dtype: str, right: str) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is an extra")
    params = check_params(BUILDER, {**SIZES, "dtype": dtype, "right": right})
    written = write_onnx(params)
    assert written == write_onnx(params)
    session = runtime.InferenceSession(written, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    arrays = [make_array(one) for one in params.inputs]
    (output,) = session.run(None, dict(zip(names, arrays, strict=True)))
    assert output.dtype == (np.int32 if dtype == "i8" else np.float32)
    np.testing.assert_allclose(output, product(params, arrays), rtol=1e-5, atol=1e-5)


def test_bf16_has_no_onnx_form() -> None:
    assert write_onnx(Parameters(dtype="bf16")) is None


@pytest.mark.parametrize(
    ("dynamic", "left", "right", "result"),
    [
        ("", "9x21xf32", "21x13xf32", "9x13xf32"),
        ("m", "?x21xf32", "21x13xf32", "?x13xf32"),
        ("k", "9x?xf32", "?x13xf32", "9x13xf32"),
        ("mn", "?x21xf32", "21x?xf32", "?x?xf32"),
        ("mnk", "?x?xf32", "?x?xf32", "?x?xf32"),
    ],
)
def test_sizes_that_the_compiler_does_not_know(dynamic: str, left: str, right: str, result: str) -> None:
    text = text_of(**SIZES, dynamic=dynamic)
    assert f"@main(%left: tensor<{left}>, %right: tensor<{right}>) -> tensor<{result}>" in text
    with ir.Context():
        assert ir.Module.parse(text).operation.verify()
    assert build(Parameters(**SIZES, dynamic=dynamic)).inputs == (
        Input(shape=(9, 21), dtype="f32", seed=0),
        Input(shape=(21, 13), dtype="f32", seed=1),
    )


@pytest.mark.parametrize(("dtype", "sums"), [("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32")])
def test_types_of_the_sums(dtype: str, sums: str) -> None:
    assert f"-> tensor<9x13x{sums}>" in text_of(**SIZES, dtype=dtype)


def test_a_constant_matrix_is_no_argument() -> None:
    model = build(Parameters(**SIZES, right="constant"))
    assert model.inputs == (Input(shape=(9, 21), dtype="f32", seed=0),)
    assert "dense_resource<right> : tensor<21x13xf32>" in str(model.text)
    # IREE 3.13 misreads small bf16 resources, so small constants are written in place.
    assert "dense_resource" not in text_of(m=2, n=3, k=4, right="constant", dtype="bf16")


def test_equal_parameters_give_equal_bytes_and_another_seed_another_constant() -> None:
    one = text_of(**SIZES, right="constant")
    assert text_of(**SIZES, right="constant") == one
    assert text_of(**SIZES, right="constant", seed=1) != one


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"m": 0}, "params.m: input should be greater than or equal to 1, not '0'"),
        ({"dtype": "f64"}, "params.dtype: input should be 'f32', 'f16', 'bf16' or 'i8', not 'f64'"),
        ({"dynamic": "km"}, "params.dynamic: string should match pattern '^m?n?k?$', not 'km'"),
        (
            {"dynamic": "mnk", "right": "constant"},
            "params: dynamic is 'mnk', but of a constant n and k are known; write 'm' or ''",
        ),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_params(BUILDER, params)
    assert str(caught.value) == message


def test_it_is_registered() -> None:
    assert find_builder("matmul") is BUILDER
