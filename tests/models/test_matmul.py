"""The product builder: its numbers, what the compiler knows of its sizes, and its ONNX form."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from numpy.typing import NDArray

from harness.models import check_params, load_argument
from harness.models.inputs import from_bf16_bits
from harness.models.matmul import BUILDER, Parameters, build, right_constant
from harness.models.model import Input
from harness.models.onnx_file import run_onnx
from tests.models.conftest import Make, RunMain

Array = NDArray[Any]

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


def check_product(params: Parameters, arguments: list[Array], output: Array) -> None:
    is_whole = params.dtype == "i8"
    assert output.dtype == (np.int32 if is_whole else np.float32)
    np.testing.assert_allclose(output, product(params, arguments), rtol=1e-5, atol=0 if is_whole else 1e-5)


@pytest.mark.parametrize("right", ["argument", "constant"])
@pytest.mark.parametrize(("dtype", "dynamic"), [("f32", ""), ("f16", "m"), ("bf16", ""), ("i8", "m")])
def test_it_multiplies(make: Make, run_main: RunMain, dtype: str, dynamic: str, right: str) -> None:
    params = check_params(BUILDER, {**SIZES, "dtype": dtype, "dynamic": dynamic, "right": right, "seed": 3})
    artifact = make("matmul", **asdict(params))
    (output,) = run_main(artifact)
    arrays = [load_argument(argument) for argument in artifact.arguments]
    check_product(params, arrays, output)
    if dtype != "bf16":
        assert artifact.onnx is not None
        check_product(params, arrays, run_onnx(artifact.onnx, arrays)[0])


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
