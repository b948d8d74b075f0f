"""One dispatch, several destinations: https://github.com/iree-org/iree/issues/11102, spelled as IREE 3.13 spells it.

The residual dense block of that issue inserts the result of each convolution into all concatenations that follow.
"""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.rewrites.replicate_stores import replicate_stores
from tests.programs import program
from tests.rewrites.tools import VULKAN, assert_left_alone, assert_rewritten, at_flow, dense_block, rewritten

# The convolution. Its leaky ReLU and its stores are what changes.
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

RESULT = "tensor<32x90x62xf32>"
WRITTEN = f"!iree_tensor_ext.dispatch.tensor<writeonly:{RESULT}>"
WHOLE = "offsets = [0, 0, 0], sizes = [32, 90, 62], strides = [1, 1, 1]"
LEAKY = """%scaled = arith.mulf %in, %slope : f32
        %leaky = arith.maximumf %in, %scaled : f32"""


def store(value: str, target: str) -> str:
    return f"iree_tensor_ext.dispatch.tensor.store {value}, {target}, {WHOLE} : {RESULT} -> {WRITTEN}"


def load(target: str) -> str:
    return f"iree_tensor_ext.dispatch.tensor.load {target}, {WHOLE} : {WRITTEN} -> {RESULT}"


ONE_STORE = CONVOLUTION.format(
    arguments=f"%out: {WRITTEN}",
    end=f"""
      %5 = linalg.generic {{indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel"]}}
          ins(%4 : {RESULT}) outs(%2 : {RESULT}) {{
      ^bb0(%in: f32, %old: f32):
        {LEAKY}
        linalg.yield %leaky : f32
      }} -> {RESULT}
      {store("%5", "%out")}""",
)
# Each result starts from another tensor: IREE makes one of equal results that start from the same, and 3.13 has no code
# for a value that is stored twice ("restricted to workgroup distributed contexts").
TWO_STORES = CONVOLUTION.format(
    arguments=f"%out0: {WRITTEN}, %out1: {WRITTEN}",
    end=f"""
      %init0 = {load("%out0")}
      %init1 = {load("%out1")}
      %5:2 = linalg.generic {{indexing_maps = [#same, #same, #same],
          iterator_types = ["parallel", "parallel", "parallel"]}}
          ins(%4 : {RESULT}) outs(%init0, %init1 : {RESULT}, {RESULT}) {{
      ^bb0(%in: f32, %old0: f32, %old1: f32):
        {LEAKY}
        linalg.yield %leaky, %leaky : f32, f32
      }} -> ({RESULT}, {RESULT})
      {store("%5#0", "%out0")}
      {store("%5#1", "%out1")}""",
)


def host(v: str = "%v", types: str = RESULT, *, a: str = "%v", b: str = "%v", updates_b: bool = True) -> str:
    """A program that dispatches @conv, with result or results `v`.

    Value `a` is inserted into %a; value `b`, through a reshape, into %b, or else it is returned.
    """
    b_type = "tensor<1x160x90x62xf32>"
    update_b = f"""
  %w = flow.tensor.reshape {b} : {RESULT} -> tensor<1x32x90x62xf32>
  %b1 = flow.tensor.update %w, %b[%c0, %c96, %c0, %c0] : tensor<1x32x90x62xf32> -> %b as {b_type}"""
    returned = f"tensor<128x90x62xf32>, {b_type if updates_b else RESULT}"
    return f"""
util.func public @main(%image: tensor<96x92x64xf32>, %filter: tensor<32x96x3x3xf32>, %a: tensor<128x90x62xf32>,
    %b: {b_type}) -> ({returned}) {{
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  {v} = flow.dispatch @conv::@conv(%image, %filter) : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> {types}
  %a1 = flow.tensor.update {a}, %a[%c96, %c0, %c0] : {RESULT} -> %a as tensor<128x90x62xf32>{update_b * updates_b}
  util.return %a1, {"%b1" if updates_b else b} : {returned}
}}
"""


TWO = ("%v:2", f"({RESULT}, {RESULT})")
TWO_UPDATES = host()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Uses of a result are found through reshapes; updates come in the order in which MLIR lists uses: last first.
        pytest.param(host(), host(*TWO, a="%v#1", b="%v#0"), id="each update has its own"),
        pytest.param(
            host(updates_b=False), host(*TWO, a="%v#0", b="%v#1", updates_b=False), id="all else shares the last"
        ),
    ],
)
def test_a_dispatch_has_as_many_results_as_are_needed(before: str, after: str) -> None:
    assert_rewritten(ONE_STORE + before, TWO_STORES + after, replicate_stores)


