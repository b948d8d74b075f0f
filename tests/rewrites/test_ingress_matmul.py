"""Named matrix products as linalg.generic, with the body that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrites.ingress_programs import MAPS, Compiled, assert_left_alone, assert_rewritten, rewrite

LOOPS = 'iterator_types = ["parallel", "parallel", "reduction"]'


def product(operation: str, body: str = "", *, types: tuple[str, str] = ("f32", "f32"), right: str = "8x16") -> str:
    """A matrix product of tensors of `types[0]` into one of `types[1]`."""
    x, w, y = f"tensor<4x8x{types[0]}>", f"tensor<{right}x{types[0]}>", f"tensor<4x16x{types[1]}>"
    block = body and f"{{ ^bb0(%in: {types[0]}, %in_0: {types[0]}, %out: {types[1]}):\n{body} }}"
    return f"""{MAPS}
func.func @main(%x: {x}, %w: {w}, %init: {y}) -> {y} {{
  %y = {operation} ins(%x, %w : {x}, {w}) outs(%init : {y}) {block} -> {y}
  return %y : {y}
}}
"""


FLOATS = "%m = arith.mulf %in, %in_0 : {0}\n%s = arith.addf %out, %m : {0}\nlinalg.yield %s : {0}"
INTEGERS = "%m = arith.muli %in, %in_0 : {0}\n%s = arith.addi %out, %m : {0}\nlinalg.yield %s : {0}"
WIDENED = """%a = arith.{0} %in : {1} to {2}
%b = arith.{0} %in_0 : {1} to {2}
%m = arith.{3} %a, %b : {2}
%s = arith.{4} %out, %m : {2}
linalg.yield %s : {2}"""


@pytest.mark.parametrize(
    ("types", "cast", "body"),
    [
        (("f32", "f32"), "", FLOATS.format("f32")),
        (("bf16", "bf16"), "", FLOATS.format("bf16")),
        (("i32", "i32"), "", INTEGERS.format("i32")),
        (("bf16", "f32"), "", WIDENED.format("extf", "bf16", "f32", "mulf", "addf")),
        (("i8", "i32"), "", WIDENED.format("extsi", "i8", "i32", "muli", "addi")),
        (
            ("i8", "i32"),
            " {cast = #linalg.type_fn<cast_unsigned>}",
            WIDENED.format("extui", "i8", "i32", "muli", "addi"),
        ),
    ],
)
def test_multiplies_and_adds_as_the_element_types_ask(types: tuple[str, str], cast: str, body: str) -> None:
    generic = f"linalg.generic {{indexing_maps = [#left, #right, #product], {LOOPS}}}"
    before, after = product(f"linalg.matmul{cast}", types=types), product(generic, body, types=types)
    assert_rewritten(before, after, "generic_matmul", places=1)


def test_keeps_other_indexing_maps() -> None:
    maps = "indexing_maps = [#left, #right_turned, #product]"
    before = product(f"linalg.matmul {maps}", right="16x8")
    after = product(f"linalg.generic {{{maps}, {LOOPS}}}", FLOATS.format("f32"), right="16x8")
    assert_rewritten(before, after, "generic_matmul", places=1)


def test_keeps_what_others_have_attached() -> None:
    config = "lowering_config = #iree_codegen.lowering_config<tile_sizes = [[4, 16]]>"
    before = product(f"linalg.matmul {{{config}}}")
    after = product(
        f"linalg.generic {{indexing_maps = [#left, #right, #product], {LOOPS}}}", FLOATS.format("f32")
    ).replace("outs(%init : tensor<4x16xf32>)", f"outs(%init : tensor<4x16xf32>) attrs = {{{config}}}")
    assert_rewritten(before, after, "generic_matmul", places=1)


def test_buffers_are_left_alone() -> None:
    memref = "memref<4x4xf32>"
    assert_left_alone(
        f"func.func @main(%x: {memref}, %y: {memref}) {{\n"
        f"linalg.matmul ins(%x, %x : {memref}, {memref}) outs(%y : {memref})\nreturn\n}}",
        "generic_matmul",
    )


def test_a_batch_computes_the_same() -> None:
    x, w, y = "tensor<3x4x8xf32>", "tensor<3x8x16xf32>", "tensor<3x4x16xf32>"
    before = f"""
func.func @main(%x: {x}, %w: {w}, %init: {y}) -> {y} {{
  %y = linalg.batch_matmul ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %y : {y}
}}
"""
    matched, after = rewrite(before, "generic_matmul")
    assert matched == 1
    assert 'iterator_types = ["parallel", "parallel", "parallel", "reduction"]' in after
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape, dtype=np.float32) for shape in [(3, 4, 8), (3, 8, 16), (3, 4, 16)]]
    named, generic = (Compiled(text)("main", *arguments) for text in (before, after))
    np.testing.assert_array_equal(generic, named)
