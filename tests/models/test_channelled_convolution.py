"""The built convolution: its two forms, its numbers, and what they depend on."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from harness.models.channelled_convolution import Parameters, build, weights
from harness.models.model import Input
from tests.rewrites.tools import convolve, random, run

FORMS: tuple[Literal["named", "generic"], ...] = ("named", "generic")


def text_of(params: Parameters) -> str:
    return str(build(params).text)


@pytest.mark.parametrize("form", FORMS)
def test_the_compiled_convolution_computes_what_it_should(form: Literal["named", "generic"]) -> None:
    params = Parameters(batch=2, height=3, width=4, channels_in=5, channels_out=6, form=form, seed=3)
    (image,) = random([(2, 5, 6, 5)])
    filter_, bias = weights(params)
    expected = np.maximum(convolve(image, filter_) + bias, 0)
    assert 0.2 < np.mean(expected > 0) < 0.8
    np.testing.assert_allclose(run(text_of(params), image), expected, atol=1e-5)


def test_default_sizes_are_those_of_the_tutorial() -> None:
    assert build(Parameters()).inputs == (Input(shape=(5, 82, 102, 128)),)
    named, generic = (text_of(Parameters(form=form)) for form in FORMS)
    for text in (named, generic):
        assert "-> tensor<5x80x100x128xf32>" in text
    assert "linalg.conv_2d_nhwc_hwcf" in named
    assert "dense_resource<filter> : tensor<3x3x128x128xf32>" in named
    assert "affine_map<(n, y, x, c, rz, ry, rx) -> (rx, rz, ry, c)>" in generic
    assert "dense_resource<filter> : tensor<128x3x3x128xf32>" in generic


@pytest.mark.parametrize("channels", [1, 256])
def test_values_are_of_order_1_whatever_the_channels(channels: int) -> None:
    filter_, bias = weights(Parameters(channels_in=channels))
    (image,) = random([(1, 12, 12, channels)])
    assert 0.6 < np.std(convolve(image, filter_) + bias) < 1.6
