"""Writing ONNX: what is written is what ONNX Runtime runs, and every shape is known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from harness.models.model import Input
from harness.models.onnx_graph import OPSET, OnnxGraph
from tests.models.onnx_runs import run_onnx_bytes

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
    shapes = [[dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in model.graph.output]
    assert shapes == [[2, 2], [2]]
    assert model.graph.name == "affine"
    assert [(one.domain, one.version) for one in model.opset_import] == [("", OPSET)]


def test_equal_graphs_give_equal_bytes() -> None:
    assert affine() == affine()


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
