"""Configurations put on operations, given or derived: which ops get one, that IREE takes it, and that sums stay."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.rewrites.targets import LEVELS, target_vector_unit, vector_unit
from harness.rewrites.tuned import (
    CONVOLUTION,
    OF_ROWS,
    configure,
    name_convolutions,
    register_tile,
    tune,
    tune_convolutions,
)
from tests.programs import in_util, program
from tests.rewrites.tools import Rewrite, agree, assert_left_alone, configurations_taken, rewritten

ENTRY = {
    "op": "linalg.conv_2d_nhwc_hwcf",
    "pipeline": "ConvTileAndDecomposeExpert",
    "distribution": [1, 4, 10, 32, 0, 0, 0],
    "vector_common_parallel": [1, 1, 5, 32, 0, 0, 0],
    "vector_reduction": [0, 0, 0, 0, 1, 1, 4],
}
MATMUL = {
    "op": "linalg.matmul",
    "pipeline": "DoubleTilingExpert",
    "distribution": [8, 16, 0],
    "vector_common_parallel": [4, 16, 0],
    "vector_reduction": [0, 0, 2],
}
MATMULS = program("""
main a:16x8 b:8x32 c:32x16
e = empty 16x32
f = fill zero e
ab = matmul a b f
g = empty 16x16
h = fill zero g
abc = matmul ab c h
return abc
""").replace("linalg.matmul", "linalg.matmul {here}", 1)


def taken(entry: Mapping[str, Any]) -> str:
    """How IREE writes an entry's tile sizes."""
    levels = ", ".join(f"{level} = {entry[level]}" for level in LEVELS if level in entry)
    return f"#iree_cpu.lowering_config<{levels}>"


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


def biased(images: int = 2) -> str:
    """One that ENTRY means."""
    return convolution(images, 4, 10, 8, 32)


def tuning(*configurations: dict[str, Any]) -> Rewrite:
    return partial(tune, configurations=list(configurations))


def tuned(text: str, *configurations: dict[str, Any]) -> tuple[str, int]:
    after, matched = rewritten(text, tuning(*configurations))
    return after, matched[0]


@pytest.mark.parametrize("text", [biased(), in_util(biased())], ids=["func.func", "util.func"])
def test_a_matched_operation_carries_its_configuration_unless_it_has_one(text: str) -> None:
    after, matched = tuned(text, ENTRY)
    assert matched == 1
    assert re.findall(r"(\S+) \{compilation_info = ", after) == ["linalg.conv_2d_nhwc_hwcf"]
    assert after.count(taken(ENTRY)) == after.count("pipeline = #iree_cpu.pipeline<ConvTileAndDecomposeExpert>") == 1
    assert_left_alone(after, tuning(ENTRY | {"vector_reduction": [0, 0, 0, 0, 1, 1, 2]}))


@pytest.mark.parametrize(
    ("which", "matched"),
    [
        ({"loops": [16, 16, 32]}, 1),
        ({"loops": [16, None, -1]}, 2),
        ({"loops": [16, 16]}, 0),
        ({"attribute": "here"}, 1),
        ({"attribute": "there"}, 0),
        ({"op": "linalg.batch_matmul"}, 0),
    ],
)
def test_operations_are_chosen_by_name_loops_and_attribute(which: dict[str, Any], matched: int) -> None:
    assert tuned(MATMULS, MATMUL | which)[1] == matched


@pytest.mark.parametrize(
    ("images", "isolate", "columns", "is_taken"),
    [(2, False, 5, True), (1, False, 5, False), (1, True, 5, True), (2, True, 4, True)],
)
def test_the_backend_takes_the_configuration_and_results_stay(
    images: int, isolate: bool, columns: int, is_taken: bool
) -> None:
    """That of a single image only in a region of its own. The columns of a tile need not divide the width."""
    entry = ENTRY | {"isolate": isolate, "vector_common_parallel": [1, 1, columns, 32, 0, 0, 0]}
    after, _ = tuned(biased(images), entry)
    assert (taken(entry) in configurations_taken(after)) == is_taken
    assert agree(biased(images), tuning(entry)) == [1]


