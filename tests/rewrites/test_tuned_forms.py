"""Generics that are convolutions get the name of what they are; everything else stays as it is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.channelled_convolution import Parameters, build
from harness.rewrites.tuned_convolutions import name_convolutions, tune_convolutions
from tests.rewrites.tuned_tools import Array, configurations_taken, convolve, random, rewritten, run

SIZES = {"n": 2, "y": 3, "x": 4, "o": 5, "v": 3, "u": 2, "i": 6}
BODY = ("%p = arith.mulf %l, %r : f32", "%t = arith.addf %s, %p : f32")


def generic(
    image: str = "nyxi",
    filter_: str = "vuio",
    out: str = "nyxo",
    *,
    loops: str = "nyxoviu",
    filter_first: bool = False,
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
    body: tuple[str, str] = BODY,
) -> str:
    """A convolution as a generic: its layouts and the order of its loops, a letter each.

    n, y, x, o, i: image, row, column, output and input channel; v, u: the kernel's row and column.
    """
    windows = {
        "y": f"y * {strides[0]} + v * {dilations[0]}",
        "x": f"x * {strides[1]} + u * {dilations[1]}",
    }
    spans = {"y": ("v", strides[0], dilations[0]), "x": ("u", strides[1], dilations[1])}
    sizes = SIZES | {
        axis: (SIZES[axis] - 1) * stride + (SIZES[kernel] - 1) * dilation + 1
        for axis, (kernel, stride, dilation) in spans.items()
    }

    def tensor(layout: str, sizes: dict[str, int]) -> str:
        return f"tensor<{'x'.join(str(sizes[axis]) for axis in layout)}xf32>"

    head = f"affine_map<({', '.join(loops)}) -> "
    image_map = f"{head}({', '.join(windows.get(axis, axis) for axis in image)})>"
    filter_map, out_map = (f"{head}({', '.join(layout)})>" for layout in (filter_, out))
    kinds = ", ".join('"parallel"' if loop in "nyxo" else '"reduction"' for loop in loops)
    operands = [("%image", tensor(image, sizes), image_map), ("%filter", tensor(filter_, SIZES), filter_map)]
    (first, first_type, first_map), (second, second_type, second_map) = operands[::-1] if filter_first else operands
    result = tensor(out, SIZES)
    return f"""
func.func @main(%image: {operands[0][1]}, %filter: {operands[1][1]}, %start: {result}) -> {result} {{
  %sum = linalg.generic {{indexing_maps = [{first_map}, {second_map}, {out_map}], iterator_types = [{kinds}]}}
    ins({first}, {second} : {first_type}, {second_type}) outs(%start : {result}) {{
  ^bb0(%l: f32, %r: f32, %s: f32):
    {body[0]}
    {body[1]}
    linalg.yield %t : f32
  }} -> {result}
  return %sum : {result}
}}
"""


def expected(image: Array, filter_: Array, start: Array, strides: tuple[int, int], dilations: tuple[int, int]) -> Array:
    return start + convolve(image, filter_, strides=strides, dilations=dilations)


@pytest.mark.parametrize(
    ("layout", "strides", "dilations", "filter_first"),
    [
        ("vuio", (1, 1), (1, 1), False),
        ("ivuo", (1, 1), (1, 1), True),
        ("oivu", (2, 1), (1, 1), False),
        ("uvoi", (1, 2), (2, 3), True),
    ],
)
def test_a_channels_last_convolution(
    layout: str, strides: tuple[int, int], dilations: tuple[int, int], filter_first: bool
) -> None:
    text = generic(filter_=layout, filter_first=filter_first, strides=strides, dilations=dilations)
    after, matched = rewritten(text, name_convolutions)
    assert matched == [1]
    assert "linalg.conv_2d_nhwc_hwcf" in after
    assert ("linalg.transpose" in after) == (layout != "vuio")
    assert "linalg.generic" not in after
    rows, columns = (
        (size - 1) * stride + (kernel - 1) * dilation + 1
        for size, stride, kernel, dilation in zip((3, 4), strides, (3, 2), dilations, strict=True)
    )
    image, filter_, start = random([(2, rows, columns, 6), (3, 2, 6, 5), (2, 3, 4, 5)])
    stored = np.ascontiguousarray(filter_.transpose(["vuio".index(letter) for letter in layout]))
    result = run(after, image, stored, start)
    np.testing.assert_allclose(result, expected(image, filter_, start, strides, dilations), atol=1e-4)


def test_a_channels_first_convolution() -> None:
    after, matched = rewritten(generic(image="niyx", filter_="vuio", out="noyx"), name_convolutions)
    assert matched == [1]
    assert "linalg.conv_2d_nchw_fchw" in after
    image, filter_, start = random([(2, 5, 5, 6), (3, 2, 6, 5), (2, 3, 4, 5)])
    image_first, start_first = (np.ascontiguousarray(x.transpose(0, 3, 1, 2)) for x in (image, start))
    result = run(after, image_first, filter_, start_first)
    total = expected(image, filter_, start, (1, 1), (1, 1))
    np.testing.assert_allclose(result, total.transpose(0, 3, 1, 2), atol=1e-4)


@settings(max_examples=60)
@given(st.sampled_from(sorted(permutations("nyxoviu"))), st.sampled_from(sorted(permutations("vuio"))), st.booleans())
def test_neither_the_order_of_the_loops_nor_that_of_the_operands_matters(
    loops: tuple[str, ...], layout: tuple[str, ...], filter_first: bool
) -> None:
    text = generic(filter_="".join(layout), loops="".join(loops), filter_first=filter_first)
    after, matched = rewritten(text, name_convolutions)
    assert matched == [1]
    assert "strides = dense<1>" in after
    if "".join(layout) == "vuio":
        assert "linalg.transpose" not in after


@pytest.mark.parametrize(
    "text",
    [
        generic(image="nxyi"),  # rows and columns exchanged in the image alone
        generic(image="yxni", out="yxno"),  # a layout without a name
        generic(image="niyx"),  # channels-first in, channels-last out
        generic(body=("%p = arith.addf %l, %r : f32", "%t = arith.mulf %s, %p : f32")),
        generic(body=("%p = arith.mulf %l, %l : f32", "%t = arith.addf %s, %p : f32")),
        generic(body=("%p = arith.mulf %l, %r : f32", "%t = arith.addf %p, %p : f32")),
        generic(body=("%p = arith.mulf %l, %r : f32", "%t = arith.subf %s, %p : f32")),
    ],
    ids=["exchanged", "nameless", "mixed", "min-plus", "square", "no-sum", "difference"],
)
def test_what_is_no_such_convolution_stays_as_it_is(text: str) -> None:
    before, _ = rewritten(text)
    assert rewritten(text, name_convolutions) == (before, [0])


def test_the_tutorials_form_is_named_then_tuned_and_both_forms_agree() -> None:
    results = []
    for form in ("generic", "named"):
        params = Parameters(batch=2, height=4, width=10, channels_in=8, channels_out=32, form=form)
        text = build(params).text
        assert isinstance(text, str)
        after, matched = rewritten(text, name_convolutions, tune_convolutions)
        assert matched == [int(form == "generic"), 1]
        assert any("vector_common_parallel = [1, 1, 5, 32" in one for one in configurations_taken(after))
        results.append(run(after, *random([(2, 6, 12, 8)])))
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)
