"""From the MLP that PyTorch exports to the one that tpp-mlir generates, one difference at a time; ReLUs as maxima.

https://github.com/plaidml/tpp-mlir lists the differences in the issue "PyTorch MLP doesn't fuse XSMM".
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Literal

import numpy as np
import pytest
from iree.compiler import ir

from harness.models.mlp import Parameters, build
from harness.rewrites.ingress import ingress_canonicalize, relus_to_maxima
from harness.rewrites.operations import transposed
from tests.programs import program
from tests.rewrites.tools import (
    Array,
    Program,
    agree,
    assert_left_alone,
    assert_rewritten,
    printed,
    random,
    rewritten,
    run,
)

OPTIONS = ("fill_init", "outs_style", "fold_transpose", "generic_matmul", "relu_to_maximum")
FILL, OUTS, FOLD, GENERIC, _ = OPTIONS


def only(*options: str) -> Callable[[ir.Module], int]:
    """The rewrite with these options on and the others off."""
    return partial(ingress_canonicalize, **{option: option in options for option in OPTIONS})


PLACES = {FILL: 2, OUTS: 2, FOLD: 1, GENERIC: 1, "relu_to_maximum": 1}  # a layer
LAYERS = 2


@cache
def mlp(form: Literal["pytorch", "mlir-gen"], dtype: Literal["f32", "bf16"]) -> str:
    return str(build(Parameters(form=form, dtype=dtype, layers=LAYERS, width=48, batch=8)).text)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_all_together_give_the_generated_form(dtype: Literal["f32", "bf16"]) -> None:
    """Not only the same operations: the same text, weights included."""
    text, matched = rewritten(mlp("pytorch", dtype), only(*OPTIONS))
    assert text.replace("_transposed", "") == printed(mlp("mlir-gen", dtype))
    assert matched == [LAYERS * sum(PLACES.values())]
    assert_left_alone(text, only(*OPTIONS))
    assert_left_alone(mlp("pytorch", dtype), only())


@pytest.mark.parametrize("options", [*([option] for option in OPTIONS), [FILL, OUTS, GENERIC, "relu_to_maximum"]])
def test_options_match_their_own_places_and_keep_the_numbers(options: Sequence[str]) -> None:
    """To the bit, but for another layout of the weights, which may round otherwise."""
    (x,) = random([(8, 48)])
    text, matched = rewritten(mlp("pytorch", "f32"), only(*options))
    assert matched == [LAYERS * sum(PLACES[option] for option in options)]
    rounding = 1e-5 if FOLD in options else 0
    np.testing.assert_allclose(run(text, x), run(mlp("pytorch", "f32"), x), rtol=rounding, atol=rounding)


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


def each(operation: str, *between: str, element: str = "f32") -> str:
    """An elementwise operation on two matrices and a row, after an empty one and what stands between."""
    lines = "\n".join(between)
    return program(f"main a:4x16 b:4x16 row:16\ne = empty 4x16\n{lines}\nr = each {operation}\nreturn r", element)


def products(operation: str, also_returned: str) -> str:
    """Two products of matrices, what an operation makes of them, and another value that is returned."""
    lines = f"e = empty 4x4\nz = fill zero e\nab = matmul a b z\nba = matmul b a z\nr = each addf {operation}"
    return program(f"main a:4x4 b:4x4\n{lines}\nreturn r {also_returned}")


LEFT, TURNED, OUT = (f"affine_map<(m, n, k) -> ({axes})>" for axes in ("m, k", "n, k", "m, n"))
READ_TURNED = f"indexing_maps = [{LEFT}, {TURNED}, {OUT}]"
# A transposition; the last two as older exporters write it: the loops may be those of the operand or of the result.
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


def stored(form: str, element: str, before: str, after: str) -> tuple[str, str, list[str], int]:
    weight, turned = constant(f"dense<{before}>", element=element), constant(f"dense<{after}>", "t", "3x2", element)
    exported = times(weight, form.format("k"), BY_TURNED, element=element)
    return exported, times(turned, BY_TURNED, element=element), [FOLD], 1


EXPORTED, UPDATING = layer("product out=e", "sum zero out=e"), layer("out out=product", "out zero out=sum")
THROUGH = times(
    f"y:4x2 = | linalg.matmul {READ_TURNED} ins(%x, %w : tensor<4x3xf32>, tensor<2x3xf32>) "
    "outs(%init : tensor<4x2xf32>) -> tensor<4x2xf32>"
)
# Before, after, the options that are on, and how many places they match.
PAIRS: dict[str, tuple[str, str, list[str], int]] = {
    "a fill of the same buffer": (EXPORTED, layer("product out=z", "sum zero out=z"), [FILL], 2),
    "bias and ReLU update the result before them": (EXPORTED, UPDATING, [OUTS], 2),
    **{
        f"a fill of {element} is made": (
            each(f"{operation} a b out=e", element=element),
            each(f"{operation} a b out=z", f"c = constant {zero}", "z = fill c e", element=element),
            *([FILL], 1),
        )
        for element, zero, operation in (("bf16", "0.0", "mulf"), ("i8", "0", "addi"), ("i1", "0", "xori"))
    },
    "the one of two nothing else reads": (products("ab ba out=e", "ab"), products("ab out out=ba", "ab"), [OUTS], 1),
    "a constant": stored(FORMS[0], "bf16", "1.4", "1.4"),
    "a constant of small integers": stored(FORMS[1], "i4", "[[1, 2, 3], [4, 5, -6]]", "[[1, 4], [2, 5], [3, -6]]"),
    **{f"an argument, {form}": (times(form.format("w"), BY_TURNED), THROUGH, [FOLD], 1) for form in FORMS},
    "two in a row": (
        program("main a:4x4 b:4x4\nt = transpose b 1,0\nu = transpose t 1,0\ny = matmul a u b\nreturn y"),
        program("main a:4x4 b:4x4\ny = matmul a b b\nreturn y"),
        *([FOLD], 2),
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_what_becomes_of_a_place(what: str) -> None:
    before, after, options, places = PAIRS[what]
    assert_rewritten(before, after, only(*options), places=places)


UNSIGNED = " {cast = #linalg.type_fn<cast_unsigned>}"


@pytest.mark.parametrize(
    ("attributes", "types", "right", "body", "right_axes"),
    [
        ("", ("bf16", "f32"), "8x16", ["extf", "extf", "mulf", "addf"], "d2, d1"),
        (UNSIGNED, ("i8", "i32"), "8x16", ["extui", "extui", "muli", "addi"], "d2, d1"),
        (f" {READ_TURNED}", ("f32", "f32"), "16x8", ["mulf", "addf"], "d1, d2"),
    ],
)
def test_a_product_in_the_generic_form(
    attributes: str, types: tuple[str, str], right: str, body: list[str], right_axes: str
) -> None:
    x, w, y = f"tensor<4x8x{types[0]}>", f"tensor<{right}x{types[0]}>", f"tensor<4x16x{types[1]}>"
    product = f"linalg.matmul{attributes} ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}"
    text = f"func.func @main(%x: {x}, %w: {w}, %init: {y}) -> {y} {{\n%y = {product}\nreturn %y : {y}\n}}"
    after, (matched,) = rewritten(text, only(GENERIC))
    assert (matched, f"({right_axes})>" in after) == (1, True)
    assert re.findall(r"(?:arith|linalg)\.(\w+) ", after) == ["generic", *body, "yield"]
    assert 'iterator_types = ["parallel", "parallel", "reduction"]' in after


LEFT_ALONE: dict[str, tuple[str, list[str]]] = {
    "a copy": (each("yield a out=e"), [FILL, OUTS]),
    "reads its init": (each("addf a out out=e"), [FILL, OUTS]),
    "of arguments": (each("addf a b out=e"), [OUTS]),
    "broadcasts": (each("addf row:c two out=e"), [FILL, OUTS]),
    "a result that is read twice": (products("ab ab out=e", "ba"), [OUTS]),
    "of the init": (program("main a:4x4 b:4x4\nt = transpose b 1,0\ny = matmul a b t\nreturn y"), [FOLD]),
    "for other readers": (times(FORMS[0].format("w"), BY_TURNED, "other = math.absf t"), [FOLD]),
}


@pytest.mark.parametrize("what", LEFT_ALONE)
def test_what_is_left_alone(what: str) -> None:
    text, options = LEFT_ALONE[what]
    assert_left_alone(text, only(*options))


def test_of_a_batch_the_last_two_dimensions_may_be_swapped_and_others_in_the_generic_form() -> None:
    kinds = "tensor<5x4x3xf32>, tensor<5x3x2xf32>"
    named = f"linalg.batch_matmul ins(%x, %t : {kinds}) outs(%init : tensor<5x4x2xf32>) -> tensor<5x4x2xf32>"
    swapped, turned = (
        program(f"main x:5x4x3 w:{w} init:5x4x2\nt = transpose w {permutation}\ny:5x4x2 = | {named}\nreturn y")
        for w, permutation in (("5x2x3", "0,2,1"), ("3x5x2", "1,0,2"))
    )
    assert_left_alone(turned, only(FOLD))
    for text, options in ((swapped, [FOLD]), (turned, [FOLD, GENERIC])):
        assert agree(text, *(only(option) for option in reversed(options)))[-1] == 1
        assert "linalg.transpose" not in rewritten(text, *(only(option) for option in reversed(options)))[0]


def test_equal_transpositions_share_one_resource() -> None:
    lines = (constant("dense_resource<w>"), "t = transpose k 1,0", "u = transpose k 1,0", "z = matmul x u init")
    text = times(*lines, BY_TURNED, blob=f'w: "0x04000000{"00" * 24}"', returned="y z")
    after, matched = rewritten(text, only(FOLD))
    assert matched == [2]
    assert re.findall(r"(\w+): \"0x", after) == ["w_transposed"]


def test_a_constant_that_is_printed_as_bytes_is_stored_transposed_too() -> None:
    text = program("main x:4x30 init:4x20\nk = random 20x30\nt = transpose k 1,0\ny = matmul x t init\nreturn y")
    assert agree(text, only(FOLD)) == [1]
    assert "linalg.transpose" not in rewritten(text, only(FOLD))[0]


@pytest.mark.parametrize("value", ["dense_resource<gone> : tensor<2x3xf32>", "dense<> : tensor<0x3xf32>"])
def test_values_that_cannot_be_got_at_stay(value: str) -> None:
    with ir.Context():
        attribute = ir.Attribute.parse(value)
        assert transposed(attribute, [0, 1], attribute.type) is None


KIND = "tensor<3x16xf32>"
SAME = "affine_map<(i, j) -> (i, j)>"


def function(body: str, name: str = "main", slope: str = "0.2 : f32") -> str:
    """A function that applies a body, which makes `%y0` of `%in`, `%zero` and `%slope`, to each element."""
    return f"""
