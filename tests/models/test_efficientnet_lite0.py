"""EfficientNet-lite0: its padding, its folded normalisation, and the shape of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.models.efficientnet_lite0 import STAGES, Parameters, fold_norm, same_padding, write
from tests.models.onnx_runs import run_onnx_bytes

Array = NDArray[Any]

SIZE = 32


def random_weights() -> dict[str, Array]:
    """All weights of the published names and shapes."""
    rng = np.random.default_rng(0)
    weights: dict[str, Array] = {}

    def convolution(name: str, norm: str, shape: tuple[int, ...]) -> None:
        weights[f"{name}.weight"] = rng.standard_normal(shape, np.float32) / np.prod(shape[1:]) ** 0.5
        for part in ("weight", "running_var"):
            weights[f"{norm}.{part}"] = rng.random(shape[0], np.float32) + 0.5
        for part in ("bias", "running_mean"):
            weights[f"{norm}.{part}"] = rng.standard_normal(shape[0], np.float32)

    convolution("_conv_stem", "_bn0", (32, 3, 3, 3))
    number = 0
    for stage in STAGES:
        for place in range(stage.repeats):
            inputs = stage.inputs if place == 0 else stage.outputs
            inner, name = inputs * stage.expansion, f"_blocks.{number}"
            if stage.expansion != 1:
                convolution(f"{name}._expand_conv", f"{name}._bn0", (inner, inputs, 1, 1))
            convolution(f"{name}._depthwise_conv", f"{name}._bn1", (inner, 1, stage.kernel, stage.kernel))
            convolution(f"{name}._project_conv", f"{name}._bn2", (stage.outputs, inner, 1, 1))
            number += 1
    convolution("_conv_head", "_bn1", (1280, 320, 1, 1))
    weights["_fc.weight"] = rng.standard_normal((1000, 1280), np.float32)
    weights["_fc.bias"] = rng.standard_normal(1000, np.float32)
    return weights


@given(size=st.integers(1, 64), kernel=st.integers(1, 7), stride=st.integers(1, 3))
def test_padding_is_the_least_that_gives_enough_results(size: int, kernel: int, stride: int) -> None:
    before, after, results = same_padding(size, kernel, stride)
    assert results == (size + stride - 1) // stride
    assert after - before in (0, 1)
    padded = size + before + after
    assert (padded - kernel) // stride + 1 >= results
    assert before + after == 0 or (padded - 1 - kernel) // stride + 1 < results


def test_even_images_are_padded_on_the_right_and_below_when_strided() -> None:
    assert same_padding(224, 3, 2) == (0, 1, 112)
    assert same_padding(56, 5, 2) == (1, 2, 28)
    assert same_padding(56, 5, 1) == (2, 2, 56)


def test_folded_normalisation_is_the_normalisation_of_the_result() -> None:
    weights = random_weights()
    filters, bias = fold_norm(weights, "_conv_stem.weight", "_bn0")
    x = np.random.default_rng(1).standard_normal((27,), np.float32)
    result = weights["_conv_stem.weight"].reshape(32, 27) @ x
    normalised = (result - weights["_bn0.running_mean"]) / np.sqrt(weights["_bn0.running_var"] + 1e-3)
    expected = normalised * weights["_bn0.weight"] + weights["_bn0.bias"]
    np.testing.assert_allclose(filters.reshape(32, 27) @ x + bias, expected, rtol=1e-4, atol=1e-5)


def test_the_whole_network_gives_a_thousand_numbers() -> None:
    built = write(random_weights(), Parameters(batch=2, size=SIZE))
    images = np.random.default_rng(1).standard_normal((2, 3, SIZE, SIZE), np.float32)
    both, alone = run_onnx_bytes(built.onnx, images)[0], []
    assert both.shape == (2, 1000)
    one = write(random_weights(), Parameters(size=SIZE))
    alone = [run_onnx_bytes(one.onnx, image[None])[0][0] for image in images]
    np.testing.assert_allclose(both, alone, rtol=1e-3, atol=1e-2)
    kinds = [node.op_type for node in onnx.load_from_string(built.onnx).graph.node]
    assert kinds.count("Conv") == 2 + sum(stage.repeats * (2 + (stage.expansion != 1)) for stage in STAGES) == 49
    assert kinds.count("Add") == sum(stage.repeats - 1 for stage in STAGES) == 9
