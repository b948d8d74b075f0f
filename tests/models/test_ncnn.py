"""ncnn's files are read to the last key and byte, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import CaseError
from harness.models.ncnn import FormatError, parse_param, read_network
from tests.models.ncnn_files import SMALL, marked, small_bin, weights, write


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
    told = refused(*write(tmp_path, SMALL.replace(old, new, 1)))
    assert message in told
    assert told.startswith("net.")
    assert told.endswith("; fetch it again, or name another file")


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
