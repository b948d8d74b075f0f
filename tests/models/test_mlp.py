"""The multi-layer perceptron: its two forms, its numbers, and what they depend on."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.models import load_argument
from harness.models.inputs import bf16_bits, from_bf16_bits
from harness.models.mlp import Parameters, build
from harness.models.model import Input
from tests.models.conftest import Make, RunMain

Array = NDArray[Any]

FORMS = ["pytorch", "mlir-gen"]
DTYPES = ["f32", "bf16"]


def text_of(**params: Any) -> str:
    return str(build(Parameters(**params)).text)


def weights_of(text: str) -> list[Array]:
    """Each layer's bias and weight as the text holds them, as f32 values."""
    blobs = dict(re.findall(r'(\w+): "0x0\d000000([0-9a-f]+)"', text))
    found = []
    for blob, name, shape, dtype in re.findall(
        r'arith\.constant dense(?:<"0x([0-9a-f]+)">|_resource<(\w+)>) : tensor<([\dx]+)x(\w+)>', text
    ):
        values = np.frombuffer(bytes.fromhex(blob or blobs[name]), "<u2" if dtype == "bf16" else "<f4")
        found.append(
            (from_bf16_bits(values) if dtype == "bf16" else values).reshape([int(size) for size in shape.split("x")])
        )
    return found


def reference(x: Array, text: str, *, transposed: bool) -> Array:
    """The layers in double precision."""
    biases_and_weights = weights_of(text)
    y = x.astype(np.float64)
    for bias, weight in zip(biases_and_weights[::2], biases_and_weights[1::2], strict=True):
        y = np.maximum(y @ (weight.T if transposed else weight).astype(np.float64) + bias, 0)
    return y


@pytest.mark.parametrize("width", [16, 80], ids=["weights_in_place", "weights_as_resources"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_forms_compute_the_same(make: Make, run_main: RunMain, dtype: str, width: int) -> None:
    # bf16 has 8 bits, and what is summed is rounded to it more than once.
    rounding = 1e-5 if dtype == "f32" else 0.03
    outputs = []
    for form in FORMS:
        artifact = make("mlp", layers=2, width=width, batch=8, dtype=dtype, form=form, seed=3)
        outputs += run_main(artifact)
        x, text = load_argument(artifact.arguments[0]), artifact.mlir.read_text()
        expected = reference(x, text, transposed=form == "pytorch")
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


def test_default_sizes_are_those_of_the_issue() -> None:
    model = build(Parameters())
    assert isinstance(model.text, str)
    assert model.text.count("ins(%arg0, ") == 1
    assert "tensor<256x1024xf32>, tensor<1024x1024xf32>) outs" in model.text
    assert model.inputs == (Input(shape=(256, 1024), dtype="f32"),)


def test_values_stay_of_order_1() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64))
    y = reference(x, text_of(layers=30, width=64), transposed=True)
    assert 0.2 < float(np.sqrt(np.mean(y**2))) < 5


def test_bf16_rounds_to_nearest_and_ties_to_even() -> None:
    values = np.array([0x3F80_0000, 0x3F80_8000, 0x3F81_8000, 0x3F80_8001, 0xBF80_7FFF, 0x0000_0001], np.uint32)
    rounded = bf16_bits(values.view(np.float32))
    assert [hex(bits) for bits in rounded] == ["0x3f80", "0x3f80", "0x3f82", "0x3f81", "0xbf80", "0x0"]
