"""ncnn's files are read to the last key and byte, and mean the same in ONNX."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from harness.models import load_argument
from harness.models.model import Model
from harness.models.ncnn import read_network, write_onnx
from harness.models.onnx_file import run_onnx
from tests.models.conftest import Make, RunMain
from tests.models.ncnn_files import Made, weights

Floats = NDArray[np.float32]


@pytest.fixture
def made() -> Made:
    network = Made()
    network.add("Input", [], "data")
    return network


def with_split(made: Made) -> Made:
    """A convolution whose result is used twice: as it is, and with slopes."""
    made.convolution("data", "a", (2, 4), "9=2 -23310=1,2.000000e-01")
    made.lines.append("Split twice 1 2 a a0 a1")
    made.add("PReLU", ["a0"], "b", "0=4")
    made.binary += weights(4, 2).tobytes()
    made.add("BinaryOp", ["a1", "b"], "result")
    return made


def test_a_network_has_no_splits_and_its_options_have_names(made: Made, tmp_path: Path) -> None:
    network = read_network(*with_split(made).write(tmp_path))
    assert [(layer.kind, layer.inputs, layer.output) for layer in network.layers] == [
        ("Input", (), "data"),
        ("Convolution", ("data",), "a"),
        ("PReLU", ("a",), "b"),
        ("BinaryOp", ("a", "b"), "result"),
    ]
    convolution = network.maker("a")
    assert convolution.options == {
        "channels": 4,
        "kernel": 3,
        "padding": 1,
        "has_bias": 1,
        "weight_count": 72,
        "activation": 2,
        "activation_parameters": (0.2,),
    }
    assert {name: value.shape for name, value in convolution.weights.items()} == {"weight": (4, 2, 3, 3), "bias": (4,)}
    np.testing.assert_array_equal(network.maker("b").weights["slope"], weights(4, 2))


def test_a_part_of_a_network(made: Made, tmp_path: Path) -> None:
    network = read_network(*with_split(made).write(tmp_path))
    part = network.between("a", "result")
    assert [(layer.kind, layer.output) for layer in part.layers] == [
        ("Input", "a"),
        ("PReLU", "b"),
        ("BinaryOp", "result"),
    ]
    with pytest.raises(ValueError, match="result is made of more than b"):
        network.between("b", "result")


@pytest.mark.parametrize("half", [True, False])
def test_weights_of_both_types_become_f32(made: Made, tmp_path: Path, half: bool) -> None:
    """Three of f16 are padded to four bytes, or the bias would be read from the wrong place."""
    made.convolution("data", "out", (3, 1), kernel=1, half=half)
    read = read_network(*made.write(tmp_path)).maker("out").weights
    np.testing.assert_array_equal(read["weight"].ravel(), weights(3, 1) / 8)
    np.testing.assert_array_equal(read["bias"], weights(1, 3))
    assert read["weight"].dtype == np.float32


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Convolution ", "Sigmoid ", "ncnn layer out_layer is of the type Sigmoid, and known are Input, Split, "),
        ("5=1", "5=1 3=2", "ncnn layer out_layer has the key 3, which is not supported for Convolution"),
        ("-23310=1,0.25", "10=2", "ncnn layer out_layer has the key 10, which is not supported for Convolution"),
        ("9=2", "-23309=1,2", "ncnn layer out_layer has the key -23309, which is not supported for Convolution"),
    ],
)
def test_what_would_make_another_network_is_refused(
    made: Made, tmp_path: Path, old: str, new: str, message: str
) -> None:
    made.convolution("data", "out", (2, 3), "9=2 -23310=1,0.25")
    made.lines[-1] = made.lines[-1].replace(old, new)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_network(*made.write(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda binary: binary + b"\0\0", r"2 bytes of .*net\.bin are left over after the last layer's weights"),
        (lambda binary: b"\1\2\3\4" + binary[4:], "weights have the mark 0x04030201, which is neither f32's nor f16's"),
        (lambda binary: binary[:-1], "buffer size must be a multiple"),
    ],
)
def test_so_are_weights_that_do_not_fit_the_layers(made: Made, tmp_path: Path, change: object, message: str) -> None:
    made.convolution("data", "out", (2, 3))
    assert callable(change)
    made.binary = change(made.binary)
    with pytest.raises(ValueError, match=message):
        read_network(*made.write(tmp_path))


def run(made: Made, x: Floats, folder: Path) -> Floats:
    """What ONNX Runtime makes of an image (channels, rows, columns)."""
    serialised = write_onnx(read_network(*made.write(folder)), *x.shape)
    onnx.checker.check_model(onnx.load_from_string(serialised), full_check=True)
    (folder / "net.onnx").write_bytes(serialised)
    (result,) = run_onnx(folder / "net.onnx", [x[np.newaxis]])
    image: Floats = result[0]
    return image


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
        ("Concat", ["data", "data"], "0=1", "joins along axis 1, where channels (0) are supported"),
        ("Eltwise", ["data", "data"], "0=0", "is not the weighted sum of two blobs, which alone is supported"),
        ("BinaryOp", ["data", "data"], "0=2", "is not the sum of two blobs, which alone is supported"),
        ("Interp", ["data"], "0=2 1=2 2=2", "resizes by method 2; nearest (1) and bicubic (3) are supported"),
        ("Convolution", ["data"], "9=4", "has activation 4, where leaky ReLU (2) is supported"),
    ],
)
def test_layers_that_have_no_form_in_onnx(
    made: Made, tmp_path: Path, kind: str, inputs: list[str], options: str, message: str
) -> None:
    if kind == "Convolution":
        made.convolution("data", "out", (4, 1), options)
    else:
        made.add(kind, inputs, "out", options)
    with pytest.raises(ValueError, match="ncnn layer") as caught:
        run(made, picture(4, 4, 4), tmp_path)
    assert str(caught.value) == f"ncnn layer out_layer ({kind}) {message}; name another network"


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
