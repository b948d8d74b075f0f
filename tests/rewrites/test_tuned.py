"""Configurations derived for convolutions and the names of generics; dispatch regions, and what they take in."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.rewrites.channels_last import channels_last
from harness.rewrites.regions import CONVOLUTION, isolate_convolutions, regions_in_place
from harness.rewrites.share_concat import share_concat
from harness.rewrites.targets import target_vector_unit, vector_unit
from harness.rewrites.tuned import OF_ROWS, configure, name_convolutions, register_tile, tune_convolutions
from tests.programs import program
from tests.rewrites.tools import (
    AVX512_TARGET,
    Rewrite,
    agree,
    assert_left_alone,
    assert_rewritten,
    configurations_taken,
    lowered,
    rewritten,
)


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
    assert vector_unit((), "arm64") == (16, 32)
    assert vector_unit(["sse2"], "x86_64") == (16, 16)
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


# Of a buffer of two rows of four, a region computes one half from the other.
PART = "tensor<2x2xf32>"
BEFORE = f"""
main b:2x4
in = extract b 0,0 2x2
part:2x2 = | flow.dispatch.region -> ({PART}) {{
p = addf in in
| flow.return %p : {PART} }}
next = insert part b 0,2
return next
"""
AFTER = """
main b:2x4
next:2x4 = | flow.dispatch.region -> (tensor<2x4xf32>) {
in = extract b 0,0 2x2
p = addf in in
q = insert p b 0,2
| flow.return %q : tensor<2x4xf32> }
return next
"""
TEXT = program(BEFORE)


def test_a_region_reads_and_writes_the_buffer_itself() -> None:
    assert_rewritten(TEXT, program(AFTER), regions_in_place, places=2)
    assert_left_alone(program(AFTER), regions_in_place)
    assert agree(TEXT, regions_in_place) == [2]


@pytest.mark.parametrize("offset", ["0,1", "0,0"], ids=["half of what is read", "all that is read"])
def test_a_region_does_not_overwrite_what_it_reads(offset: str) -> None:
    text = program(BEFORE.replace("0,2", offset))
    after, _ = rewritten(text, regions_in_place)
    assert after.index("flow.return") < after.index("insert_slice")
    assert agree(text, regions_in_place) == [1]
    # Nor does it overwrite what something else reads later: the compiler copies the older state of the buffer.
    assert agree(program(BEFORE.replace("return next", "sum = addf next b\nreturn sum")), regions_in_place) == [2]


def test_what_a_region_starts_from_comes_along() -> None:
    """Neither a fill nor a repeated bias is worth a buffer of its own."""
    text = program("""
    main x:2x3 bias:3
    e = empty 2x3
    b = each yield bias:c out=e
    y:2x3 = | flow.dispatch.region -> (tensor<2x3xf32>) {
    r = each addf x b out=e
    | flow.return %r : tensor<2x3xf32> }
    return y
    """)
    after, _ = rewritten(text, regions_in_place)
    assert after.index("flow.dispatch.region") < after.index("tensor.empty")
    assert after.count("tensor.empty") == 1
    assert agree(text, regions_in_place) == [2]  # the bias, and what it is repeated into


@pytest.mark.parametrize(
    ("whole", "part", "offsets", "moved"),
    [
        ("1x5x6x8", "1x3x4x4", "0,1,1,4", 1),
        ("2x5x6x8", "2x5x6x4", "0,0,0,4", 1),
        ("1x5x6x8", "1x5x6x4", "0,0,0,4", 0),
        ("3x5x6x8", "1x5x6x8", "1,0,0,0", 0),
        ("5x1x6x8", "5x1x6x4", "0,0,0,4", 0),
        ("5x1x6x8", "3x1x4x8", "1,0,1,0", 0),
        ("1x1x6x8", "1x1x4x8", "0,0,1,0", 1),
    ],
)
def test_only_what_the_compiler_can_store_in_place(whole: str, part: str, offsets: str, moved: int) -> None:
    """Dimensions of one element may only come first, and then the part must not fill the next one."""
    text = program(f"""
    main w:{whole} x:{part}
    p:{part} = | flow.dispatch.region -> (tensor<{part}xf32>) {{
    r = each addf x x
    | flow.return %r : tensor<{part}xf32> }}
    next = insert p w {offsets}
    return next
    """)
    assert agree(text, regions_in_place) == [moved]


@pytest.mark.parametrize(("images", "padding", "moved"), [(1, True, 7), (1, False, 3), (2, True, 0)])
def test_a_dense_block_in_one_buffer(images: int, padding: bool, moved: int) -> None:
    """All rewrites together: three convolutions, each of all that was computed before it.

    Three starts are moved, and in a padded buffer two slices that are read and two that are written.
    """
    convolve = "k{0} = random 16x{1}x2x4 {0}\np{0} = pad {2} zero 0,0,1,1 0,0,0,2\nx{0} = conv p{0} k{0}"
    text = program(f"""
    main x:{images}x16x4x6
    {convolve.format(1, 16, "x")}
    joined = concat 1 x x1
    {convolve.format(2, 32, "joined")}
    longer = concat 1 x x1 x2
    {convolve.format(3, 48, "longer")}
    return x3
    """)
    matched = agree(
        text,
        channels_last,
        partial(share_concat, padding=padding),
        partial(tune_convolutions, target=AVX512_TARGET),
        regions_in_place,
    )
    assert matched == [3, 1, 3, moved]


ALL = partial(isolate_convolutions, depthwise=True)
CHANNELS_LAST = "y = conv x k named=conv_2d_nhwc_hwcf"
DEPTHWISE = "y = conv x k named=depthwise_conv_2d_nhwc_hwc"
POOLING = "y = conv x k named=pooling_nhwc_max strides=2,2"


DYNAMIC = """
func.func @main(%x: tensor<1x?x12x8xf32>, %k: tensor<3x3x8x32xf32>, %z: tensor<1x?x10x32xf32>)
    -> tensor<1x?x10x32xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %k : tensor<1x?x12x8xf32>, tensor<3x3x8x32xf32>)
    outs(%z : tensor<1x?x10x32xf32>) -> tensor<1x?x10x32xf32>
  return %y : tensor<1x?x10x32xf32>
}
"""


def layer(line: str, image: str = "1x6x12x8", kernel: str = "3x3x8x32") -> str:
    """An operation with a bias and an activation after it."""
    return program(f"main x:{image} k:{kernel}\n{line}\nb = each addf y one\nr = each maximumf b zero\nreturn r")


@pytest.mark.parametrize(
    "text",
    [layer(CHANNELS_LAST), layer(DEPTHWISE, kernel="3x3x8"), layer(POOLING, kernel="2x2")],
    ids=["convolution", "depthwise", "pooling"],
)
def test_it_stands_alone_with_what_belongs_to_it_and_results_stay(text: str) -> None:
    after, matched = rewritten(text, ALL)
    assert matched == [1]
    region = after[after.index("flow.dispatch.region") : after.index("flow.return")]
    assert region.count("linalg.") - region.count("linalg.yield") == 4
    assert lowered(after, "flow").count("flow.dispatch @") == 1
    assert agree(text, ALL, regions_in_place)[0] == 1


REGIONS = isolate_convolutions
LEFT_ALONE: dict[str, tuple[Rewrite, str]] = {
    "channels that no vector divides": (TUNE, convolution(2, 4, 10, 8, 9)),
    "several images": (REGIONS, layer(CHANNELS_LAST, "2x6x12x8")),
    "several pooled": (REGIONS, layer(POOLING, "2x6x12x8", "2x2")),
    "of one point": (REGIONS, layer(CHANNELS_LAST, kernel="1x1x8x32")),
    "channels first": (REGIONS, layer("y = conv x k", "1x8x6x12", "32x8x3x3")),
    "dynamic": (REGIONS, DYNAMIC),
    "in a region": (REGIONS, rewritten(layer(CHANNELS_LAST), REGIONS)[0]),
    "depthwise": (REGIONS, layer(DEPTHWISE, kernel="3x3x8")),
    "poolings that are not wanted": (partial(REGIONS, pooling=False), layer(POOLING, kernel="2x2")),
    "rows and columns exchanged in the image": (name_convolutions, generic(image="nxyi")),
    "a layout without a name": (name_convolutions, generic(image="yxni", out="yxno")),
    "channels first in, last out": (name_convolutions, generic(image="niyx")),
    **{
        f"{product}, {total}": (name_convolutions, generic(body=(f"%p = arith.{product}", f"%t = arith.{total}")))
        for product, total in (
            ("addf %l, %r : f32", "mulf %s, %p : f32"),
            ("mulf %l, %l : f32", "addf %s, %p : f32"),
            ("mulf %l, %r : f32", "addf %p, %p : f32"),
            ("mulf %l, %r : f32", "subf %s, %p : f32"),
        )
    },
}


@pytest.mark.parametrize("what", LEFT_ALONE)
def test_what_is_left_alone(what: str) -> None:
    rewrite, text = LEFT_ALONE[what]
    assert_left_alone(text, rewrite)
