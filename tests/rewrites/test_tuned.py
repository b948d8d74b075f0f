"""Configurations put on operations: which ops get one, what it looks like, that IREE takes it, and that sums stay."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from harness.rewrites.tuned import tune
from tests.rewrites.tools import configurations_taken, convolve, random, rewritten, run

CONVOLUTION = {
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
TAKEN = (
    "#iree_cpu.lowering_config<distribution = [1, 4, 10, 32, 0, 0, 0], "
    "vector_common_parallel = [1, 1, 5, 32, 0, 0, 0], vector_reduction = [0, 0, 0, 0, 1, 1, 4]>"
)
MATMUL_TAKEN = (
    "#iree_cpu.lowering_config<distribution = [8, 16, 0], vector_common_parallel = [4, 16, 0], "
    "vector_reduction = [0, 0, 2]>"
)


def program(images: int = 2, function: str = "func.func") -> str:
    """A convolution with bias and ReLU, then a matmul that has nothing to do with it."""
    out = f"tensor<{images}x4x10x32xf32>"
    return f"""
#same = affine_map<(n, y, x, c) -> (n, y, x, c)>
{function} @main(%image: tensor<{images}x6x12x8xf32>, %filter: tensor<3x3x8x32xf32>, %bias: tensor<32xf32>) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {out}
  %start = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%empty : {out}) dimensions = [0, 1, 2]
  %sum = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
    ins(%image, %filter : tensor<{images}x6x12x8xf32>, tensor<3x3x8x32xf32>) outs(%start : {out}) -> {out}
  %result = linalg.generic {{
    indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  }} ins(%sum : {out}) outs(%empty : {out}) {{
  ^bb0(%in: f32, %out: f32):
    %positive = arith.maximumf %in, %zero : f32
    linalg.yield %positive : f32
  }} -> {out}
  {"util.return" if function == "util.func" else "return"} %result : {out}
}}
"""


MATMULS = """
func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x32xf32>, %c: tensor<32x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %0 = linalg.matmul {here} ins(%a, %b : tensor<16x8xf32>, tensor<8x32xf32>) outs(%f0 : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = linalg.matmul ins(%0, %c : tensor<16x32xf32>, tensor<32x16xf32>) outs(%f1 : tensor<16x16xf32>)
    -> tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}
