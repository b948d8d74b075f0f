"""ncnn's layers in ONNX mean what they mean in ncnn, under ONNX Runtime and under IREE."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models import ModelArtifact, load_argument
from harness.models.model import Model
from harness.models.ncnn import read_network, write_onnx
from harness.models.onnx_file import run_onnx
from tests.models.ncnn_files import Made, weights

Floats = NDArray[np.float32]
Make = Callable[[Model], ModelArtifact]
RunMain = Callable[[ModelArtifact], list[NDArray[Any]]]


def run(made: Made, x: Floats, folder: Path) -> Floats:
    """What ONNX Runtime makes of an image (channels, rows, columns)."""
    serialised = write_onnx(read_network(*made.write(folder)), *x.shape)
    model = onnx.load_from_string(serialised)
    onnx.checker.check_model(model, full_check=True)
    (folder / "net.onnx").write_bytes(serialised)
    (result,) = run_onnx(folder / "net.onnx", [x[np.newaxis]])
    (said,) = model.graph.output
    assert tuple(size.dim_value for size in said.type.tensor_type.shape.dim) == result.shape
    image: Floats = result[0]
    return image


@pytest.fixture
def made() -> Made:
    network = Made()
    network.add("Input", [], "data")
    return network


def picture(*shape: int) -> Floats:
    return weights(int(np.prod(shape)), 7).reshape(shape)


def test_a_convolution_with_bias_and_leaky_relu(made: Made, tmp_path: Path) -> None:
    made.convolution("data", "out", (2, 3), "9=2 -23310=1,0.25")
    x = picture(2, 5, 4)
    (weight, bias) = read_network(*made.write(tmp_path)).maker("out").weights.values()
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    linear = np.einsum("chwij,ocij->ohw", windows, weight) + bias[:, None, None]
    np.testing.assert_allclose(run(made, x, tmp_path), np.where(linear > 0, linear, linear / 4), rtol=1e-4, atol=1e-4)


def test_slopes_belong_to_channels_also_where_there_are_as_many_rows(made: Made, tmp_path: Path) -> None:
    made.add("PReLU", ["data"], "out", "0=4")
    slope = weights(4, 3)
    made.binary = slope.tobytes()
    x = picture(4, 4, 4)
    np.testing.assert_array_equal(run(made, x, tmp_path), np.where(x > 0, x, x * slope[:, None, None]))


def test_pixels_are_spread_row_by_row(made: Made, tmp_path: Path) -> None:
    made.add("PixelShuffle", ["data"], "out", "0=2")
    x = picture(8, 2, 3)
    out = run(made, x, tmp_path)
    assert out.shape == (2, 4, 6)
    for (channel, row, column), value in np.ndenumerate(out):
        assert value == x[4 * channel + 2 * (row % 2) + column % 2, row // 2, column // 2]


def test_joining_adding_and_weighting(made: Made, tmp_path: Path) -> None:
    made.add("Concat", ["data", "data", "data"], "three")
    made.add("Eltwise", ["three", "three"], "scaled", "0=1 -23301=2,0.5,1.0")
    made.add("BinaryOp", ["scaled", "three"], "out", "0=0")
    x = picture(2, 3, 4)
    np.testing.assert_array_equal(run(made, x, tmp_path), np.tile(2.5 * x, (3, 1, 1)))


def test_nearest_and_bicubic(made: Made, tmp_path: Path) -> None:
    made.add("Interp", ["data"], "large", "0=1 1=2.0 2=3.0")
    x = picture(1, 4, 4)
    np.testing.assert_array_equal(run(made, x, tmp_path), x.repeat(2, axis=1).repeat(3, axis=2))
    made.add("Interp", ["large"], "out", "0=3 1=0.5 2=0.5")
    taps = np.array([-0.09375, 0.59375, 0.59375, -0.09375])  # Keys' cubic of a = -0.75 half-way between pixels
    out = run(made, x, tmp_path)
    assert out.shape == (1, 4, 6)
    rows = x.repeat(2, axis=1).repeat(3, axis=2)[0][1:5]
    assert out[0, 1, 1] == pytest.approx(taps @ rows[:, 1:5] @ taps, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "inputs", "options", "message"),
    [
        ("Concat", ["data", "small"], "", "joins images of several sizes"),
        ("Concat", ["data", "data"], "0=1", "joins along axis 1, where channels (0) are supported"),
        ("Eltwise", ["data", "data"], "0=0", "is not the weighted sum of two blobs, which alone is supported"),
        ("BinaryOp", ["data", "data"], "0=2", "is not the sum of two blobs, which alone is supported"),
        ("BinaryOp", ["data", "small"], "", "adds 4x2x2 to 4x4x4"),
        ("Interp", ["data"], "0=2 1=2 2=2", "resizes by method 2; nearest (1) and bicubic (3) are supported"),
        ("PixelShuffle", ["data"], "0=3", "spreads 4 channels over blocks of 3x3 pixels"),
        ("PReLU", ["data"], "0=0", "has 0 slopes and reads 4 channels"),
    ],
)
def test_layers_that_have_no_form_in_onnx(
    made: Made, tmp_path: Path, kind: str, inputs: list[str], options: str, message: str
) -> None:
    made.add("Interp", ["data"], "small", "0=1 1=0.5 2=0.5")
    made.add(kind, inputs, "out", options)
    with pytest.raises(CaseError) as caught:
        run(made, picture(4, 4, 4), tmp_path)
    assert str(caught.value) == f"ncnn layer out_layer ({kind}) {message}; name another network"


@pytest.mark.parametrize(
    ("channels", "options", "message"),
    [((3, 1), "", "has weights for 3 channels and reads 2"), ((2, 1), "9=4", "has activation 4, where leaky ReLU (2)")],
)
def test_convolutions_that_do_not_fit(
    made: Made, tmp_path: Path, channels: tuple[int, int], options: str, message: str
) -> None:
    made.convolution("data", "out", channels, options)
    with pytest.raises(CaseError, match=message.replace("(", r"\(").replace(")", r"\)")):
        run(made, picture(2, 4, 4), tmp_path)


def test_iree_agrees_with_onnx_runtime_on_all_layers(made: Made, tmp_path: Path, make: Make, run_main: RunMain) -> None:
    """As many columns and rows as channels, a pixel shuffle to four channels: where IREE's own imports go wrong."""
    made.convolution("data", "first", (8, 8), "9=2 -23310=1,0.2")
    made.add("PReLU", ["first"], "bent", "0=8")
    made.binary += weights(8, 5).tobytes()
    made.add("Eltwise", ["bent", "data"], "sum", "0=1 -23301=2,0.2,1.0")
    made.add("Concat", ["sum", "data"], "both")
    made.add("PixelShuffle", ["both"], "spread", "0=2")
    made.add("Interp", ["spread"], "large", "0=1 1=2.0 2=2.0")
    made.add("Interp", ["large"], "small", "0=3 1=0.5 2=0.5")
    made.add("BinaryOp", ["small", "spread"], "out", "0=0")
    path = tmp_path / "net.onnx"
    path.write_bytes(write_onnx(read_network(*made.write(tmp_path)), 8, 8, 8))
    artifact = make(Model(name="net", onnx=path, params={}, parameters={}))
    (output,) = run_main(artifact)
    (expected,) = run_onnx(path, [load_argument(argument) for argument in artifact.arguments])
    assert output.shape == (1, 4, 16, 16)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