func.func @{name}(%x: {KIND}) -> {KIND} {{
  %zero = arith.constant 0.0 : f32
  %slope = arith.constant {slope}
  %empty = tensor.empty() : {KIND}
  %y = linalg.generic {{indexing_maps = [{SAME}, {SAME}], iterator_types = ["parallel", "parallel"]}}
    ins(%x : {KIND}) outs(%empty : {KIND}) {{
  ^bb0(%in: f32, %out: f32):
    {body}
    linalg.yield %y0 : f32
  }} -> {KIND}
  return %y : {KIND}
}}
"""


def relu(comparison: str, selection: str) -> str:
    return f"%p = arith.cmpf {comparison} : f32\n%y0 = arith.select %p, {selection} : f32"


# As PyTorch computes it, and as in the ESRGAN of https://github.com/iree-org/iree/issues/11102.
SELECTED = """%scaled = arith.mulf {1} : f32
    %p = arith.cmpf {0}, %in, %zero : f32
    %y0 = arith.select %p, %in, %scaled : f32"""
SUMMED = """%p = arith.cmpf {0}, %in, %zero : f32
    %above = arith.select %p, %in, %zero : f32
    %below = arith.select %p, %zero, %in : f32
    %scaled = arith.mulf {1} : f32
    %y0 = arith.addf {2} : f32"""
OPERANDS = ("%below, %slope", "%above, %scaled")
FORMS_OF_RELU = {
    "as_exported": relu("ugt, %in, %zero", "%in, %zero"),
    "values_exchanged": relu("ole, %in, %zero", "%zero, %in"),
    "both": relu("oge, %zero, %in", "%zero, %in"),
    "selected": SELECTED.format("ogt", "%in, %slope"),
    "summed": SUMMED.format("ugt", *OPERANDS),
    "summed_the_other_way": SUMMED.format("ogt", "%slope, %below", "%scaled, %above"),
}


def edge_cases() -> Array:
    """Zeros of both signs, infinities, NaN, the smallest and largest of each kind, and ordinary numbers."""
    limits = np.finfo(np.float32)
    some = [0.0, 1.0, 2.5, np.inf, limits.max, limits.tiny, limits.smallest_subnormal, 3 * limits.smallest_subnormal]
    values = np.array([*some, *(-one for one in some), np.nan, *np.linspace(-3, 3, 31)], dtype=np.float32)
    return values.reshape(-1, 16)


def flushed(values: Array) -> Array:
    """Subnormal numbers as 0: compiled programs read them so, but may pass them on unread in a selection."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


