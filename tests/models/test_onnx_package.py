"""Models that packages have in ONNX: found, upgraded, made static, and cut to the values that are wanted."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.errors import CaseError
from harness.models.model import Input
from harness.models.onnx_graph import read_static
from harness.models.weights import WeightFile
from tests.models.onnx_runs import run_onnx_bytes

PICTURE = Input(shape=(3, 4))


def old_model() -> Any:
    """sigmoid(x * 2) in opset 11, of any height."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["twice"]), helper.make_node("Sigmoid", ["twice"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["height", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["height", 4])],
        [numpy_helper.from_array(np.array(2, np.float32), "two")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightFile:
    """The model where a WeightFile finds it."""
    content = old_model().SerializeToString(deterministic=True)
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    monkeypatch.setattr(WeightFile, "locate", lambda _: path)
    return WeightFile(
        distribution="net", version="1", path="net.onnx", sha256=hashlib.sha256(content).hexdigest(), extra="net"
    )


def test_a_model_is_made_static_and_upgraded(file: WeightFile) -> None:
    built = read_static(file, (PICTURE,))
    assert built.inputs == (PICTURE,)
    model = onnx.load_from_string(built.onnx)
    assert [one.version for one in model.opset_import] == [17]
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [3, 4]
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(run_onnx_bytes(built.onnx, x)[0], 1 / (1 + np.exp(-2 * x)), rtol=1e-6)


def test_inner_values_can_be_its_results(file: WeightFile) -> None:
    built = read_static(file, (PICTURE,), outputs=("y", "twice"))
    x = np.ones((3, 4), np.float32)
    results = run_onnx_bytes(built.onnx, x)
    np.testing.assert_array_equal(results[1], 2 * x)
    np.testing.assert_allclose(results[0], 1 / (1 + np.exp(-2 * x)), rtol=1e-6)


def test_what_is_not_in_it_is_told(file: WeightFile) -> None:
    with pytest.raises(CaseError, match=r"net\.onnx has no values logits; it is another file than was published$"):
        read_static(file, (PICTURE,), outputs=("y", "logits"))


def test_equal_files_give_equal_bytes(file: WeightFile) -> None:
    assert read_static(file, (PICTURE,)) == read_static(file, (PICTURE,))
