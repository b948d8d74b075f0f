"""The peers that read ONNX: what they give, that they give it again and again, and which models they refuse."""

import dataclasses
import gc
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save, shape_inference

from harness.models.model import Input
from harness.models.onnx_graph import IR_VERSION, OPSET
from harness.peers import Peer, PeerModel, Ready, Setting, onnxruntime, openvino, pytorch, tvm
from harness.peers.peer import Array

_DTYPES = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "i1"}


def write_model(
    folder: Path,
    nodes: Sequence[Any],
    arguments: dict[str, Array],
    weights: dict[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    *,
    opset: int = OPSET,
) -> PeerModel:
    """A graph of these nodes whose inputs are the arguments, by name."""
    graph = helper.make_graph(
        list(nodes),
        "main",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in arguments.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)
    path = folder / "model.onnx"
    save(shape_inference.infer_shapes(model), str(path))
    inputs = tuple(Input(shape=value.shape, dtype=_DTYPES[value.dtype.name]) for value in arguments.values())
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
    w = random(x.shape[1], 3, seed=9)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["first"]),
        helper.make_node("Add", ["x", "y"], ["second"]),
    ]
    model = write_model(folder, nodes, {"x": x, "y": y}, {"w": w}, ["first", "second"])
    return model, [np.maximum(x @ w, 0), x + y]


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
    import onnx

    table, index = random(10, 3), np.array([[1, 0], [9, 4]])
    model = write_model(tmp_path, [helper.make_node("Gather", ["table", "i"], ["y"])], {"i": index}, {"table": table})
    proto = onnx.load(str(model.onnx))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(proto, str(model.onnx))
    ready = prepare(peer, model, [index], tmp_path)
    ready.call()
    np.testing.assert_array_equal(ready.outputs()[0], table[index])


def test_a_second_process_finds_what_the_first_compiled(tmp_path: Path) -> None:
    if (reason := tvm.PEER.missing()) is not None:
        pytest.skip(reason)
    x, libraries = random(2, 3), []
    for operation in ("Relu", "Relu", "Tanh"):
        model = write_model(tmp_path, [helper.make_node(operation, ["x"], ["y"])], {"x": x})
        prepare(PEERS["tvm"], model, [x], tmp_path)
        libraries.append({file.name: file.stat() for file in tmp_path.glob("*.so")})
    assert libraries[0] == libraries[1]
    assert len(libraries[2]) == 2


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
    model = write_model(tmp_path, [helper.make_node("Det", ["x"], ["y"])], {"x": random(2, 2)})
    refused = pytorch.PEER.refuses(model, pytorch.Options(mode="eager"))
    assert refused is not None
    assert refused.startswith("onnx2torch cannot convert it (NotImplementedError: ")
    assert "Det" in refused


@needs_torch
def test_pytorch_takes_weights_that_are_constant_nodes_and_shapes_that_are_computed(tmp_path: Path) -> None:
    x, w = random(4, 6), random(3, 2, seed=1)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w)),
        helper.make_node("Constant", [], ["sizes"], value=numpy_helper.from_array(np.array([-1, 3]))),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Reshape", ["x", "sizes"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["product"]),
        helper.make_node("Div", ["shape", "two"], ["half"]),
        helper.make_node("Concat", ["half", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["product", "wanted"], ["y"]),
    ]
    sizes = {"two": np.array([2, 3]), "rest": np.array([-1])}
    model = write_model(tmp_path, nodes, {"x": x}, sizes)
    ready = prepare(PEERS["pytorch"], model, [x], tmp_path)
    ready.call()
    check(ready.outputs(), [(x.reshape(-1, 3) @ w).reshape(2, 2, -1)])


def test_torch_compile_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = write_model(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": random(2)})
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
