"""The multi-layer perceptron: its two forms, its numbers, and what they depend on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from numpy.typing import NDArray

from harness import process
from harness.errors import SuiteError
from harness.models import Argument, check_params, find_builder, load_argument
from harness.models.inputs import bf16_bits, write_arguments
from harness.models.mlp import BUILDER, Parameters, build
from harness.models.model import Input
from harness.toolchain import Toolchain
from harness.verify.outputs import run_command, run_once

Array = NDArray[Any]

LIMITS = process.Limits(seconds=120)
FORMS = ["pytorch", "mlir-gen"]
DTYPES = ["f32", "bf16"]


def text_of(**params: Any) -> str:
    text = build(Parameters(**params)).text
    assert isinstance(text, str)
    return text


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def weights_of(text: str) -> list[Array]:
    """Each layer's bias and weight as the text holds them, as f32 values."""
    blobs = dict(re.findall(r'(\w+): "0x0\d000000([0-9a-f]+)"', text))
    found = []
    for blob, name, shape, dtype in re.findall(
        r'arith\.constant dense(?:<"0x([0-9a-f]+)">|_resource<(\w+)>) : tensor<([\dx]+)x(\w+)>', text
    ):
        values = np.frombuffer(bytes.fromhex(blob or blobs[name]), "<u2" if dtype == "bf16" else "<f4")
        found.append(
            (from_bf16(values) if dtype == "bf16" else values).reshape([int(size) for size in shape.split("x")])
        )
    return found


def reference(x: Array, text: str, *, transposed: bool) -> Array:
    """The layers in double precision."""
    biases_and_weights = weights_of(text)
    y = x.astype(np.float64)
    for bias, weight in zip(biases_and_weights[::2], biases_and_weights[1::2], strict=True):
        y = np.maximum(y @ (weight.T if transposed else weight).astype(np.float64) + bias, 0)
    return y


def compile_and_run(text: str | bytes, argument: Argument, toolchain: Toolchain) -> Array:
    """The output for the argument, as f32 values."""
    folder = argument.file.parent
    (folder / "model.mlir").write_text(str(text))
    flags = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ]
    command = [str(toolchain.iree_compile), *flags, "model.mlir", "-o", "module.vmfb"]
    compiled = process.run(command, cwd=folder, limits=LIMITS)
    assert compiled.ok, compiled.stderr
    once = run_command(
        function="main", inputs=[argument.flag], parameters=[], uri="local-sync", run_flags=[], outputs=1
    )
    (output,) = run_once(toolchain, once, folder, limits=LIMITS, cpus=None)
    return output


@pytest.mark.parametrize("width", [16, 80], ids=["weights_in_place", "weights_as_resources"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_forms_compute_the_same(tmp_path: Path, toolchain: Toolchain, dtype: str, width: int) -> None:
    # bf16 has 8 bits, and what is summed is rounded to it more than once.
    rounding = 1e-5 if dtype == "f32" else 0.03
    outputs = []
    for form in FORMS:
        params = {"layers": 2, "width": width, "batch": 8, "dtype": dtype, "form": form, "seed": 3}
        model = build(check_params(BUILDER, params))
        (argument,) = write_arguments(model.inputs, tmp_path)
        outputs.append(compile_and_run(model.text, argument, toolchain))
        expected = reference(load_argument(argument), str(model.text), transposed=form == "pytorch")
        np.testing.assert_allclose(outputs[-1], expected, rtol=rounding, atol=rounding)
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=rounding, atol=rounding)


def test_the_forms_differ_in_layout_and_not_in_weights() -> None:
    exported, generated = (weights_of(text_of(layers=2, width=24, form=form)) for form in FORMS)
    assert len(exported) == len(generated) == 2 * 2
    assert all(np.array_equal(values.T, turned) for values, turned in zip(exported, generated, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("form", "counts"),
    [
        ("pytorch", {"linalg.transpose ": 1, "linalg.matmul ": 1, "linalg.generic ": 2, "arith.cmpf ugt": 1}),
        ("mlir-gen", {"linalg.transpose ": 0, "linalg.matmul ": 0, "linalg.generic ": 3, "arith.maximumf ": 1}),
    ],
)
def test_operations_are_those_of_the_issue(form: str, counts: dict[str, int], dtype: str) -> None:
    text = text_of(layers=3, width=8, batch=2, form=form, dtype=dtype)
    assert {what: text.count(what) for what in counts} == {what: 3 * count for what, count in counts.items()}
    assert text.count("linalg.fill ") == 1
    with ir.Context():
        assert ir.Module.parse(text).operation.verify()


def test_default_sizes_are_those_of_the_issue() -> None:
    model = build(Parameters())
    assert isinstance(model.text, str)
    assert model.text.count("ins(%arg0, ") == 1
    assert "tensor<256x1024xf32>, tensor<1024x1024xf32>) outs" in model.text
    assert model.inputs == (Input(shape=(256, 1024), dtype="f32"),)


def test_equal_parameters_give_equal_bytes_and_another_seed_other_weights_only() -> None:
    one, other = text_of(width=12), text_of(width=12, seed=1)
    assert text_of(width=12) == one
    assert other != one
    assert re.sub('"0x[0-9a-f]+"', "", other) == re.sub('"0x[0-9a-f]+"', "", one)


def test_values_stay_of_order_1() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64))
    y = reference(x, text_of(layers=30, width=64), transposed=True)
    assert 0.2 < float(np.sqrt(np.mean(y**2))) < 5


def test_bf16_rounds_to_nearest_and_ties_to_even() -> None:
    values = np.array([0x3F80_0000, 0x3F80_8000, 0x3F81_8000, 0x3F80_8001, 0xBF80_7FFF, 0x0000_0001], np.uint32)
    rounded = bf16_bits(values.view(np.float32))
    assert [hex(one) for one in rounded] == ["0x3f80", "0x3f80", "0x3f82", "0x3f81", "0xbf80", "0x0"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"layers": 0}, "params.layers: input should be greater than or equal to 1, not '0'"),
        ({"width": 0}, "params.width: input should be greater than or equal to 1, not '0'"),
        ({"batch": -1}, "params.batch: input should be greater than or equal to 1, not '-1'"),
        ({"dtype": "f16"}, "params.dtype: input should be 'f32' or 'bf16', not 'f16'"),
        ({"form": "onnx"}, "params.form: input should be 'pytorch' or 'mlir-gen', not 'onnx'"),
        ({"seed": -1}, "params.seed: input should be greater than or equal to 0, not '-1'"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_params(BUILDER, params)
    assert str(caught.value) == message


def test_it_is_registered() -> None:
    assert find_builder("mlp") is BUILDER