def test_each_form_of_relu_and_leaky_relu_becomes_a_maximum_and_no_value_changes() -> None:
    before = "".join(function(body, name) for name, body in FORMS_OF_RELU.items())
    after, (matched,) = rewritten(before, relus_to_maxima)
    assert matched == after.count("arith.maximumf") == len(FORMS_OF_RELU)
    assert not re.search(r"arith\.(select|cmpf|addf)", after)
    selecting, maximum = Program(before), Program(after)
    for name in FORMS_OF_RELU:
        expected, actual = (flushed(program(edge_cases(), function=name)[0]) for program in (selecting, maximum))
        np.testing.assert_array_equal(actual, expected, err_msg=name)


# Halves that treat a NaN differently.
UNEQUAL_HALVES = (
    SUMMED.replace("%below =", "%q = arith.cmpf ugt, %in, %zero : f32\n%below =")
    .replace("%p, %zero", "%q, %zero")
    .format("ogt", *OPERANDS)
)


@pytest.mark.parametrize(
    ("body", "slope"),
    [
        *((FORMS_OF_RELU["selected"], slope) for slope in ("0.0", "-0.5", "1.5", "0x7FC00000")),
        *((FORMS_OF_RELU["summed_the_other_way"], slope) for slope in ("0.0", "1.5")),
        (relu("ogt, %in, %zero", "%in, %zero"), "0.2"),  # a NaN gives 0
        (relu("uge, %in, %zero", "%in, %zero"), "0.2"),  # -0.0 stays
        (relu("ugt, %in, %zero", "%zero, %in"), "0.2"),  # a minimum
        (SUMMED.replace("%p, %zero, %in", "%p, %zero, %slope").format("ogt", *OPERANDS), "0.2"),
        (UNEQUAL_HALVES, "0.2"),
    ],
)
def test_other_selections_and_slopes_are_left_alone(body: str, slope: str) -> None:
    assert_left_alone(function(body, slope=f"{slope} : f32"), relus_to_maxima)
