"""ncnn's files are read to the last key and byte or refused in a sentence, and mean the same in ONNX."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models import load_argument
from harness.models.model import Model
from harness.models.ncnn import FormatError, parse_param, read_network, write_onnx
from harness.models.onnx_file import run_onnx
from tests.models.conftest import Make, RunMain
from tests.models.ncnn_files import SMALL, Made, marked, small_bin, weights, write

Floats = NDArray[np.float32]


def test_a_network(tmp_path: Path) -> None:
    network = read_network(*write(tmp_path))
    assert [(layer.kind, layer.inputs, layer.output) for layer in network.layers] == [
        ("Input", (), "data"),
        ("Convolution", ("data",), "a"),
        ("PReLU", ("a",), "b"),  # a0 and a1 are a
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
    np.testing.assert_array_equal(convolution.weights["weight"], weights(72).reshape(4, 2, 3, 3))
    np.testing.assert_array_equal(convolution.weights["bias"], weights(4, 1))
    np.testing.assert_array_equal(network.maker("b").weights["slope"], weights(4, 2))


@pytest.mark.parametrize("half", [True, False])
def test_f16_weights_become_f32(tmp_path: Path, half: bool) -> None:
    weight = read_network(*write(tmp_path, binary=small_bin(half=half))).maker("a").weights["weight"]
    assert weight.dtype == np.float32
    np.testing.assert_array_equal(weight.ravel(), weights(72))


def test_f16_weights_are_padded_to_four_bytes(tmp_path: Path) -> None:
    param = "7767517\n2 2\nInput i 0 1 data\nConvolution c 1 1 data out 0=1 1=1 5=1 6=3\n"
    network = read_network(*write(tmp_path, param, marked(weights(3), half=True) + weights(1, 1).tobytes()))
    np.testing.assert_array_equal(network.maker("out").weights["bias"], weights(1, 1))


def test_a_part_of_a_network(tmp_path: Path) -> None:
    network = read_network(*write(tmp_path))
    part = network.between("a", "result")
    assert [(layer.kind, layer.output) for layer in part.layers] == [
        ("Input", "a"),
        ("PReLU", "b"),
        ("BinaryOp", "result"),
    ]
    with pytest.raises(ValueError, match="result is made of more than b"):
        network.between("b", "result")


def refused(param: Path, binary: Path) -> str:
    with pytest.raises(CaseError) as caught:
        read_network(param, binary)
    assert caught.value.stage == "model"
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{param.parent}/", "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7767517", "7767518", "its first line is not 7767517, as an ncnn .param file's is"),
        ("5 6\n", "5\n", "its second line is '5', not the numbers of layers and blobs"),
        ("5 6\n", "6 6\n", "it has 5 layers where its second line says 6"),
        ("5 6\n", "5 7\n", "it has 6 blobs where its second line says 7"),
        ("PReLU ", "Sigmoid ", "layer 4 (slope) is of the type Sigmoid, which is not supported; known are Input,"),
        ("5=1 6=72", "5=1 3=2 6=72", "layer 2 (conv) has the key 3, which is not supported for Convolution"),
        ("-23310=1,", "-23310=2,", "layer 2 (conv) has '-23310=2,2.000000e-01', whose value cannot be read"),
        ("-23310=1,2.000000e-01", "10=2", "layer 2 (conv) has the key 10, which is not supported for Convolution"),
        ("6=72", "6=72.5", "layer 2 (conv) has '6=72.5', whose value cannot be read"),
        ("1=3 4", "4", "layer 2 (conv) does not say its kernel"),
        ("6=72", "6=70", "the 70 weights of conv are no whole number of 3x3 kernels"),
        (" a0 b", " q b", "layer 4 (slope) reads blob q, which no layer before it makes"),
        (" a0 b", " a0 a", "layer 4 (slope) makes blob a a second time"),
        ("1 1 a0 b 0=4", "1 2 a0 b c 0=4", "layer 4 (slope) has 2 outputs, where PReLU has one"),
        ("2 1 a1 b result", "2 1 a1", "layer 5 (sum) does not name its 2 inputs and 1 outputs"),
        ("BinaryOp     sum   2 1 a1 b result", "BinaryOp", "layer 5 is 'BinaryOp', not type, name and two counts"),
    ],
)
def test_a_param_file_that_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    text = refused(*write(tmp_path, SMALL.replace(old, new, 1)))
    assert message in text
    assert text.startswith("net.")
    assert text.endswith("; fetch it again, or name another file")


@pytest.mark.parametrize(
    ("binary", "message"),
    [
        (b"", "net.bin: it ends within the weights of conv"),
        (small_bin()[:-1], "net.bin: it ends within the weights of slope"),
        (small_bin() + b"\0\0", "net.bin: 2 bytes are left over after the last layer's weights"),
        (b"\1\2\3\4" + small_bin()[4:], "the weights of conv have the mark 0x04030201, which is neither f32's nor"),
    ],
)
def test_a_bin_file_that_is_wrong(tmp_path: Path, binary: bytes, message: str) -> None:
    assert message in refused(*write(tmp_path, binary=binary))


def test_files_that_are_not_there_or_no_text(tmp_path: Path) -> None:
    param, binary = write(tmp_path)
    assert refused(param, tmp_path / "none.bin") == (
        "none.bin cannot be read (No such file or directory); check its path and permissions"
    )
    param.write_bytes(b"\xff\xfe")
    assert refused(param, binary) == "net.param is no text, as an ncnn .param file is; check its path"


@given(end=st.integers(0, len(SMALL.rstrip()) - 1))
def test_every_cut_of_a_param_file_is_noticed(end: int) -> None:
    """A file that ends early never reads as another network, but where only the last name or value is shorter."""
    text = SMALL[:end]
    try:
        lines = parse_param(text)
    except FormatError:
        return
    assert len(lines) == 5
    assert text.rstrip().startswith(SMALL[: SMALL.rindex(" ")])


@given(size=st.integers(0, len(small_bin()) + 8))
def test_only_a_bin_file_of_the_right_size_is_read(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    whole = small_bin()
    files = write(tmp_path_factory.mktemp("net"), binary=(whole + b"\0" * 8)[:size])
    if size == len(whole):
        read_network(*files)
    else:
        refused(*files)


def test_a_split_of_nothing_is_told(tmp_path: Path) -> None:
    param = "7767517\n2 2\nInput i 0 1 data\nSplit s 0 1 z\n"
    with pytest.raises(CaseError, match="its layer s splits nothing; fetch it again"):
        read_network(*write(tmp_path, param, b""))


def run(made: Made, x: Floats, folder: Path) -> Floats:
    """What ONNX Runtime makes of an image (channels, rows, columns)."""
    serialised = write_onnx(read_network(*made.write(folder)), *x.shape)
    model = onnx.load_from_string(serialised)
    onnx.checker.check_model(model, full_check=True)
    (folder / "net.onnx").write_bytes(serialised)
    (result,) = run_onnx(folder / "net.onnx", [x[np.newaxis]])
    (output,) = model.graph.output
    assert tuple(size.dim_value for size in output.type.tensor_type.shape.dim) == result.shape
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
    with pytest.raises(CaseError, match=re.escape(message)):
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
