"""Configurations put on operations: which ops get one, what it looks like, that IREE takes it, and that sums stay."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from harness.rewrites.tuned import tune
from tests.programs import in_util, program
from tests.rewrites.tools import Rewrite, agree, assert_left_alone, configurations_taken, rewritten

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


def layer(images: int = 2) -> str:
    """A convolution with bias and ReLU."""
    out = f"{images}x4x10x32"
    return program(f"""
    main image:{images}x6x12x8 filter:3x3x8x32 bias:32
    e = empty {out}
    start:{out} = | linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<{out}xf32>) dimensions = [0, 1, 2]
    sum = conv image filter named=conv_2d_nhwc_hwcf start=start
    result = each maximumf sum zero
    return result
    """)


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


def tuning(*configurations: dict[str, Any]) -> Rewrite:
    return partial(tune, configurations=list(configurations))


def tuned(text: str, *configurations: dict[str, Any]) -> tuple[str, int]:
    after, matched = rewritten(text, tuning(*configurations))
    return after, matched[0]


@pytest.mark.parametrize("text", [layer(), in_util(layer())], ids=["func.func", "util.func"])
def test_a_matched_operation_carries_its_configuration(text: str) -> None:
    after, matched = tuned(text, CONVOLUTION)
    assert matched == 1
    assert re.findall(r"(\S+) \{compilation_info = ", after) == ["linalg.conv_2d_nhwc_hwcf"]
    assert after.count(TAKEN) == after.count("pipeline = #iree_cpu.pipeline<ConvTileAndDecomposeExpert>") == 1


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
        ({"attribute": "there"}, 0),
        ({"op": "linalg.batch_matmul"}, 0),
    ],
)
def test_operations_are_chosen_by_name_loops_and_attribute(which: dict[str, Any], matched: int) -> None:
    assert tuned(MATMULS, MATMUL | which)[1] == matched


def test_the_first_entry_that_matches_counts() -> None:
    after, matched = tuned(MATMULS, MATMUL | {"attribute": "here", "vector_reduction": [0, 0, 8]}, MATMUL)
    assert matched == 2
    assert [after.count(f"vector_reduction = [0, 0, {size}]") for size in (8, 2)] == [1, 1]


def test_what_carries_a_configuration_keeps_it() -> None:
    once, _ = tuned(layer(), CONVOLUTION)
    assert_left_alone(once, tuning(CONVOLUTION | {"vector_reduction": [0, 0, 0, 0, 1, 1, 2]}))


@pytest.mark.parametrize(("images", "isolate", "taken"), [(2, False, True), (1, False, False), (1, True, True)])
def test_the_backend_takes_the_configuration(images: int, isolate: bool, taken: bool) -> None:
    """That of a single image only where it stands in a region of its own."""
    after, _ = tuned(layer(images), CONVOLUTION | {"isolate": isolate})
    assert (TAKEN in configurations_taken(after)) == taken


def test_a_region_ends_where_a_value_has_two_readers() -> None:
    corner = "tensor.extract_slice %sum[0, 0, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1]"
    reader = f"%other = {corner} : tensor<2x4x10x32xf32> to tensor<1x1x1x1xf32>"
    after, _ = tuned(layer().replace("%result = ", f"{reader}\n%result = "), CONVOLUTION | {"isolate": True})
    assert after.index("flow.return") < after.index("arith.maximumf")


@pytest.mark.parametrize(("images", "isolate", "columns"), [(1, True, 5), (2, False, 5), (2, True, 4)])
def test_results_stay(images: int, isolate: bool, columns: int) -> None:
    """Also where the columns of a tile do not divide the width."""
    entry = CONVOLUTION | {"isolate": isolate, "vector_common_parallel": [1, 1, columns, 32, 0, 0, 0]}
    assert agree(layer(images), tuning(entry)) == [1]


def test_matmuls_are_tuned_too() -> None:
    assert MATMUL_TAKEN in configurations_taken(tuned(MATMULS, MATMUL)[0])
    assert agree(MATMULS, tuning(MATMUL | {"isolate": True})) == [2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distribution": [1, 4]}, r"configurations\[0\].distribution has 2 sizes, but linalg.conv.* has 7 loops"),
        ({"distribution": [1, 4, 10, 32, 0, 0, 8]}, r"distribution\[6\] must be 0, since loop 6 is a reduction loop"),
        ({"vector_reduction": [1, 0, 0, 0, 1, 1, 4]}, r"vector_reduction\[0\] must be 0, since loop 0 is a parallel"),
    ],
)
def test_tiles_that_do_not_fit_the_loops_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tuned(layer(), CONVOLUTION | change)


def test_a_dynamic_operation_gets_no_region() -> None:
    text = """
func.func @main(%a: tensor<?x64xf32>, %b: tensor<64x64xf32>, %c: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x64xf32>) outs(%c : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}"""
    assert tuned(text, MATMUL | {"isolate": True})[1] == 0
    assert tuned(text, MATMUL)[1] == 1
