"""How far the channels-last layout is carried through a graph, and that any graph still computes the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.rewrites.channels_last import channels_last
from tests.rewrites.channels_last_tools import (
    ALL_PARALLEL,
    agree,
    constant,
    convolution,
    count,
    function,
    pad,
    rewritten,
    tensor,
)

X = (2, 3, 5, 4)
POINTWISE = (3, 3, 1, 1)  # the weights of a convolution that keeps the shape


def turn(result: str, image: str, weights: str = "k") -> str:
    """A convolution of one pixel."""
    return convolution(result, image, weights, (X, POINTWISE, X))


def double(result: str, image: str, shape: Sequence[int] = X) -> str:
    """Elementwise arithmetic."""
    return f"""
    %{result}_empty = tensor.empty() : {tensor(shape)}
    %{result} = linalg.generic {{indexing_maps = [#same, #same], {ALL_PARALLEL}}}
      ins(%{image} : {tensor(shape)}) outs(%{result}_empty : {tensor(shape)}) {{
    ^bb0(%{result}_in: f32, %{result}_out: f32):
      %{result}_0 = arith.mulf %{result}_in, %two : f32
      linalg.yield %{result}_0 : f32
    }} -> {tensor(shape)}"""


def graph(body: str, result: str, shape: Sequence[int]) -> str:
    """A function of one image with one set of weights."""
    return function(constant("k", POINTWISE) + body, {"x": X}, result, shape)


def transposes(text: str) -> int:
    """How many transpositions the rewrite leaves at run time."""
    return count(rewritten(text, channels_last)[0], "linalg.transpose")


def test_all_between_the_first_and_the_last_convolution_goes_along() -> None:
    text = graph(turn("a", "x") + double("b", "a") + turn("c", "b"), "c", X)
    assert transposes(text) == 2
    assert agree(text, [X], channels_last) == [2]


def test_what_stands_before_and_after_goes_along_up_to_the_borders() -> None:
    text = graph(double("a", "x") + turn("b", "a") + double("c", "b"), "c", X)
    after, _ = rewritten(text, channels_last)
    order = [
        name for name in after.split() if name in {"linalg.transpose", "linalg.generic", "linalg.conv_2d_nhwc_hwcf"}
    ]
    assert order == [
        "linalg.transpose",
        "linalg.generic",
        "linalg.conv_2d_nhwc_hwcf",
        "linalg.generic",
        "linalg.transpose",
    ]
    assert agree(text, [X], channels_last) == [1]


def test_an_unknown_operation_in_between_gets_its_own_layout_back() -> None:
    reverse = f"""
    %b = tensor.collapse_shape %a [[0, 1], [2, 3]] : {tensor(X)} into tensor<6x20xf32>
    %c = tensor.expand_shape %b [[0, 1], [2, 3]] output_shape [2, 3, 5, 4] : tensor<6x20xf32> into {tensor(X)}"""
    text = graph(turn("a", "x") + reverse + turn("d", "c"), "d", X)
    assert transposes(text) == 4
    assert agree(text, [X], channels_last) == [2]


def test_a_body_that_knows_its_position_is_not_known() -> None:
    positions = f"""
    %e = tensor.empty() : {tensor(X)}
    %b = linalg.generic {{indexing_maps = [#same, #same], {ALL_PARALLEL}}}
      ins(%a : {tensor(X)}) outs(%e : {tensor(X)}) {{
    ^bb0(%in: f32, %out: f32):
      %i = linalg.index 1 : index
      %j = arith.index_cast %i : index to i32
      %f = arith.sitofp %j : i32 to f32
      %s = arith.addf %in, %f : f32
      linalg.yield %s : f32
    }} -> {tensor(X)}"""
    text = graph(turn("a", "x") + positions + turn("c", "b"), "c", X)
    assert transposes(text) == 4
    assert agree(text, [X], channels_last) == [2]


def test_a_residual_connection() -> None:
    add = f"""
    %e = tensor.empty() : {tensor(X)}
    %c = linalg.generic {{indexing_maps = [#same, #same, #same], {ALL_PARALLEL}}}
      ins(%b, %x : {tensor(X)}, {tensor(X)}) outs(%e : {tensor(X)}) {{
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %s = arith.addf %in, %in_0 : f32
      linalg.yield %s : f32
    }} -> {tensor(X)}"""
    text = graph(turn("a", "x") + turn("b", "a") + add, "c", X)
    assert transposes(text) == 2  # the argument is transposed once for both that read it
    assert agree(text, [X], channels_last) == [2]


@pytest.mark.parametrize(
    "join",
    [
        "%c = tensor.concat dim(1) %x, %b : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) -> tensor<2x6x5x4xf32>",
        """%e = tensor.empty() : tensor<2x6x5x4xf32>
    %first = tensor.insert_slice %x into %e[0, 0, 0, 0] [2, 3, 5, 4] [1, 1, 1, 1]
      : tensor<2x3x5x4xf32> into tensor<2x6x5x4xf32>
    %c = tensor.insert_slice %b into %first[0, 3, 0, 0] [2, 3, 5, 4] [1, 1, 1, 1]
      : tensor<2x3x5x4xf32> into tensor<2x6x5x4xf32>""",
    ],
    ids=["concat", "insert_slice"],
)
def test_concatenations_and_slices(join: str) -> None:
    cut = """
    %d = tensor.extract_slice %c[0, 1, 2, 0] [2, 3, 3, 2] [1, 2, 1, 2]
      : tensor<2x6x5x4xf32> to tensor<2x3x3x2xf32>"""
    small = (2, 3, 3, 2)
    last = convolution("y", "d", "k", (small, POINTWISE, small))
    text = graph(turn("b", "x") + "\n    " + join + cut + last, "y", small)
    assert transposes(text) == 2
    assert agree(text, [X], channels_last) == [2]


def test_padding_by_any_value_of_any_side() -> None:
    inside = """
    %p = tensor.pad %a low[1, 0, 2, 0] high[0, 1, 0, 3] {
    ^bb0(%n: index, %c: index, %h: index, %w: index):
      %seven = arith.constant 7.0 : f32
      tensor.yield %seven : f32
    } : tensor<2x3x5x4xf32> to tensor<3x4x7x7xf32>"""
    text = graph(turn("a", "x") + inside + double("b", "p", (3, 4, 7, 7)), "b", (3, 4, 7, 7))
    assert transposes(text) == 2
    assert agree(text, [X], channels_last) == [1]


def test_padding_that_depends_on_the_position_is_not_known() -> None:
    positions = """
    %p = tensor.pad %a low[0, 0, 1, 0] high[0, 0, 0, 0] {
    ^bb0(%n: index, %c: index, %h: index, %w: index):
      %j = arith.index_cast %w : index to i32
      %f = arith.sitofp %j : i32 to f32
      tensor.yield %f : f32
    } : tensor<2x3x5x4xf32> to tensor<2x3x6x4xf32>"""
    text = graph(turn("a", "x") + positions, "p", (2, 3, 6, 4))
    after, matched = rewritten(text, channels_last)
    assert matched == [1]
    assert "low[0, 0, 1, 0]" in after


def test_a_bias_and_a_scale_a_channel_are_read_by_the_renamed_loops() -> None:
    scale, every_pixel = (2, 3, 1, 1), "affine_map<(n, c, h, w) -> (n, c, 0, 0)>"
    arithmetic = f"""
    %e = tensor.empty() : {tensor(X)}
    %b = linalg.generic {{indexing_maps = [#same, #channel, {every_pixel}, #same], {ALL_PARALLEL}}}
      ins(%a, %bias, %scale : {tensor(X)}, tensor<3xf32>, {tensor(scale)}) outs(%e : {tensor(X)}) {{
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %out: f32):
      %s = arith.addf %in, %in_0 : f32
      %t = arith.mulf %s, %in_1 : f32
      linalg.yield %t : f32
    }} -> {tensor(X)}"""
    body = constant("k", POINTWISE) + turn("a", "x") + arithmetic
    text = function(body, {"x": X, "bias": (3,), "scale": scale}, "b", X)
    assert transposes(text) == 2
    assert agree(text, [X, (3,), scale], channels_last) == [1]


@pytest.mark.parametrize(
    ("added", "source", "count_of_transposes"), [("0, 2, 3", (3,), 2), ("1, 3", (2, 5), 2), ("0", X[1:], 3)]
)
def test_a_broadcast_whose_dimensions_keep_their_order(
    added: str, source: tuple[int, ...], count_of_transposes: int
) -> None:
    body = f"""{constant("k", POINTWISE)}
    %e = tensor.empty() : {tensor(X)}
    %start = linalg.broadcast ins(%s : {tensor(source)}) outs(%e : {tensor(X)}) dimensions = [{added}]
    {turn("a", "x").replace("outs(%a_start", "outs(%start")}"""
    text = function(body, {"x": X, "s": source}, "a", X)
    assert transposes(text) == count_of_transposes
    assert agree(text, [X, source], channels_last) == [1]


def test_pooling_goes_along() -> None:
    pooled = (2, 3, 2, 2)
    pool = f"""
    %window = tensor.empty() : tensor<2x2xf32>
    %e = tensor.empty() : {tensor(pooled)}
    %start = linalg.fill ins(%zero : f32) outs(%e : {tensor(pooled)}) -> {tensor(pooled)}
    %b = linalg.pooling_nchw_max {{strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
      ins(%a, %window : {tensor(X)}, tensor<2x2xf32>) outs(%start : {tensor(pooled)}) -> {tensor(pooled)}"""
    text = graph(turn("a", "x") + pool, "b", pooled)
    assert transposes(text) == 2
    assert agree(text, [X], channels_last) == [1]


def test_transpositions_that_are_there_already_cancel_out() -> None:
    last = (2, 5, 4, 3)
    body = f"""{constant("k", POINTWISE)}
    %e = tensor.empty() : {tensor(X)}
    %a = linalg.transpose ins(%x : {tensor(last)}) outs(%e : {tensor(X)}) permutation = [0, 3, 1, 2]
    {turn("b", "a")}
    %f = tensor.empty() : {tensor(last)}
    %c = linalg.transpose ins(%b : {tensor(X)}) outs(%f : {tensor(last)}) permutation = [0, 2, 3, 1]"""
    text = function(body, {"x": last}, "c", last)
    assert transposes(text) == 0
    assert agree(text, [last], channels_last) == [1]


def test_a_transposition_between_two_convolutions_is_no_longer_needed() -> None:
    """The second convolution takes the pixels of the first one's result for its channels."""
    last = (2, 5, 4, 3)
    weights = (2, 5, 1, 1)
    body = f"""{constant("k", POINTWISE)}{constant("l", weights, seed=1)}
    {turn("a", "x")}
    %e = tensor.empty() : {tensor(last)}
    %b = linalg.transpose ins(%a : {tensor(X)}) outs(%e : {tensor(last)}) permutation = [0, 2, 3, 1]
    {convolution("c", "b", "l", (last, weights, (2, 2, 4, 3)))}"""
    text = function(body, {"x": X}, "c", (2, 2, 4, 3))
    assert agree(text, [X], channels_last) == [2]


def test_a_function_with_a_loop_is_left_alone() -> None:
    """IREE 3.13 would overwrite what stands before the loop, where a convolution in the loop starts from it."""
    body = f"""{constant("k", POINTWISE)}
    {turn("a", "x")}
    %from = arith.constant 0 : index
    %step = arith.constant 1 : index
    %to = arith.constant 3 : index
    %r = scf.for %i = %from to %to step %step iter_args(%v = %a) -> ({tensor(X)}) {{
      {turn("c", "v")}
      scf.yield %c : {tensor(X)}
    }}"""
    text = function(body, {"x": X}, "r", X)
    assert rewritten(text, channels_last) == (rewritten(text)[0], [0])


STEPS = st.lists(st.sampled_from(["turn", "double", "pad", "join", "cut", "unknown"]), min_size=1, max_size=7)


@settings(max_examples=8, derandomize=True)
@given(steps=STEPS, data=st.data())
def test_any_graph_computes_the_same(steps: list[str], data: st.DataObject) -> None:
    """Every step reads values that were computed before, some of them more than once."""
    values: dict[str, tuple[int, ...]] = {"x": X}
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
    assert agree(function(body, {"x": X}, name, values[name]), [X], channels_last) == [turned]
