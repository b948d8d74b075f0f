"""Models in ONNX: what is written is what runs, and what a package has is upgraded, made static and cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.models.model import Input
from harness.models.onnx_graph import OPSET, OnnxGraph, read_static
from harness.models.weights import WeightFile
from tests.models.conftest import onnx_graph, run_onnx_bytes

ROWS = Input(shape=(2, 3))


def affine() -> bytes:
    """The rows times a matrix and 0.5 added, and the results' sums."""
    graph = OnnxGraph(name="affine", inputs=(ROWS,))
    product = graph.node("MatMul", "input0", graph.weight(np.arange(6, dtype=np.float32).reshape(3, 2)))
    result = graph.node("Add", product, graph.weight(0.5))
    return graph.finish(result, graph.node("ReduceSum", result, graph.weight([1]), keepdims=0))


def test_what_is_written_runs() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result, sums = run_onnx_bytes(affine(), x)
    np.testing.assert_array_equal(result, x @ np.arange(6, dtype=np.float32).reshape(3, 2) + 0.5)
    np.testing.assert_array_equal(sums, result.sum(axis=1))


def test_shapes_and_names_are_in_the_file() -> None:
    model = onnx.load_from_string(affine())
    shapes = [[dim.dim_value for dim in entry.type.tensor_type.shape.dim] for entry in model.graph.output]
    assert shapes == [[2, 2], [2]]
    assert model.graph.name == "affine"
    assert affine() == affine(), "equal graphs give equal bytes"
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", OPSET)]


def test_inputs_have_their_types() -> None:
    graph = OnnxGraph(name="pick", inputs=(Input(shape=(2,), dtype="i64"),))
    rows = graph.weight(np.array([[1.0], [2.0], [3.0]], np.float16))
    (result,) = run_onnx_bytes(graph.finish(graph.node("Gather", rows, "input0")), np.array([2, 0]))
    assert result.dtype == np.float16
    assert result.tolist() == [[3.0], [1.0]]


def test_results_of_unknown_size_are_refused() -> None:
    graph = OnnxGraph(name="positive", inputs=(ROWS,))
    where = graph.node("NonZero", "input0")
    with pytest.raises(ValueError, match=r"the shape of v0 in graph positive is not static"):
        graph.finish(where)


def test_nodes_that_do_not_fit_are_refused() -> None:
    graph = OnnxGraph(name="wrong", inputs=(ROWS,))
    with pytest.raises(Exception, match="Incompatible dimensions"):
        graph.finish(graph.node("MatMul", "input0", "input0"))


PICTURE = Input(shape=(3, 4))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightFile:
    """sigmoid(x * 2) in opset 11, of any height, where a WeightFile finds it."""
    path = tmp_path / "net.onnx"
    text = """(float[height, 4] x) => (float[height, 4] y) <float two = {2}> {
        twice = Mul(x, two)
        y = Sigmoid(twice)
    }"""
    onnx.save(onnx_graph(text, opset=11, ir_version=7), str(path))
    monkeypatch.setattr(WeightFile, "locate", lambda _: path)
    return WeightFile(distribution="net", version="1", path="net.onnx", sha256="", extra="net")


def test_a_model_is_made_static_and_upgraded(file: WeightFile) -> None:
    built = read_static(file, (PICTURE,))
    assert built.inputs == (PICTURE,)
    assert built == read_static(file, (PICTURE,)), "equal files give equal bytes"
    model = onnx.load_from_string(built.onnx)
    assert [entry.version for entry in model.opset_import] == [17]
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [3, 4]
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(run_onnx_bytes(built.onnx, x)[0], 1 / (1 + np.exp(-2 * x)), rtol=1e-6)


def test_inner_values_can_be_its_results(file: WeightFile) -> None:
    built = read_static(file, (PICTURE,), outputs=("y", "twice"))
    x = np.ones((3, 4), np.float32)
    results = run_onnx_bytes(built.onnx, x)
    np.testing.assert_array_equal(results[1], 2 * x)
    np.testing.assert_allclose(results[0], 1 / (1 + np.exp(-2 * x)), rtol=1e-6)
