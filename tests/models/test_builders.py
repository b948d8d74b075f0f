"""Builders: registered names, checked parameters, equal bytes, and programs that compute what they should.

Each builder of MLIR is held against its formula in numpy, with the weights that stand in its text, and against its
own form in ONNX.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from numpy.typing import NDArray

from harness.errors import SuiteError
from harness.models import BuiltModel, check_params, find_builder, load_argument
from harness.models.builder import BUILDERS
from harness.models.onnx_file import run_onnx
from harness.models.residual_dense_block import BUILDER
from tests.models.conftest import Make, RunMain
from tests.models.formulas import blocks, constants_of, convolution, layers, product, trunk, without_biases

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A small model of a builder's."""

    builder: str
    params: dict[str, Any]
    right: Callable[..., Array]  # Its result of the arguments in double precision, the constants and the parameters
    rounding: float = 1e-5  # How far it may be off, relative and absolute
    has_onnx: bool = True

    def built(self, **changes: Any) -> BuiltModel:
        """Its model, some parameters changed."""
        found = find_builder(self.builder)
        model = found.build(check_params(found, {**self.params, **changes}))
        assert isinstance(model, BuiltModel)
        return model

    def text(self, **changes: Any) -> str:
        """Its model's text."""
        return str(self.built(**changes).text)

    def expected(self, text: str, arrays: list[Array]) -> Array:
        """What the program of that text should give for these arguments."""
        return self.right(*(array.astype(np.float64) for array in arrays), constants_of(text), self.params)


BLOCK = {"height": 4, "width": 5, "channels": 8, "growth": 4, "seed": 3}
PRODUCT = {"m": 9, "n": 13, "k": 21, "seed": 3}
EXAMPLES = {
    "blocks": Example(builder="residual-dense-block", params={**BLOCK, "blocks": 2}, right=blocks),
    "a block of other channels": Example(
        builder="residual-dense-block", params={**BLOCK, "channels": 3, "growth": 5, "blocks": 1}, right=blocks
    ),
    "trunk": Example(builder="rrdb-trunk", params={**BLOCK, "channels": 4, "growth": 2, "blocks": 2}, right=trunk),
    **{
        f"layers of {dtype}, {form}, {width} wide": Example(
            builder="mlp",
            params={"layers": 2, "width": width, "batch": 8, "dtype": dtype, "form": form, "seed": 3},
            right=layers,
            rounding=1e-5 if dtype == "f32" else 0.03,  # of 8 bits, to which sums are rounded more than once
            has_onnx=dtype == "f32",
        )
        for dtype in ("f32", "bf16")
        for form, width in (("pytorch", 16), ("mlir-gen", 80))  # 80 floats are a resource, 16 are written in place
    },
    **{
        f"convolution, {form}": Example(
            builder="channelled-convolution",
            params={"batch": 2, "height": 4, "width": 5, "channels_in": 3, "channels_out": 6, "form": form, "seed": 3},
            right=convolution,
        )
        for form in ("named", "generic")
    },
    **{
        f"product of {dtype} by {right}": Example(
            builder="matmul",
            params={**PRODUCT, "dtype": dtype, "right": right, "dynamic": dynamic},
            right=product,
            rounding=0 if dtype == "i8" else 1e-5,
            has_onnx=dtype != "bf16",
        )
        for dtype, dynamic in (("f32", ""), ("f16", "m"), ("bf16", ""), ("i8", "m"))
        for right in ("argument", "constant")
    },
    "layers on two devices": Example(
        builder="two-devices",
        params={"kind": "whole", "layers": 4, "width": 16, "rows": 4, "seed": 3},
        right=without_biases,
        has_onnx=False,
    ),
}
EXAMPLE = pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))


@EXAMPLE
def test_it_computes_what_it_should_in_mlir_and_in_onnx(example: Example, make: Make, run_main: RunMain) -> None:
    artifact = make(example.builder, **example.params)
    arrays = [load_argument(argument) for argument in artifact.arguments]
    expected = example.expected(artifact.mlir.read_text(), arrays)
    targets = ("dev_a=local[0]",) if example.builder == "two-devices" else ("local",)
    outputs = run_main(artifact, targets=targets)
    assert (artifact.onnx is not None) == example.has_onnx
    if artifact.onnx is not None:
        outputs += run_onnx(artifact.onnx, arrays)
    for output in outputs:
        assert output.dtype == (np.int32 if example.params.get("dtype") == "i8" else np.float32)
        np.testing.assert_allclose(output, expected, rtol=example.rounding, atol=example.rounding)
    assert np.count_nonzero(outputs[0]) > outputs[0].size // 4


@EXAMPLE
def test_equal_parameters_give_equal_bytes_and_another_seed_other_weights_only(example: Example) -> None:
    text, same, other = (example.text(seed=seed) for seed in (3, 3, 4))
    assert text == same
    without_weights = re.sub('"0x[0-9a-f]+"', "", text)
    assert without_weights == re.sub('"0x[0-9a-f]+"', "", other)
    assert (text == other) == (text == without_weights)  # a program without weights has seeded arguments only
    assert example.built(seed=3).inputs != example.built(seed=4).inputs
    with ir.Context():
        assert ir.Module.parse(text).operation.verify()


@pytest.mark.parametrize("kind", ["pipeline", "transfers"])
def test_on_two_devices_it_computes_the_same(make: Make, run_main: RunMain, kind: str) -> None:
    example = EXAMPLES["layers on two devices"]
    artifact = make(example.builder, **{**example.params, "kind": kind, "batches": 2})
    (x,) = (load_argument(argument) for argument in artifact.arguments)
    (output,) = run_main(artifact, targets=("dev_a=local[0]", "dev_b=local[1]"), uris=("local-sync", "local-task"))
    np.testing.assert_allclose(output, example.expected(artifact.mlir.read_text(), [x]), rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------------------------------ names and parameters


def test_each_is_registered_under_its_own_name() -> None:
    points = entry_points(group=BUILDERS.group)
    names = {point.name for point in points if point.value.startswith("harness.models")}
    assert len(names) == 13
    assert {find_builder(name).name for name in names} == names
    assert find_builder("residual-dense-block") is BUILDER


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "residual-dense-block",
        {"hieght": 4},
        "params.hieght is not a parameter of builder 'residual-dense-block'; did you mean \"height\"?",
    ),
    ("mlp", {"batch": -1}, "params.batch: input should be greater than or equal to 1, not '-1'"),
    ("mlp", {"dtype": "f16"}, "params.dtype: input should be 'f32' or 'bf16', not 'f16'"),
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
