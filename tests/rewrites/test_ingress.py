"""From the MLP that PyTorch exports to the one that tpp-mlir generates, one difference at a time.

https://github.com/plaidml/tpp-mlir lists the differences in the issue "PyTorch MLP doesn't fuse XSMM".
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.inputs import bf16_bits
from harness.models.mlp import Parameters, build
from tests.rewrites.ingress_programs import OPTIONS, Array, Compiled, assert_left_alone, printed, rewrite

PLACES = {"fill_init": 2, "outs_style": 2, "fold_transpose": 1, "generic_matmul": 1, "relu_to_maximum": 1}  # a layer
DTYPES = ["f32", "bf16"]
LAYERS = 2


@cache
def mlp(form: Literal["pytorch", "mlir-gen"], dtype: Literal["f32", "bf16"] = "f32") -> str:
    text = build(Parameters(form=form, dtype=dtype, layers=LAYERS, width=48, batch=8)).text
    assert isinstance(text, str)
    return text


def without_suffix(text: str) -> str:
    """Under the weights' own names."""
    return text.replace("_transposed", "")


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_together_give_the_generated_form(dtype: Literal["f32", "bf16"]) -> None:
    """Not only the same operations: the same text, weights included."""
    matched, text = rewrite(mlp("pytorch", dtype), *OPTIONS)
    assert without_suffix(text) == printed(mlp("mlir-gen", dtype))
    assert matched == LAYERS * sum(PLACES.values())


@settings(max_examples=10)
@given(order=st.permutations(OPTIONS))
def test_one_after_the_other_in_any_order_gives_the_same(order: list[str]) -> None:
    text = mlp("pytorch")
    for option in order:
        _, text = rewrite(text, option)
    assert without_suffix(text) == printed(mlp("mlir-gen"))


@pytest.mark.parametrize("option", OPTIONS)
def test_each_alone_matches_its_own_places(option: str) -> None:
    matched, text = rewrite(mlp("pytorch"), option)
    assert matched == LAYERS * PLACES[option]
    assert text != printed(mlp("pytorch"))


def test_the_generated_form_is_left_alone() -> None:
    assert_left_alone(mlp("mlir-gen"), *OPTIONS)


def test_none_changes_nothing() -> None:
    assert_left_alone(mlp("pytorch"))


@settings(max_examples=10)
@given(options=st.sets(st.sampled_from(OPTIONS)))
def test_a_second_time_finds_nothing_more(options: set[str]) -> None:
    _, once = rewrite(mlp("pytorch"), *options)
    assert_left_alone(once, *options)


@pytest.fixture(scope="module", params=DTYPES)
def exported(request: pytest.FixtureRequest) -> tuple[Literal["f32", "bf16"], Array, Array]:
    """An element type, an input, and what the MLP computes from it as PyTorch exports it."""
    x: Array = np.random.default_rng(1).standard_normal((8, 48), dtype=np.float32)
    if request.param == "bf16":
        x = bf16_bits(x)
    return request.param, x, Compiled(mlp("pytorch", request.param))("main", x)


@pytest.mark.parametrize("option", ["fill_init", "outs_style", "generic_matmul", "relu_to_maximum"])
def test_each_alone_leaves_every_bit(exported: tuple[Literal["f32", "bf16"], Array, Array], option: str) -> None:
    dtype, x, expected = exported
    _, text = rewrite(mlp("pytorch", dtype), option)
    np.testing.assert_array_equal(Compiled(text)("main", x), expected)


@pytest.mark.parametrize("options", [["fold_transpose"], OPTIONS])
def test_another_layout_leaves_the_numbers_up_to_rounding(
    exported: tuple[Literal["f32", "bf16"], Array, Array], options: list[str]
) -> None:
    dtype, x, expected = exported
    _, text = rewrite(mlp("pytorch", dtype), *options)
    output = Compiled(text)("main", x)
    if dtype == "f32":
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    else:  # counted in steps from one bf16 to the next; all are positive
        assert np.abs(output.astype(int) - expected.astype(int)).max() <= 4
