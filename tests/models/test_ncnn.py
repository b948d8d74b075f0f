"""ncnn's files mean the same in ONNX, layer by layer, for ONNX Runtime and for IREE."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from harness.models.ncnn import read_network, write_onnx
from harness.models.onnx_file import run_onnx

F16_MARK = 0x01306B47


def weights(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Values that f16 has."""
    return np.random.default_rng(seed).standard_normal(count).astype(np.float16).astype(np.float32)


class Made:
    """A network that grows by a layer at a time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.binary = b""
        self.blobs: list[str] = []

    def add(self, kind: str, inputs: Sequence[str], output: str, options: str = "") -> str:
        """A layer without weights; its blob."""
        self.blobs.append(output)
        self.lines.append(f"{kind} {output}_layer {len(inputs)} 1 {' '.join([*inputs, output])} {options}")
        return output

    def convolution(self, x: str, output: str, channels: tuple[int, int], options: str = "", *, kernel: int = 3) -> str:
        """A convolution between these numbers of channels, with bias, its weights in f16."""
        read, made = channels
        count = read * made * kernel**2
        kernels = weights(count, len(self.blobs)) / np.float32(8)
        data = kernels.astype("<f2").tobytes()
        self.binary += struct.pack("<I", F16_MARK) + data + b"\0" * (-len(data) % 4)
        self.binary += weights(made, count).tobytes()
        return self.add("Convolution", [x], output, f"0={made} 1={kernel} 4={kernel // 2} 5=1 6={count} {options}")

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Both files."""
        files = folder / "net.param", folder / "net.bin"
        files[0].write_text("\n".join(["7767517", f"{len(self.lines)} {len(self.blobs)}", *self.lines]))
        files[1].write_bytes(self.binary)
        return files


Floats = NDArray[np.float32]


@pytest.fixture
def made() -> Made:
    network = Made()
    network.add("Input", [], "data")
    return network


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
    """Its 27 weights of f16 are padded to four bytes, or the bias would be read from the wrong place."""
    made.convolution("data", "out", (1, 3), "9=2 -23310=1,0.25")
    x = picture(1, 5, 4)
    kernels, bias = read_network(*made.write(tmp_path))[-1].weights
    np.testing.assert_array_equal(kernels.ravel(), weights(27, 1) / 8)
    np.testing.assert_array_equal(bias, weights(3, 27))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    linear = np.einsum("chwij,ocij->ohw", windows, kernels) + bias[:, None, None]
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
    made.add("Interp", ["large"], "out", "0=3 1=0.5 2=0.5")
    x = picture(1, 4, 4)
    taps = np.array([-0.09375, 0.59375, 0.59375, -0.09375])  # Keys' cubic of a = -0.75 half-way between pixels
    out = run(made, x, tmp_path)
    assert out.shape == (1, 4, 6)
    rows = x.repeat(2, axis=1).repeat(3, axis=2)[0][1:5]
    assert out[0, 1, 1] == pytest.approx(taps @ rows[:, 1:5] @ taps, rel=1e-5)
