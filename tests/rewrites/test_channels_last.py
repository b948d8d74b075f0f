"""Convolutions with the channels last: what becomes of programs, how far the layout goes, and the same results."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.rewrites.channels_last import channels_last
from tests.rewrites.tools import (
    agree,
    assert_left_alone,
    assert_rewritten,
    constant,
    convolution,
    elementwise,
    function,
    pad,
    printed,
    rewritten,
    tensor,
)

X = (1, 3, 6, 5)
PADDED = (1, 3, 7, 8)
WEIGHTS = (4, 3, 3, 3)
Y = (1, 4, 5, 6)
PADDED_X = constant("k", WEIGHTS) + pad("padded", "x", X)
ONE = function(PADDED_X + convolution("y", "padded", "k", (PADDED, WEIGHTS, Y)), {"x": X}, "y", Y)


# ---------------------------------------------------------------------------------------------------- one convolution


PAD = """%padded = tensor.pad {0} low[0, 0, 0, 0] high{1} {{
      ^bb0(%n: index, %c: index, %h: index, %w: index):
        tensor.yield %zero : f32
      }} : tensor<1x2x2x2xf32> to {2}"""


def transpose(result: str, source: str, before: Sequence[int], after: Sequence[int], permutation: str) -> str:
    return f"""
    %{result}_e = tensor.empty() : {tensor(after)}
    %{result} = linalg.transpose ins(%{source} : {tensor(before)}) outs(%{result}_e : {tensor(after)})
      permutation = [{permutation}]
    """


def test_a_padded_convolution_with_transpositions_at_the_borders() -> None:
    image, first, last = (1, 2, 2, 2), (1, 1, 2, 2), (1, 2, 2, 1)
    before = f"""
    func.func @main(%x: {tensor(image)}) -> {tensor(first)} {{
      %zero = arith.constant 0.0 : f32
      %k = arith.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>
      {PAD.format("%x", [0, 0, 0, 1], tensor((1, 2, 2, 3)))}
      {convolution("y", "padded", "k", ((1, 2, 2, 3), (1, 2, 1, 2), first))}
      return %y : {tensor(first)}
    }}
    """
    turned = convolution("y", "padded", "k", ((1, 2, 3, 2), last, last), name="linalg.conv_2d_nhwc_hwcf")
    after = f"""
    func.func @main(%x: {tensor(image)}) -> {tensor(first)} {{
      %zero = arith.constant 0.0 : f32
      {transpose("t", "x", image, image, "0, 2, 3, 1")}
      %2 = util.optimization_barrier %t : {tensor(image)}
      {PAD.format("%2", [0, 0, 1, 0], tensor((1, 2, 3, 2)))}
      %k = arith.constant dense<[[[[1.0], [3.0]], [[2.0], [4.0]]]]> : {tensor(last)}
      {turned}
      %6 = util.optimization_barrier %y : {tensor(last)}
      {transpose("z", "6", last, first, "0, 3, 1, 2")}
      return %z : {tensor(first)}
    }}
    """
    assert_rewritten(before, after, channels_last)


def test_functions_of_the_input_phase_are_functions_too() -> None:
    text = ONE.replace("func.func @", "util.func public @").replace(" return ", " util.return ")
    after, matched = rewritten(text, channels_last)
    assert matched == [1]
    assert_left_alone(after, channels_last)


@pytest.mark.parametrize(
    ("strides", "dilations", "result"),
    [((2, 1), (1, 1), (1, 4, 3, 6)), ((1, 2), (2, 3), (1, 4, 3, 1))],
)
def test_strides_and_dilations_are_kept(
    strides: tuple[int, int], dilations: tuple[int, int], result: tuple[int, ...]
) -> None:
    turned = convolution("y", "padded", "k", (PADDED, WEIGHTS, result), strides=strides, dilations=dilations)
    assert agree(function(PADDED_X + turned, {"x": X}, "y", result), [X], channels_last) == [1]


def test_weights_that_are_computed_are_transposed_at_run_time() -> None:
    body = pad("padded", "x", X) + convolution("y", "padded", "k", (PADDED, WEIGHTS, Y))
    assert agree(function(body, {"x": X, "k": WEIGHTS}, "y", Y), [X, WEIGHTS], channels_last) == [1]


def test_depthwise_convolutions_unless_they_are_not_wanted() -> None:
    shapes = (PADDED, (3, 2, 3), (1, 3, 6, 6))
    name = "linalg.depthwise_conv_2d_nchw_chw"
    body = constant("k", shapes[1]) + pad("padded", "x", X) + convolution("y", "padded", "k", shapes, name=name)
    text = function(body, {"x": X}, "y", shapes[2])
    assert agree(text, [X], channels_last) == [1]
    assert_left_alone(text, lambda module: channels_last(module, depthwise=False))


def test_two_convolutions_share_their_weights_still() -> None:
    image, shared, second = (1, 4, 7, 8), (4, 4, 3, 3), (1, 4, 3, 4)
    convolutions = convolution("y", "x", "k", (image, shared, Y)) + convolution("z", "y", "k", (Y, shared, second))
    text = function(constant("k", shared) + convolutions, {"x": image}, "z", second)
    assert agree(text, [image], channels_last) == [2]
    after, _ = rewritten(text, channels_last)
    assert after.count(tensor((3, 3, 4, 4))) == 3  # one constant, two readers
    assert after.count("linalg.transpose ") == 2


STEPS_OF_ONE = "{strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}"


def accumulating(image: str, weights: str, result: str, name: str = "linalg.conv_2d_nchw_fchw") -> str:
    """A convolution that starts from an argument."""
    return f"""
    func.func @main(%x: {image}, %k: {weights}, %y: {result}) -> {result} {{
      %0 = {name} {STEPS_OF_ONE} ins(%x, %k : {image}, {weights}) outs(%y : {result}) -> {result}
      return %0 : {result}
    }}"""


def in_region(text: str) -> str:
    """The same with its convolution in a dispatch region."""
    result = text.rpartition(" : ")[2].partition("\n")[0]
    region = f"%0 = flow.dispatch.region -> ({result}) {{ %1 ="
    return text.replace("%0 =", region).replace("return", f"flow.return %1 : {result} }}\n return", 1)


@pytest.mark.parametrize(
    "text",
    [
        accumulating(
            "tensor<1x2x3x6x5xf32>", "tensor<2x4x3x3x3xf32>", "tensor<1x2x4x4x3xf32>", "linalg.conv_2d_ngchw_gfchw"
        ),
        accumulating("tensor<?x3x6x5xf32>", "tensor<4x3x3x3xf32>", "tensor<?x4x4x3xf32>"),
        accumulating("tensor<1x3x6x5xf32>", "tensor<4x3x?x3xf32>", "tensor<1x4x4x3xf32>"),
        in_region(accumulating("tensor<1x3x6x5xf32>", "tensor<4x3x3x3xf32>", "tensor<1x4x4x3xf32>")),
        "func.func @main(%x: tensor<1x3x6x5xf32>) -> tensor<1x3x6x5xf32> { return %x : tensor<1x3x6x5xf32> }",
    ],
    ids=["groups", "dynamic", "dynamic weights", "in a region", "none"],
)
def test_what_is_not_known_is_left_alone(text: str) -> None:
    assert_left_alone(text, channels_last)


def test_a_lowering_configuration_does_not_outlive_its_loops() -> None:
    configuration = "lowering_config = #iree_cpu.lowering_config<distribution = [1, 4, 5, 6, 0, 0, 0]>"
    configured = ONE.replace("linalg.conv_2d_nchw_fchw {", f"linalg.conv_2d_nchw_fchw {{{configuration}, ")
    assert "lowering_config" in printed(configured)
    assert "lowering_config" not in rewritten(configured, channels_last)[0]


def test_convolutions_in_two_branches_are_left_alone() -> None:
    first, second = (convolution(name, "padded", "k", (PADDED, WEIGHTS, Y)) for name in ("a", "b"))
    body = f"""{constant("k", WEIGHTS)}{pad("padded", "x", X)}
    %first = tensor.extract %x[%i, %i, %i, %i] : {tensor(X)}
    %is_positive = arith.cmpf ogt, %first, %zero : f32
    %y = scf.if %is_positive -> ({tensor(Y)}) {{{first}
      scf.yield %a : {tensor(Y)}
    }} else {{{second}
      scf.yield %b : {tensor(Y)}
    }}"""
    assert agree(function("%i = arith.constant 0 : index\n    " + body, {"x": X}, "y", Y), [X], channels_last) == [0]


# -------------------------------------------------------------------------------------------------------------- graphs

Z = (2, 3, 5, 4)
LAST = (2, 5, 4, 3)
POINTWISE = (3, 3, 1, 1)  # the weights of a convolution that keeps the shape
SLICES = "tensor<2x3x5x4xf32> into tensor<2x6x5x4xf32>"
CUT = "%d = tensor.extract_slice %c[0, 1, 2, 0] [2, 3, 3, 2] [1, 2, 1, 2] : tensor<2x6x5x4xf32> to tensor<2x3x3x2xf32>"
SMALL = (2, 3, 3, 2)
SCALE = (2, 3, 1, 1)


def turn(result: str, image: str, weights: str = "k") -> str:
    """A convolution of one pixel."""
    return convolution(result, image, weights, (Z, POINTWISE, Z))


def double(result: str, image: str, shape: Sequence[int] = Z) -> str:
    return elementwise(result, "%r = arith.mulf %a0, %two : f32", [(image, "#same", shape)], shape)


def broadcast(added: str, source: Sequence[int]) -> str:
    """A convolution that starts from %s, repeated along some dimensions."""
    start = f"%start = linalg.broadcast ins(%s : {tensor(source)}) outs(%e : {tensor(Z)}) dimensions = [{added}]"
    return f"%e = tensor.empty() : {tensor(Z)}\n{start}{turn('a', 'x').replace('outs(%a_start', 'outs(%start')}"


POSITION = """%i = linalg.index 1 : index
      %j = arith.index_cast %i : index to i32
      %f = arith.sitofp %j : i32 to f32
      %r = arith.addf %a0, %f : f32"""
RESHAPES = f"""
    %b = tensor.collapse_shape %a [[0, 1], [2, 3]] : {tensor(Z)} into tensor<6x20xf32>
    %c = tensor.expand_shape %b [[0, 1], [2, 3]] output_shape [2, 3, 5, 4] : tensor<6x20xf32> into {tensor(Z)}
    """
CONCAT = "%c = tensor.concat dim(1) %x, %b : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) -> tensor<2x6x5x4xf32>\n"
INSERTIONS = f"""%e = tensor.empty() : tensor<2x6x5x4xf32>
    %first = tensor.insert_slice %x into %e[0, 0, 0, 0] [2, 3, 5, 4] [1, 1, 1, 1] : {SLICES}
    %c = tensor.insert_slice %b into %first[0, 3, 0, 0] [2, 3, 5, 4] [1, 1, 1, 1] : {SLICES}
    """
PAD_BY_SEVEN = """
    %p = tensor.pad %a low[1, 0, 2, 0] high[0, 1, 0, 3] {
    ^bb0(%n: index, %c: index, %h: index, %w: index):
      %seven = arith.constant 7.0 : f32
      tensor.yield %seven : f32
    } : tensor<2x3x5x4xf32> to tensor<3x4x7x7xf32>
    """
PAD_BY_POSITION = """
    %p = tensor.pad %a low[0, 0, 1, 0] high[0, 0, 0, 0] {
    ^bb0(%n: index, %c: index, %h: index, %w: index):
      %j = arith.index_cast %w : index to i32
      %f = arith.sitofp %j : i32 to f32
      tensor.yield %f : f32
    } : tensor<2x3x5x4xf32> to tensor<2x3x6x4xf32>"""
POOL = f"""
    %window = tensor.empty() : tensor<2x2xf32>
    %e = tensor.empty() : {tensor((2, 3, 2, 2))}
    %start = linalg.fill ins(%zero : f32) outs(%e : {tensor((2, 3, 2, 2))}) -> {tensor((2, 3, 2, 2))}
    %b = linalg.pooling_nchw_max {STEPS_OF_ONE.replace("strides = dense<1>", "strides = dense<2>")}
      ins(%a, %window : {tensor(Z)}, tensor<2x2xf32>) outs(%start : {tensor((2, 3, 2, 2))}) -> {tensor((2, 3, 2, 2))}"""
BIAS_AND_SCALE = elementwise(
    "b",
    "%s = arith.addf %a0, %a1 : f32\n%r = arith.mulf %s, %a2 : f32",
    [("a", "#same", Z), ("bias", "#channel", (3,)), ("scale", "affine_map<(n, c, h, w) -> (n, c, 0, 0)>", SCALE)],
    Z,
)
RESIDUAL = elementwise("c", "%r = arith.addf %a0, %a1 : f32", [("b", "#same", Z), ("x", "#same", Z)], Z)


@pytest.mark.parametrize(
    ("body", "result", "shape", "inputs", "transposes", "turned"),
    [
        pytest.param(
            turn("a", "x") + double("b", "a") + turn("c", "b"), "c", Z, {}, 2, 2, id="all between two convolutions"
        ),
        pytest.param(
            double("a", "x") + turn("b", "a") + double("c", "b"), "c", Z, {}, 2, 1, id="what is before and after"
        ),
        pytest.param(turn("a", "x") + RESHAPES + turn("d", "c"), "d", Z, {}, 4, 2, id="not an unknown operation"),
        pytest.param(
            turn("a", "x") + elementwise("b", POSITION, [("a", "#same", Z)], Z) + turn("c", "b"),
            *("c", Z, {}, 4, 2),
            id="not a body that knows its position",
        ),
        # The argument is transposed once for both that read it.
        pytest.param(turn("a", "x") + turn("b", "a") + RESIDUAL, "c", Z, {}, 2, 2, id="a residual connection"),
        *(
            pytest.param(
                turn("b", "x") + join + CUT + convolution("y", "d", "k", (SMALL, POINTWISE, SMALL)),
                *("y", SMALL, {}, 2, 2),
                id=f"slices and {name}",
            )
            for name, join in (("concat", CONCAT), ("insert_slice", INSERTIONS))
        ),
        pytest.param(
            turn("a", "x") + PAD_BY_SEVEN + double("b", "p", (3, 4, 7, 7)),
            *("b", (3, 4, 7, 7), {}, 2, 1),
            id="padding by any value of any side",
        ),
        pytest.param(turn("a", "x") + BIAS_AND_SCALE, "b", Z, {"bias": (3,), "scale": SCALE}, 2, 1, id="a bias"),
        *(
            pytest.param(broadcast(added, source), "a", Z, {"s": source}, count, 1, id=f"broadcast along {added}")
            for added, source, count in (("0, 2, 3", (3,), 2), ("1, 3", (2, 5), 2), ("0", Z[1:], 3))
        ),
        pytest.param(turn("a", "x") + POOL, "b", (2, 3, 2, 2), {}, 2, 1, id="pooling"),
        pytest.param(
            transpose("a", "x", LAST, Z, "0, 3, 1, 2") + turn("b", "a") + transpose("c", "b", Z, LAST, "0, 2, 3, 1"),
            *("c", LAST, {"x": LAST}, 0, 1),
            id="transpositions that cancel out",
        ),
        # The second convolution takes the pixels of the first one's result for its channels.
        pytest.param(
            constant("l", (2, 5, 1, 1), seed=1)
            + turn("a", "x")
            + transpose("b", "a", Z, LAST, "0, 2, 3, 1")
            + convolution("c", "b", "l", (LAST, (2, 5, 1, 1), (2, 2, 4, 3))),
            *("c", (2, 2, 4, 3), {}, 3, 2),
            id="a transposition between two",
        ),
    ],
)
def test_how_far_the_layout_is_carried(
    body: str,
    result: str,
    shape: tuple[int, ...],
    inputs: dict[str, tuple[int, ...]],
    transposes: int,
    turned: int,
) -> None:
    """Transpositions at run time are left where it ends."""
    arguments = {"x": Z, **inputs}
    text = function(constant("k", POINTWISE) + "\n" + body, arguments, result, shape)
    assert rewritten(text, channels_last)[0].count("linalg.transpose ") == transposes
    assert agree(text, list(arguments.values()), channels_last) == [turned]


def test_padding_that_depends_on_the_position_is_not_known() -> None:
    text = function(constant("k", POINTWISE) + turn("a", "x") + PAD_BY_POSITION, {"x": Z}, "p", (2, 3, 6, 4))
    after, matched = rewritten(text, channels_last)
    assert matched == [1]
    assert "low[0, 0, 1, 0]" in after


def test_a_function_with_a_loop_is_left_alone() -> None:
    """IREE 3.13 would overwrite what stands before the loop, where a convolution in the loop starts from it."""
    body = f"""{constant("k", POINTWISE)}
    {turn("a", "x")}
    %from = arith.constant 0 : index
    %step = arith.constant 1 : index
    %to = arith.constant 3 : index
    %r = scf.for %i = %from to %to step %step iter_args(%v = %a) -> ({tensor(Z)}) {{
      {turn("c", "v")}
      scf.yield %c : {tensor(Z)}
    }}"""
    assert_left_alone(function(body, {"x": Z}, "r", Z), channels_last)


STEPS = st.lists(st.sampled_from(["turn", "double", "pad", "join", "cut", "unknown"]), min_size=1, max_size=7)


@settings(max_examples=4, derandomize=True)
@given(steps=STEPS, data=st.data())
def test_any_graph_computes_the_same(steps: list[str], data: st.DataObject) -> None:
    """Every step reads values that were computed before, some of them more than once."""
    values: dict[str, tuple[int, ...]] = {"x": Z}
    body, turned = "", 0
    for number, step in enumerate([*steps, "turn"]):
        name, source = f"v{number}", data.draw(st.sampled_from(sorted(values)))
        n, c, h, w = shape = values[source]
        match step:
            case "turn":
                body += constant(f"{name}_k", (3, c, 2, 1), seed=number)
                values[name] = (n, 3, h - 1, w)
                body += convolution(name, source, f"{name}_k", (shape, (3, c, 2, 1), values[name])) + "\n    "
                turned += 1
            case "double":
                values[name] = shape
                body += double(name, source, shape)
            case "pad":
                values[name] = (n, c, h + 1, w + 3)
                body += pad(name, source, shape, value="two")
            case "join":
                values[name] = (n, 2 * c, h, w)
                pair = f"%{source}, %{source} : ({tensor(shape)}, {tensor(shape)})"
                body += f"\n    %{name} = tensor.concat dim(1) {pair} -> {tensor(values[name])}"
            case "cut":
                values[name] = (n, c, h, w - 1)
                sizes = ", ".join(map(str, values[name]))
                body += f"\n    %{name} = tensor.extract_slice %{source}[0, 0, 0, 1] [{sizes}] [1, 1, 1, 1]"
                body += f" : {tensor(shape)} to {tensor(values[name])}"
            case "unknown":
                values[name] = shape
                body += f"\n    %{name} = arith.addf %{source}, %{source} : {tensor(shape)}"
        body += "\n    "
    assert agree(function(body, {"x": Z}, name, values[name]), [Z], channels_last) == [turned]