"""


def tuned(text: str, *configurations: dict[str, Any]) -> tuple[str, int]:
    after, matched = rewritten(text, lambda module: tune(module, configurations=list(configurations)))
    return after, matched[0]


@pytest.mark.parametrize("function", ["func.func", "util.func"])
def test_a_matched_operation_carries_its_configuration(function: str) -> None:
    after, matched = tuned(program(function=function), CONVOLUTION)
    assert matched == 1
    assert re.findall(r"(\S+) \{compilation_info = ", after) == ["linalg.conv_2d_nhwc_hwcf"]
    assert after.count(TAKEN) == after.count("pipeline = #iree_cpu.pipeline<ConvTileAndDecomposeExpert>") == 1


def test_what_is_not_meant_stays_as_it_is() -> None:
    before, _ = rewritten(program())
    assert tuned(program(), MATMUL) == (before, 0)
    assert tuned(program(), CONVOLUTION | {"loops": [2, 4, 10, 32, 3, 3, 9]}) == (before, 0)
    assert tuned(program(), CONVOLUTION | {"attribute": "here"}) == (before, 0)
    assert tuned(program()) == (before, 0)


@pytest.mark.parametrize(
    ("which", "matched"),
    [
        ({}, 2),
        ({"loops": [16, 16, 32]}, 1),
        ({"loops": [16, None, None]}, 2),
        ({"loops": [16, -1, -1]}, 2),
        ({"loops": [None, 32, 8]}, 1),
        ({"loops": [16, 16]}, 0),
        ({"attribute": "here"}, 1),
    ],
)
def test_operations_are_chosen_by_name_loops_and_attribute(which: dict[str, Any], matched: int) -> None:
    assert tuned(MATMULS, MATMUL | which)[1] == matched


def test_the_first_entry_that_matches_counts() -> None:
    after, matched = tuned(MATMULS, MATMUL | {"attribute": "here", "vector_reduction": [0, 0, 8]}, MATMUL)
    assert matched == 2
    assert [after.count(f"vector_reduction = [0, 0, {size}]") for size in (8, 2)] == [1, 1]


def test_what_carries_a_configuration_keeps_it() -> None:
    once, _ = tuned(program(), CONVOLUTION)
    assert tuned(once, CONVOLUTION | {"vector_reduction": [0, 0, 0, 0, 1, 1, 2]}) == (once, 0)


@pytest.mark.parametrize(("images", "isolate", "taken"), [(2, False, True), (1, False, False), (1, True, True)])
def test_the_backend_takes_the_configuration(images: int, isolate: bool, taken: bool) -> None:
    """That of a single image only where it stands in a region of its own."""
    after, _ = tuned(program(images), CONVOLUTION | {"isolate": isolate})
    assert (TAKEN in configurations_taken(after)) == taken


def test_a_region_holds_the_init_the_operation_and_what_follows_pointwise() -> None:
    after, matched = tuned(program(), CONVOLUTION | {"isolate": True})
    assert matched == 1
    region = after[after.index("flow.dispatch.region") : after.index("flow.return")]
    inside = [line.split(" = ")[1].split()[0] for line in region.splitlines() if line.strip().startswith("%")]
    assert inside[-4:] == ["linalg.broadcast", "linalg.conv_2d_nhwc_hwcf", "linalg.generic", "arith.maximumf"]


def test_a_region_ends_where_a_value_has_two_readers() -> None:
    corner = "tensor.extract_slice %sum[0, 0, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1]"
    reader = f"%other = {corner} : tensor<2x4x10x32xf32> to tensor<1x1x1x1xf32>"
    after, _ = tuned(program().replace("%result = ", f"{reader}\n  %result = "), CONVOLUTION | {"isolate": True})
    assert after.index("flow.return") < after.index("arith.maximumf")


def test_what_stands_in_a_region_already_gets_no_second_one() -> None:
    isolated, _ = tuned(program(), CONVOLUTION | {"isolate": True})
    bare = isolated.replace("compilation_info = #compilation, ", "")
    assert bare != isolated
    after, matched = tuned(bare, CONVOLUTION | {"isolate": True})
    assert matched == 1
    assert after.count("flow.dispatch.region") == 1


@pytest.mark.parametrize(("images", "isolate", "columns"), [(1, True, 5), (2, False, 5), (2, True, 4)])
def test_results_stay(images: int, isolate: bool, columns: int) -> None:
    """Also where the columns of a tile do not divide the width."""
    image, filter_, bias = random([(images, 6, 12, 8), (3, 3, 8, 32), (32,)])
    entry = CONVOLUTION | {"isolate": isolate, "vector_common_parallel": [1, 1, columns, 32, 0, 0, 0]}
    after, _ = tuned(program(images), entry)
    expected = np.maximum(convolve(image, filter_) + bias, 0)
    np.testing.assert_allclose(run(after, image, filter_, bias), expected, atol=1e-4)


def test_matmuls_are_tuned_too() -> None:
    a, b, c = random([(16, 8), (8, 32), (32, 16)])
    assert MATMUL_TAKEN in configurations_taken(tuned(MATMULS, MATMUL)[0])
    after, _ = tuned(MATMULS, MATMUL | {"isolate": True})
    np.testing.assert_allclose(run(after, a, b, c), a @ b @ c, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vector_paralel": [1]}, r"configurations\[0\].vector_paralel is unknown; there are op, loops,"),
        ({"op": None}, r"configurations\[0\].op must be a string"),
        ({"pipeline": "Fast"}, r"pipeline must be one of ConvTileAndDecomposeExpert, .*, not 'Fast'"),
        ({"distribution": [1, 4]}, r"configurations\[0\].distribution has 2 sizes, but linalg.conv.* has 7 loops"),
        ({"distribution": [1, 4, 10, 32, 0, 0, 8]}, r"distribution\[6\] must be 0, since loop 6 is a reduction loop"),
        ({"vector_reduction": [1, 0, 0, 0, 1, 1, 4]}, r"vector_reduction\[0\] must be 0, since loop 0 is a parallel"),
        ({"distribution": [1, -4, 10, 32, 0, 0, 0]}, r"distribution must hold whole numbers from 0 up, not -4"),
        ({"distribution": [True, 4, 10, 32, 0, 0, 0]}, r"distribution must hold whole numbers from 0 up, not True"),
        ({"distribution": 4}, r"distribution must be a list of whole numbers"),
        ({"loops": [2, 4, "10"]}, r"loops must hold whole numbers from 0 up or -1 for any, not '10'"),
        ({"isolate": 1}, r"attribute must be a string, and isolate true or false"),
    ],
)
def test_a_wrong_entry_is_refused_by_its_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tuned(program(), CONVOLUTION | change)


def test_an_entry_must_tile_something() -> None:
    with pytest.raises(ValueError, match=r"configurations\[1\] tiles nothing"):
        tuned(program(), CONVOLUTION, {"op": "linalg.matmul", "pipeline": "DoubleTilingExpert"})


def test_a_dynamic_operation_gets_no_region() -> None:
    text = """
func.func @main(%a: tensor<?x64xf32>, %b: tensor<64x64xf32>, %c: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x64xf32>) outs(%c : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}"""
    assert tuned(text, MATMUL | {"isolate": True})[1] == 0
    assert tuned(text, MATMUL)[1] == 1
