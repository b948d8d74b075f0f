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


_DTYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64")
_NONE = "func.func @main() -> f32 {\n%c = arith.constant 1.0 : f32\nreturn %c : f32\n}\n"


def _doubled() -> str:
    """A program with an argument of each type and a scalar, which are added to themselves."""
    kinds = [f"tensor<{shape}{dtype}>" for shape, dtype in (*(("4x", dtype) for dtype in _DTYPES), ("", "i32"))]
    arguments = ", ".join(f"%x{number}: {kind}" for number, kind in enumerate(kinds))
    sums = "\n".join(
        f"%y{number} = arith.add{'f' if 'f' in kind.rpartition('x')[2] else 'i'} %x{number}, %x{number} : {kind}"
        for number, kind in enumerate(kinds)
    )
    results = ", ".join(f"%y{number}" for number in range(len(kinds)))
    types = ", ".join(kinds)
    return f"func.func @main({arguments}) -> ({types}) {{\n{sums}\nreturn {results} : {types}\n}}\n"


def test_inputs_and_outputs_of_every_type_several_of_them_scalars_and_none(suite_with: Change) -> None:
    inputs = ", ".join(
        [*(f'{{ shape = [4], dtype = "{dtype}" }}' for dtype in _DTYPES), '{ shape = [], dtype = "i32" }']
    )
    tables = [
        f'[models.{name}]\nmlir = "{name}.mlir"\nfunction = "main"\ninputs = [{given}]'
        for name, given in (("types", inputs), ("none", ""))
    ]
    harness = suite_with((f"[models.tiny]\n{_BUILDER}", "\n".join(tables)))
    for name, text in {"types": _doubled(), "none": _NONE}.items():
        (harness.folder / f"{name}.mlir").write_text(text)
    assert _run(harness).keys() == {"types/stock@cpu", "none/stock@cpu"}
