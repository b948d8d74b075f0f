"""Padding fuses, contiguous insertions do not: https://github.com/iree-org/iree/pull/8662.

That discussion wants padding to be a fill by itself and an insertion that fuses; and what is inserted into one
contiguous span to stay out of dispatches, so that others can write the rest of the tensor at the same time.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from harness.rewrites.fuse_padding import fuse_padding
from harness.rewrites.replicate_stores import replicate_stores
from tests.rewrites.tools import VULKAN, compiled, lowered, random, rewritten

IMAGE, FILTER, BIAS = (1, 8, 6, 10), (8, 8, 3, 3), (8,)
CONSUMERS = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops"
PRODUCERS = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-producer-ops"


def padded_convolutions(*, concatenated: bool) -> str:
    """Two padded convolutions with ReLU, one after the other; the first one's result may be used otherwise as well."""
    image, wide = "tensor<1x8x6x10xf32>", "tensor<1x16x6x10xf32>"
    result, type_ = ("%both", wide) if concatenated else ("%v2", image)
    return f"""
#same = affine_map<(n, c, y, x) -> (n, c, y, x)>
#channel = affine_map<(n, c, y, x) -> (c)>
func.func @main(%v0: {image}, %filter: tensor<8x8x3x3xf32>, %bias: tensor<8xf32>) -> {type_} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {image}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {image}) -> {image}
  {_padded_convolution(0)}
  {_padded_convolution(1)}
  %both = tensor.concat dim(1) %v1, %v2 : ({image}, {image}) -> {wide}
  return {result} : {type_}
}}"""


def _padded_convolution(number: int) -> str:
    image, padded = "tensor<1x8x6x10xf32>", "tensor<1x8x8x12xf32>"
    return f"""
  %p{number} = tensor.pad %v{number} low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  }} : {image} to {padded}
  %c{number} = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
      ins(%p{number}, %filter : {padded}, tensor<8x8x3x3xf32>) outs(%start : {image}) -> {image}
  %v{number + 1} = linalg.generic {{indexing_maps = [#same, #channel, #same],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%c{number}, %bias : {image}, tensor<8xf32>) outs(%empty : {image}) {{
  ^bb0(%in: f32, %b: f32, %out: f32):
    %sum = arith.addf %in, %b : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  }} -> {image}"""


def captured(text: str) -> list[str]:
    """The types of what dispatches hold on to in order to change a part of it."""
    host = text[text.index("util.func") :]
    return re.findall(r"flow\.dispatch [^\n]*, (tensor<[0-9xf]+32>)\) -> \(?%", host)


def test_iree_fuses_what_is_only_padded() -> None:
    """As the seed asks: a fill by itself, and the convolution inserts into it; only the argument needs a copy."""
    flow = lowered(padded_convolutions(concatenated=False), "flow")
    assert len(re.findall("flow.dispatch @", flow)) == 3
    assert captured(flow) == ["tensor<8x8x12xf32>"] * 2
    assert rewritten(flow, fuse_padding)[1] == [0]


def test_what_is_padded_and_used_otherwise_is_fused_too() -> None:
    """One dispatch less than IREE has; the fills stay; the bits are the same."""
    flow = lowered(padded_convolutions(concatenated=True), "flow")
    text, matched = rewritten(flow, fuse_padding)
    assert matched == [1]
    stock, fused = compiled(flow), compiled(text)
    assert stock.counts == (4, 1, 2)
    assert fused.counts == (3, 1, 2)
    arguments = random([IMAGE, FILTER, BIAS])
    assert fused(*arguments) == stock(*arguments)


def test_contiguous_insertions_stay_updates() -> None:
    """No dispatch holds on to the concatenation, before or after."""
    flow = lowered(padded_convolutions(concatenated=True), "flow")
    text, _ = rewritten(flow, fuse_padding)
    for program in (flow, text):
        assert program.count("= flow.tensor.update") == 2
        assert captured(program) == ["tensor<8x8x12xf32>"] * 2


