"""Every way to give a model, from the suite to checked and measured cases."""

from collections.abc import Callable

import numpy as np

from harness.records.run import Check
from tests.end_to_end.command import Harness, timed
from tests.end_to_end.suites import BUILDER, PARAMS

Change = Callable[..., Harness]
_BUILDER = f"{BUILDER}\n{PARAMS}"


def _run(harness: Harness) -> dict[str, Check]:
    """Run the suite's baseline; the checks by case of a run in which every case was measured."""
    ended = harness("run", "small.toml", "--budget", "0.1", "--generations", "1", "--filter", "*/stock@*")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = harness.run()
    assert timed(run) and not run.lost
    return {check.case: check for check in run.checks}


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
_WITH_PARAMETER = """
mlir = "model.mlir"
function = "main"
inputs = [{ shape = [4], value = 2.0 }]
parameters = { model = "weights.irpa" }
expected = ["y.npy"]
"""


def test_weights_come_from_a_parameter_file(suite_with: Change) -> None:
    import iree.runtime as rt

    harness = suite_with((_BUILDER, _WITH_PARAMETER))
    (harness.folder / "model.mlir").write_text(_SCALED_BY_PARAMETER)
    index = rt.ParameterIndex()
    index.add_buffer("w", np.array([1, 2, 3, 4], np.float32).tobytes())
    index.create_archive_file(str(harness.folder / "weights.irpa"))
    np.save(harness.folder / "y.npy", np.array([2, 4, 6, 8], np.float32))
    assert _run(harness)["tiny/stock@cpu"].also_against == "expected files"
    assert harness("export", "small.toml", "tiny").returncode == 0
    exported = {path.name for path in (harness.folder / "tiny").iterdir()}
    assert exported == {"input0.npy", "model.mlir", "parameters0.irpa"}


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
_DTYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64")


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
    checks = _run(harness)
    assert checks.keys() == {"types/stock@cpu", "scalars/stock@cpu", "none/stock@cpu"}
    assert checks["scalars/stock@cpu"].also_against == "expected files"
