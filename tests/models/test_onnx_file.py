"""ONNX files: import, names, opsets, shapes that are made static, and ONNX Runtime as the reference."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from harness.errors import CaseError, SuiteError
from harness.models.inputs import load_argument
from harness.models.model import Input, Model
from harness.models.onnx_file import OPSET, onnxruntime_version, read_onnx, read_static, run_onnx, with_static_inputs
from harness.models.weights import WeightFile
from tests.models.conftest import Make, RunMain, onnx_graph, run_onnx_bytes


def write(
    path: Path,
    *,
    name: str = "graph",
    opset: int = 11,
    shape: str = "2, 3",
    element: str = "float",
    external: bool = False,
) -> Path:
    """Write softmax(x @ w), whose softmax means another thing below opset 13; w is listed as an input, as of old."""
    text = f"""({element}[{shape}] x, float[3, 4] w) => (float[{shape.split(",")[0]}, 4] y) {{
        f = Cast<to=1>(x)
        m = MatMul(f, w)
        y = Softmax<axis=1>(m)
    }}"""
    model = onnx_graph(text, opset=opset, ir_version=7)
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    model.graph.name = name
    if external:
        onnx.save(model, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    else:
        onnx.save(model, str(path))
    return path


def model_of(path: Path, **changes: Any) -> Model:
    return dataclasses.replace(Model(name="net", onnx=path, params={}, parameters={}), **changes)


@pytest.mark.parametrize("name", ["main_graph", 'a "ü" \\ b/1'])
def test_an_old_model_is_upgraded_and_agrees_with_onnx_runtime(
    make: Make, run_main: RunMain, tmp_path: Path, name: str
) -> None:
    path = write(tmp_path / "net.onnx", name=name, opset=11)
    artifact = make(model_of(path))
    assert artifact.function == name
    with pytest.raises(SuiteError, match=r"function: the entry function of .*net\.onnx is '.*', not 'main'; leave"):
        make(model_of(path, function="main"))
    assert artifact.inputs == (Input(shape=(2, 3)),)
    assert "torch.onnx_meta.opset_version = 17 " in artifact.mlir.read_text()
    (output,) = run_main(artifact)
    (expected,) = run_onnx(path, [load_argument(argument) for argument in artifact.arguments])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("own", "wanted", "written"), [(11, 15, 15), (18, None, 18)])
def test_opsets_go_up_only(make: Make, tmp_path: Path, own: int, wanted: int | None, written: int) -> None:
    path = write(tmp_path / "net.onnx", opset=own)
    assert f"torch.onnx_meta.opset_version = {written} " in make(model_of(path, opset=wanted)).mlir.read_text()
    with pytest.raises(SuiteError, match=rf"opset is 7, but .*net\.onnx has opset {own}; remove opset$"):
        make(model_of(path, opset=7))


def test_a_file_says_its_inputs_or_they_are_asked_for(make: Make, tmp_path: Path) -> None:
    facts = [read_onnx(write(tmp_path / "net.onnx", element=element), "") for element in ("int64", "uint8")]
    assert facts[0].inputs == (Input(shape=(2, 3), dtype="i64"),)
    assert facts[1].unknown_inputs.startswith("input x has the element type uint8; export the model with one of f32,")
    path = write(tmp_path / "net.onnx", shape="batch, 3")
    unknown = r"^\[models\.net\] inputs are missing, because input x has the dynamic shape \?x3; give static inputs"
    with pytest.raises(SuiteError, match=unknown):
        make(model_of(path))
    model = model_of(path, inputs=(Input(shape=(2, 3)),))
    dynamic, static = make(model), make(dataclasses.replace(model, static=True))
    assert "!torch.vtensor<[?,3],f32>" in dynamic.mlir.read_text()
    assert "!torch.vtensor<[2,3],f32>" in static.mlir.read_text()
    assert "?" not in static.mlir.read_text()


def test_weights_beside_the_file_count_too(make: Make, tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx", external=True)
    before = make(model_of(path))
    data = tmp_path / "w.bin"
    data.write_bytes(np.ones(12, np.float32).tobytes())
    assert make(model_of(path)).sha256 != before.sha256
    data.unlink()
    with pytest.raises(SuiteError, match=r"net\.onnx keeps weights in w\.bin, which is not beside it; put it there$"):
        make(model_of(path))


def test_broken_files_fail_the_model(make: Make, tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    whole = path.read_bytes()
    for broken, message in (
        (whole[: len(whole) // 2], r"is no whole ONNX file \(.*\); write or download it again$"),
        (onnx.ModelProto(ir_version=7).SerializeToString(), r"holds no ONNX graph"),
    ):
        path.write_bytes(broken)
        with pytest.raises(CaseError, match=message) as caught:
            make(model_of(path))
        assert caught.value.stage == "model"
        assert "\n" not in str(caught.value)


def test_the_reference_says_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "net.onnx")
    cannot = r"net\.onnx: ONNX Runtime \S+ cannot run it \(it takes 1 inputs \(x\), not 0\); check"
    with pytest.raises(CaseError, match=cannot):
        run_onnx(path, [])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert onnxruntime_version() is None
    with pytest.raises(CaseError, match=r"run pip install onnxruntime$"):
        run_onnx(path, [])


WHERE = "[models.net] onnx: net.onnx"


# An input [batch, 4] as [2, batch, 2], the way exporters write it: from the input's own size.
TRANSPOSED_ROWS = """(float[batch, 4] x) => (float[] y) <int64 zero = {0}, int64[1] axis = {0}, int64[2] two = {2, 2}> {
    sizes = Shape(x)
    batch = Gather(sizes, zero)
    batches = Unsqueeze(batch, axis)
    target = Concat<axis=0>(batches, two)
    halves = Reshape(x, target)
    y = Transpose<perm=[1, 0, 2]>(halves)
}"""


UNFIT = "(float[batch, width] x) => (float[] y) <float[4, 1] w = {1, 1, 1, 1}> { y = MatMul(x, w) }"


def kinds(static: Any) -> list[str]:
    return [node.op_type for node in static.graph.node]


def sizes(value: Any) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


@given(batch=st.integers(1, 5))
def test_arithmetic_on_sizes_is_folded(batch: int) -> None:
    dynamic = onnx_graph(TRANSPOSED_ROWS)
    before = dynamic.SerializeToString(deterministic=True)
    static = with_static_inputs(dynamic, [(batch, 4)], WHERE)
    assert dynamic.SerializeToString(deterministic=True) == before
    assert kinds(static) == ["Constant", "Reshape", "Transpose"]
    assert not static.graph.initializer
    assert sizes(static.graph.input[0]) == [batch, 4]
    assert sizes(static.graph.output[0]) == [2, batch, 2]
    x = np.arange(batch * 4, dtype=np.float32).reshape(batch, 4)
    expected = run_onnx_bytes(dynamic.SerializeToString(), x)
    np.testing.assert_array_equal(run_onnx_bytes(static.SerializeToString(), x), expected)


def test_inner_graphs_keep_what_they_read() -> None:
    dynamic = onnx_graph(
        """(float[batch, 4] x) => (float[] y) <float zero = {0}, float one = {1}> {
            sum = ReduceSum<keepdims=0>(x)
            positive = Greater(sum, zero)
            y = If(positive) <
                then_branch = more () => (float[] more) { more = Add(x, one) },
                else_branch = less () => (float[] less) { less = Sub(x, one) }
            >
        }"""
    )
    static = with_static_inputs(dynamic, [(1, 4)], WHERE)
    assert kinds(static) == ["ReduceSum", "Greater", "If"]
    for sign in (1, -1):
        x = np.full((1, 4), sign, np.float32)
        np.testing.assert_array_equal(run_onnx_bytes(static.SerializeToString(), x)[0], x + sign)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], f"{WHERE} takes 1 inputs (x), not 0; correct inputs"),
        ([()], f"{WHERE}: its input x is ?x4, which a scalar does not fit; correct inputs"),
        ([(1, 5)], f"{WHERE} does not work on inputs of these shapes ("),
    ],
)
def test_shapes_that_do_not_fit_the_model_or_its_operations(shapes: list[tuple[int, ...]], message: str) -> None:
    text = UNFIT if shapes == [(1, 5)] else TRANSPOSED_ROWS
    with pytest.raises((SuiteError, CaseError)) as caught:
        with_static_inputs(onnx_graph(text), shapes, WHERE)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_packages_model_is_made_static_and_upgraded_and_inner_values_can_be_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here sigmoid(x * 2) in opset 11, of any height."""
    text = """(float[height, 4] x) => (float[height, 4] y) <float two = {2}> {
        twice = Mul(x, two)
        y = Sigmoid(twice)
    }"""
    onnx.save(onnx_graph(text, opset=11, ir_version=7), str(tmp_path / "net.onnx"))
    monkeypatch.setattr(WeightFile, "locate", lambda _: tmp_path / "net.onnx")
    file = WeightFile(distribution="net", version="1", path="net.onnx", sha256="", extra="net")
    built, again = (read_static(file, (Input(shape=(3, 4)),), outputs=("y", "twice")) for _ in range(2))
    assert built == again, "equal files give equal bytes"
    model = onnx.load_from_string(built.onnx)
    assert [entry.version for entry in model.opset_import] == [OPSET]
    assert sizes(model.graph.input[0]) == [3, 4]
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    y, twice = run_onnx_bytes(built.onnx, x)
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-2 * x)), rtol=1e-6)
