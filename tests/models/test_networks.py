"""Published networks: written from random weights they compute what numpy does, and with their own finite numbers."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models import BuiltOnnx, crepe
from harness.models import realesrgan as module
from harness.models.builder import check_params, find_builder
from harness.models.efficientnet_lite0 import fold_norm
from harness.models.inputs import make_array
from harness.models.minilm import write_sentence_encoder
from harness.models.model import Input
from harness.models.ncnn import Network, between, read_network, write_onnx
from harness.models.realesrgan import BlockParameters, build_block
from tests.models.conftest import run_onnx_bytes

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
    (result,) = run_onnx_bytes(serialised, x[np.newaxis])
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


Array = NDArray[Any]
WIDTH, INNER, WORDS, HEADS, LAYERS = 8, 12, 20, 2, 2
SHAPE = (2, 5)
IDS = Input(shape=SHAPE, dtype="i64")
MASK = replace(IDS, fill="constant", value=1.0)


def bert_weights() -> dict[str, Array]:
    """All weights by their names."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (9, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        linear = {f"{name}.attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        linear[f"{name}.attention.output.dense"] = (WIDTH, WIDTH)
        linear[f"{name}.intermediate.dense"] = (INNER, WIDTH)
        linear[f"{name}.output.dense"] = (WIDTH, INNER)
        for part, shape in linear.items():
            shapes |= {f"{part}.weight": shape, f"{part}.bias": shape[:1]}
        for part in ("attention.output", "output"):
            shapes |= {f"{name}.{part}.LayerNorm.{kind}": (WIDTH,) for kind in ("weight", "bias")}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def test_a_sentence_encoder_computes_what_a_formula_of_bert_in_numpy_gave() -> None:
    """Of both sentences the first four of the vector's numbers, and the first of each word's; the mask hides two."""
    ids, mask = np.random.default_rng(1).integers(0, WORDS, SHAPE), np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    built = write_sentence_encoder(bert_weights(), (IDS, MASK), layers=LAYERS, heads=HEADS)
    states, vectors = run_onnx_bytes(built.onnx, ids, mask)
    right = [[-0.2047, 0.4203, 0.4152, -0.5283], [-0.1923, 0.4324, 0.4104, -0.5295]]
    np.testing.assert_allclose(vectors[:, :4], right, atol=1e-4)
    right = [[-0.7717, -0.7823, -0.7857, -0.7426, -0.7749], [-0.7131, -0.732, -0.743, -0.7498, -0.7496]]
    np.testing.assert_allclose(states[:, :, 0], right, atol=1e-4)


CHANNELS = (1, 3, 2, 2, 2, 2, 2)
PITCHES = 5


def crepe_weights() -> dict[str, Array]:
    """All weights by their names in the published file."""
    rng = np.random.default_rng(0)
    weights: dict[str, Array] = {}
    for number in range(1, 7):
        outputs, kernel = CHANNELS[number], 512 if number == 1 else 64
        weights[f"conv{number}.weight"] = rng.standard_normal((outputs, CHANNELS[number - 1], kernel, 1)) / kernel**0.5
        weights[f"conv{number}.bias"] = rng.standard_normal(outputs) + 3  # or ReLUs let nothing of the sound through
        for part in ("weight", "bias", "running_mean"):
            weights[f"conv{number}_BN.{part}"] = rng.standard_normal(outputs)
        weights[f"conv{number}_BN.running_var"] = rng.random(outputs) + 0.1
    weights["classifier.weight"] = rng.standard_normal((PITCHES, 4 * CHANNELS[6])) / 5
    weights["classifier.bias"] = rng.standard_normal(PITCHES)
    return {name: values.astype(np.float32) for name, values in weights.items()}


def test_crepe_computes_what_a_formula_in_numpy_gave() -> None:
    built = crepe.write(crepe_weights(), crepe.Parameters(batch=2))
    assert [value.shape for value in built.inputs] == [(2, 1024)]
    sound = np.random.default_rng(1).standard_normal((2, 1024)).astype(np.float32)
    (found,) = run_onnx_bytes(built.onnx, sound)
    np.testing.assert_allclose(
        found, [[0.0514, 0.3076, 0.192, 0.2089, 0.7376], [0.0497, 0.3083, 0.1934, 0.2039, 0.7409]], atol=1e-4
    )


