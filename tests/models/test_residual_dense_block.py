"""ESRGAN's blocks: their form, their numbers, and what they depend on."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.models import load_argument
from harness.models.model import Input
from harness.models.residual_dense_block import Parameters, TrunkParameters, build
from tests.models.conftest import Make, RunMain

Array = NDArray[Any]

TINY = Parameters(height=4, width=5, channels=8, growth=4)


def text_of(params: Parameters) -> str:
    return str(build(params).text)


def weights_of(text: str) -> dict[str, Array]:
    """Weights by resource name, read back from the blobs and the types in the text."""
    shapes = {
        name: tuple(int(size) for size in shape.split("x"))
        for name, shape in re.findall(r"dense_resource<(\w+)> : tensor<([\dx]+)xf32>", text)
    }
    blobs = re.findall(r'(\w+): "0x04000000([0-9a-f]+)"', text)
    assert [name for name, _ in blobs] == list(shapes)
    return {name: np.frombuffer(bytes.fromhex(blob), "<f4").reshape(shapes[name]) for name, blob in blobs}


def convolve(x: Array, weight: Array, bias: Array) -> Array:
    windows = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    summed: Array = np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True)
    return summed + bias[:, None, None]


def block(x: Array, weights: dict[str, Array], name: str) -> Array:
    """One block as PyTorch writes it, in double precision."""
    parts = [x.astype(np.float64)]
    for number in range(1, 6):
        weight, bias = (weights[f"{name}_conv{number}_{kind}"] for kind in ("weight", "bias"))
        y = convolve(np.concatenate(parts, axis=1), weight, bias)
        parts.append(np.where(y > 0, y, 0.2 * y) if number < 5 else y)
    return np.asarray(0.2 * parts[-1] + x)


def reference(x: Array, weights: dict[str, Array], blocks: int) -> Array:
    for number in range(blocks):
        x = block(x, weights, f"block{number}")
    return x


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_compiled_block_computes_what_it_should(make: Make, run_main: RunMain, blocks: int) -> None:
    artifact = make("residual-dense-block", height=4, width=5, channels=8, growth=4, blocks=blocks, seed=3)
    (output,) = run_main(artifact)
    weights = weights_of(artifact.mlir.read_text())
    expected = reference(load_argument(artifact.arguments[0]), weights, blocks)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_a_trunk_is_three_blocks_and_a_residual_at_a_time(make: Make, run_main: RunMain) -> None:
    artifact = make("rrdb-trunk", height=4, width=4, channels=4, growth=2, blocks=2)
    x = load_argument(artifact.arguments[0])
    assert artifact.inputs == (Input(shape=(1, 4, 4, 4)),)
    (output,) = run_main(artifact)
    weights = weights_of(artifact.mlir.read_text())
    for number in range(2):
        inner = x
        for dense in range(3):
            inner = block(inner, weights, f"block{number}_dense{dense}")
        x = 0.2 * inner + x
    np.testing.assert_allclose(output, x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("blocks", [1, 3])
def test_operations_are_those_of_the_esrgan_import(blocks: int) -> None:
    text = text_of(Parameters(height=4, width=5, channels=8, growth=4, blocks=blocks))
    counts = {
        "tensor.insert_slice ": 2 + 3 + 4 + 5,
        "tensor.pad ": 5,
        "linalg.conv_2d_nchw_fchw ": 5,
        "linalg.generic ": 5 + 4 + 1,  # biases, leaky ReLUs, the last sum
        "arith.cmpf ugt": 4,
        "arith.select ": 2 * 4,
        "arith.constant dense_resource": 2 * 5,
        '"0x04000000': 2 * 5,
    }
    assert {what: text.count(what) for what in counts} == {what: blocks * count for what, count in counts.items()}


def test_each_part_is_inserted_anew_at_its_channels() -> None:
    inserted = re.findall(r"insert_slice (\S+) into \S+\[0, (\d+), 0, 0\] \[1, (\d+), 4, 5\]", text_of(TINY))
    x, x1, x2, x3, x4 = "%arg0", *dict.fromkeys(part for part, offset, _ in inserted if offset != "0")
    concatenations = [(x, x1), (x, x1, x2), (x, x1, x2, x3), (x, x1, x2, x3, x4)]
    channels = [(0, 8), (8, 4), (12, 4), (16, 4), (20, 4)]
    assert [(part, int(offset), int(size)) for part, offset, size in inserted] == [
        (part, *channels[position]) for parts in concatenations for position, part in enumerate(parts)
    ]


def test_default_sizes_are_those_of_the_issue_and_of_the_published_network() -> None:
    text = text_of(Parameters())
    assert "tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]" in text
    assert "tensor<1x64x90x62xf32> to tensor<1x64x92x64xf32>" in text
    assert "[0, 160, 0, 0] [1, 32, 90, 62] [1, 1, 1, 1] : tensor<1x32x90x62xf32> into tensor<1x192x90x62xf32>" in text
    assert build(Parameters()).inputs == (Input(shape=(1, 64, 90, 62)),)
    trunk = TrunkParameters()
    assert (trunk.height, trunk.width, trunk.channels, trunk.growth, trunk.blocks) == (64, 64, 64, 32, 23)


def test_a_longer_chain_begins_with_the_shorter_one() -> None:
    short = weights_of(text_of(TINY))
    long = weights_of(text_of(Parameters(height=4, width=5, channels=8, growth=4, blocks=2)))
    assert set(short) < set(long)
    assert all(np.array_equal(values, long[name]) for name, values in short.items())


@pytest.mark.parametrize("channels", [1, 16])
def test_values_stay_of_order_1_through_a_whole_esrgan(channels: int) -> None:
    params = Parameters(height=6, width=6, channels=channels, growth=max(1, channels // 2), blocks=69)
    x = np.random.default_rng(0).standard_normal((1, channels, 6, 6))
    y = reference(x, weights_of(text_of(params)), params.blocks)
    assert 0.3 < float(np.std(y)) < 4.0
