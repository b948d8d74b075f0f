"""Sizes of dynamic tensors: whatever makes a tensor, its work is that of the same program with static types."""

from __future__ import annotations

import pytest

from tests.roofline.programs import function, work


@pytest.mark.parametrize(
    ("lines", "elements"),
    [
        (("%b = tensor.cast %a : tensor<?x?xf32> to tensor<?x?xf32>",), 4 * 6),
        (("%s = arith.addi %d0, %d1 : index", "%b = tensor.empty(%s, %d1) : tensor<?x?xf32>"), 10 * 6),
        (("%s = arith.ceildivsi %d1, %d0 : index", "%b = tensor.empty(%s, %d0) : tensor<?x?xf32>"), 2 * 4),
        (
            (
                "%s = affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0 floordiv 4)>(%d0)[%d1]",
                "%b = tensor.empty(%s, %d0) : tensor<?x?xf32>",
            ),
            9 * 4,
        ),
        (
            (
                "%less = arith.cmpi slt, %d0, %d1 : index",
                "%s = arith.select %less, %d0, %d1 : index",
                "%b = tensor.empty(%s, %s) : tensor<?x?xf32>",
            ),
            4 * 4,
        ),
        (
            ("%b = tensor.extract_slice %a[0, 1] [%d0, 2] [1, 1] : tensor<?x?xf32> to tensor<?x2xf32>",),
            4 * 2,
        ),
        (
            (
                "%p = arith.constant 0.5 : f32",
                "%b = tensor.pad %a low[1, 0] high[%d0, 0] { ^bb0(%i: index, %j: index): tensor.yield %p : f32 } "
                ": tensor<?x?xf32> to tensor<?x?xf32>",
            ),
            9 * 6,
        ),
        (
            ("%b = tensor.concat dim(0) %a, %a : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",),
            8 * 6,
        ),
        (
            (
                "%f = tensor.collapse_shape %a [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>",
                "%two = arith.constant 2 : index",
                "%all = arith.muli %d0, %d1 : index",
                "%s = arith.divui %all, %two : index",
                "%b = tensor.expand_shape %f [[0, 1]] output_shape [%s, 2] : tensor<?xf32> into tensor<?x2xf32>",
            ),
            4 * 6,
        ),
    ],
)
def test_shapes_follow_from_the_arguments(lines: tuple[str, ...], elements: int) -> None:
    kind = "tensor<?x2xf32>" if lines[-1].endswith("tensor<?x2xf32>") else "tensor<?x?xf32>"
    text = function(
        "%a: tensor<?x?xf32>",
        kind,
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        "%d0 = tensor.dim %a, %c0 : tensor<?x?xf32>",
        "%d1 = tensor.dim %a, %c1 : tensor<?x?xf32>",
        *lines,
        f"%c = util.optimization_barrier %b : {kind}",
        f"%d = arith.addf %c, %c : {kind}",
        f"util.return %d : {kind}",
    )
    assert work(text, [4, 6]).operations == elements


def test_buffer_views_have_the_shapes_of_the_arguments() -> None:
    text = """
    util.func public @main(%view: !hal.buffer_view) -> !hal.buffer_view {
      %d = hal.buffer_view.dim<%view : !hal.buffer_view>[0] : index
      %a = hal.tensor.import %view "input" : !hal.buffer_view -> tensor<?x3xf32>{%d}
      %b = arith.addf %a, %a : tensor<?x3xf32>
      %result = hal.tensor.export %b "output" : tensor<?x3xf32>{%d} -> !hal.buffer_view
      util.return %result : !hal.buffer_view
    }
    """
    found = work(text, [5, 3])
    assert (found.operations, found.compulsory_bytes) == (15, 2 * 60)
