"""From the MLP that PyTorch exports to the one that tpp-mlir generates, one difference at a time.

https://github.com/plaidml/tpp-mlir lists the differences in the issue "PyTorch MLP doesn't fuse XSMM".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from tests.rewrites.tools import Array, Rewrite, agree, printed, run

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


def assert_rewritten(before: str, after: str, *options: str, places: int = 1) -> None:
    tools.assert_rewritten(before, after, only(*options), places=places)


def assert_left_alone(text: str, *options: str) -> None:
    tools.assert_left_alone(text, only(*options))


def main(arguments: str, result: str, *lines: str) -> str:
    """A function of the last line's value; `arguments` are names and types."""
    *body, returned = lines
    text = "\n  ".join(body)
    return f"{MAPS}\nfunc.func @main({arguments}) -> ({result}) {{\n  {text}\n  return {returned} : {result}\n}}\n"


def generic(
    maps: str, inputs: Sequence[tuple[str, str]], out: tuple[str, str], body: str, *, products: bool = False
) -> str:
    """A linalg.generic over matrices, or one that is a product; its body reads %in, %in_0, ... and %out."""
    names, types = (", ".join(column) for column in zip(*inputs, strict=True)) if inputs else ("", "")
    elements = [kind.rpartition("x")[2].rstrip(">") for _, kind in (*inputs, out)]
    arguments = [*(f"%in{f'_{n - 1}' if n else ''}" for n in range(len(inputs))), "%out"]
    block = ", ".join(f"{name}: {element}" for name, element in zip(arguments, elements, strict=True))
    loops = '"parallel", "parallel", "reduction"' if products else '"parallel", "parallel"'
    ins = f"ins({names} : {types})" if inputs else ""
    return f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
      {ins} outs({out[0]} : {out[1]}) {{
  ^bb0({block}):
    {body}
  }} -> {out[1]}"""


# ---------------------------------------------------------------------------------------------------------- whole MLPs

PLACES = {"fill_init": 2, "outs_style": 2, "fold_transpose": 1, "generic_matmul": 1, "relu_to_maximum": 1}  # a layer
DTYPES = ["f32", "bf16"]
LAYERS = 2


@cache
def mlp(form: Literal["pytorch", "mlir-gen"], dtype: Literal["f32", "bf16"] = "f32") -> str:
    text = build(Parameters(form=form, dtype=dtype, layers=LAYERS, width=48, batch=8)).text
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_together_give_the_generated_form(dtype: Literal["f32", "bf16"]) -> None:
    """Not only the same operations: the same text, weights included."""
    matched, text = rewrite(mlp("pytorch", dtype), *OPTIONS)
    assert text.replace("_transposed", "") == printed(mlp("mlir-gen", dtype))
    assert matched == LAYERS * sum(PLACES.values())
    assert_left_alone(text, *OPTIONS)
    assert_left_alone(mlp("pytorch", dtype))


@settings(max_examples=5)
@given(order=st.permutations(OPTIONS))
def test_one_after_the_other_in_any_order_gives_the_same(order: list[str]) -> None:
    text = mlp("pytorch")
    for option in order:
        _, text = rewrite(text, option)
        assert_left_alone(text, option)
    assert text.replace("_transposed", "") == printed(mlp("mlir-gen"))


@cache
def exported(dtype: Literal["f32", "bf16"]) -> tuple[Array, Array]:
    """An input, and what the MLP computes from it as PyTorch exports it."""
    x: Array = np.random.default_rng(1).standard_normal((8, 48), dtype=np.float32)
    x = bf16_bits(x) if dtype == "bf16" else x
    return x, run(mlp("pytorch", dtype), x)


@pytest.mark.parametrize(
    ("dtype", "options"),
    [("bf16", [option]) for option in OPTIONS] + [("f32", OPTIONS[:2] + OPTIONS[3:]), ("f32", OPTIONS)],
)
def test_options_match_their_own_places_and_keep_the_numbers(
    dtype: Literal["f32", "bf16"], options: Sequence[str]
) -> None:
    """To the bit, but for another layout of the weights, which may round otherwise."""
    x, expected = exported(dtype)
    matched, text = rewrite(mlp("pytorch", dtype), *options)
    assert matched == LAYERS * sum(PLACES[option] for option in options)
    output = run(text, x)
    if "fold_transpose" not in options:
        np.testing.assert_array_equal(output, expected)
    elif dtype == "f32":
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    else:  # counted in steps from one bf16 to the next; all are positive
        assert np.abs(output.astype(int) - expected.astype(int)).max() <= 4


# --------------------------------------------------------------------------------------------- fill_init and outs_style

ADD = "%sum = arith.addf %in, %in_0 : f32\nlinalg.yield %sum : f32"
RELU = """%positive = arith.cmpf ugt, {0}, %zero : f32
  %above = arith.select %positive, {0}, %zero : f32
  linalg.yield %above : f32"""
WIDE, BIAS = "tensor<4x16xf32>", ("%bias", "tensor<16xf32>")


def layer(*, init: str = "%empty", updates: bool = False) -> str:
    """A layer as PyTorch exports it, from the matmul on; `init` is that of bias and ReLU, if they do not update."""
    if updates:
        added = "%sum = arith.addf %in, %out : f32\nlinalg.yield %sum : f32"
        bias = generic("#row, #whole", [BIAS], ("%product", WIDE), added)
        relu = generic("#whole", [], ("%sum", WIDE), RELU.format("%out"))
    else:
        bias = generic("#row, #whole, #whole", [BIAS, ("%product", WIDE)], (init, WIDE), ADD)
        relu = generic("#whole, #whole", [("%sum", WIDE)], (init, WIDE), RELU.format("%in"))
    return main(
        "%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>",
        WIDE,
        "%zero = arith.constant 0.0 : f32",
        f"%empty = tensor.empty() : {WIDE}",
        f"%zeros = linalg.fill ins(%zero : f32) outs(%empty : {WIDE}) -> {WIDE}",
        f"%product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zeros : {WIDE}) -> {WIDE}",
        f"%sum = {bias}",
        f"%relu = {relu}",
        "%relu",
    )


def test_a_fill_of_the_same_buffer_becomes_the_init_of_bias_and_relu() -> None:
    assert_rewritten(layer(), layer(init="%zeros"), "fill_init", places=2)


def test_bias_and_relu_update_the_result_before_them() -> None:
    assert_rewritten(layer(), layer(updates=True), "outs_style", places=2)
    assert_rewritten(layer(), layer(updates=True), "fill_init", "outs_style", places=4)


def elementwise(body: str, *before: str, init: str = "%empty", element: str = "f32") -> str:
    """A function of two tensors of which an elementwise operation makes one."""
    kind = f"tensor<?x16x{element}>"
    return main(
        f"%a: {kind}, %b: {kind}, %rows: index",
        kind,
        f"%empty = tensor.empty(%rows) : {kind}",
        *before,
        f"%result = {generic('#whole, #whole, #whole', [('%a', kind), ('%b', kind)], (init, kind), body)}",
        "%result",
    )


def yielding(operation: str, element: str = "f32") -> str:
    return f"%new = {operation} : {element}\nlinalg.yield %new : {element}"


def fill(name: str, value: str, element: str = "f32") -> list[str]:
    kind = f"tensor<?x16x{element}>"
    constant = value if element == "i1" else f"{value} : {element}"
    return [
        f"%{name} = arith.constant {constant}",
        f"%{name}s = linalg.fill ins(%{name} : {element}) outs(%empty : {kind}) -> {kind}",
    ]


@pytest.mark.parametrize(
    ("element", "zero", "operation"),
    [("bf16", "0.0", "arith.mulf"), ("i8", "0", "arith.addi"), ("i1", "false", "arith.xori")],
)
def test_where_there_is_no_fill_one_is_made(element: str, zero: str, operation: str) -> None:
    body = yielding(f"{operation} %in, %in_0", element)
    after = elementwise(body, *fill("zero", zero, element), init="%zeros", element=element)
    assert_rewritten(elementwise(body, element=element), after, "fill_init")


def test_a_fill_with_something_else_is_not_used() -> None:
    ones, body = fill("one", "1.0"), yielding("arith.mulf %in, %in_0")
    after = elementwise(body, *fill("zero", "0.0"), *ones, init="%zeros")
    assert_rewritten(elementwise(body, *ones), after, "fill_init")


NEGATED = generic("#row, #whole", [BIAS], ("%empty", WIDE), yielding("arith.negf %in"))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param(elementwise("linalg.yield %in : f32"), ["fill_init", "outs_style"], id="a copy"),
        pytest.param(elementwise(yielding("arith.addf %in, %out")), ["fill_init", "outs_style"], id="reads its init"),
        pytest.param(elementwise(yielding("arith.addf %in, %in_0")), ["outs_style"], id="of arguments"),
        pytest.param(
            main("%bias: tensor<16xf32>", WIDE, f"%empty = tensor.empty() : {WIDE}", f"%r = {NEGATED}", "%r"),
            ["fill_init", "outs_style"],
            id="broadcasts",
        ),
    ],
)
def test_other_operations_keep_their_init(text: str, options: list[str]) -> None:
    assert_left_alone(text, *options)


def products(operation: str, also_returned: str) -> str:
    """Two products of matrices, what an operation makes of them, and another value that is returned."""
    return main(
        f"%a: {MATRIX}, %b: {MATRIX}",
        f"{MATRIX}, {MATRIX}",
        "%zero = arith.constant 0.0 : f32",
        f"%empty = tensor.empty() : {MATRIX}",
        f"%zeros = linalg.fill ins(%zero : f32) outs(%empty : {MATRIX}) -> {MATRIX}",
        f"%ab = linalg.matmul ins(%a, %b : {MATRIX}, {MATRIX}) outs(%zeros : {MATRIX}) -> {MATRIX}",
        f"%ba = linalg.matmul ins(%b, %a : {MATRIX}, {MATRIX}) outs(%zeros : {MATRIX}) -> {MATRIX}",
        f"%result = {operation}",
        f"%result, {also_returned}",
    )


def sum_of(first: str, second: str) -> str:
    return generic("#whole, #whole, #whole", [(first, MATRIX), (second, MATRIX)], ("%empty", MATRIX), ADD)


@pytest.mark.parametrize(
    ("also_returned", "updated", "other", "summands"),
    [("%a", "%ab", "%ba", "%out, %in"), ("%ab", "%ba", "%ab", "%in, %out")],
    ids=["the first", "the one that nothing else reads"],
)
def test_of_two_results_one_is_updated(also_returned: str, updated: str, other: str, summands: str) -> None:
    body = yielding(f"arith.addf {summands}")
    after = generic("#whole, #whole", [(other, MATRIX)], (updated, MATRIX), body)
    assert_rewritten(products(sum_of("%ab", "%ba"), also_returned), products(after, also_returned), "outs_style")


def test_a_result_that_is_read_twice_is_not_updated() -> None:
    assert_left_alone(products(sum_of("%ab", "%ab"), "%ba"), "outs_style")


# ------------------------------------------------------------------------------------------------------- generic_matmul


def product(operation: str, *, types: tuple[str, str] = ("f32", "f32"), right: str = "8x16") -> str:
    """A matrix product of tensors of `types[0]` into one of `types[1]`; {} in it stands for the operands."""
    x, w, y = f"tensor<4x8x{types[0]}>", f"tensor<{right}x{types[0]}>", f"tensor<4x16x{types[1]}>"
    named = operation.replace("{}", f"ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}")
    return main(f"%x: {x}, %w: {w}, %init: {y}", y, f"%y = {named}", "%y")


def as_generic(
    body: str, *, types: tuple[str, str] = ("f32", "f32"), right: str = "8x16", maps: str = "#left, #right, #product"
) -> str:
    inputs = [("%x", f"tensor<4x8x{types[0]}>"), ("%w", f"tensor<{right}x{types[0]}>")]
    operation = generic(maps, inputs, ("%init", f"tensor<4x16x{types[1]}>"), body, products=True)
    return product(operation, types=types, right=right)


FLOATS = "%m = arith.mulf %in, %in_0 : {0}\n%s = arith.addf %out, %m : {0}\nlinalg.yield %s : {0}"
INTEGERS = FLOATS.replace("mulf", "muli").replace("addf", "addi")
WIDENED = """%a = arith.{0} %in : {1} to {2}
%b = arith.{0} %in_0 : {1} to {2}
%m = arith.{3} %a, %b : {2}
%s = arith.{4} %out, %m : {2}
linalg.yield %s : {2}"""
UNSIGNED = " {cast = #linalg.type_fn<cast_unsigned>}"


@pytest.mark.parametrize(
    ("types", "cast", "body"),
    [
        (("f32", "f32"), "", FLOATS.format("f32")),
        (("bf16", "bf16"), "", FLOATS.format("bf16")),
        (("i32", "i32"), "", INTEGERS.format("i32")),
        (("bf16", "f32"), "", WIDENED.format("extf", "bf16", "f32", "mulf", "addf")),
        (("i8", "i32"), "", WIDENED.format("extsi", "i8", "i32", "muli", "addi")),
        (("i8", "i32"), UNSIGNED, WIDENED.format("extui", "i8", "i32", "muli", "addi")),
    ],
)
def test_multiplies_and_adds_as_the_element_types_ask(types: tuple[str, str], cast: str, body: str) -> None:
    before = product(f"linalg.matmul{cast} {{}}", types=types)
    assert_rewritten(before, as_generic(body, types=types), "generic_matmul")


def test_keeps_other_indexing_maps_and_what_others_have_attached() -> None:
    maps = "#left, #right_turned, #product"
    after = as_generic(FLOATS.format("f32"), right="16x8", maps=maps)
    assert_rewritten(product(f"linalg.matmul indexing_maps = [{maps}] {{}}", right="16x8"), after, "generic_matmul")
    config = "{lowering_config = #iree_codegen.lowering_config<tile_sizes = [[4, 16]]>}"
    after = as_generic(FLOATS.format("f32")).replace(
        "outs(%init : tensor<4x16xf32>) {", f"outs(%init : tensor<4x16xf32>) attrs = {config} {{"
    )
    assert_rewritten(product(f"linalg.matmul {config} {{}}"), after, "generic_matmul")


def test_buffers_are_left_alone() -> None:
    memref = "memref<4x4xf32>"
    copy = f"linalg.matmul ins(%x, %x : {memref}, {memref}) outs(%x : {memref})"
    assert_left_alone(main(f"%x: {memref}", memref, copy, "%x"), "generic_matmul")


def batch_matmul(right: str = "%w", w: str = "tensor<5x3x2xf32>", *before: str) -> str:
    x, y, turned = "tensor<5x4x3xf32>", "tensor<5x4x2xf32>", "tensor<5x3x2xf32>"
    named = f"%y = linalg.batch_matmul ins(%x, {right} : {x}, {turned}) outs(%init : {y}) -> {y}"
    return main(f"%x: {x}, %w: {w}, %init: {y}", y, *before, named, "%y")


def test_a_batch_computes_the_same() -> None:
    assert agree(batch_matmul(), [(5, 4, 3), (5, 3, 2), (5, 4, 2)], only("generic_matmul")) == [1]
    _, after = rewrite(batch_matmul(), "generic_matmul")
    assert 'iterator_types = ["parallel", "parallel", "parallel", "reduction"]' in after


# ------------------------------------------------------------------------------------------------------- fold_transpose

NAMED = "linalg.transpose ins({0} : {1}) outs(%empty : {2}) permutation = [1, 0]"
# As older exporters write it; the loops may be those of the operand or those of the result.
BY_OPERAND, BY_RESULT = (
    f'linalg.generic {{{{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}}} '
    "ins({0} : {1}) outs(%empty : {2}) {{ ^bb0(%in: {3}, %out: {3}): linalg.yield %in : {3} }} -> {2}"
    for maps in ("#whole, #turned", "#turned, #whole")
)


def by(name: str, shape: str = "3x2", element: str = "f32", *, maps: str = "") -> str:
    """The product of %x and a matrix, added to %init."""
    x, w, y = (f"tensor<{sizes}x{element}>" for sizes in ("4x3", shape, "4x2"))
    return f"linalg.matmul{maps} ins(%x, {name} : {x}, {w}) outs(%init : {y}) -> {y}"


def times(operation: str, *before: str, element: str = "f32", blobs: str = "", returned: str = "%y") -> str:
    """A function of x, a weight w and an init that returns a product."""
    y = f"tensor<4x2x{element}>"
    arguments = f"%x: tensor<4x3x{element}>, %w: tensor<2x3x{element}>, %init: {y}"
    resources = f"{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}" if blobs else ""
    return main(arguments, y, *before, f"%y = {operation}", returned) + resources


def turn(operand: str, element: str = "f32", form: str = NAMED) -> str:
    old, new = f"tensor<2x3x{element}>", f"tensor<3x2x{element}>"
    return f"%empty = tensor.empty() : {new}\n%turned = {form.format(operand, old, new, element)}"


def weight(value: str, name: str = "weight", shape: str = "2x3", element: str = "f32") -> str:
    return f"%{name} = arith.constant {value} : tensor<{shape}x{element}>"


@pytest.mark.parametrize("form", [NAMED, BY_OPERAND, BY_RESULT])
@pytest.mark.parametrize(
    ("element", "stored", "turned"),
    [
        ("f32", "[[1.0, 2.0, 3.0], [4.0, 5.0, 0x7F800000]]", "[[1.0, 4.0], [2.0, 5.0], [3.0, 0x7F800000]]"),
        ("bf16", "1.4", "1.4"),
        ("i4", "[[1, 2, 3], [4, 5, -6]]", "[[1, 4], [2, 5], [3, -6]]"),
    ],
)
def test_a_constant_is_stored_transposed(form: str, element: str, stored: str, turned: str) -> None:
    multiplied = by("%turned", element=element)
    constant = weight(f"dense<{stored}>", element=element)
    before = times(multiplied, constant, turn("%weight", element, form), element=element)
    after = times(multiplied, weight(f"dense<{turned}>", "turned", "3x2", element), element=element)
    assert_rewritten(before, after, "fold_transpose")


@pytest.mark.parametrize(
    ("element", "stored", "turned"),
    [
        ("bf16", "02000000803F0040404080400A00C040", "02000000803F804000400A004040C040"),
        ("i8", "01000000010203040506", "01000000010402050306"),
    ],
)
def test_a_resource_is_stored_transposed(element: str, stored: str, turned: str) -> None:
    multiplied = by("%turned", element=element)
    constant = weight("dense_resource<w>", element=element)
    before = times(multiplied, constant, turn("%weight", element), element=element, blobs=f'w: "0x{stored}"')
    constant = weight("dense_resource<w_transposed>", "turned", "3x2", element)
    after = times(multiplied, constant, element=element, blobs=f'w_transposed: "0x{turned}"')
    assert_rewritten(before, after, "fold_transpose")


def test_equal_transpositions_share_one_resource() -> None:
    again = "%again = " + NAMED.format("%weight", "tensor<2x3xf32>", "tensor<3x2xf32>")
    lines = (weight("dense_resource<w>"), turn("%weight"), again, f"%y2 = {by('%again')}")
    text = times(by("%turned"), *lines, blobs=f'w: "0x04000000{"00" * 24}"', returned="%y2")
    matched, after = rewrite(text, "fold_transpose")
    assert matched == 2
    assert re.findall(r"(\w+): \"0x", after) == ["w_transposed"]


def test_a_resource_without_values_is_read_through() -> None:
    text = times(by("%turned"), weight("dense_resource<w>"), turn("%weight"))
    matched, after = rewrite(text, "fold_transpose")
    assert matched == 1
    assert "dense_resource<w> : tensor<2x3xf32>" in after
    assert "linalg.transpose" not in after


@pytest.mark.parametrize("form", [NAMED, BY_OPERAND, BY_RESULT])
def test_another_weight_is_read_through_indexing_maps(form: str) -> None:
    after = times(by("%w", "2x3", maps=" indexing_maps = [#left, #right_turned, #product]"))
    assert_rewritten(times(by("%turned"), turn("%w", form=form)), after, "fold_transpose")


def test_reading_through_computes_the_same() -> None:
    before = times(by("%turned"), turn("%w"))
    assert agree(before, [(4, 3), (2, 3), (4, 2)], only("fold_transpose")) == [1]


def test_a_product_written_as_generic_counts_as_well() -> None:
    def reading(maps: str, name: str, shape: str) -> str:
        inputs = [("%x", "tensor<4x3xf32>"), (name, f"tensor<{shape}xf32>")]
        return generic(maps, inputs, ("%init", "tensor<4x2xf32>"), FLOATS.format("f32"), products=True)

    before = times(reading("#left, #right, #product", "%turned", "3x2"), turn("%w"))
    assert_rewritten(before, times(reading("#left, #right_turned, #product", "%w", "2x3")), "fold_transpose")


def turned_batch(w: str, permutation: str) -> str:
    turned = "tensor<5x3x2xf32>"
    transpose = f"%turned = linalg.transpose ins(%w : {w}) outs(%e : {turned}) permutation = {permutation}"
    return batch_matmul("%turned", w, f"%e = tensor.empty() : {turned}", transpose)


def test_of_a_batch_the_last_two_dimensions_may_be_swapped() -> None:
    matched, text = rewrite(turned_batch("tensor<5x2x3xf32>", "[0, 2, 1]"), "fold_transpose")
    assert matched == 1
    assert "affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>" in text
    assert "linalg.transpose" not in text


def test_of_a_batch_other_permutations_need_the_generic_form() -> None:
    text = turned_batch("tensor<3x5x2xf32>", "[1, 0, 2]")
    assert_left_alone(text, "fold_transpose")
    matched, folded = rewrite(rewrite(text, "generic_matmul")[1], "fold_transpose")
    assert matched == 1
    assert "affine_map<(d0, d1, d2, d3) -> (d3, d0, d2)>" in folded


def squares(lines: Sequence[str], operand: str, init: str) -> str:
    """A product of 4x4 matrices with transpositions before it."""
    named = f"%y = linalg.matmul ins(%a, {operand} : {MATRIX}, {MATRIX}) outs({init} : {MATRIX}) -> {MATRIX}"
    return main(f"%a: {MATRIX}, %b: {MATRIX}", MATRIX, *lines, named, "%y")


def turned_square(result: str, operand: str) -> str:
    transpose = f"linalg.transpose ins({operand} : {MATRIX}) outs(%{result}_e : {MATRIX}) permutation = [1, 0]"
    return f"%{result}_e = tensor.empty() : {MATRIX}\n%{result} = {transpose}"


def test_two_transpositions_in_a_row_both_go() -> None:
    before = squares([turned_square("once", "%b"), turned_square("twice", "%once")], "%twice", "%b")
    assert_rewritten(before, squares([], "%b", "%b"), "fold_transpose", places=2)


COMPLEX = "complex<f32>"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(squares([turned_square("turned", "%b")], "%b", "%turned"), id="of the init"),
        pytest.param(
            times(by("%turned"), turn("%w"), "%other = math.absf %turned : tensor<3x2xf32>"), id="for other readers"
        ),
        pytest.param(
            times(
                by("%turned", element=COMPLEX),
                weight("dense<(1.0, 2.0)>", element=COMPLEX),
                turn("%weight", COMPLEX),
                f"%other = tensor.cast %turned : tensor<3x2x{COMPLEX}> to tensor<?x2x{COMPLEX}>",
                element=COMPLEX,
            ),
            id="of complex numbers",
        ),
    ],
)
def test_other_transpositions_stay(text: str) -> None:
    assert_left_alone(text, "fold_transpose")


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


@pytest.mark.parametrize("value", ["dense_resource<gone> : tensor<2x3xf32>", "dense<> : tensor<0x3xf32>"])
def test_values_that_cannot_be_got_at_stay(value: str) -> None:
    with ir.Context():
        attribute = ir.Attribute.parse(value)
        assert transposed(attribute, [0, 1], attribute.type) is None
