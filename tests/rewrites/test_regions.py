"""Dispatch regions take in the slices that they read, and the insertion of what they make."""

from __future__ import annotations

from functools import partial

import pytest

from harness.rewrites.channels_last import channels_last
from harness.rewrites.regions import regions_in_place
from harness.rewrites.share_concat import share_concat
from harness.rewrites.tuned_convolutions import tune_convolutions
from tests.rewrites.tools import (
    agree,
    assert_left_alone,
    assert_rewritten,
    constant,
    convolution,
    elementwise,
    function,
    pad,
    rewritten,
    tensor,
)

# A buffer of two rows of four; %part is computed from its first two columns.
BUFFER = "tensor<2x4xf32>"
PART = "tensor<2x2xf32>"


def program(*, read: str = "[0, 0] [2, 2] [1, 1]", write: str = "[0, 2] [2, 2] [1, 1]", after: str = "%next") -> str:
    """A region between a slice of the buffer and an insertion into it, before the rewrite."""
    return f"""
    func.func @main(%buffer: {BUFFER}) -> {BUFFER} {{
      %in = tensor.extract_slice %buffer{read} : {BUFFER} to {PART}
      %part = flow.dispatch.region -> ({PART}) {{
        %0 = arith.addf %in, %in : {PART}
        flow.return %0 : {PART}
      }}
      %next = tensor.insert_slice %part into %buffer{write} : {PART} into {BUFFER}
      return {after} : {BUFFER}
    }}"""


def test_a_region_reads_and_writes_the_buffer_itself() -> None:
    after = f"""
    func.func @main(%buffer: {BUFFER}) -> {BUFFER} {{
      %next = flow.dispatch.region -> ({BUFFER}) {{
        %in = tensor.extract_slice %buffer[0, 0] [2, 2] [1, 1] : {BUFFER} to {PART}
        %0 = arith.addf %in, %in : {PART}
        %1 = tensor.insert_slice %0 into %buffer[0, 2] [2, 2] [1, 1] : {PART} into {BUFFER}
        flow.return %1 : {BUFFER}
      }}
      return %next : {BUFFER}
    }}"""
    assert_rewritten(program(), after, regions_in_place, places=2)
    assert_left_alone(after, regions_in_place)
    assert agree(program(), [(2, 4)], regions_in_place) == [2]


def test_each_half_alone() -> None:
    text = program()
    assert_left_alone(text, partial(regions_in_place, reads=False, writes=False))
    reading, matched = rewritten(text, partial(regions_in_place, writes=False))
    assert (matched, reading.count("flow.return %0")) == ([1], 0)
    assert reading.index("flow.dispatch.region") < reading.index("extract_slice") < reading.index("insert_slice")
    writing, matched = rewritten(text, partial(regions_in_place, reads=False))
    assert matched == [1]
    assert writing.index("extract_slice") < writing.index("flow.dispatch.region") < writing.index("insert_slice")


@pytest.mark.parametrize(
    "write",
    ["[0, 1] [2, 2] [1, 1]", "[0, 0] [2, 2] [1, 1]"],
    ids=["half of what is read", "all that is read"],
)
def test_a_region_does_not_overwrite_what_it_reads(write: str) -> None:
    text = program(write=write)
    after, _ = rewritten(text, regions_in_place)
    assert after.index("flow.return") < after.index("insert_slice")
    assert agree(text, [(2, 4)], regions_in_place) == [1]


def test_nor_does_it_overwrite_what_something_else_reads_later() -> None:
    """The older state of the buffer stays what it was; the compiler copies it."""
    text = program(after="%sum").replace("return %sum", f"%sum = arith.addf %next, %buffer : {BUFFER}\n return %sum")
    assert agree(text, [(2, 4)], regions_in_place) == [2]


@pytest.mark.parametrize(
    "text",
    [
        program().replace("return %next", f"%again = arith.addf %part, %part : {PART}\n return %next"),
        program(read="[0, 0] [2, 2] [1, 2]", write="[0, 0] [2, 2] [1, 2]"),
    ],
    ids=["a result with another reader", "slices with gaps"],
)
def test_what_is_left_alone(text: str) -> None:
    _, matched = rewritten(text, partial(regions_in_place, reads=False))
    assert matched == [0]


