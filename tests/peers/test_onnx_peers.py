"""The peers that read ONNX: what they give, that they give it again and again, and which models they refuse."""

import dataclasses
import gc
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.models.model import Input
from harness.peers import Peer, PeerModel, Ready, Setting, onnxruntime, openvino, pytorch, tvm
from harness.peers.peer import Array
from tests.models.conftest import onnx_graph

_DTYPES = {"float32": "f32", "int64": "i64"}


def write_model(folder: Path, text: str, *arguments: Array, **weights: Array) -> PeerModel:
    """A graph in ONNX's own notation, for inputs like these arguments."""
    graph = onnx_graph(text)
    graph.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    path = folder / "model.onnx"
    onnx.save(graph, str(path))
    inputs = tuple(Input(shape=value.shape, dtype=_DTYPES[value.dtype.name]) for value in arguments)
    return PeerModel(name="m", builder=None, onnx=path, inputs=inputs)


def random(*shape: int, seed: int = 0) -> Array:
    """Standard normal values of f32."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


PEERS: dict[str, tuple[Peer[Any], Any]] = {
    "onnxruntime": (onnxruntime.PEER, onnxruntime.PEER.options()),
    "openvino": (openvino.PEER, openvino.PEER.options()),
    "pytorch": (pytorch.PEER, pytorch.Options(mode="eager")),
    "tvm": (tvm.PEER, tvm.PEER.options()),
}
needs_torch = pytest.mark.skipif(pytorch.PEER.missing() is not None, reason=str(pytorch.PEER.missing()))


@pytest.fixture(autouse=True)
def _same_environment() -> Iterator[None]:
    """Peers set variables of their own process."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> tuple[Peer[Any], Any]:
    found, options = PEERS[request.param]
    if (reason := found.missing()) is not None:
        pytest.skip(f"{reason}; {found.install}")
    return found, options


def prepare(peer: tuple[Peer[Any], Any], model: PeerModel, arguments: list[Array], cache: Path) -> Ready:
    found, options = peer
    assert found.refuses(model, options) is None
    return found.prepare(model, arguments, Setting(threads=1, cache=cache), options)


def a_network(folder: Path, x: Array, y: Array) -> tuple[PeerModel, list[Array]]:
    """relu(x @ w) and the sum of both arguments, and what they should be."""
    (rows, columns), w = x.shape, random(x.shape[1], 3, seed=9)
    text = f"""(float[{rows}, {columns}] x, float[{rows}, {columns}] y)
        => (float[{rows}, 3] first, float[{rows}, {columns}] second) {{
            product = MatMul(x, w)
            first = Relu(product)
            second = Add(x, y)
        }}"""
    return write_model(folder, text, x, y, w=w), [np.maximum(x @ w, 0), x + y]


def check(outputs: Sequence[Array], expected: list[Array]) -> None:
    for output, right in zip(outputs, expected, strict=True):
        assert (output.shape, output.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(output, right, rtol=1e-4, atol=1e-5)


def test_results_come_in_order_and_are_the_same_at_every_call(peer: tuple[Peer[Any], Any], tmp_path: Path) -> None:
    """Whoever calls `prepare` drops the arguments, and their memory is soon another array's."""
    x, y = random(256, 64, seed=1), random(256, 64, seed=2)
    model, expected = a_network(tmp_path, x, y)
    ready = prepare(peer, model, [x.copy(), y.copy()], tmp_path)
    gc.collect()
    others = [np.full_like(x, 1e9) for _ in range(50)]
    ready.call()
    first = ready.outputs()
    check(first, expected)
    for output in first:
        output[...] = 0  # they are copies
    ready.call()
    check(ready.outputs(), expected)
    del others


def test_a_dynamic_dimension_has_the_argument_s_size_and_whole_numbers_stay_whole(
    peer: tuple[Peer[Any], Any], tmp_path: Path
) -> None:
    table, index = random(10, 3), np.array([[1, 0], [9, 4]])
    text = "(int64[batch, 2] i) => (float[batch, 2, 3] y) { y = Gather(table, i) }"
    ready = prepare(peer, write_model(tmp_path, text, index, table=table), [index], tmp_path)
    ready.call()
    np.testing.assert_array_equal(ready.outputs()[0], table[index])


def test_waiting_takes_no_time_of_the_processor(peer: tuple[Peer[Any], Any], tmp_path: Path) -> None:
    x, y = random(64, 64, seed=1), random(64, 64, seed=2)
    model, _ = a_network(tmp_path, x, y)
    found, options = peer
    ready = found.prepare(model, [x, y], Setting(threads=2, cache=tmp_path), options)
    ready.call()
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1


@pytest.mark.parametrize("name", PEERS)
def test_models_that_are_refused(name: str, tmp_path: Path) -> None:
    found, options = PEERS[name]
    model = PeerModel(name="m", builder="mlp", inputs=(Input(shape=(2, 2)),))
    assert found.refuses(model, options) == "the model has no ONNX form"
    bf16 = dataclasses.replace(model, onnx=tmp_path / "model.onnx", inputs=(Input(shape=(2, 2), dtype="bf16"),))
    assert found.refuses(bf16, options) == "it takes no bf16 arguments"


@needs_torch
def test_pytorch_refuses_what_onnx2torch_does_not_convert(tmp_path: Path) -> None:
    model = write_model(tmp_path, "(float[2, 2] x) => (float y) { y = Det(x) }", random(2, 2))
    refused = pytorch.PEER.refuses(model, pytorch.Options(mode="eager"))
    assert refused is not None
    assert refused.startswith("onnx2torch cannot convert it (NotImplementedError: ")
    assert "Det" in refused


@needs_torch
def test_pytorch_takes_weights_that_are_constant_nodes_and_shapes_that_are_computed(tmp_path: Path) -> None:
    x, w = random(4, 6), random(3, 2, seed=1)
    text = f"""(float[4, 6] x) => (float[2, 2, 4] y) <int64[2] two = {{2, 3}}, int64[1] rest = {{-1}}> {{
        w = Constant<value = float[3, 2] {{{", ".join(map(repr, w.ravel().tolist()))}}}>()
        sizes = Constant<value = int64[2] {{-1, 3}}>()
        shape = Shape(x)
        rows = Reshape(x, sizes)
        product = MatMul(rows, w)
        half = Div(shape, two)
        wanted = Concat<axis=0>(half, rest)
        y = Reshape(product, wanted)
    }}"""
    ready = prepare(PEERS["pytorch"], write_model(tmp_path, text, x), [x], tmp_path)
    ready.call()
    check(ready.outputs(), [(x.reshape(-1, 3) @ w).reshape(2, 2, -1)])


def test_torch_compile_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = write_model(tmp_path, "(float[2] x) => (float[2] y) { y = Relu(x) }", random(2))
    monkeypatch.setenv("CXX", "no-such-compiler")
    reason = "torch.compile needs the C++ compiler no-such-compiler, which is not installed"
    assert pytorch.PEER.refuses(model, pytorch.Options()) == reason


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own parts
def test_pytorch_compiles(tmp_path: Path) -> None:
    found, options = pytorch.PEER, pytorch.Options()
    x, y = random(4, 5, seed=1), random(4, 5, seed=2)
    model, expected = a_network(tmp_path, x, y)
    if (reason := found.missing() or found.refuses(model, options)) is not None:
        pytest.skip(reason)
    ready = found.prepare(model, [x, y], Setting(threads=1, cache=tmp_path), options)
    ready.call()
    check(ready.outputs(), expected)
    assert any((tmp_path / "inductor").iterdir()), "kept for the next process"
