"""Convolutions with the channels last: what becomes of programs, how far the layout goes, and the same results."""

import pytest

from harness.rewrites.channels_last import channels_last
from tests.programs import in_util, program, tensor
from tests.rewrites.tools import Together, assert_left_alone, assert_rewritten, rewritten

PADDED = """
main x:1x3x6x5
k = random 4x3x3x3
p = pad x zero 0,0,1,1 0,0,0,2
"""


def test_a_padded_convolution_with_transpositions_at_the_borders() -> None:
    before = """
    main x:1x2x2x2
    k:1x2x1x2 = | arith.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>
    p = pad x zero 0,0,0,0 0,0,0,1
    y = conv p k
    return y
    """
    after = """
    main x:1x2x2x2
    t = transpose x 0,2,3,1
    f:1x2x2x2 = | util.optimization_barrier %t : tensor<1x2x2x2xf32>
    p = pad f zero 0,0,0,0 0,0,1,0
    k:1x2x2x1 = | arith.constant dense<[[[[1.0], [3.0]], [[2.0], [4.0]]]]> : tensor<1x2x2x1xf32>
    y = conv p k named=conv_2d_nhwc_hwcf
    g:1x2x2x1 = | util.optimization_barrier %y : tensor<1x2x2x1xf32>
    z = transpose g 0,3,1,2
    return z
    """
    assert_rewritten(program(before), program(after), channels_last)
    assert_left_alone(program(after), channels_last)
    assert_rewritten(in_util(program(before)), in_util(program(after)), channels_last)


CONVOLUTIONS = {
    "weights that are computed": program("main x:1x3x6x5 k:4x3x3x3\ny = conv x k\nreturn y"),
    "strides": program(f"{PADDED}y = conv p k strides=2,1\nreturn y"),
    "dilations": program(f"{PADDED}y = conv p k strides=1,2 dilations=2,3\nreturn y"),
}
DEPTHWISE = program(f"{PADDED}d = random 3x2x3\ny = conv p d named=depthwise_conv_2d_nchw_chw\nreturn y")
TWO = program("main x:1x4x7x8\nk = random 4x4x3x3\ny = conv x k\nz = conv y k\nreturn z")


@pytest.fixture(scope="module")
def together() -> Together:
    """All programs of this file whose numbers are looked at, but for generated ones."""
    return Together([*CONVOLUTIONS.values(), DEPTHWISE, TWO, *GRAPHS.values()], channels_last)


def test_convolutions_compute_the_same_and_share_their_weights_still(together: Together) -> None:
    for text in (*CONVOLUTIONS.values(), DEPTHWISE):
        assert together.agree(text) == [1]
    assert_left_alone(DEPTHWISE, lambda module: channels_last(module, depthwise=False))
    assert together.agree(TWO) == [2]
    configuration = "lowering_config = #iree_cpu.lowering_config<distribution = [1, 4, 5, 6, 0, 0, 0]>"
    configured = TWO.replace("linalg.conv_2d_nchw_fchw {", f"linalg.conv_2d_nchw_fchw {{{configuration}, ", 1)
    after, _ = rewritten(configured, channels_last)
    assert "lowering_config" not in after, "it speaks of other loops"
    assert after.count(tensor((3, 3, 4, 4))) == 3  # one constant, two readers
    assert after.count("linalg.transpose ") == 2


def accumulating(image: str, weights: str, result: str, name: str = "linalg.conv_2d_nchw_fchw") -> str:
    """A convolution that starts from an argument."""
    return f"""
    func.func @main(%x: {image}, %k: {weights}, %y: {result}) -> {result} {{
      %0 = {name} {{strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
        ins(%x, %k : {image}, {weights}) outs(%y : {result}) -> {result}
      return %0 : {result}
    }}"""


# IREE 3.13 would overwrite what stands before the loop, where a convolution in the loop starts from it.
LOOP = """
main x:2x3x5x4
k = random 3x3x1x1
a = conv x k
| %from = arith.constant 0 : index
| %step = arith.constant 1 : index
| %to = arith.constant 3 : index
r:2x3x5x4 = | scf.for %i = %from to %to step %step iter_args(%v = %a) -> (tensor<2x3x5x4xf32>) {
w:2x3x5x4 = | tensor.cast %v : tensor<2x3x5x4xf32> to tensor<2x3x5x4xf32>
c = conv w k
| scf.yield %c : tensor<2x3x5x4xf32>
| }
return r"""


