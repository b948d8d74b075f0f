"""Configurations derived for convolutions: which ops get one, that IREE takes it, and that sums stay; and names."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.rewrites.targets import target_vector_unit, vector_unit
from harness.rewrites.tuned import (
    CONVOLUTION,
    OF_ROWS,
    configure,
    name_convolutions,
    register_tile,
    tune_convolutions,
)
from tests.programs import program
from tests.rewrites.tools import AVX512_TARGET, agree, assert_left_alone, configurations_taken, rewritten


def convolution(
    images: int, height: int, width: int, inputs: int, outputs: int, kernel: int = 3, stride: int = 1
) -> str:
    """A convolution that starts from zero, with a ReLU."""
    rows, columns = ((size - 1) * stride + kernel for size in (height, width))
    return program(f"""
    main image:{images}x{rows}x{columns}x{inputs} filter:{kernel}x{kernel}x{inputs}x{outputs}
    sum = conv image filter named={CONVOLUTION.removeprefix("linalg.")} strides={stride},{stride}
    result = each maximumf sum zero
    return result
    """)


TUNE = partial(tune_convolutions, target=AVX512_TARGET)
AVX512: dict[str, Any] = {"lanes": 16, "registers": 32}
AVX2: dict[str, Any] = {"lanes": 8, "registers": 16}


def test_registers_by_processor_and_of_a_target_by_the_last_mention_of_a_feature() -> None:
    assert vector_unit("processor\t: 0\nflags\t\t: fpu sse2 avx2 avx512f avx512bw\n", "x86_64") == (64, 32)
    assert vector_unit("processor\t: 0\nflags\t\t: fpu sse2 avx avx2\n", "x86_64") == (32, 16)
    assert vector_unit("", "arm64") == (16, 32)
    assert vector_unit("flags : avx512fp16 avx2_like", "x86_64") == (16, 16), "a flag is a whole word"
    for features, unit in (("+avx2,+avx512f", (64, 32)), ("+avx2,+avx512f,+64bit,-avx512f", (32, 16))):
        target = {"name": "", "features": features, "triple": "x86_64-unknown-unknown-eabi-elf"}
        assert target_vector_unit(target) == unit


@pytest.mark.parametrize(
    ("width", "channels", "target", "columns", "tile_channels"),
    [
        (100, 128, AVX512, 4, 64),  # 16 accumulators, 4 vectors of the filter, 1 broadcast
        (100, 128, AVX2, 5, 16),
        (90, 64, AVX2, 6, 16),
        (7, 16, AVX2, 7, 8),  # not 2 vectors: 14 accumulators, both and a broadcast are a register too many
        (62, 32, AVX512, 31, 16),  # one vector of the filter; broadcasts come from memory
        (61, 128, AVX512, 1, 128),  # a prime width: no column to share the filter's vectors with
        (100, 48, AVX512, 25, 16),  # not 3 vectors, which the backend splits badly
        (100, 24, AVX2, 10, 8),
    ],
)
def test_tiles(width: int, channels: int, target: dict[str, int], columns: int, tile_channels: int) -> None:
    assert register_tile(width, channels, **target) == (1, columns, tile_channels)


def test_rows_are_an_instruction_sets_own_choice() -> None:
    """A block of ESRGAN: 62 columns divide badly, and 90 rows well."""
    block = (1, 90, 62, 32, 3, 3, 96)
    tiles = [
        configure(block, **unit, of_rows=of_rows) or {}
        for unit, of_rows in ((AVX512, OF_ROWS[64, 32]), (AVX2, OF_ROWS[32, 16]), (AVX2, False))
    ]
    assert [sizes["vector_common_parallel"][1:4] for sizes in tiles] == [[1, 31, 16], [6, 1, 16], [1, 2, 32]]
    assert tiles[1]["distribution"] == [1, 6, 62, 32, 0, 0, 0]


@given(
    st.tuples(*[st.integers(1, 200)] * 4),
    st.tuples(st.integers(1, 7), st.integers(2, 7), st.integers(1, 600)),
    st.sampled_from(sorted(OF_ROWS)),
)
def test_every_size_divides_its_loop(
    parallel: tuple[int, ...], reduction: tuple[int, ...], unit: tuple[int, int]
) -> None:
    ranges = (*parallel[:3], parallel[3] * 16, *reduction)
    entry = configure(ranges, lanes=unit[0] // 4, registers=unit[1], of_rows=OF_ROWS[unit])
    assert entry is not None
    for sizes in entry.values():
        assert all(not size or range_ % size == 0 for size, range_ in zip(sizes, ranges, strict=True))
    whole_and_part = zip(entry["distribution"], entry["vector_common_parallel"], strict=True)
    assert all(whole % part == 0 for whole, part in whole_and_part if part)


@pytest.mark.parametrize(
    "ranges",
    [(5, 80, 100, 24, 3, 3, 128), (-1, 80, 100, 128, 3, 3, 128), (5, 80, 100, 128, 1, 1, 128)],
    ids=["no vector divides the channels", "an unknown size", "a kernel of one point"],
)
def test_what_has_no_tile_is_left_to_iree(ranges: tuple[int, ...]) -> None:
    assert configure(ranges, **AVX512) is None


@pytest.mark.parametrize(
    ("images", "kernel", "stride", "width", "inputs", "outputs"), [(1, 3, 1, 10, 8, 32), (2, 2, 2, 7, 3, 48)]
)
def test_the_backend_takes_what_is_derived_and_results_stay(
    images: int, kernel: int, stride: int, width: int, inputs: int, outputs: int
) -> None:
    text = convolution(images, 4, width, inputs, outputs, kernel, stride)
    assert agree(text, TUNE) == [1]
    tiles = configure((images, 4, width, outputs, kernel, kernel, inputs), **AVX512)
    assert tiles is not None
    after, _ = rewritten(text, TUNE)
    levels = ", ".join(f"{level} = {sizes}" for level, sizes in tiles.items())
    assert f"#iree_cpu.lowering_config<{levels}>" in configurations_taken(after)
    assert_left_alone(after, TUNE)


# As ONNX's MaxPool has with the places of its maxima, and LayerNormalization.
TWO_RESULTS = """
#same = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %both:2 = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%x, %x : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32, %out_0: f32):
    linalg.yield %in, %in : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %both#0, %both#1 : tensor<4xf32>, tensor<4xf32>
}
"""


def test_other_operations_are_left_alone() -> None:
    assert_left_alone(convolution(2, 4, 10, 8, 9), TUNE)
    assert_left_alone(TWO_RESULTS, TUNE)


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
    axes = list(zip("yx", "vu", strides, dilations, strict=True))
    windows = {axis: f"{axis} * {stride} + {tap} * {dilation}" for axis, tap, stride, dilation in axes}
    spans = {axis: (SIZES[axis] - 1) * by + (SIZES[tap] - 1) * apart + 1 for axis, tap, by, apart in axes}

    def operand(name: str, layout: str, sizes: dict[str, int], terms: dict[str, str]) -> tuple[str, str, str]:
        kind = f"tensor<{'x'.join(str(sizes[axis]) for axis in layout)}xf32>"
        return name, kind, f"affine_map<({', '.join(loops)}) -> ({', '.join(terms.get(a, a) for a in layout)})>"

    operands = [operand("%image", image, SIZES | spans, windows), operand("%filter", filter_, SIZES, {})]
    (first, first_type, first_map), (second, second_type, second_map) = operands[::-1] if filter_first else operands
    _, result, out_map = operand("%start", out, SIZES, {})
    kinds = ", ".join('"parallel"' if loop in "nyxo" else '"reduction"' for loop in loops)
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


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ({}, "nhwc_hwcf"),
        ({"filter_": "ivuo", "filter_first": True, "loops": "iuxnvoy"}, "nhwc_hwcf"),
        ({"filter_": "oivu", "strides": (2, 1)}, "nhwc_hwcf"),
        ({"filter_": "uvoi", "strides": (1, 2), "dilations": (2, 3), "filter_first": True}, "nhwc_hwcf"),
        ({"image": "niyx", "out": "noyx"}, "nchw_fchw"),
    ],
)
def test_a_generic_gets_its_name_and_results_stay(form: dict[str, Any], named: str) -> None:
    text = generic(**form)
    assert agree(text, name_convolutions) == [1]
    after, _ = rewritten(text, name_convolutions)
    assert f"linalg.conv_2d_{named}" in after
    assert ("linalg.transpose" in after) == (form != {})
    assert "linalg.generic" not in after


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
    assert_left_alone(text, name_convolutions)
