"""CREPE's layers against numpy, with few channels; the weights say how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.models.crepe import Parameters, write
from tests.models.onnx_runs import run_onnx_bytes

Array = NDArray[Any]

CHANNELS = (1, 3, 2, 2, 2, 2, 2)
PITCHES = 5
EPSILON = 0.0010000000474974513


def random_weights() -> dict[str, Array]:
    """All weights by their names in the published file."""
    rng = np.random.default_rng(0)
    weights: dict[str, Array] = {}
    for number in range(1, 7):
        outputs, kernel = CHANNELS[number], 512 if number == 1 else 64
        weights[f"conv{number}.weight"] = rng.standard_normal((outputs, CHANNELS[number - 1], kernel, 1)) / kernel**0.5
        weights[f"conv{number}.bias"] = rng.standard_normal(outputs)
        for part in ("weight", "bias", "running_mean"):
            weights[f"conv{number}_BN.{part}"] = rng.standard_normal(outputs)
        weights[f"conv{number}_BN.running_var"] = rng.random(outputs) + 0.1
    weights["classifier.weight"] = rng.standard_normal((PITCHES, 4 * CHANNELS[6]))
    weights["classifier.bias"] = rng.standard_normal(PITCHES)
    return {name: values.astype(np.float32) for name, values in weights.items()}


def expected_of(weights: Mapping[str, Array], sound: Array) -> Array:
    """Of windows, batch x 1024."""
    x = sound[:, None, :].astype(np.float64)
    for number in range(1, 7):
        padding, stride = ((254, 254), 4) if number == 1 else ((31, 32), 1)
        filters = weights[f"conv{number}.weight"][..., 0]
        windows = sliding_window_view(np.pad(x, ((0, 0), (0, 0), padding)), filters.shape[2], axis=2)[:, :, ::stride]
        x = np.einsum("bitk,oik->bot", windows, filters) + weights[f"conv{number}.bias"][:, None]
        scale, shift, mean, variance = (
            weights[f"conv{number}_BN.{part}"][:, None] for part in ("weight", "bias", "running_mean", "running_var")
        )
        x = (np.maximum(x, 0) - mean) / np.sqrt(variance + EPSILON) * scale + shift
        x = x.reshape(*x.shape[:2], -1, 2).max(axis=3)
    flat = x.transpose(0, 2, 1).reshape(len(x), -1)
    return np.asarray(1 / (1 + np.exp(-(flat @ weights["classifier.weight"].T + weights["classifier.bias"]))))


def test_it_computes_what_crepe_does() -> None:
    built = write(random_weights(), Parameters(batch=2))
    assert [one.shape for one in built.inputs] == [(2, 1024)]
    sound = np.random.default_rng(1).standard_normal((2, 1024)).astype(np.float32)
    (found,) = run_onnx_bytes(built.onnx, sound)
    np.testing.assert_allclose(found, expected_of(random_weights(), sound), rtol=1e-4, atol=1e-6)


def test_equal_weights_give_equal_bytes() -> None:
    assert write(random_weights(), Parameters()) == write(random_weights(), Parameters())