def test_folded_normalisation_is_the_normalisation_of_the_result() -> None:
    rng = np.random.default_rng(0)
    names = ("n.weight", "n.bias", "n.running_mean", "n.running_var")
    scale, shift, mean, variance = (rng.random(4, np.float32) + 0.5 for _ in names)
    weights = dict(zip(names, (scale, shift, mean, variance), strict=True))
    weights["filters"] = rng.standard_normal((4, 3, 3, 3), np.float32)
    filters, bias = fold_norm(weights, "filters", "n")
    x = rng.standard_normal(27, np.float32)
    expected = (weights["filters"].reshape(4, 27) @ x - mean) / np.sqrt(variance + 1e-3) * scale + shift
    np.testing.assert_allclose(filters.reshape(4, 27) @ x + bias, expected, rtol=1e-4, atol=1e-5)


RESIDUAL = "0=1 -23301=2,0.2,1.0"


def dense_block(made: Made, x: str, name: str) -> str:
    """As in the published files, with one growing convolution of 4 channels and not four."""
    grown = made.convolution(x, f"{name}_0", (4, 2), "9=2 -23310=1,0.2")
    update = made.convolution(made.add("Concat", [x, grown], f"{name}_cat"), f"{name}_update", (6, 4))
    return made.add("Eltwise", [update, x], f"{name}_out", RESIDUAL)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    """Six residual-in-residual blocks between two convolutions, in place of x4plus-anime."""
    made = Made()
    start = x = made.convolution(made.add("Input", [], "data"), "first", (3, 4))
    for number in range(6):
        inner = x
        for dense in range(3):
            inner = dense_block(made, inner, f"b{number}d{dense}")
        x = made.add("Eltwise", [inner, x], f"b{number}_out", RESIDUAL)
    trunk = made.convolution(x, "trunk", (4, 4))
    made.add("BinaryOp", [start, trunk], "result", "0=0")
    read = read_network(*made.write(tmp_path))
    monkeypatch.setattr(module, "_read", lambda name: {"x4plus-anime": read}[name])
    return read


def block(part: Literal["dense", "rrdb"], which: int, size: int = 4) -> BuiltOnnx:
    return build_block(BlockParameters(network="x4plus-anime", part=part, which=which, height=size, width=size))


@pytest.mark.parametrize(
    ("part", "which", "start", "end"), [("dense", 4, "b1d0_out", "b1d1_out"), ("rrdb", 2, "b1_out", "b2_out")]
)
def test_a_block_computes_what_it_does_in_its_network(
    network: Network, part: Literal["dense", "rrdb"], which: int, start: str, end: str
) -> None:
    image = weights(48).reshape(1, 3, 4, 4)
    before, after = (
        run_onnx_bytes(write_onnx(between(network, "data", blob), 3, 4, 4), image)[0] for blob in (start, end)
    )
    assert not np.allclose(before, after, rtol=1e-3)
    np.testing.assert_allclose(run_onnx_bytes(block(part, which).onnx, before)[0], after, rtol=1e-5, atol=1e-6)


# Those whose packages are small, with the shapes of their results; the suites check all at their own sizes.
NETWORKS: list[tuple[str, dict[str, Any], list[tuple[int, ...]]]] = [
    ("efficientnet-lite0", {"size": 32}, [(1, 1000)]),
    ("paddle-ocr", {"height": 32, "width": 64}, [(1, 1, 32, 64)] * 2),
    ("paddle-ocr", {"part": "classifier"}, [(1, 2)]),
    ("silero", {"form": "straight"}, [(1, 1), (2, 1, 128)]),
    ("silero", {"form": "branches"}, [(1, 1), (2, 1, 128)]),
    ("realesrgan", {"network": "animevideov3-x2", "height": 16, "width": 16}, [(1, 3, 32, 32)]),
]


@pytest.mark.parametrize(("name", "params", "shapes"), NETWORKS)
def test_with_its_weights_a_network_gives_finite_numbers(
    name: str, params: dict[str, Any], shapes: list[tuple[int, ...]]
) -> None:
    builder = find_builder(name)
    try:
        built = builder.build(check_params(builder, params))
    except CaseError as error:
        if "is not installed" not in str(error):
            raise
        pytest.skip(str(error))
    assert isinstance(built, BuiltOnnx)
    if name == "realesrgan":  # a plain picture is enlarged plainly
        results = run_onnx_bytes(built.onnx, np.full((1, 3, 16, 16), 0.5, np.float32))
        np.testing.assert_allclose(results[0], 0.5, atol=0.05)
    else:
        results = run_onnx_bytes(built.onnx, *(make_array(value) for value in built.inputs))
    assert [value.shape for value in results] == shapes
    assert all(np.isfinite(value).all() for value in results)
    assert onnx.load_from_string(built.onnx).opset_import[0].version >= 17