def test_what_a_region_starts_from_comes_along() -> None:
    """Neither a fill nor a repeated bias is worth a buffer of its own."""
    text = """
    #row = affine_map<(i, j) -> (j)>
    #all = affine_map<(i, j) -> (i, j)>
    func.func @main(%x: tensor<2x3xf32>, %bias: tensor<3xf32>) -> tensor<2x3xf32> {
      %e = tensor.empty() : tensor<2x3xf32>
      %b = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
        ins(%bias : tensor<3xf32>) outs(%e : tensor<2x3xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<2x3xf32>
      %y = flow.dispatch.region -> (tensor<2x3xf32>) {
        %0 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
          ins(%x, %b : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %s = arith.addf %in, %in_0 : f32
          linalg.yield %s : f32
        } -> tensor<2x3xf32>
        flow.return %0 : tensor<2x3xf32>
      }
      return %y : tensor<2x3xf32>
    }"""
    after, _ = rewritten(text, regions_in_place)
    assert after.index("flow.dispatch.region") < after.index("tensor.empty")
    assert after.count("tensor.empty") == 1
    assert agree(text, [(2, 3), (3,)], regions_in_place) == [2]  # the bias, and what it is repeated into


@pytest.mark.parametrize(
    ("whole", "part", "offsets", "moved"),
    [
        ((1, 5, 6, 8), (1, 3, 4, 4), (0, 1, 1, 4), 1),
        ((2, 5, 6, 8), (2, 5, 6, 4), (0, 0, 0, 4), 1),
        ((1, 5, 6, 8), (1, 5, 6, 4), (0, 0, 0, 4), 0),
        ((3, 5, 6, 8), (1, 5, 6, 8), (1, 0, 0, 0), 0),
        ((5, 1, 6, 8), (5, 1, 6, 4), (0, 0, 0, 4), 0),
        ((5, 1, 6, 8), (3, 1, 4, 8), (1, 0, 1, 0), 0),
        ((1, 1, 6, 8), (1, 1, 4, 8), (0, 0, 1, 0), 1),
    ],
    ids=str,
)
def test_only_what_the_compiler_can_store_in_place(
    whole: tuple[int, ...], part: tuple[int, ...], offsets: tuple[int, ...], moved: int
) -> None:
    """Dimensions of one element may only come first, and then the part must not fill the next one."""
    where = f"{list(offsets)} {list(part)} [1, 1, 1, 1]"
    twice = elementwise("0", "%r = arith.addf %a0, %a0 : f32", [("x", "#same", part)], part).replace("%0_e", "%e")
    text = f"""
    #same = affine_map<(a, b, c, d) -> (a, b, c, d)>
    func.func @main(%whole: {tensor(whole)}, %x: {tensor(part)}) -> {tensor(whole)} {{
      %part = flow.dispatch.region -> ({tensor(part)}) {{
        {twice}
        flow.return %0 : {tensor(part)}
      }}
      %next = tensor.insert_slice %part into %whole{where} : {tensor(part)} into {tensor(whole)}
      return %next : {tensor(whole)}
    }}"""
    assert agree(text, [whole, part], regions_in_place) == [moved]


@pytest.mark.parametrize(("images", "padding", "moved"), [(1, True, 7), (1, False, 3), (2, True, 0)])
def test_a_dense_block_in_one_buffer(images: int, padding: bool, moved: int) -> None:
    """All rewrites together: three convolutions, each of all that was computed before it.

    Three starts are moved, and in a padded buffer two slices that are read and two that are written.
    """
    x, sizes = (images, 16, 4, 6), (16, 32, 48)
    body, parts = "", ["x"]
    for number, channels in enumerate(sizes):
        whole, y = (images, channels, 4, 6), (images, 16, 4, 6)
        joined = "x"
        if number:
            joined = f"joined{number}"
            names, types = (", ".join(many) for many in (["%" + part for part in parts], [tensor(x)] * len(parts)))
            body += f"%{joined} = tensor.concat dim(1) {names} : ({types}) -> {tensor(whole)}\n    "
        weights, padded = (16, channels, 2, 4), (images, channels, 5, 9)
        body += constant(f"k{number}", weights, seed=number) + pad(f"p{number}", joined, whole)
        body += convolution(f"y{number}", f"p{number}", f"k{number}", (padded, weights, y)) + "\n    "
        parts.append(f"y{number}")
    text = function(body, {"x": x}, parts[-1], x)
    matched = agree(
        text,
        [x],
        channels_last,
        partial(share_concat, padding=padding),
        partial(tune_convolutions, vector_bytes=64, registers=32),
        regions_in_place,
    )
    assert matched == [3, 1, 3, moved]