def test_matmuls_are_tuned_too() -> None:
    assert taken(MATMUL) in configurations_taken(tuned(MATMULS, MATMUL)[0])
    assert agree(MATMULS, tuning(MATMUL | {"isolate": True})) == [2]


def test_a_region_ends_where_a_value_has_two_readers() -> None:
    corner = "tensor.extract_slice %sum[0, 0, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1]"
    reader = f"%other = {corner} : tensor<2x4x10x32xf32> to tensor<1x1x1x1xf32>"
    after, _ = tuned(biased().replace("%result = ", f"{reader}\n%result = "), ENTRY | {"isolate": True})
    assert after.index("flow.return") < after.index("arith.maximumf")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distribution": [1, 4]}, r"configurations\[0\].distribution has 2 sizes, but linalg.conv.* has 7 loops"),
        ({"distribution": [1, 4, 10, 32, 0, 0, 8]}, r"distribution\[6\] must be 0, since loop 6 is a reduction loop"),
    ],
)
def test_tiles_that_do_not_fit_the_loops_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tuned(biased(), ENTRY | change)


def test_a_dynamic_operation_gets_no_region() -> None:
    text = """
func.func @main(%a: tensor<?x64xf32>, %b: tensor<64x64xf32>, %c: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x64xf32>) outs(%c : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}"""
    assert tuned(text, MATMUL | {"isolate": True})[1] == 0
    assert tuned(text, MATMUL)[1] == 1


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
        configure(block, **unit, of_rows=of_rows)
        for unit, of_rows in ((AVX512, OF_ROWS[64, 32]), (AVX2, OF_ROWS[32, 16]), (AVX2, False))
    ]
    found = [entry["vector_common_parallel"][1:4] for entry in tiles if entry]
    assert found == [[1, 31, 16], [6, 1, 16], [1, 2, 32]]
    assert tiles[1] is not None
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
    for level in LEVELS:
        sizes = entry.get(level, [0] * 7)
        assert all(not size or range_ % size == 0 for size, range_ in zip(sizes, ranges, strict=True))
    whole_and_part = zip(entry["distribution"], entry["vector_common_parallel"], strict=True)
    assert all(whole % part == 0 for whole, part in whole_and_part if part)


@pytest.mark.parametrize(
    "ranges",
    [(5, 80, 100, 24, 3, 3, 128), (-1, 80, 100, 128, 3, 3, 128), (5, 80, 100, 128, 1, 1, 128), (80, 100, 128)],
    ids=["no vector divides the channels", "an unknown size", "a kernel of one point", "other loops"],
)
def test_what_has_no_tile_is_left_to_iree(ranges: tuple[int, ...]) -> None:
    assert configure(ranges, **AVX512) is None


@pytest.mark.parametrize(("vector_bytes", "registers"), [(64, 3), (8, 32), (48, 32)])
def test_a_target_must_have_vector_registers(vector_bytes: int, registers: int) -> None:
    with pytest.raises(ValueError, match="none of a vector unit"):
        rewritten(TWO_RESULTS, partial(tune_convolutions, vector_bytes=vector_bytes, registers=registers))


@pytest.mark.parametrize(
    ("images", "kernel", "stride", "width", "inputs", "outputs"), [(1, 3, 1, 10, 8, 32), (2, 2, 2, 7, 3, 48)]
)
def test_the_backend_takes_what_is_derived_and_results_stay(
    images: int, kernel: int, stride: int, width: int, inputs: int, outputs: int
) -> None:
    text = convolution(images, 4, width, inputs, outputs, kernel, stride)
    tuning_all = partial(tune_convolutions, vector_bytes=64, registers=32)
    assert agree(text, tuning_all) == [1]
    entry = configure((images, 4, width, outputs, kernel, kernel, inputs), **AVX512)
    assert entry is not None
    assert taken(entry) in configurations_taken(rewritten(text, tuning_all)[0])


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
    assert_left_alone(convolution(2, 4, 10, 8, 9), tune_convolutions)
    assert_left_alone(TWO_RESULTS, tune_convolutions)


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
