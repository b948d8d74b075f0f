"""ONNX files: import, names, opsets, shapes, and ONNX Runtime as the reference."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from harness import process
from harness.errors import CaseError, SuiteError
from harness.models import ModelArtifact, load_argument
from harness.models.model import Input, Model
from harness.models.onnx_file import onnxruntime_version, run_onnx

Make = Callable[[Model], ModelArtifact]
RunMain = Callable[[ModelArtifact], list[NDArray[Any]]]


def write(
    path: Path,
    *,
    name: str = "graph",
    opset: int = 11,
    shape: Sequence[int | str] = (2, 3),
    element: int = TensorProto.FLOAT,
    external: bool = False,
) -> Path:
    """Write softmax(x @ w), whose softmax means another thing below opset 13; w is listed as an input, as of old."""
    weight = numpy_helper.from_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), "w")
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("MatMul", ["f", "w"], ["m"]),
            helper.make_node("Softmax", ["m"], ["y"], axis=1),
        ],
        name,
        [
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("x", element, shape),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], 4])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    if external:
        onnx.save(model, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    else:
        onnx.save(model, str(path))
    return path


def model_of(path: Path, **changes: Any) -> Model:
    return dataclasses.replace(Model(name="net", onnx=path, params={}, parameters={}), **changes)


@pytest.mark.parametrize("name", ["main_graph", "torch-jit export/1", 'a "ü" \\ b'])
def test_an_old_model_is_upgraded_and_agrees_with_onnx_runtime(
    make: Make, run_main: RunMain, tmp_path: Path, name: str
) -> None:
    path = write(tmp_path / "net.onnx", name=name, opset=11)
    artifact = make(model_of(path))
    assert artifact.function == name
    assert artifact.inputs == (Input(shape=(2, 3)),)
    assert "torch.onnx_meta.opset_version = 17 " in artifact.mlir.read_text()
    (output,) = run_main(artifact)
    (expected,) = run_onnx(path, [load_argument(argument) for argument in artifact.arguments])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("own", "wanted", "written"), [(11, 15, 15), (18, None, 18), (17, 17, 17), (13, 18, 18)])
def test_opsets_go_up_only(make: Make, tmp_path: Path, own: int, wanted: int | None, written: int) -> None:
    artifact = make(model_of(write(tmp_path / "net.onnx", opset=own), opset=wanted))
    assert f"torch.onnx_meta.opset_version = {written} " in artifact.mlir.read_text()


def test_an_opset_below_the_files_own_is_refused(make: Make, tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx", opset=18)
    with pytest.raises(SuiteError, match=r"^\[models\.net\] opset is 13, but .*net\.onnx has opset 18; remove opset$"):
        make(model_of(path, opset=13))


@pytest.mark.parametrize(
    ("element", "dtype"),
    [(TensorProto.INT64, "i64"), (TensorProto.BOOL, "i1"), (TensorProto.FLOAT16, "f16"), (TensorProto.DOUBLE, "f64")],
)
def test_element_types_become_the_inputs_types(make: Make, tmp_path: Path, element: int, dtype: str) -> None:
    artifact = make(model_of(write(tmp_path / "net.onnx", element=element)))
    assert artifact.inputs == (Input(shape=(2, 3), dtype=dtype),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": ("batch", 3)}, "input x has the dynamic shape ?x3; give static inputs"),
        (
            {"element": TensorProto.UINT8},
            "input x has the element type uint8; export the model with one of f32, f16, bf16, f64, i1, i8, i16, i32, "
            "i64",
        ),
    ],
)
def test_inputs_that_cannot_be_known_are_asked_for(
    make: Make, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "net.onnx", **changes)
    with pytest.raises(SuiteError) as caught:
        make(model_of(path))
    assert str(caught.value) == f"[models.net] inputs are missing, because {message}"
    assert make(model_of(path, inputs=(Input(shape=(5, 3)),))).inputs == (Input(shape=(5, 3)),)


def test_dynamic_sizes_stay_so_unless_the_suite_says_static(make: Make, tmp_path: Path) -> None:
    model = model_of(write(tmp_path / "net.onnx", shape=("n", 3)), inputs=(Input(shape=(2, 3)),))
    dynamic, static = make(model), make(dataclasses.replace(model, static=True))
    assert "!torch.vtensor<[?,3],f32>" in dynamic.mlir.read_text()
    assert "!torch.vtensor<[2,3],f32>" in static.mlir.read_text()
    assert "?" not in static.mlir.read_text()
    assert make(model) == dynamic


def test_static_shapes_that_contradict_the_file_are_refused(make: Make, tmp_path: Path) -> None:
    model = model_of(write(tmp_path / "net.onnx", shape=("n", 3)), inputs=(Input(shape=(2, 5)),), static=True)
    with pytest.raises(SuiteError, match=r"^\[models.net\] onnx: .*net.onnx"):
        make(model)


def test_another_entry_function_is_refused(make: Make, tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    assert make(model_of(path, function="graph")).function == "graph"
    with pytest.raises(SuiteError, match=r"function: the entry function of .*net\.onnx is 'graph', not 'main'; leave"):
        make(model_of(path, function="main"))


def test_a_file_is_imported_once(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "net.onnx")
    artifact = make(model_of(path))
    monkeypatch.setattr(process, "run", lambda *_, **__: pytest.fail("imported again"))
    assert make(model_of(path)) == artifact
    write(path, name="changed")
    with pytest.raises(pytest.fail.Exception, match="imported again"):
        make(model_of(path))


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
        (b"", r"is empty; write it again$"),
        (whole[: len(whole) // 2], r"is no whole ONNX file \(.*\); write or download it again$"),
        (b"<html></html>", r"is no whole ONNX file|holds no ONNX graph"),
        (onnx.ModelProto(ir_version=7).SerializeToString(), r"holds no ONNX graph"),
    ):
        path.write_bytes(broken)
        with pytest.raises(CaseError, match=message) as caught:
            make(model_of(path))
        assert caught.value.stage == "model"
        assert "\n" not in str(caught.value)


def test_an_import_that_fails_says_why(make: Make, tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    proto = onnx.load(str(path))
    proto.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(proto, str(path))
    with pytest.raises(
        CaseError, match=r"^\[models\.net\] onnx: iree-import-onnx of IREE \S+ cannot import .*net\.onnx: "
    ) as caught:
        make(model_of(path))
    assert "NoSuchOperator" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Traceback" in caught.value.stderr


def test_the_reference_says_what_it_refuses(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    assert onnxruntime_version()
    with pytest.raises(CaseError, match=r"net\.onnx: the graph takes 1 inputs \(x\), not 0; correct inputs$"):
        run_onnx(path, [])
    with pytest.raises(CaseError, match=r"net\.onnx: ONNX Runtime \S+ cannot run it \(.*\); check") as caught:
        run_onnx(path, [np.zeros((2, 4), np.float32)])
    assert caught.value.stage == "verify"


def test_without_onnx_runtime_the_install_line_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert onnxruntime_version() is None
    with pytest.raises(CaseError, match=r"run pip install onnxruntime$") as caught:
        run_onnx(tmp_path / "net.onnx", [])
    assert caught.value.stage == "verify"
