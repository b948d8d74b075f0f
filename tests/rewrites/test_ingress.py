"""From the MLP that PyTorch exports to the one that tpp-mlir generates, one difference at a time.

https://github.com/plaidml/tpp-mlir lists the differences in the issue "PyTorch MLP doesn't fuse XSMM".
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir
from iree.compiler.dialects import arith

from harness.models.inputs import bf16_bits
from harness.models.mlp import Parameters, build
from harness.rewrites.ingress import ingress_canonicalize
from harness.rewrites.operations import transposed
from tests.rewrites import tools
from tests.rewrites.tools import Array, Rewrite, printed, run

OPTIONS = ("fill_init", "outs_style", "fold_transpose", "generic_matmul", "relu_to_maximum")
# Of matrices: a whole one, a row for all rows, transposed; then those of a product.
MAPS = """
#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#right_turned = affine_map<(d0, d1, d2) -> (d1, d2)>
#product = affine_map<(d0, d1, d2) -> (d0, d1)>
"""
MATRIX = "tensor<4x4xf32>"


def only(*options: str) -> Rewrite:
    """The rewrite with these options on and the others off."""
    return partial(ingress_canonicalize, **{option: option in options for option in OPTIONS})


def rewrite(text: str, *options: str) -> tuple[int, str]:
    after, (matched,) = tools.rewritten(text, only(*options))
    return matched, after


def assert_rewritten(before: str, after: str, *options: str, places: int) -> None:
    tools.assert_rewritten(before, after, only(*options), places=places)


def assert_left_alone(text: str, *options: str) -> None:
    tools.assert_left_alone(text, only(*options))


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
    return request.param, x, run(mlp("pytorch", request.param), x)


@pytest.mark.parametrize("option", ["fill_init", "outs_style", "generic_matmul", "relu_to_maximum"])
def test_each_alone_leaves_every_bit(exported: tuple[Literal["f32", "bf16"], Array, Array], option: str) -> None:
    dtype, x, expected = exported
    _, text = rewrite(mlp("pytorch", dtype), option)
    np.testing.assert_array_equal(run(text, x), expected)


@pytest.mark.parametrize("options", [["fold_transpose"], OPTIONS])
def test_another_layout_leaves_the_numbers_up_to_rounding(
    exported: tuple[Literal["f32", "bf16"], Array, Array], options: list[str]
) -> None:
    dtype, x, expected = exported
    _, text = rewrite(mlp("pytorch", dtype), *options)
    output = run(text, x)
    if dtype == "f32":
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    else:  # counted in steps from one bf16 to the next; all are positive
        assert np.abs(output.astype(int) - expected.astype(int)).max() <= 4


# --------------------------------------------------------------------------------------------- fill_init and outs_style

ADD = """^bb0(%in: f32, %in_0: f32, %out: f32):
  %sum = arith.addf %in, %in_0 : f32
  linalg.yield %sum : f32
"""
RELU = """^bb0(%in: f32, %out: f32):
  %positive = arith.cmpf ugt, %in, %zero : f32
  %above = arith.select %positive, %in, %zero : f32
  linalg.yield %above : f32
