"""Every way to give a model, from the suite to checked and measured cases."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.records.run import Check
from tests.end_to_end.command import Harness, timed
from tests.end_to_end.suites import BUILDER, PARAMS

Change = Callable[..., Harness]
_BUILDER = f"{BUILDER}\n{PARAMS}"
_FAST = ("--budget", "0.1", "--generations", "1", "--filter", "*/stock@*")


def _run(harness: Harness, *options: str) -> list[Check]:
    """Run the suite's baseline; the checks of a run in which every case was measured."""
    ended = harness("run", "small.toml", *(options or _FAST))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = harness.run()
    assert timed(run)
    assert not run.lost
    return list(run.checks)


def _write_onnx(path: Path) -> None:
    """relu(x @ w), with x of 4x8."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [8, 3], np.linspace(-1, 1, 24, dtype=np.float32))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Relu", ["xw"], ["y"])],
        "two-layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))


def test_an_onnx_file_says_its_inputs_and_is_checked_against_onnx_runtime(suite_with: Change) -> None:
    pytest.importorskip("onnxruntime")
    harness = suite_with((_BUILDER, 'onnx = "net.onnx"\n'))
    _write_onnx(harness.folder / "net.onnx")
    checks = _run(harness)
    assert {check.also_against.split()[0] for check in checks} == {"ONNX"}
    assert harness.run().header.models[0].inputs == ("4x8xf32 random seed 0",)


def _suite(suite_with: Change, text: str, inputs: str, more: str = "") -> Harness:
    harness = suite_with((_BUILDER, f'mlir = "model.mlir"\nfunction = "main"\ninputs = [{inputs}]\n{more}'))
    (harness.folder / "model.mlir").write_text(text)
    return harness


_SCALED_BY_PARAMETER = """
module {
  util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = util.global.load @w : tensor<4xf32>
    %y = arith.mulf %x, %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""


def test_weights_come_from_a_parameter_file(suite_with: Change) -> None:
    import iree.runtime as rt

    more = 'parameters = { model = "weights.irpa" }\nexpected = ["y.npy"]\n'
    harness = _suite(suite_with, _SCALED_BY_PARAMETER, "{ shape = [4], value = 2.0 }", more)
    index = rt.ParameterIndex()
    index.add_buffer("w", np.array([1, 2, 3, 4], np.float32).tobytes())
    index.create_archive_file(str(harness.folder / "weights.irpa"))
    np.save(harness.folder / "y.npy", np.array([2, 4, 6, 8], np.float32))
    assert {check.also_against for check in _run(harness)} == {"expected files"}
    exported = harness("export", "small.toml", "tiny")
    assert exported.returncode == 0
    assert sorted(path.name for path in (harness.folder / "tiny").iterdir()) == [
        "input0.npy",
        "model.mlir",
        "parameters0.irpa",
    ]


_SUMS = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %y = arith.addf %x, %x : tensor<4xf32>
  %m = arith.addi %n, %n : tensor<i32>
  return %y, %m : tensor<4xf32>, tensor<i32>
}
"""
_CONSTANT = """
func.func @main() -> tensor<4xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %c : tensor<4xf32>
}
"""
_DTYPES = ("f16", "bf16", "f32", "i8", "i16", "i32", "i64")


def _doubled() -> str:
    """A program with an argument of each type, which is added to itself."""
    kinds = [f"tensor<4x{dtype}>" for dtype in _DTYPES]
    arguments = ", ".join(f"%x{index}: {kind}" for index, kind in enumerate(kinds))
    sums = "\n".join(
        f"%y{index} = arith.add{'f' if 'f' in _DTYPES[index] else 'i'} %x{index}, %x{index} : {kind}"
        for index, kind in enumerate(kinds)
    )
    results = ", ".join(f"%y{index}" for index in range(len(kinds)))
    types = ", ".join(kinds)
    return f"func.func @main({arguments}) -> ({types}) {{\n{sums}\nreturn {results} : {types}\n}}\n"


def test_inputs_and_outputs_of_every_type_several_of_them_scalars_and_none(suite_with: Change) -> None:
    of_each_type = ", ".join(f'{{ shape = [4], dtype = "{dtype}" }}' for dtype in _DTYPES)
    harness = suite_with(
        (
            f"[models.tiny]\n{_BUILDER}",
            f"""
            [models.types]
            mlir = "types.mlir"
            function = "main"
            inputs = [{of_each_type}]

            [models.scalars]
            mlir = "scalars.mlir"
            function = "main"
            inputs = [{{ npy = "x.npy" }}, {{ shape = [], dtype = "i32", value = 3 }}]
            expected = ["y.npy", "m.npy"]

            [models.none]
            mlir = "none.mlir"
            function = "main"
            inputs = []
            """,
        )
    )
    for name, text in {"types": _doubled(), "scalars": _SUMS, "none": _CONSTANT}.items():
        (harness.folder / f"{name}.mlir").write_text(text)
    np.save(harness.folder / "x.npy", np.arange(4, dtype=np.float32))
    np.save(harness.folder / "y.npy", 2 * np.arange(4, dtype=np.float32))
    np.save(harness.folder / "m.npy", np.array(6, np.int32))
    checks = {check.case: check.also_against for check in _run(harness)}
    assert checks.keys() == {"types/stock@cpu", "scalars/stock@cpu", "none/stock@cpu"}
    assert checks["scalars/stock@cpu"] == "expected files"
