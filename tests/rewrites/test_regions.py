"""Dispatch regions: convolutions alone in theirs, and slices and insertions that regions take in."""

from functools import partial

import pytest

from harness.rewrites.channels_last import channels_last
from harness.rewrites.regions import isolate_convolutions, regions_in_place
from harness.rewrites.share_concat import share_concat
from harness.rewrites.tuned import tune_convolutions
from tests.programs import Writer, program
from tests.rewrites.tools import AVX512_TARGET, agree, assert_left_alone, assert_rewritten, lowered, rewritten

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
    writer, parts = Writer(f"x:{images}x16x4x6"), ["x"]
    for number, channels in enumerate((16, 32, 48)):
        joined = writer.add(f"concat 1 {' '.join(parts)}") if number else "x"
        weights = writer.add(f"random 16x{channels}x2x4 {number}")
        padded = writer.add(f"pad {joined} zero 0,0,1,1 0,0,0,2")
        parts.append(writer.add(f"conv {padded} {weights}"))
    matched = agree(
        writer.module(parts[-1:]),
        channels_last,
        partial(share_concat, padding=padding),
        partial(tune_convolutions, target=AVX512_TARGET),
        regions_in_place,
    )
    assert matched == [3, 1, 3, moved]


ALL = partial(isolate_convolutions, depthwise=True)
CONVOLUTION = "y = conv x k named=conv_2d_nhwc_hwcf"
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
    [layer(CONVOLUTION), layer(DEPTHWISE, kernel="3x3x8"), layer(POOLING, kernel="2x2")],
    ids=["convolution", "depthwise", "pooling"],
)
def test_it_stands_alone_with_what_belongs_to_it_and_results_stay(text: str) -> None:
    after, matched = rewritten(text, ALL)
    assert matched == [1]
    region = after[after.index("flow.dispatch.region") : after.index("flow.return")]
    assert region.count("linalg.") - region.count("linalg.yield") == 4
    assert lowered(after, "flow").count("flow.dispatch @") == 1
    assert agree(text, ALL, regions_in_place)[0] == 1


@pytest.mark.parametrize(
    "text",
    [
        layer(CONVOLUTION, "2x6x12x8"),
        layer(POOLING, "2x6x12x8", "2x2"),
        layer(CONVOLUTION, kernel="1x1x8x32"),
        layer("y = conv x k", "1x8x6x12", "32x8x3x3"),
        DYNAMIC,
        rewritten(layer(CONVOLUTION), isolate_convolutions)[0],
        layer(DEPTHWISE, kernel="3x3x8"),
    ],
    ids=["several", "several pooled", "of one point", "channels first", "dynamic", "in a region", "depthwise"],
)
def test_what_has_no_use_for_a_region(text: str) -> None:
    assert_left_alone(text, isolate_convolutions)


def test_poolings_where_they_are_wanted() -> None:
    assert_left_alone(layer(POOLING, kernel="2x2"), partial(isolate_convolutions, pooling=False))