def test_code_that_others_dispatch_too_is_copied() -> None:
    """The others' code keeps its one store. The copy's function has another name, as all go into one library."""
    other = f"""
  %other = flow.dispatch @conv::@conv(%image, %filter)
      : (tensor<96x92x64xf32>, tensor<32x96x3x3xf32>) -> {RESULT}
  util.optimization_barrier %other : {RESULT}
  util.return"""
    text, matched = rewritten(ONE_STORE + TWO_UPDATES.replace("  util.return", other), replicate_stores)
    assert matched == [1]
    assert ":2 = flow.dispatch @conv_stores_0::@conv_stores_0(" in text
    assert "= flow.dispatch @conv::@conv(" in text
    assert text.count("dispatch.tensor.store") == 1 + 2
    assert "func.func @conv_stores_0(" in text


def test_a_tensor_made_of_the_result_keeps_its_copy() -> None:
    """It does not exist yet when the dispatch runs, so another result would only be another copy."""
    made = TWO_UPDATES.replace(
        "%w = flow.tensor.reshape",
        f"""%slow = flow.tensor.update %v, %a1[%c0, %c0, %c0] : {RESULT} -> %a1 as tensor<128x90x62xf32>
  util.optimization_barrier %slow, %v : tensor<128x90x62xf32>, {RESULT}
  %w = flow.tensor.reshape""",
    )
    text, matched = rewritten(ONE_STORE + made, replicate_stores)
    assert matched == [1]
    assert ":3 = flow.dispatch" in text  # for %a1, for %b1, and one for %slow, which is made of %a1, and the barrier


ONE_UPDATE = TWO_UPDATES.replace("update %v, %a[%c96, %c0, %c0]", "clone %a").replace(f"{RESULT} -> %a as ", "")
TIED = [
    ("@conv(%image, %filter)", "@conv(%image, %filter, %t)"),
    (f"tensor<32x96x3x3xf32>) -> {RESULT}", f"tensor<32x96x3x3xf32>, {RESULT}) -> %t"),
    ("  %v = ", f"  %t = flow.tensor.empty : {RESULT}\n  %v = "),
]


def tied() -> str:
    """The result takes the place of an operand."""
    program = TWO_UPDATES
    for old, new in TIED:
        program = program.replace(old, new)
    return ONE_STORE.replace(WRITTEN, WRITTEN.replace("writeonly", "readwrite")) + program


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ONE_STORE + ONE_UPDATE, id="one destination: IREE places it by itself"),
        # Equal results of a sum, or of a mere copy of it, become one, which cannot be stored twice.
        pytest.param(ONE_STORE.replace("store %5,", "store %4,") + TWO_UPDATES, id="no arithmetic at the end"),
        pytest.param(ONE_STORE.replace("yield %leaky", "yield %in") + TWO_UPDATES, id="passes its input on"),
        pytest.param(ONE_STORE.replace("maximumf %in,", "maximumf %old,") + TWO_UPDATES, id="reads what it updates"),
        pytest.param(tied(), id="lies in an operand's place already"),
    ],
)
def test_other_code_is_left_alone(text: str) -> None:
    assert_left_alone(text, replicate_stores)


# ----------------------------------------------------------------------------------------------------- what comes of it

small_block = partial(dense_block, height=6, width=10, channels=8, growth=4)


def test_only_what_comes_from_outside_a_dense_block_is_copied() -> None:
    """13 copies in a block: its input goes to four concatenations, x1 to four, x2 to three, x3 to two; x4 to one."""
    matched, stock, replicated = at_flow(small_block(blocks=2), replicate_stores)
    assert matched == [4 + 3]  # x1, x2, x3, and the block's result where another block follows
    assert (stock, replicated) == ((20, 26, 10), (20, 4, 10))


@pytest.mark.vulkan
def test_a_dense_block_on_vulkan() -> None:
    matched, _, (_, copies, _) = at_flow(small_block(), replicate_stores, target=VULKAN)
    assert (matched, copies) == ([3], 4)


@settings(max_examples=3)
@given(orders=st.lists(st.lists(st.sampled_from("xyuv"), min_size=2, max_size=4), min_size=1, max_size=3))
def test_concatenations_in_any_order(orders: list[list[str]]) -> None:
    """Also of one value twice, and of a value in front of one that it is made of."""
    joins = "\n".join(f"c{number} = concat 0 {' '.join(order)}" for number, order in enumerate(orders))
    results = " ".join(f"c{number}" for number in range(len(orders)))
    text = program(f"main x:2x5x7 y:2x5x7\nu = each mulf x y\nv = each subf x u\n{joins}\nreturn {results}")
    _, stock, replicated = at_flow(text, replicate_stores)
    assert replicated[1] <= stock[1]