@pytest.mark.parametrize("is_fused", [False, True])
def test_what_a_fused_contiguous_insertion_would_cost(is_fused: bool) -> None:
    """Two halves of a tensor: as updates they are placed in it just as well, and are computed at the same time."""
    halves = "".join(_half(number, is_fused=is_fused) for number in (0, 1))
    program = f"""
#same = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<2x6xf32>) -> tensor<4x6xf32> {{
  %empty = tensor.empty() : tensor<2x6xf32>
  %whole0 = tensor.empty() : tensor<4x6xf32>
  {halves}
  return %whole2 : tensor<4x6xf32>
}}"""
    commands = lowered(program, "stream")
    assert "stream.cmd.copy" not in commands
    assert ("stream.cmd.concurrent" in commands) is not is_fused


def _half(number: int, *, is_fused: bool) -> str:
    inserted = f"""
  %half{number} = linalg.generic {{indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<2x6xf32>) outs(%empty : tensor<2x6xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %result = arith.{("mulf", "addf")[number]} %in, %in : f32
    linalg.yield %result : f32
  }} -> tensor<2x6xf32>
  %inserted{number} = tensor.insert_slice %half{number} into %whole{number}[{2 * number}, 0] [2, 6] [1, 1]
      : tensor<2x6xf32> into tensor<4x6xf32>"""
    if not is_fused:
        return inserted.replace(f"%inserted{number}", f"%whole{number + 1}")
    return f"""
  %whole{number + 1} = flow.dispatch.region -> (tensor<4x6xf32>) {{
    {inserted}
    flow.return %inserted{number} : tensor<4x6xf32>
  }}"""


@pytest.mark.parametrize("flag", [CONSUMERS, PRODUCERS])
def test_iree_s_flags_leave_contiguous_insertions_alone_as_well(flag: str) -> None:
    """They fuse even the fill: then nothing is captured at all, and the code must compute the border."""
    flow = lowered(padded_convolutions(concatenated=True), "flow", flag)
    assert flow.count("= flow.tensor.update") == 2
    assert "flow.tensor.splat" not in flow
    assert captured(flow) == []


# Kept, so that the release that mends it is noticed: only wrong numbers count, and right ones fail the test.
@pytest.mark.xfail(
    raises=AssertionError, strict=True, reason="IREE 3.13 pads a fused convolution's result wrongly, without a word"
)
def test_iree_s_flag_for_producers_gives_the_right_numbers() -> None:
    program = padded_convolutions(concatenated=False)
    stock = compiled(lowered(program, "flow"))
    fused = compiled(lowered(program, "flow", PRODUCERS))
    arguments = random([IMAGE, FILTER, BIAS])
    right, padded = (np.frombuffer(one(*arguments)[0], np.float32) for one in (stock, fused))
    np.testing.assert_allclose(padded, right, rtol=1e-3, atol=1e-3)


def test_together_with_replicated_stores() -> None:
    """A dispatch that writes into a padded tensor is not given more results."""
    flow = lowered(padded_convolutions(concatenated=True), "flow")
    text, matched = rewritten(flow, fuse_padding, replicate_stores)
    assert matched == [1, 0]
    arguments = random([IMAGE, FILTER, BIAS])
    assert compiled(text)(*arguments) == compiled(flow)(*arguments)


@pytest.mark.vulkan
def test_on_vulkan() -> None:
    """Where IREE's flag for producers fails to compile ("unresolved target materialization")."""
    flow = lowered(padded_convolutions(concatenated=True), "flow", target=VULKAN)
    text, matched = rewritten(flow, fuse_padding)
    stock, fused = compiled(flow, VULKAN), compiled(text, VULKAN)
    assert (matched, fused.counts[0]) == ([1], stock.counts[0] - 1)
    arguments = random([IMAGE, FILTER, BIAS])
    assert fused(*arguments) == stock(*arguments)


def test_insertions_into_what_is_no_fill_are_left_alone() -> None:
    """Others may write other parts of that tensor at the same time."""
    flow = lowered(padded_convolutions(concatenated=True), "flow")
    value, type_ = re.findall(r"(%\w+) = flow\.tensor\.splat [^\n]*: (tensor<8x8x12xf32>)", flow)[0]
    filled = re.sub(rf"{value} = flow\.tensor\.splat [^\n]*", f"{value} = flow.tensor.empty : {type_}", flow)
    assert rewritten(filled, fuse_padding)[1] == [0]
