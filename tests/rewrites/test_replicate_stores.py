"""One dispatch, several destinations: https://github.com/iree-org/iree/issues/11102, spelled as IREE 3.13 spells it.

The residual dense block of that issue inserts the result of each convolution into all concatenations that follow.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.residual_dense_block import Parameters, build
from harness.rewrites.replicate_stores import replicate_stores
from tests.rewrites.tools import VULKAN, assert_left_alone, assert_rewritten, compiled, lowered, random, rewritten

# The issue's convolution. Its leaky ReLU and its stores are what changes.
CONVOLUTION = """
#image = affine_map<(o, y, x, i, u, v) -> (i, y + u, x + v)>
#filter = affine_map<(o, y, x, i, u, v) -> (o, i, u, v)>
#out = affine_map<(o, y, x, i, u, v) -> (o, y, x)>
#same = affine_map<(o, y, x) -> (o, y, x)>
flow.executable private @conv {{
  flow.executable.export public @conv workgroups() -> (index, index, index) {{
    %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice()
    flow.return %x, %y, %z : index, index, index
  }}
  builtin.module {{
    func.func @conv(
        %arg0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<96x92x64xf32>>,
        %arg1: !iree_tensor_ext.dispatch.tensor<readonly:tensor<32x96x3x3xf32>>,
        {arguments}) {{
      %zero = arith.constant 0.0 : f32
      %slope = arith.constant 0.2 : f32
      %0 = iree_tensor_ext.dispatch.tensor.load %arg0, offsets = [0, 0, 0], sizes = [96, 92, 64], strides = [1, 1, 1]
          : !iree_tensor_ext.dispatch.tensor<readonly:tensor<96x92x64xf32>> -> tensor<96x92x64xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %arg1, offsets = [0, 0, 0, 0], sizes = [32, 96, 3, 3],
          strides = [1, 1, 1, 1]
          : !iree_tensor_ext.dispatch.tensor<readonly:tensor<32x96x3x3xf32>> -> tensor<32x96x3x3xf32>
      %2 = tensor.empty() : tensor<32x90x62xf32>
      %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<32x90x62xf32>) -> tensor<32x90x62xf32>
      %4 = linalg.generic {{indexing_maps = [#image, #filter, #out],
          iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
          ins(%0, %1 : tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) outs(%3 : tensor<32x90x62xf32>) {{
      ^bb0(%pixel: f32, %weight: f32, %sum: f32):
        %product = arith.mulf %pixel, %weight : f32
        %next = arith.addf %sum, %product : f32
        linalg.yield %next : f32
      }} -> tensor<32x90x62xf32>
      {end}
      return
    }}
  }}
}}
"""

ONE_STORE = CONVOLUTION.format(
    arguments="%out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>",
    end="""
      %5 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%4 : tensor<32x90x62xf32>) outs(%2 : tensor<32x90x62xf32>) {
      ^bb0(%in: f32, %old: f32):
        %scaled = arith.mulf %in, %slope : f32
        %leaky = arith.maximumf %in, %scaled : f32
        linalg.yield %leaky : f32
      } -> tensor<32x90x62xf32>
      iree_tensor_ext.dispatch.tensor.store %5, %out, offsets = [0, 0, 0], sizes = [32, 90, 62], strides = [1, 1, 1]
          : tensor<32x90x62xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>""",
)

# Each result starts from another tensor: IREE makes one of equal results that start from the same, and 3.13 has no code
# for a value that is stored twice ("restricted to workgroup distributed contexts").
TWO_STORES = CONVOLUTION.format(
    arguments="""
        %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>,
        %out1: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>""",
    end="""
      %init0 = iree_tensor_ext.dispatch.tensor.load %out0, offsets = [0, 0, 0], sizes = [32, 90, 62],
          strides = [1, 1, 1]
          : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>> -> tensor<32x90x62xf32>
      %init1 = iree_tensor_ext.dispatch.tensor.load %out1, offsets = [0, 0, 0], sizes = [32, 90, 62],
          strides = [1, 1, 1]
          : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>> -> tensor<32x90x62xf32>
      %5:2 = linalg.generic {indexing_maps = [#same, #same, #same],
          iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%4 : tensor<32x90x62xf32>) outs(%init0, %init1 : tensor<32x90x62xf32>, tensor<32x90x62xf32>) {
      ^bb0(%in: f32, %old0: f32, %old1: f32):
        %scaled = arith.mulf %in, %slope : f32
        %leaky = arith.maximumf %in, %scaled : f32
        linalg.yield %leaky, %leaky : f32, f32
      } -> (tensor<32x90x62xf32>, tensor<32x90x62xf32>)
      iree_tensor_ext.dispatch.tensor.store %5#0, %out0, offsets = [0, 0, 0], sizes = [32, 90, 62], strides = [1, 1, 1]
          : tensor<32x90x62xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>
      iree_tensor_ext.dispatch.tensor.store %5#1, %out1, offsets = [0, 0, 0], sizes = [32, 90, 62], strides = [1, 1, 1]
          : tensor<32x90x62xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>""",
)

MAIN = """
util.func public @main(%image: tensor<96x92x64xf32>, %filter: tensor<32x96x3x3xf32>, %a: tensor<128x90x62xf32>,
    %b: tensor<1x160x90x62xf32>) -> ({types}) {{
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  {body}
}}
"""
TWO_UPDATES = MAIN.format(
    types="tensor<128x90x62xf32>, tensor<1x160x90x62xf32>",
    body="""
  %v = flow.dispatch @conv::@conv(%image, %filter)
      : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> tensor<32x90x62xf32>
  %a1 = flow.tensor.update %v, %a[%c96, %c0, %c0] : tensor<32x90x62xf32> -> %a as tensor<128x90x62xf32>
  %w = flow.tensor.reshape %v : tensor<32x90x62xf32> -> tensor<1x32x90x62xf32>
  %b1 = flow.tensor.update %w, %b[%c0, %c96, %c0, %c0] : tensor<1x32x90x62xf32> -> %b as tensor<1x160x90x62xf32>
  util.return %a1, %b1 : tensor<128x90x62xf32>, tensor<1x160x90x62xf32>""",
)


def test_each_update_has_a_result_of_its_own() -> None:
    """Uses of a result are found through reshapes; updates come in the order in which MLIR lists uses: last first."""
    after = MAIN.format(
        types="tensor<128x90x62xf32>, tensor<1x160x90x62xf32>",
        body="""
  %v:2 = flow.dispatch @conv::@conv(%image, %filter)
      : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> (tensor<32x90x62xf32>, tensor<32x90x62xf32>)
  %a1 = flow.tensor.update %v#1, %a[%c96, %c0, %c0] : tensor<32x90x62xf32> -> %a as tensor<128x90x62xf32>
  %w = flow.tensor.reshape %v#0 : tensor<32x90x62xf32> -> tensor<1x32x90x62xf32>
  %b1 = flow.tensor.update %w, %b[%c0, %c96, %c0, %c0] : tensor<1x32x90x62xf32> -> %b as tensor<1x160x90x62xf32>
  util.return %a1, %b1 : tensor<128x90x62xf32>, tensor<1x160x90x62xf32>""",
    )
    assert_rewritten(ONE_STORE + TWO_UPDATES, TWO_STORES + after, replicate_stores)


def test_whatever_else_uses_the_result_shares_one() -> None:
    before = MAIN.format(
        types="tensor<128x90x62xf32>, tensor<32x90x62xf32>",
        body="""
  %v = flow.dispatch @conv::@conv(%image, %filter)
      : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> tensor<32x90x62xf32>
  %a1 = flow.tensor.update %v, %a[%c96, %c0, %c0] : tensor<32x90x62xf32> -> %a as tensor<128x90x62xf32>
  util.return %a1, %v : tensor<128x90x62xf32>, tensor<32x90x62xf32>""",
    )
    after = MAIN.format(
        types="tensor<128x90x62xf32>, tensor<32x90x62xf32>",
        body="""
  %v:2 = flow.dispatch @conv::@conv(%image, %filter)
      : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> (tensor<32x90x62xf32>, tensor<32x90x62xf32>)
  %a1 = flow.tensor.update %v#0, %a[%c96, %c0, %c0] : tensor<32x90x62xf32> -> %a as tensor<128x90x62xf32>
  util.return %a1, %v#1 : tensor<128x90x62xf32>, tensor<32x90x62xf32>""",
    )
    assert_rewritten(ONE_STORE + before, TWO_STORES + after, replicate_stores)


def test_code_that_others_dispatch_too_is_copied() -> None:
    """The others' code keeps its one store. The copy's function has another name, as all go into one library."""
    twice = TWO_UPDATES.replace(
        "  util.return",
        """
  %other = flow.dispatch @conv::@conv(%image, %filter)
      : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> tensor<32x90x62xf32>
  util.optimization_barrier %other : tensor<32x90x62xf32>
  util.return""",
    )
    text, matched = rewritten(ONE_STORE + twice, replicate_stores)
    assert matched == [1]
    assert ":2 = flow.dispatch @conv_stores_0::@conv_stores_0(" in text
    assert "= flow.dispatch @conv::@conv(" in text
    assert text.count("dispatch.tensor.store") == 1 + 2
    assert "func.func @conv_stores_0(" in text


def test_nothing_to_do_for_one_destination() -> None:
    """IREE places it by itself."""
    body = TWO_UPDATES.replace("flow.tensor.update %v, %a[%c96, %c0, %c0]", "flow.tensor.clone %a")
    one = body.replace(": tensor<32x90x62xf32> -> %a as tensor<128x90x62xf32>", ": tensor<128x90x62xf32>")
    assert_left_alone(ONE_STORE + one, replicate_stores)


def test_a_tensor_made_of_the_result_keeps_its_copy() -> None:
    """It does not exist yet when the dispatch runs, so another result would only be another copy."""
    made = TWO_UPDATES.replace(
        "%w = flow.tensor.reshape",
        """%slow = flow.tensor.update %v, %a1[%c0, %c0, %c0] : tensor<32x90x62xf32> -> %a1 as tensor<128x90x62xf32>
  util.optimization_barrier %slow, %v : tensor<128x90x62xf32>, tensor<32x90x62xf32>
  %w = flow.tensor.reshape""",
    )
    text, matched = rewritten(ONE_STORE + made, replicate_stores)
    assert matched == [1]
    assert ":3 = flow.dispatch" in text  # for %a1, for %b1, and one for %slow, which is made of %a1, and the barrier


def test_code_without_arithmetic_at_the_end_is_left_alone() -> None:
    """The sum itself, or a mere copy of it: equal results of those become one, which cannot be stored twice."""
    stored = ONE_STORE.replace("tensor.store %5,", "tensor.store %4,")
    assert_left_alone(stored + TWO_UPDATES, replicate_stores)
    passed_on = ONE_STORE.replace("linalg.yield %leaky", "linalg.yield %in")
    assert_left_alone(passed_on + TWO_UPDATES, replicate_stores)


def test_code_that_reads_what_it_updates_is_left_alone() -> None:
    reading = ONE_STORE.replace("arith.maximumf %in, %scaled", "arith.maximumf %old, %scaled")
    assert_left_alone(reading + TWO_UPDATES, replicate_stores)


def test_a_result_that_is_a_part_of_an_operand_is_left_alone() -> None:
    """It lies in that operand's place already."""
    written = "!iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x90x62xf32>>"
    code = ONE_STORE.replace(written, written.replace("writeonly", "readwrite"))
    host = TWO_UPDATES.replace("@conv(%image, %filter)", "@conv(%image, %filter, %t)")
    host = host.replace(
        "tensor<32x96x3x3xf32>) -> tensor<32x90x62xf32>", "tensor<32x96x3x3xf32>, tensor<32x90x62xf32>) -> %t"
    )
    host = host.replace("  %v = ", "  %t = flow.tensor.empty : tensor<32x90x62xf32>\n  %v = ")
    assert_left_alone(code + host, replicate_stores)


# ----------------------------------------------------------------------------------------------------- what comes of it

SMALL = {"height": 6, "width": 10, "channels": 8, "growth": 4}


def dense_block(blocks: int) -> str:
    text = build(Parameters(**SMALL, blocks=blocks)).text
    assert isinstance(text, str)
    return text


def concatenations(orders: list[list[str]]) -> str:
    """A program of concatenations of its arguments x and y and of values u and v computed from them."""
    parts = "tensor<2x5x7xf32>"
    text = [
        "#same = affine_map<(i, j, k) -> (i, j, k)>",
        f"func.func @main(%x: {parts}, %y: {parts}) -> (RESULTS) {{",
        f"  %e = tensor.empty() : {parts}",
    ]
    for name, arithmetic, other in (("u", "mulf", "y"), ("v", "subf", "u")):
        text.append(f"""
  %{name} = linalg.generic {{indexing_maps = [#same, #same, #same],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x, %{other} : {parts}, {parts}) outs(%e : {parts}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.{arithmetic} %a, %b : f32
    linalg.yield %r : f32
  }} -> {parts}""")
    types = [f"tensor<{2 * len(order)}x5x7xf32>" for order in orders]
    for number, (order, type_) in enumerate(zip(orders, types, strict=True)):
        operands = ", ".join(f"%{name}" for name in order)
        text.append(f"  %c{number} = tensor.concat dim(0) {operands} : ({', '.join([parts] * len(order))}) -> {type_}")
    results = ", ".join(f"%c{number}" for number in range(len(orders)))
    text.append(f"  return {results} : {', '.join(types)}\n}}")
    return "\n".join(text).replace("RESULTS", ", ".join(types))


@pytest.mark.parametrize("blocks", [1, 2])
def test_only_what_comes_from_outside_a_dense_block_is_copied(blocks: int) -> None:
    """13 copies in a block: its input goes to four concatenations, x1 to four, x2 to three, x3 to two; x4 to one."""
    flow = lowered(dense_block(blocks), "flow")
    text, matched = rewritten(flow, replicate_stores)
    stock, replicated = compiled(flow), compiled(text)
    assert stock.counts == (10 * blocks, 13 * blocks, 5 * blocks)
    assert replicated.counts == (10 * blocks, 4, 5 * blocks)
    assert matched == [4 * blocks - 1]  # x1, x2, x3, and the block's result where another block follows
    image = random([(1, 8, 6, 10)])
    assert replicated(*image) == stock(*image)


@pytest.mark.vulkan
def test_a_dense_block_on_vulkan() -> None:
    flow = lowered(dense_block(1), "flow", target=VULKAN)
    text, matched = rewritten(flow, replicate_stores)
    stock = compiled(flow, VULKAN)
    replicated = compiled(text, VULKAN)
    assert (matched, replicated.counts[1]) == ([3], 4)
    image = random([(1, 8, 6, 10)])
    assert replicated(*image) == stock(*image)


@settings(max_examples=4)
@given(orders=st.lists(st.lists(st.sampled_from("xyuv"), min_size=2, max_size=4), min_size=1, max_size=3))
def test_concatenations_in_any_order(orders: list[list[str]]) -> None:
    """Also of one value twice, and of a value in front of one that it is made of."""
    flow = lowered(concatenations(orders), "flow")
    text, _ = rewritten(flow, replicate_stores)
    stock, replicated = compiled(flow), compiled(text)
    assert replicated.counts[1] <= stock.counts[1]
    arguments = random([(2, 5, 7), (2, 5, 7)])
    assert replicated(*arguments) == stock(*arguments)
