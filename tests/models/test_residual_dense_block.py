"""The built block: its form, its numbers, and what they depend on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.models import ModelArtifact, load_argument
from harness.models.model import Input, Model
from harness.models.residual_dense_block import Parameters, build

Array = NDArray[Any]

TINY = Parameters(height=4, width=5, channels=8, growth=4)


def text_of(params: Parameters) -> str:
    text = build(params).text
    assert isinstance(text, str)
    return text


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
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    summed: Array = np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True)
    return summed + bias[:, None, None]


def reference(x: Array, weights: dict[str, Array], blocks: int) -> Array:
    """The block as PyTorch writes it, in double precision."""
    x = x.astype(np.float64)
    for block in range(blocks):
        parts = [x]
        for number in range(1, 6):
            name = f"block{block}_conv{number}"
            y = convolve(np.concatenate(parts, axis=1), weights[f"{name}_weight"], weights[f"{name}_bias"])
            parts.append(np.where(y > 0, y, 0.2 * y) if number < 5 else y)
        x = 0.2 * parts[-1] + x
    return x


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_compiled_block_computes_what_it_should(
    make: Callable[[Model], ModelArtifact], run_main: Callable[[ModelArtifact], list[Array]], blocks: int
) -> None:
    params = {"height": 4, "width": 5, "channels": 8, "growth": 4, "blocks": blocks, "seed": 3}
    artifact = make(Model(name="rdb", builder="residual-dense-block", params=params, parameters={}))
    (output,) = run_main(artifact)
    weights = weights_of(artifact.mlir.read_text())
    expected = reference(load_argument(artifact.arguments[0]), weights, blocks)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


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


def test_default_sizes_are_those_of_the_issue() -> None:
    text = text_of(Parameters())
    assert "tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]" in text
    assert "tensor<1x64x90x62xf32> to tensor<1x64x92x64xf32>" in text
    assert "[0, 160, 0, 0] [1, 32, 90, 62] [1, 1, 1, 1] : tensor<1x32x90x62xf32> into tensor<1x192x90x62xf32>" in text
    assert build(Parameters()).inputs == (Input(shape=(1, 64, 90, 62)),)


def test_equal_parameters_give_equal_bytes_and_another_seed_other_weights_only() -> None:
    one, other = text_of(TINY), text_of(Parameters(height=4, width=5, channels=8, growth=4, seed=1))
    assert text_of(TINY) == one
    assert other != one
    assert re.sub('"0x[0-9a-f]+"', "", other) == re.sub('"0x[0-9a-f]+"', "", one)


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