@pytest.mark.parametrize(
    "text",
    [
        accumulating("tensor<?x3x6x5xf32>", "tensor<4x3x3x3xf32>", "tensor<?x4x4x3xf32>"),
        accumulating("tensor<1x3x6x5xf32>", "tensor<4x3x?x3xf32>", "tensor<1x4x4x3xf32>"),
        accumulating(
            "tensor<1x2x3x6x5xf32>", "tensor<2x4x3x3x3xf32>", "tensor<1x2x4x4x3xf32>", "linalg.conv_2d_ngchw_gfchw"
        ),
        program(LOOP),
    ],
    ids=["dynamic", "dynamic weights", "groups", "in a function with a loop"],
)
def test_what_is_left_alone(text: str) -> None:
    assert_left_alone(text, channels_last)


IMAGE = "tensor<2x3x5x4xf32>"
# A pointwise convolution, then both images side by side in one way or another, and a part of that.
TURN = "b = conv x k\n"
CUT = "\nd = extract c 0,1,2,0 2x3x3x2 1,2,1,2\ny = conv d k"
POSITION = f"""
b_e = empty 2x3x5x4
b:2x3x5x4 = | linalg.generic {{
| indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
| iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
| ins(%a : {IMAGE}) outs(%b_e : {IMAGE}) {{
| ^bb0(%in: f32, %out: f32):
| %i = linalg.index 1 : index
| %j = arith.index_cast %i : index to i32
| %f = arith.sitofp %j : i32 to f32
| %r = arith.addf %in, %f : f32
| linalg.yield %r : f32
| }} -> {IMAGE}
"""
RESHAPES = f"""
b:6x20 = | tensor.collapse_shape %a [[0, 1], [2, 3]] : {IMAGE} into tensor<6x20xf32>
c:2x3x5x4 = | tensor.expand_shape %b [[0, 1], [2, 3]] output_shape [2, 3, 5, 4] : tensor<6x20xf32> into {IMAGE}
"""
SEVEN = "| %seven = arith.constant 7.0 : f32\n"


def broadcast(added: str, source: str) -> str:
    """A convolution that starts from %s, repeated along some dimensions."""
    start = f"linalg.broadcast ins(%s : tensor<{source}xf32>) outs(%e : {IMAGE}) dimensions = [{added}]"
    return f"e = empty 2x3x5x4\nstart:2x3x5x4 = | {start}\ny = conv x k start=start"


# By what they show: arguments, lines, how many transpositions are left at run time, how many convolutions are turned.
CASES = {
    "all between two convolutions": ("", "a = conv x k\nb = each mulf a two\ny = conv b k", 2, 2),
    "not an unknown operation": ("", f"a = conv x k{RESHAPES}y = conv c k", 4, 2),
    "not a body that knows its position": ("", f"a = conv x k{POSITION}y = conv b k", 4, 2),
    "slices and concat": ("", f"{TURN}c = concat 1 x b{CUT}", 2, 2),
    "slices and insert_slice": (
        *("", f"{TURN}e = empty 2x6x5x4\nf = insert x e 0,0,0,0\nc = insert b f 0,3,0,0{CUT}", 2, 2),
    ),
    "padding by any value of any side": (
        *("", f"a = conv x k\n{SEVEN}p = pad a seven 1,0,2,0 0,1,0,3\ny = each mulf p two", 2, 1),
    ),
    "a bias": ("bias:3 s:2x3x1x1", "a = conv x k\nb = each addf a bias:c\ny = each mulf b s:nc00", 2, 1),
    **{
        f"broadcast along {added}": (f"s:{source}", broadcast(added, source), count, 1)
        for added, source, count in (("0, 2, 3", "3", 2), ("1, 3", "2x5", 2), ("0", "3x5x4", 3))
    },
    "pooling": ("", "a = conv x k\nw = empty 2x2\ny = conv a w named=pooling_nchw_max strides=2,2", 2, 1),
    "transpositions that cancel out": (
        *("z:2x5x4x3", "a = transpose z 0,3,1,2\nb = conv a k\ny = transpose b 0,2,3,1", 0, 1),
    ),
    # The second convolution takes the pixels of the first one's result for its channels.
    "a transposition between two": (
        *("", "a = conv x k\nb = transpose a 0,2,3,1\nl = random 2x5x1x1 1\ny = conv b l", 3, 2),
    ),
}
GRAPHS = {
    what: program(f"main x:2x3x5x4 {arguments}\nk = random 3x3x1x1\n{lines}\nreturn y")
    for what, (arguments, lines, _, _) in CASES.items()
}


@pytest.mark.parametrize("what", CASES)
def test_how_far_the_layout_is_carried(what: str, together: Together) -> None:
    """Transpositions at run time are left where it ends."""
    *_, transposes, turned = CASES[what]
    assert rewritten(GRAPHS[what], channels_last)[0].count("linalg.transpose ") == transposes
    assert together.agree(GRAPHS[what]) == [turned]
