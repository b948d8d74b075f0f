"""Register tiles that are derived from shapes: which ones, that the backend takes them, and that sums stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.channelled_convolution import Parameters, build
from harness.rewrites.tuned import tune
from harness.rewrites.tuned_configuration import LEVELS
from harness.rewrites.tuned_convolutions import RegisterTile, configure, register_tile, tune_convolutions
from tests.rewrites.tuned_tools import configurations_taken, convolve, random, rewritten, run

AVX512 = {"lanes": 16, "registers": 32}
AVX2 = {"lanes": 8, "registers": 16}


@pytest.mark.parametrize(
    ("width", "channels", "target", "columns", "tile_channels"),
    [
        (100, 128, AVX512, 4, 64),  # 16 accumulators, 4 vectors of the filter, 1 broadcast
        (100, 128, AVX2, 5, 16),
        (90, 64, AVX2, 6, 16),
        (62, 32, AVX512, 31, 16),  # one vector of the filter; broadcasts come from memory
        (61, 128, AVX512, 1, 128),  # a prime width: no column to share the filter's vectors with
        (100, 48, AVX512, 25, 16),  # not 3 vectors, which the backend splits badly
        (100, 24, AVX2, 10, 8),
    ],
)
def test_tiles(width: int, channels: int, target: dict[str, int], columns: int, tile_channels: int) -> None:
    assert register_tile(width, channels, **target) == RegisterTile(columns=columns, channels=tile_channels)


@given(st.integers(1, 300), st.integers(1, 40), st.sampled_from([4, 8, 16]), st.integers(4, 32))
def test_a_tile_divides_its_loops_and_fits_the_registers(width: int, vectors: int, lanes: int, registers: int) -> None:
    tile = register_tile(width, vectors * lanes, lanes=lanes, registers=registers)
    assert tile is not None
    assert width % tile.columns == 0
    assert vectors * lanes % tile.channels == 0
    used = tile.channels // lanes
    assert tile.columns * used + used <= registers


@given(st.tuples(*[st.integers(1, 200)] * 4), st.tuples(st.integers(1, 7), st.integers(2, 7), st.integers(1, 600)))
def test_every_size_divides_its_loop(parallel: tuple[int, ...], reduction: tuple[int, ...]) -> None:
    ranges = (*parallel[:3], parallel[3] * 16, *reduction)
    entry = configure(ranges, **AVX512)
    assert entry is not None
    for level in LEVELS:
        sizes = entry.get(level, [0] * 7)
        assert all(not size or range_ % size == 0 for size, range_ in zip(sizes, ranges, strict=True))
    whole_and_part = zip(entry["distribution"], entry["vector_common_parallel"], strict=True)
    assert all(whole % part == 0 for whole, part in whole_and_part if part)


def test_channels_that_no_vector_divides_have_no_tile() -> None:
    assert register_tile(100, 24, **AVX512) is None
    assert configure((5, 80, 100, 24, 3, 3, 128), **AVX512) is None


@pytest.mark.parametrize("ranges", [(-1, 80, 100, 128, 3, 3, 128), (5, 80, 100, 128, 1, 1, 128), (80, 100, 128)])
def test_unknown_sizes_and_kernels_of_one_point_are_left_to_iree(ranges: tuple[int, ...]) -> None:
    assert configure(ranges, **AVX512) is None


@pytest.mark.parametrize(("vector_bytes", "registers"), [(64, 3), (8, 32), (48, 32)])
def test_a_target_must_have_vector_registers(vector_bytes: int, registers: int) -> None:
    with pytest.raises(ValueError, match="none of a vector unit"):
        rewritten(
            convolution(2, 4, 10, 8, 32), lambda m: tune_convolutions(m, vector_bytes=vector_bytes, registers=registers)
        )


def convolution(
    images: int, height: int, width: int, inputs: int, outputs: int, kernel: int = 3, stride: int = 1
) -> str:
    """A convolution that starts from zero, of arguments only."""
    rows, columns = ((size - 1) * stride + kernel for size in (height, width))
    image = f"tensor<{images}x{rows}x{columns}x{inputs}xf32>"
    filter_ = f"tensor<{kernel}x{kernel}x{inputs}x{outputs}xf32>"
    out = f"tensor<{images}x{height}x{width}x{outputs}xf32>"
    return f"""
func.func @main(%image: {image}, %filter: {filter_}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {out}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {out}) -> {out}
  %sum = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : vector<2xi64>, strides = dense<{stride}> : vector<2xi64>}}
    ins(%image, %filter : {image}, {filter_}) outs(%start : {out}) -> {out}
  return %sum : {out}
}}
"""


@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "stride", "width", "inputs", "outputs"), [(3, 1, 10, 8, 32), (3, 2, 7, 3, 16), (2, 1, 10, 6, 48)]
)
def test_the_backend_takes_it_and_results_stay(
    images: int, kernel: int, stride: int, width: int, inputs: int, outputs: int
) -> None:
    text = convolution(images, 4, width, inputs, outputs, kernel, stride)
    after, matched = rewritten(text, tune_convolutions)
    assert matched == [1]
    ranges = (images, 4, width, outputs, kernel, kernel, inputs)
    entry = configure(ranges, **AVX512)
    assert entry is not None
    levels = ", ".join(f"{level} = {entry[level]}" for level in LEVELS if level in entry)
    assert f"#iree_cpu.lowering_config<{levels}>" in configurations_taken(after)
    rows, columns = ((size - 1) * stride + kernel for size in (4, width))
    image, filter_ = random([(images, rows, columns, inputs), (kernel, kernel, inputs, outputs)])
    expected = convolve(image, filter_, strides=(stride, stride))
    np.testing.assert_allclose(run(after, image, filter_), expected, atol=1e-3)


def test_other_operations_and_odd_channels_are_left_alone() -> None:
    text = convolution(2, 4, 10, 8, 9)
    before, _ = rewritten(text)
    assert rewritten(text, tune_convolutions) == (before, [0])


def test_operations_of_several_results_are_left_alone() -> None:
    """As ONNX's MaxPool has with the places of its maxima, and LayerNormalization."""
    text = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %both:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>,
      affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%empty, %empty : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32, %out_0: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %in, %twice : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %both#0, %both#1 : tensor<4xf32>, tensor<4xf32>
}
"""
    before, _ = rewritten(text)
    assert rewritten(text, tune_convolutions) == (before, [0])


def test_what_a_person_configured_comes_first() -> None:
    text = build(Parameters(batch=2, height=4, width=10, channels_in=8, channels_out=32)).text
    assert isinstance(text, str)
    entry = configure((2, 4, 10, 32, 3, 3, 8), lanes=16, registers=32)
    assert entry is not None
    by_hand = entry | {"vector_reduction": [0, 0, 0, 0, 1, 1, 2]}
    after, matched = rewritten(text, lambda module: tune(module, configurations=[by_hand]), tune_convolutions)
    assert matched == [1, 0]
    assert "vector_reduction = [0, 0, 0, 0, 1, 1, 2]" in after
