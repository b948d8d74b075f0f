"""Dynamic ONNX models made static: the same results, and no arithmetic on sizes left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from harness.errors import CaseError, SuiteError
from harness.models.onnx_file import with_static_inputs
from tests.models.onnx_runs import run_onnx_bytes

WHERE = "[models.net] onnx: net.onnx"


def model(nodes: Sequence[Any], *, weights: Sequence[Any] = (), shape: Sequence[int | str] = ("batch", 4)) -> Any:
    """A graph from x to y."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def transposed_rows() -> Any:
    """An input [batch, 4] as [2, batch, 2], the way exporters write it: from the input's own size."""
    return model(
        [
            helper.make_node("Shape", ["x"], ["sizes"]),
            helper.make_node("Gather", ["sizes", "zero"], ["batch"]),
            helper.make_node("Unsqueeze", ["batch", "axis"], ["batches"]),
            helper.make_node("Concat", ["batches", "twos"], ["target"], axis=0),
            helper.make_node("Reshape", ["x", "target"], ["halves"]),
            helper.make_node("Transpose", ["halves"], ["y"], perm=[1, 0, 2]),
        ],
        weights=[
            numpy_helper.from_array(np.array(0), "zero"),
            numpy_helper.from_array(np.array([0]), "axis"),
            numpy_helper.from_array(np.array([2, 2]), "twos"),
        ],
    )


def kinds(static: Any) -> list[str]:
    return [node.op_type for node in static.graph.node]


def sizes(value: Any) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


@given(batch=st.integers(1, 5))
def test_arithmetic_on_sizes_is_folded(batch: int) -> None:
    dynamic = transposed_rows()
    before = dynamic.SerializeToString(deterministic=True)
    static = with_static_inputs(dynamic, [(batch, 4)], WHERE)
    assert dynamic.SerializeToString(deterministic=True) == before
    assert kinds(static) == ["Constant", "Reshape", "Transpose"]
    assert sizes(static.graph.input[0]) == [batch, 4]
    assert sizes(static.graph.output[0]) == [2, batch, 2]
    x = np.arange(batch * 4, dtype=np.float32).reshape(batch, 4)
    expected = run_onnx_bytes(dynamic.SerializeToString(), x)
    np.testing.assert_array_equal(run_onnx_bytes(static.SerializeToString(), x), expected)


def test_unused_weights_go() -> None:
    assert not with_static_inputs(transposed_rows(), [(3, 4)], WHERE).graph.initializer


def test_weights_that_are_computed_stay_so() -> None:
    weight = numpy_helper.from_array(np.ones((4, 2000), np.int8), "w")
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    dynamic = model(
        [
            helper.make_node("DequantizeLinear", ["w", "scale"], ["real"]),
            helper.make_node("MatMul", ["x", "real"], ["y"]),
        ],
        weights=[weight, scale],
    )
    assert kinds(with_static_inputs(dynamic, [(1, 4)], WHERE)) == ["DequantizeLinear", "MatMul"]


def test_nothing_random_is_folded() -> None:
    noise = helper.make_node("RandomUniformLike", ["zero"], ["noise"])
    zero = numpy_helper.from_array(np.zeros(4, np.float32), "zero")
    dynamic = model([noise, helper.make_node("Add", ["x", "noise"], ["y"])], weights=[zero])
    assert kinds(with_static_inputs(dynamic, [(1, 4)], WHERE)) == ["RandomUniformLike", "Add"]


def test_inner_graphs_keep_what_they_read() -> None:
    def branch(name: str, kind: str) -> Any:
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(kind, ["x", "one"], [name])], name, [], [result])

    dynamic = model(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"]),
            helper.make_node(
                "If", ["positive"], ["y"], then_branch=branch("more", "Add"), else_branch=branch("less", "Sub")
            ),
        ],
        weights=[
            numpy_helper.from_array(np.array(value, np.float32), name) for name, value in (("zero", 0), ("one", 1))
        ],
    )
    static = with_static_inputs(dynamic, [(1, 4)], WHERE)
    assert kinds(static) == ["ReduceSum", "Greater", "If"]
    for sign in (1, -1):
        x = np.full((1, 4), sign, np.float32)
        np.testing.assert_array_equal(run_onnx_bytes(static.SerializeToString(), x)[0], x + sign)


def test_a_result_that_onnx_cannot_tell_keeps_the_shape_it_had() -> None:
    dynamic = model([helper.make_node("NonZero", ["x"], ["where"]), helper.make_node("Cast", ["where"], ["y"], to=1)])
    dynamic.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 2
    dynamic.graph.output[0].type.tensor_type.shape.dim.add().dim_param = "found"
    (result,) = with_static_inputs(dynamic, [(1, 4)], WHERE).graph.output
    assert sizes(result)[0] == 2


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], f"{WHERE} takes 1 inputs (x), not 0; correct inputs"),
        ([(2, 5)], f"{WHERE}: its input x is ?x4, which 2x5 does not fit; correct inputs"),
        ([(2,)], f"{WHERE}: its input x is ?x4, which 2 does not fit; correct inputs"),
        ([()], f"{WHERE}: its input x is ?x4, which a scalar does not fit; correct inputs"),
    ],
)
def test_shapes_that_the_model_does_not_have_are_refused(shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        with_static_inputs(transposed_rows(), shapes, WHERE)
    assert str(caught.value) == message


def test_shapes_that_the_operations_do_not_take_are_refused() -> None:
    weight = numpy_helper.from_array(np.ones((4, 2), np.float32), "w")
    dynamic = model([helper.make_node("MatMul", ["x", "w"], ["y"])], weights=[weight], shape=("batch", "width"))
    with pytest.raises(CaseError, match=r"^\[models\.net\] onnx: net\.onnx does not work on inputs of these") as caught:
        with_static_inputs(dynamic, [(1, 5)], WHERE)
    assert caught.value.stage == "model"
    assert "\n" not in str(caught.value)
