"""Convolutions with the channels last: what becomes of small programs, and that they still compute the same."""

from __future__ import annotations

import pytest

from harness.rewrites.channels_last import channels_last
from tests.rewrites.channels_last_tools import (
    agree,
    constant,
    convolution,
    count,
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

ONE = function(
    constant("k", WEIGHTS) + pad("padded", "x", X) + convolution("y", "padded", "k", (PADDED, WEIGHTS, Y)),
    {"x": X},
    "y",
    Y,
)


def test_a_padded_convolution_with_transpositions_at_the_borders() -> None:
    before = """
    func.func @main(%x: tensor<1x2x2x2xf32>) -> tensor<1x1x2x2xf32> {
      %zero = arith.constant 0.0 : f32
      %k = arith.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>
      %padded = tensor.pad %x low[0, 0, 0, 0] high[0, 0, 0, 1] {
      ^bb0(%n: index, %c: index, %h: index, %w: index):
        tensor.yield %zero : f32
      } : tensor<1x2x2x2xf32> to tensor<1x2x2x3xf32>
      %e = tensor.empty() : tensor<1x1x2x2xf32>
      %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
      %y = linalg.conv_2d_nchw_fchw {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
        ins(%padded, %k : tensor<1x2x2x3xf32>, tensor<1x2x1x2xf32>)
        outs(%start : tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
      return %y : tensor<1x1x2x2xf32>
    }
    """
    after = """
    func.func @main(%x: tensor<1x2x2x2xf32>) -> tensor<1x1x2x2xf32> {
      %zero = arith.constant 0.0 : f32
      %0 = tensor.empty() : tensor<1x2x2x2xf32>
      %1 = linalg.transpose ins(%x : tensor<1x2x2x2xf32>) outs(%0 : tensor<1x2x2x2xf32>) permutation = [0, 2, 3, 1]
      %2 = util.optimization_barrier %1 : tensor<1x2x2x2xf32>
      %padded = tensor.pad %2 low[0, 0, 0, 0] high[0, 0, 1, 0] {
      ^bb0(%n: index, %c: index, %h: index, %w: index):
        tensor.yield %zero : f32
      } : tensor<1x2x2x2xf32> to tensor<1x2x3x2xf32>
      %k = arith.constant dense<[[[[1.0], [3.0]], [[2.0], [4.0]]]]> : tensor<1x2x2x1xf32>
      %3 = tensor.empty() : tensor<1x2x2x1xf32>
      %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
      %5 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
        ins(%padded, %k : tensor<1x2x3x2xf32>, tensor<1x2x2x1xf32>)
        outs(%4 : tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
      %6 = util.optimization_barrier %5 : tensor<1x2x2x1xf32>
      %7 = tensor.empty() : tensor<1x1x2x2xf32>
      %8 = linalg.transpose ins(%6 : tensor<1x2x2x1xf32>) outs(%7 : tensor<1x1x2x2xf32>) permutation = [0, 3, 1, 2]
      return %8 : tensor<1x1x2x2xf32>
    }
    """
    assert rewritten(before, channels_last) == (printed(after), [1])


def test_what_was_rewritten_is_left_alone() -> None:
    once, _ = rewritten(ONE, channels_last)
    assert rewritten(once, channels_last) == (once, [0])


def test_functions_of_the_input_phase_are_functions_too() -> None:
    text = ONE.replace("func.func @", "util.func public @").replace(" return ", " util.return ")
    assert rewritten(text, channels_last)[1] == [1]


@pytest.mark.parametrize(
    ("strides", "dilations", "result"),
    [((1, 1), (1, 1), (1, 4, 5, 6)), ((2, 1), (1, 1), (1, 4, 3, 6)), ((1, 2), (2, 3), (1, 4, 3, 1))],
)
def test_strides_and_dilations_are_kept(
    strides: tuple[int, int], dilations: tuple[int, int], result: tuple[int, ...]
) -> None:
    turned = convolution("y", "padded", "k", (PADDED, WEIGHTS, result), strides=strides, dilations=dilations)
    text = function(constant("k", WEIGHTS) + pad("padded", "x", X, value="two") + turned, {"x": X}, "y", result)
    assert agree(text, [X], channels_last) == [1]


def test_weights_that_are_computed_are_transposed_at_run_time() -> None:
    body = pad("padded", "x", X) + convolution("y", "padded", "k", (PADDED, WEIGHTS, Y))
    assert agree(function(body, {"x": X, "k": WEIGHTS}, "y", Y), [X, WEIGHTS], channels_last) == [1]


def test_depthwise_convolutions_unless_they_are_not_wanted() -> None:
    shapes = (PADDED, (3, 2, 3), (1, 3, 6, 6))
    name = "linalg.depthwise_conv_2d_nchw_chw"
    body = constant("k", shapes[1]) + pad("padded", "x", X) + convolution("y", "padded", "k", shapes, name=name)
    text = function(body, {"x": X}, "y", shapes[2])
    assert agree(text, [X], channels_last) == [1]
    assert rewritten(text, lambda module: channels_last(module, depthwise=False)) == (printed(text), [0])


def test_two_convolutions_share_their_weights_still() -> None:
    second = (1, 4, 3, 4)
    shared = (4, 4, 3, 3)
    body = (
        constant("k", shared)
        + convolution("y", "x", "k", ((1, 4, 7, 8), shared, Y))
        + convolution("z", "y", "k", (Y, shared, second))
    )
    text = function(body, {"x": (1, 4, 7, 8)}, "z", second)
    assert agree(text, [(1, 4, 7, 8)], channels_last) == [2]
    after, _ = rewritten(text, channels_last)
    assert after.count(tensor((3, 3, 4, 4))) == 3  # one constant, two readers
    assert count(after, "linalg.transpose") == 2


def test_what_is_not_known_is_left_alone() -> None:
    grouped = """
    func.func @main(%x: tensor<1x2x3x6x5xf32>, %k: tensor<2x4x3x3x3xf32>, %y: tensor<1x2x4x4x3xf32>)
        -> tensor<1x2x4x4x3xf32> {
      %0 = linalg.conv_2d_ngchw_gfchw {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
        ins(%x, %k : tensor<1x2x3x6x5xf32>, tensor<2x4x3x3x3xf32>)
        outs(%y : tensor<1x2x4x4x3xf32>) -> tensor<1x2x4x4x3xf32>
      return %0 : tensor<1x2x4x4x3xf32>
    }
    """
    dynamic = """
    func.func @main(%x: tensor<?x3x6x5xf32>, %k: tensor<4x3x3x3xf32>, %y: tensor<?x4x4x3xf32>) -> tensor<?x4x4x3xf32> {
      %0 = linalg.conv_2d_nchw_fchw {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
        ins(%x, %k : tensor<?x3x6x5xf32>, tensor<4x3x3x3xf32>) outs(%y : tensor<?x4x4x3xf32>) -> tensor<?x4x4x3xf32>
      return %0 : tensor<?x4x4x3xf32>
    }
    """
    dynamic_weights = """
    func.func @main(%x: tensor<1x3x6x5xf32>, %k: tensor<4x3x?x3xf32>, %y: tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32> {
      %0 = linalg.conv_2d_nchw_fchw {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
        ins(%x, %k : tensor<1x3x6x5xf32>, tensor<4x3x?x3xf32>) outs(%y : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
      return %0 : tensor<1x4x4x3xf32>
    }
    """
    in_region = """
    func.func @main(%x: tensor<1x3x6x5xf32>, %k: tensor<4x3x3x3xf32>, %y: tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32> {
      %0 = flow.dispatch.region -> (tensor<1x4x4x3xf32>) {
        %1 = linalg.conv_2d_nchw_fchw {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
          ins(%x, %k : tensor<1x3x6x5xf32>, tensor<4x3x3x3xf32>) outs(%y : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
        flow.return %1 : tensor<1x4x4x3xf32>
      }
      return %0 : tensor<1x4x4x3xf32>
    }
    """
    nothing = "func.func @main(%x: tensor<1x3x6x5xf32>) -> tensor<1x3x6x5xf32> { return %x : tensor<1x3x6x5xf32> }"
    for text in (grouped, dynamic, dynamic_weights, in_region, nothing):
        assert rewritten(text, channels_last) == (printed(text), [0])


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