"""

# A layer as PyTorch exports it, from the matmul on.
LAYER = f"""{MAPS}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zeros : tensor<4x16xf32>)
      -> tensor<4x16xf32>
  %sum = linalg.generic {{indexing_maps = [#row, #whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%bias, %product : tensor<16xf32>, tensor<4x16xf32>) outs(%empty : tensor<4x16xf32>) {{
  {ADD}}} -> tensor<4x16xf32>
  %relu = linalg.generic {{indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%sum : tensor<4x16xf32>) outs(%empty : tensor<4x16xf32>) {{
  {RELU}}} -> tensor<4x16xf32>
  return %relu : tensor<4x16xf32>
}}
"""


def test_a_fill_of_the_same_buffer_becomes_the_init_of_bias_and_relu() -> None:
    after = LAYER.replace("tensor<4x16xf32>) outs(%empty", "tensor<4x16xf32>) outs(%zeros")
    assert_rewritten(LAYER, after, "fill_init", places=2)


def test_bias_and_relu_update_the_result_before_them() -> None:
    after = f"""{MAPS}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zeros : tensor<4x16xf32>)
      -> tensor<4x16xf32>
  %sum = linalg.generic {{indexing_maps = [#row, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%bias : tensor<16xf32>) outs(%product : tensor<4x16xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %added = arith.addf %in, %out : f32
    linalg.yield %added : f32
  }} -> tensor<4x16xf32>
  %relu = linalg.generic {{indexing_maps = [#whole], iterator_types = ["parallel", "parallel"]}}
      outs(%sum : tensor<4x16xf32>) {{
  ^bb0(%out: f32):
    %positive = arith.cmpf ugt, %out, %zero : f32
    %above = arith.select %positive, %out, %zero : f32
    linalg.yield %above : f32
  }} -> tensor<4x16xf32>
  return %relu : tensor<4x16xf32>
}}
"""
    assert_rewritten(LAYER, after, "outs_style", places=2)
    assert_rewritten(LAYER, after, "fill_init", "outs_style", places=4)


def elementwise(init: str, element_type: str, body: str, *, before: str = "") -> str:
    """A function of two tensors of which an elementwise operation makes one."""
    tensor = f"tensor<?x16x{element_type}>"
    return f"""{MAPS}
func.func @main(%a: {tensor}, %b: {tensor}, %rows: index) -> {tensor} {{
  %empty = tensor.empty(%rows) : {tensor}
  {before}
  %result = linalg.generic {{indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %b : {tensor}, {tensor}) outs({init} : {tensor}) {{
  ^bb0(%in: {element_type}, %in_0: {element_type}, %out: {element_type}):
    {body}
  }} -> {tensor}
  return %result : {tensor}
}}
"""


@pytest.mark.parametrize(
    ("element_type", "zero", "operation"),
    [("bf16", "0.0", "arith.mulf"), ("i8", "0", "arith.addi"), ("i1", "false", "arith.xori")],
)
def test_where_there_is_no_fill_one_is_made(element_type: str, zero: str, operation: str) -> None:
    body = f"%new = {operation} %in, %in_0 : {element_type}\nlinalg.yield %new : {element_type}"
    tensor = f"tensor<?x16x{element_type}>"
    constant = "arith.constant false" if zero == "false" else f"arith.constant {zero} : {element_type}"
    fill = f"%zero = {constant}\n%zeros = linalg.fill ins(%zero : {element_type}) outs(%empty : {tensor}) -> {tensor}"
    before = elementwise("%empty", element_type, body)
    assert_rewritten(before, elementwise("%zeros", element_type, body, before=fill), "fill_init", places=1)


def test_a_fill_with_something_else_is_not_used() -> None:
    tensor = "tensor<?x16xf32>"
    ones = f"%one = arith.constant 1.0 : f32\n%ones = linalg.fill ins(%one : f32) outs(%empty : {tensor}) -> {tensor}"
    zeros = (
        f"%zero = arith.constant 0.0 : f32\n%zeros = linalg.fill ins(%zero : f32) outs(%empty : {tensor}) -> {tensor}"
    )
    body = "%new = arith.mulf %in, %in_0 : f32\nlinalg.yield %new : f32"
    before, after = (
        elementwise(init, "f32", body, before=fills)
        for init, fills in [("%empty", ones), ("%zeros", zeros + "\n" + ones)]
    )
    assert_rewritten(before, after, "fill_init", places=1)


@pytest.mark.parametrize(
    "body",
    [
        "linalg.yield %in : f32",  # a copy
        "%new = arith.addf %in, %out : f32\nlinalg.yield %new : f32",  # reads its init
    ],
)
def test_other_operations_keep_their_init(body: str) -> None:
    assert_left_alone(elementwise("%empty", "f32", body), "fill_init", "outs_style")


def test_arguments_are_not_updated() -> None:
    body = "%new = arith.addf %in, %in_0 : f32\nlinalg.yield %new : f32"
    assert_left_alone(elementwise("%empty", "f32", body), "outs_style")


def test_an_operation_that_broadcasts_has_nothing_to_update() -> None:
    text = f"""{MAPS}
func.func @main(%bias: tensor<16xf32>) -> tensor<4x16xf32> {{
  %empty = tensor.empty() : tensor<4x16xf32>
  %result = linalg.generic {{indexing_maps = [#row, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%bias : tensor<16xf32>) outs(%empty : tensor<4x16xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %new = arith.negf %in : f32
    linalg.yield %new : f32
  }} -> tensor<4x16xf32>
  return %result : tensor<4x16xf32>
}}
"""
    assert_left_alone(text, "fill_init", "outs_style")


PRODUCTS = f"""{MAPS}
func.func @main(%a: {MATRIX}, %b: {MATRIX}) -> ({MATRIX}, {MATRIX}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {MATRIX}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {MATRIX}) -> {MATRIX}
  %ab = linalg.matmul ins(%a, %b : {MATRIX}, {MATRIX}) outs(%zeros : {MATRIX}) -> {MATRIX}
  %ba = linalg.matmul ins(%b, %a : {MATRIX}, {MATRIX}) outs(%zeros : {MATRIX}) -> {MATRIX}
"""


def sum_of_products(first: str, second: str, also_returned: str) -> str:
    return f"""{PRODUCTS}
  %result = linalg.generic {{indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins({first}, {second} : {MATRIX}, {MATRIX}) outs(%empty : {MATRIX}) {{
  {ADD}}} -> {MATRIX}
  return %result, {also_returned} : {MATRIX}, {MATRIX}
}}
"""


def updated_by(other: str, updated: str, summands: str, also_returned: str) -> str:
    return f"""{PRODUCTS}
  %result = linalg.generic {{indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins({other} : {MATRIX}) outs({updated} : {MATRIX}) {{
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf {summands} : f32
    linalg.yield %sum : f32
  }} -> {MATRIX}
  return %result, {also_returned} : {MATRIX}, {MATRIX}
}}
"""


def test_of_two_results_the_first_is_updated() -> None:
    after = updated_by("%ba", "%ab", "%out, %in", also_returned="%a")
    assert_rewritten(sum_of_products("%ab", "%ba", also_returned="%a"), after, "outs_style", places=1)


def test_of_two_results_the_one_that_nothing_else_reads_is_updated() -> None:
    after = updated_by("%ab", "%ba", "%in, %out", also_returned="%ab")
    assert_rewritten(sum_of_products("%ab", "%ba", also_returned="%ab"), after, "outs_style", places=1)


def test_a_result_that_is_read_twice_is_not_updated() -> None:
    assert_left_alone(sum_of_products("%ab", "%ab", also_returned="%ba"), "outs_style")


# ------------------------------------------------------------------------------------------------------- generic_matmul

LOOPS = 'iterator_types = ["parallel", "parallel", "reduction"]'


def product(operation: str, body: str = "", *, types: tuple[str, str] = ("f32", "f32"), right: str = "8x16") -> str:
    """A matrix product of tensors of `types[0]` into one of `types[1]`."""
    x, w, y = f"tensor<4x8x{types[0]}>", f"tensor<{right}x{types[0]}>", f"tensor<4x16x{types[1]}>"
    block = body and f"{{ ^bb0(%in: {types[0]}, %in_0: {types[0]}, %out: {types[1]}):\n{body} }}"
    return f"""{MAPS}
func.func @main(%x: {x}, %w: {w}, %init: {y}) -> {y} {{
  %y = {operation} ins(%x, %w : {x}, {w}) outs(%init : {y}) {block} -> {y}
  return %y : {y}
}}
"""


FLOATS = "%m = arith.mulf %in, %in_0 : {0}\n%s = arith.addf %out, %m : {0}\nlinalg.yield %s : {0}"
INTEGERS = "%m = arith.muli %in, %in_0 : {0}\n%s = arith.addi %out, %m : {0}\nlinalg.yield %s : {0}"
WIDENED = """%a = arith.{0} %in : {1} to {2}
%b = arith.{0} %in_0 : {1} to {2}
%m = arith.{3} %a, %b : {2}
%s = arith.{4} %out, %m : {2}
linalg.yield %s : {2}"""


@pytest.mark.parametrize(
    ("types", "cast", "body"),
    [
        (("f32", "f32"), "", FLOATS.format("f32")),
        (("bf16", "bf16"), "", FLOATS.format("bf16")),
        (("i32", "i32"), "", INTEGERS.format("i32")),
        (("bf16", "f32"), "", WIDENED.format("extf", "bf16", "f32", "mulf", "addf")),
        (("i8", "i32"), "", WIDENED.format("extsi", "i8", "i32", "muli", "addi")),
        (
            ("i8", "i32"),
            " {cast = #linalg.type_fn<cast_unsigned>}",
            WIDENED.format("extui", "i8", "i32", "muli", "addi"),
        ),
    ],
)
def test_multiplies_and_adds_as_the_element_types_ask(types: tuple[str, str], cast: str, body: str) -> None:
    generic = f"linalg.generic {{indexing_maps = [#left, #right, #product], {LOOPS}}}"
    before, after = product(f"linalg.matmul{cast}", types=types), product(generic, body, types=types)
    assert_rewritten(before, after, "generic_matmul", places=1)


def test_keeps_other_indexing_maps() -> None:
    maps = "indexing_maps = [#left, #right_turned, #product]"
    before = product(f"linalg.matmul {maps}", right="16x8")
    after = product(f"linalg.generic {{{maps}, {LOOPS}}}", FLOATS.format("f32"), right="16x8")
    assert_rewritten(before, after, "generic_matmul", places=1)


def test_keeps_what_others_have_attached() -> None:
    config = "lowering_config = #iree_codegen.lowering_config<tile_sizes = [[4, 16]]>"
    before = product(f"linalg.matmul {{{config}}}")
    after = product(
        f"linalg.generic {{indexing_maps = [#left, #right, #product], {LOOPS}}}", FLOATS.format("f32")
    ).replace("outs(%init : tensor<4x16xf32>)", f"outs(%init : tensor<4x16xf32>) attrs = {{{config}}}")
    assert_rewritten(before, after, "generic_matmul", places=1)


def test_buffers_are_left_alone() -> None:
    memref = "memref<4x4xf32>"
    assert_left_alone(
        f"func.func @main(%x: {memref}, %y: {memref}) {{\n"
        f"linalg.matmul ins(%x, %x : {memref}, {memref}) outs(%y : {memref})\nreturn\n}}",
        "generic_matmul",
    )


def test_a_batch_computes_the_same() -> None:
    x, w, y = "tensor<3x4x8xf32>", "tensor<3x8x16xf32>", "tensor<3x4x16xf32>"
    before = f"""
func.func @main(%x: {x}, %w: {w}, %init: {y}) -> {y} {{
  %y = linalg.batch_matmul ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %y : {y}
}}
"""
    matched, after = rewrite(before, "generic_matmul")
    assert matched == 1
    assert 'iterator_types = ["parallel", "parallel", "parallel", "reduction"]' in after
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape, dtype=np.float32) for shape in [(3, 4, 8), (3, 8, 16), (3, 4, 16)]]
    named, generic = (run(text, *arguments) for text in (before, after))
    np.testing.assert_array_equal(generic, named)


# ------------------------------------------------------------------------------------------------------- fold_transpose

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
    outputs = [run(text, x, w, init) for text in (before, rewrite(before, "fold_transpose")[1])]
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
