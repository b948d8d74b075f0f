"""The builders of Real-ESRGAN: which parts they take, and the published weights where the package can be had."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest

from harness.errors import CaseError
from harness.models import BuiltOnnx
from harness.models import realesrgan as module
from harness.models.model import Input
from harness.models.ncnn import Network, read_network, write_onnx
from harness.models.realesrgan import BlockParameters, Parameters, build, build_block
from tests.models.conftest import run_onnx_bytes
from tests.models.ncnn_files import Made, weights

LEAKY = "9=2 -23310=1,0.2"
RESIDUAL = "0=1 -23301=2,0.2,1.0"


def dense_block(made: Made, x: str, name: str) -> str:
    """As in the published files, with 4 channels and a growth of 2."""
    parts = [x]
    for number in range(4):
        whole = made.add("Concat", parts, f"{name}_cat{number}") if number else x
        parts.append(made.convolution(whole, f"{name}_{number}", (4 + 2 * number, 2), LEAKY))
    update = made.convolution(made.add("Concat", parts, f"{name}_cat"), f"{name}_update", (12, 4))
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


def operators(built: BuiltOnnx) -> dict[str, int]:
    """How many of each the graph has."""
    names = [node.op_type for node in onnx.load_from_string(built.onnx).graph.node]
    return {name: names.count(name) for name in ("Conv", "Concat", "LeakyRelu", "Add")}


def test_the_parts_of_a_network(network: Network) -> None:
    assert operators(block("dense", 17)) == {"Conv": 5, "Concat": 4, "LeakyRelu": 4, "Add": 1}
    assert operators(block("rrdb", 5)) == {"Conv": 15, "Concat": 12, "LeakyRelu": 12, "Add": 4}
    assert block("dense", 0, 6).inputs == (Input(shape=(1, 4, 6, 6)),)


@pytest.mark.parametrize(
    ("part", "which", "start", "end"), [("dense", 4, "b1d0_out", "b1d1_out"), ("rrdb", 2, "b1_out", "b2_out")]
)
def test_a_block_computes_what_it_does_in_its_network(
    network: Network, part: Literal["dense", "rrdb"], which: int, start: str, end: str
) -> None:
    image = weights(48).reshape(1, 3, 4, 4)
    before, after = (
        run_onnx_bytes(write_onnx(network.between("data", blob), 3, 4, 4), image)[0] for blob in (start, end)
    )
    assert not np.allclose(before, after, rtol=1e-3)
    np.testing.assert_allclose(run_onnx_bytes(block(part, which).onnx, before)[0], after, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "factor"), [("animevideov3-x2", 2), ("animevideov3-x4", 4)])
def test_a_published_network_enlarges_a_plain_picture_plainly(
    name: Literal["animevideov3-x2", "animevideov3-x4"], factor: int
) -> None:
    """The smallest, on a picture that takes no time; the suite checks all of them at its own sizes."""
    try:
        built = build(Parameters(network=name, height=16, width=16))
    except CaseError as error:
        if "is not installed" not in str(error):
            raise
        pytest.skip(str(error))
    assert built.inputs == (Input(shape=(1, 3, 16, 16)),)
    (result,) = run_onnx_bytes(built.onnx, np.full((1, 3, 16, 16), 0.5, np.float32))
    assert result.shape == (1, 3, 16 * factor, 16 * factor)
    np.testing.assert_allclose(result, 0.5, atol=0.05)
