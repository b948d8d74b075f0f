"""Transpositions in front of matrix products: constants stored transposed, or other indexing maps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir
from iree.compiler.dialects import arith

from harness.rewrites.operations import transposed
from tests.rewrites.ingress_programs import MAPS, Compiled, assert_left_alone, assert_rewritten, rewrite

NAMED = "linalg.transpose ins({0} : {1}) outs(%empty : {2}) permutation = [1, 0]"
# As older exporters write it; the loops may be those of the operand or those of the result.
BY_OPERAND, BY_RESULT = (
    f'linalg.generic {{{{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}}} '
    "ins({0} : {1}) outs(%empty : {2}) {{ ^bb0(%in: {3}, %out: {3}): linalg.yield %in : {3} }} -> {2}"
    for maps in ("#whole, #turned", "#turned, #whole")
)


def layer(weight: str, product: str, element_type: str = "f32", *, blobs: str = "", more: str = "") -> str:
    """A matrix product of x by `%turned`, which `weight` defines."""
    x, y = f"tensor<4x3x{element_type}>", f"tensor<4x2x{element_type}>"
    return f"""{MAPS}
func.func @main(%x: {x}, %w: tensor<2x3x{element_type}>, %init: {y}) -> {y} {{
  {weight}
  {more}
  %y = {product} outs(%init : {y}) -> {y}
  return %y : {y}
}}
{blobs}"""


def by(name: str, shape: str = "3x2", element_type: str = "f32") -> str:
    return f"linalg.matmul ins(%x, {name} : tensor<4x3x{element_type}>, tensor<{shape}x{element_type}>)"


def turn(form: str, operand: str, element_type: str = "f32") -> str:
    old, new = f"tensor<2x3x{element_type}>", f"tensor<3x2x{element_type}>"
    return f"%empty = tensor.empty() : {new}\n%turned = {form.format(operand, old, new, element_type)}"


@pytest.mark.parametrize("form", [NAMED, BY_OPERAND, BY_RESULT])
@pytest.mark.parametrize(
    ("element_type", "stored", "turned"),
    [
        (
            "f32",
            "dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 0x7F800000]]>",
            "dense<[[1.0, 4.0], [2.0, 5.0], [3.0, 0x7F800000]]>",
        ),
        ("bf16", "dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 1.1]]>", "dense<[[1.0, 4.0], [2.0, 5.0], [3.0, 1.1]]>"),
        ("bf16", "dense<1.4>", "dense<1.4>"),
        ("i4", "dense<[[1, 2, 3], [4, 5, -6]]>", "dense<[[1, 4], [2, 5], [3, -6]]>"),
    ],
)
def test_a_constant_is_stored_transposed(form: str, element_type: str, stored: str, turned: str) -> None:
    constant = f"%weight = arith.constant {stored} : tensor<2x3x{element_type}>"
    product = by("%turned", element_type=element_type)
    before = layer(f"{constant}\n{turn(form, '%weight', element_type)}", product, element_type)
    after = layer(f"%turned = arith.constant {turned} : tensor<3x2x{element_type}>", product, element_type)
    assert_rewritten(before, after, "fold_transpose", places=1)


@pytest.mark.parametrize(
    ("element_type", "stored", "turned"),
    [
        ("bf16", "02000000803F0040404080400A00C040", "02000000803F804000400A004040C040"),
        ("i8", "01000000010203040506", "01000000010402050306"),
    ],
)
def test_a_resource_is_stored_transposed(element_type: str, stored: str, turned: str) -> None:
    product = by("%turned", element_type=element_type)
    before, after = (
        layer(
            weight,
            product,
            element_type,
            blobs=f'{{-# dialect_resources: {{ builtin: {{ {name}: "0x{blob}" }} }} #-}}',
        )
        for name, blob, weight in [
            (
                "w",
                stored,
                f"%weight = arith.constant dense_resource<w> : tensor<2x3x{element_type}>\n"
                + turn(NAMED, "%weight", element_type),
            ),
            (
                "w_transposed",
                turned,
                f"%turned = arith.constant dense_resource<w_transposed> : tensor<3x2x{element_type}>",
            ),
        ]
    )
    assert_rewritten(before, after, "fold_transpose", places=1)


def test_equal_transpositions_share_one_resource() -> None:
    twice = "%weight = arith.constant dense_resource<w> : tensor<2x3xf32>\n" + turn(NAMED, "%weight")
    again = NAMED.format("%weight", "tensor<2x3xf32>", "tensor<3x2xf32>")
    second = f"%again = {again}\n%y2 = {by('%again')} outs(%init : tensor<4x2xf32>) -> tensor<4x2xf32>"
    blob = f'{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{"00" * 24}" }} }} #-}}'
    text = layer(twice, by("%turned"), blobs=blob, more=second)
    matched, rewritten = rewrite(text.replace("return %y ", "return %y2 "), "fold_transpose")
    assert matched == 2
    assert re.findall(r"(\w+): \"0x", rewritten) == ["w_transposed"]


def test_a_resource_without_values_is_read_through() -> None:
    text = layer(
        "%weight = arith.constant dense_resource<w> : tensor<2x3xf32>\n" + turn(NAMED, "%weight"), by("%turned")
    )
    matched, rewritten = rewrite(text, "fold_transpose")
    assert matched == 1
    assert "dense_resource<w> : tensor<2x3xf32>" in rewritten
    assert "linalg.transpose" not in rewritten


@pytest.mark.parametrize("form", [NAMED, BY_OPERAND, BY_RESULT])
def test_another_weight_is_read_through_indexing_maps(form: str) -> None:
    maps = "indexing_maps = [#left, #right_turned, #product]"
    after = layer("", by("%w", "2x3").replace("matmul", f"matmul {maps}"))
    assert_rewritten(layer(turn(form, "%w"), by("%turned")), after, "fold_transpose", places=1)


GENERIC = """linalg.generic
    {{indexing_maps = [#left, {0}, #product], iterator_types = ["parallel", "parallel", "reduction"]}}
    ins(%x, {1} : tensor<4x3xf32>, tensor<{2}xf32>) outs(%init : tensor<4x2xf32>) {{
^bb0(%in: f32, %in_0: f32, %out: f32):
  %multiplied = arith.mulf %in, %in_0 : f32
  %sum = arith.addf %out, %multiplied : f32
  linalg.yield %sum : f32
}}"""


def test_a_product_written_as_generic_counts_as_well() -> None:
    before, after = (
        layer(weight, GENERIC.format(*product)).replace("} outs(%init : tensor<4x2xf32>) ->", "} ->")
        for weight, product in [(turn(NAMED, "%w"), ("#right", "%turned", "3x2")), ("", ("#right_turned", "%w", "2x3"))]
    )
    assert_rewritten(before, after, "fold_transpose", places=1)


BATCHES = """
func.func @main(%x: tensor<5x4x3xf32>, %w: tensor<5x2x3xf32>, %v: tensor<3x5x2xf32>, %init: tensor<5x4x2xf32>)
    -> tensor<5x4x2xf32> {{
  %empty = tensor.empty() : tensor<5x3x2xf32>
  %turned = linalg.transpose ins({0}) outs(%empty : tensor<5x3x2xf32>) permutation = {1}
  %y = linalg.batch_matmul ins(%x, %turned : tensor<5x4x3xf32>, tensor<5x3x2xf32>) outs(%init : tensor<5x4x2xf32>)
      -> tensor<5x4x2xf32>
  return %y : tensor<5x4x2xf32>
}}
"""


def test_of_a_batch_the_last_two_dimensions_may_be_swapped() -> None:
    matched, text = rewrite(BATCHES.format("%w : tensor<5x2x3xf32>", "[0, 2, 1]"), "fold_transpose")
    assert matched == 1
    assert "affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>" in text
    assert "linalg.transpose" not in text


def test_of_a_batch_other_permutations_need_the_generic_form() -> None:
    text = BATCHES.format("%v : tensor<3x5x2xf32>", "[1, 0, 2]")
    assert_left_alone(text, "fold_transpose")
    _, generic = rewrite(text, "generic_matmul")
    matched, folded = rewrite(generic, "fold_transpose")
    assert matched == 1
    assert "affine_map<(d0, d1, d2, d3) -> (d3, d0, d2)>" in folded


def test_transpositions_for_other_readers_stay() -> None:
    other = "%other = math.absf %turned : tensor<3x2xf32>"
    assert_left_alone(layer(turn(NAMED, "%w"), by("%turned"), more=other), "fold_transpose")


def test_a_transposed_init_stays() -> None:
    text = f"""{MAPS}
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {{
  %empty = tensor.empty() : tensor<2x2xf32>
  %turned = linalg.transpose ins(%c : tensor<2x2xf32>) outs(%empty : tensor<2x2xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%turned : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}}
"""
    assert_left_alone(text, "fold_transpose")


def test_two_transpositions_in_a_row_both_go() -> None:
    back = "linalg.transpose ins(%w : tensor<2x3xf32>) outs(%empty_0 : tensor<3x2xf32>) permutation = [1, 0]"
    text = f"""{MAPS}
func.func @main(%x: tensor<4x2xf32>, %w: tensor<2x3xf32>, %init: tensor<4x3xf32>) -> tensor<4x3xf32> {{
  %empty_0 = tensor.empty() : tensor<3x2xf32>
  %once = {back}
  %empty = tensor.empty() : tensor<2x3xf32>
  %twice = linalg.transpose ins(%once : tensor<3x2xf32>) outs(%empty : tensor<2x3xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %twice : tensor<4x2xf32>, tensor<2x3xf32>) outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}}
"""
    after = f"""{MAPS}
func.func @main(%x: tensor<4x2xf32>, %w: tensor<2x3xf32>, %init: tensor<4x3xf32>) -> tensor<4x3xf32> {{
  %y = linalg.matmul ins(%x, %w : tensor<4x2xf32>, tensor<2x3xf32>) outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}}
"""
    assert_rewritten(text, after, "fold_transpose", places=2)


def test_reading_through_computes_the_same() -> None:
    rng = np.random.default_rng(0)
    x, w, init = (rng.standard_normal(shape, dtype=np.float32) for shape in [(4, 3), (2, 3), (4, 2)])
    before = layer(turn(NAMED, "%w"), by("%turned"))
    outputs = [Compiled(text)("main", x, w, init) for text in (before, rewrite(before, "fold_transpose")[1])]
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(outputs[1], x @ w.T + init, rtol=1e-5, atol=1e-5)


def resource_bytes(resource: Any) -> bytes:
    """A resource's values, after the four bytes of its alignment."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        arith.ConstantOp(resource.type, resource)
    blob = re.search('"0x([0-9A-F]+)"', str(module))
    assert blob is not None
    return bytes.fromhex(blob[1])[4:]


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    dtype=st.sampled_from([np.float32, np.float16, np.float64, np.int8, np.int64]),
    as_resource=st.booleans(),
    data=st.data(),
)
def test_constants_are_permuted_as_numpy_permutes(
    shape: list[int], dtype: type[np.generic], as_resource: bool, data: st.DataObject
) -> None:
    """Dense ones as far as MLIR prints them as numbers, larger ones, which it prints as bytes, and resources."""
    permutation = data.draw(st.permutations(range(len(shape))))
    values = np.random.default_rng(0).integers(-100, 100, size=shape).astype(dtype)
    expected = values.transpose(permutation)
    with ir.Context(), ir.Location.unknown():
        dense = ir.DenseElementsAttr.get(values)
        result = ir.RankedTensorType.get(expected.shape, dense.type.element_type)
        if as_resource:
            resource = ir.DenseResourceElementsAttr.get_from_buffer(values, "a weight", dense.type)
            turned = transposed(resource, permutation, result)
            assert resource_bytes(turned) == expected.tobytes()
        else:
            turned = transposed(dense, permutation, result)
            np.testing.assert_array_equal(np.array(turned), expected)
        assert turned is not None
        assert turned.type == result


@pytest.mark.parametrize("weight", ["dense_resource<gone> : tensor<2x3xf32>", "dense<> : tensor<0x3xf32>"])
def test_values_that_cannot_be_got_at_stay(weight: str) -> None:
    with ir.Context():
        value = ir.Attribute.parse(weight)
        assert transposed(value, [0, 1], value.type) is None


def test_complex_constants_are_left_alone() -> None:
    element_type = "complex<f32>"
    constant = f"%weight = arith.constant dense<(1.0, 2.0)> : tensor<2x3x{element_type}>"
    other = f"%other = tensor.cast %turned : tensor<3x2x{element_type}> to tensor<?x2x{element_type}>"
    product = by("%turned", element_type=element_type)
    text = layer(f"{constant}\n{turn(NAMED, '%weight', element_type)}", product, element_type, more=other)
    assert_left_alone(text, "fold_transpose")
