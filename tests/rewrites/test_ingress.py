"""From the MLP that PyTorch exports to the one that tpp-mlir generates, one difference at a time.

https://github.com/plaidml/tpp-mlir lists the differences in the issue "PyTorch MLP doesn't fuse XSMM".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
from harness.rewrites.operations import Matched, transposed
from tests.programs import program
from tests.rewrites import tools
from tests.rewrites.tools import Array, agree, printed, run

OPTIONS = ("fill_init", "outs_style", "fold_transpose", "generic_matmul", "relu_to_maximum")


def only(*options: str) -> Callable[[ir.Module], Matched]:
    """The rewrite with these options on and the others off."""
    return partial(ingress_canonicalize, **{option: option in options for option in OPTIONS})


def rewrite(text: str, *options: str) -> tuple[int, str]:
    after, (matched,) = tools.rewritten(text, only(*options))
    return matched, after


def assert_rewritten(before: str, after: str, *options: str, places: int = 1) -> None:
    tools.assert_rewritten(before, after, only(*options), places=places)


def assert_left_alone(text: str, *options: str) -> None:
    tools.assert_left_alone(text, only(*options))


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


def layer(bias: str, relu: str) -> str:
    """A layer as PyTorch exports it."""
    return program(f"""
    main x:4x8 w:8x16 bias:16
    e = empty 4x16
    z = fill zero e
    product = matmul x w z
    sum = each addf bias:c {bias}
    r = each maximumf {relu}
    return r
    """)


EXPORTED = layer("product out=e", "sum zero out=e")
UPDATING = layer("out out=product", "out zero out=sum")


def test_a_fill_of_the_same_buffer_becomes_the_init_of_bias_and_relu() -> None:
    assert_rewritten(EXPORTED, layer("product out=z", "sum zero out=z"), "fill_init", places=2)


def test_bias_and_relu_update_the_result_before_them() -> None:
    assert_rewritten(EXPORTED, UPDATING, "outs_style", places=2)
    assert_rewritten(EXPORTED, UPDATING, "fill_init", "outs_style", places=4)


def each(operation: str, *between: str, element: str = "f32") -> str:
    """An elementwise operation on two matrices and a row, after an empty one and what stands between."""
    lines = "\n".join(between)
    return program(f"main a:4x16 b:4x16 row:16\ne = empty 4x16\n{lines}\nr = each {operation}\nreturn r", element)


@pytest.mark.parametrize(
    ("element", "zero", "operation"), [("bf16", "0.0", "mulf"), ("i8", "0", "addi"), ("i1", "0", "xori")]
)
def test_where_there_is_no_fill_one_is_made(element: str, zero: str, operation: str) -> None:
    after = each(f"{operation} a b out=z", f"c = constant {zero}", "z = fill c e", element=element)
    assert_rewritten(each(f"{operation} a b out=e", element=element), after, "fill_init")


def test_a_fill_with_something_else_is_not_used() -> None:
    ones = ("o = constant 1.0", "ones = fill o e")
    after = each("mulf a b out=z", "c = constant 0.0", "z = fill c e", *ones)
    assert_rewritten(each("mulf a b out=e", *ones), after, "fill_init")


@pytest.mark.parametrize(
    ("operation", "options"),
    [
        pytest.param("yield a out=e", ["fill_init", "outs_style"], id="a copy"),
        pytest.param("addf a out out=e", ["fill_init", "outs_style"], id="reads its init"),
        pytest.param("addf a b out=e", ["outs_style"], id="of arguments"),
        pytest.param("addf row:c two out=e", ["fill_init", "outs_style"], id="broadcasts"),
    ],
)
def test_other_operations_keep_their_init(operation: str, options: list[str]) -> None:
    assert_left_alone(each(operation), *options)


def products(operation: str, also_returned: str) -> str:
    """Two products of matrices, what an operation makes of them, and another value that is returned."""
    return program(f"""
    main a:4x4 b:4x4
    e = empty 4x4
    z = fill zero e
    ab = matmul a b z
    ba = matmul b a z
    r = each addf {operation}
    return r {also_returned}
    """)


@pytest.mark.parametrize(
    ("also_returned", "updating"),
    [("a", "out ba out=ab"), ("ab", "ab out out=ba")],
    ids=["the first", "the one that nothing else reads"],
)
def test_of_two_results_one_is_updated(also_returned: str, updating: str) -> None:
    assert_rewritten(products("ab ba out=e", also_returned), products(updating, also_returned), "outs_style")


def test_a_result_that_is_read_twice_is_not_updated() -> None:
    text = products("ab ab out=e", "ba")
    tools.assert_left_alone(text, only("outs_style"), "operations on results that others read too")


# ------------------------------------------------------------------------------------------------------- generic_matmul

LEFT, RIGHT, TURNED, OUT = (f"affine_map<(m, n, k) -> ({axes})>" for axes in ("m, k", "k, n", "n, k", "m, n"))
READ_TURNED = f"indexing_maps = [{LEFT}, {TURNED}, {OUT}]"


def product(operation: str, *, types: tuple[str, str] = ("f32", "f32"), right: str = "8x16") -> str:
    """A matrix product of tensors of `types[0]` into one of `types[1]`; {} in it stands for the operands."""
    x, w, y = f"tensor<4x8x{types[0]}>", f"tensor<{right}x{types[0]}>", f"tensor<4x16x{types[1]}>"
    named = operation.replace("{}", f"ins(%x, %w : {x}, {w}) outs(%init : {y})")
    return f"func.func @main(%x: {x}, %w: {w}, %init: {y}) -> {y} {{\n%y = {named} -> {y}\nreturn %y : {y}\n}}"


def as_generic(
    body: str,
    *,
    types: tuple[str, str] = ("f32", "f32"),
    right: str = "8x16",
    maps: str = f"indexing_maps = [{LEFT}, {RIGHT}, {OUT}]",
    attributes: str = "",
) -> str:
    generic = f"""linalg.generic {{{maps}, iterator_types = ["parallel", "parallel", "reduction"]}} {{}} {attributes} {{
      ^bb0(%in: {types[0]}, %in_0: {types[0]}, %out: {types[1]}):
        {body}
      }}"""
    return product(generic, types=types, right=right)


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
    after = as_generic(FLOATS.format("f32"), right="16x8", maps=READ_TURNED)
    assert_rewritten(product(f"linalg.matmul {READ_TURNED} {{}}", right="16x8"), after, "generic_matmul")
    config = "{lowering_config = #iree_codegen.lowering_config<tile_sizes = [[4, 16]]>}"
    after = as_generic(FLOATS.format("f32"), attributes=f"attrs = {config}")
    assert_rewritten(product(f"linalg.matmul {config} {{}}"), after, "generic_matmul")


def batch(right: str = "w", w: str = "5x3x2", line: str = "") -> str:
    """A product of five matrices and five others, maybe after a line."""
    kinds = "tensor<5x4x3xf32>, tensor<5x3x2xf32>"
    named = f"linalg.batch_matmul ins(%x, %{right} : {kinds}) outs(%init : tensor<5x4x2xf32>) -> tensor<5x4x2xf32>"
    return program(f"main x:5x4x3 w:{w} init:5x4x2\n{line}y:5x4x2 = | {named}\nreturn y")


# ------------------------------------------------------------------------------------------------------- fold_transpose

# The last two as older exporters write it; the loops may be those of the operand or those of the result.
FORMS = [
    "t = transpose {} 1,0",
    "e = empty 3x2\nt = each yield {} out=e:cn",
    "e = empty 3x2\nt = each yield {}:cn out=e",
]
BY_TURNED = "y = matmul x t init"


def times(*lines: str, element: str = "f32", blob: str = "", returned: str = "y") -> str:
    """A function of x, a weight w and an init that returns a product; `blob` is the weight as a resource."""
    body = "\n".join(lines)
    return program(f"main x:4x3 w:2x3 init:4x2\n{body}\nreturn {returned}", element, blob=blob)


def constant(value: str, name: str = "k", shape: str = "2x3", element: str = "f32") -> str:
    return f"{name}:{shape} = | arith.constant {value} : tensor<{shape}x{element}>"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("element", "stored", "turned"),
    [
        ("f32", "[[1.0, 2.0, 3.0], [4.0, 5.0, 0x7F800000]]", "[[1.0, 4.0], [2.0, 5.0], [3.0, 0x7F800000]]"),
        ("bf16", "1.4", "1.4"),
        ("i4", "[[1, 2, 3], [4, 5, -6]]", "[[1, 4], [2, 5], [3, -6]]"),
    ],
)
def test_a_constant_is_stored_transposed(form: str, element: str, stored: str, turned: str) -> None:
    weight = constant(f"dense<{stored}>", element=element)
    before = times(weight, *form.format("k").splitlines(), BY_TURNED, element=element)
    after = times(constant(f"dense<{turned}>", "t", "3x2", element), BY_TURNED, element=element)
    assert_rewritten(before, after, "fold_transpose")


def test_equal_transpositions_share_one_resource() -> None:
    lines = (constant("dense_resource<w>"), "t = transpose k 1,0", "u = transpose k 1,0", "z = matmul x u init")
    text = times(*lines, BY_TURNED, blob=f'w: "0x04000000{"00" * 24}"', returned="y z")
    matched, after = rewrite(text, "fold_transpose")
    assert matched == 2
    assert re.findall(r"(\w+): \"0x", after) == ["w_transposed"]


def test_a_resource_without_values_is_read_through() -> None:
    matched, after = rewrite(times(constant("dense_resource<w>"), FORMS[0].format("k"), BY_TURNED), "fold_transpose")
    assert matched == 1
    assert "dense_resource<w> : tensor<2x3xf32>" in after
    assert "linalg.transpose" not in after


@pytest.mark.parametrize("form", FORMS)
def test_another_weight_is_read_through_indexing_maps(form: str) -> None:
    before = times(*form.format("w").splitlines(), BY_TURNED)
    operands = "ins(%x, %w : tensor<4x3xf32>, tensor<2x3xf32>) outs(%init : tensor<4x2xf32>)"
    after = times(f"y:4x2 = | linalg.matmul {READ_TURNED} {operands} -> tensor<4x2xf32>")
    assert_rewritten(before, after, "fold_transpose")


def test_of_a_batch_the_last_two_dimensions_may_be_swapped_and_others_in_the_generic_form() -> None:
    swapped, turned = batch("t", "5x2x3", "t = transpose w 0,2,1\n"), batch("t", "3x5x2", "t = transpose w 1,0,2\n")
    assert_left_alone(turned, "fold_transpose")
    for text, axes in ((swapped, "d0, d2, d3"), (rewrite(turned, "generic_matmul")[1], "d3, d0, d2")):
        matched, folded = rewrite(text, "fold_transpose")
        assert (matched, "linalg.transpose" in folded) == (1, False)
        assert f"affine_map<(d0, d1, d2, d3) -> ({axes})>" in folded
    assert agree(swapped, only("fold_transpose", "generic_matmul")) == [2]


def test_two_transpositions_in_a_row_both_go() -> None:
    before = "main a:4x4 b:4x4\nt = transpose b 1,0\nu = transpose t 1,0\ny = matmul a u b\nreturn y"
    after = "main a:4x4 b:4x4\ny = matmul a b b\nreturn y"
    assert_rewritten(program(before), program(after), "fold_transpose", places=2)


COMPLEX = "complex<f32>"
UNREAD = "transpositions that no matrix product reads"
NOT_ALONE = "transpositions that matrix products cannot read through, or not alone"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            program("main a:4x4 b:4x4\nt = transpose b 1,0\ny = matmul a b t\nreturn y"), UNREAD, id="of the init"
        ),
        pytest.param(
            times(FORMS[0].format("w"), BY_TURNED, "| %other = math.absf %t : tensor<3x2xf32>"),
            NOT_ALONE,
            id="for other readers",
        ),
        pytest.param(
            times(
                constant("dense<(1.0, 2.0)>", element=COMPLEX),
                FORMS[0].format("k"),
                f"| %other = tensor.cast %t : tensor<3x2x{COMPLEX}> to tensor<?x2x{COMPLEX}>",
                BY_TURNED,
                element=COMPLEX,
            ),
            NOT_ALONE,
            id="of complex numbers",
        ),
    ],
)
def test_other_transpositions_stay_and_it_says_why(text: str, reason: str) -> None:
    tools.assert_left_alone(text, only("fold_transpose"), reason)


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
