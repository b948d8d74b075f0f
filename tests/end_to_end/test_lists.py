"""A list of suites through the real tools, what is known to fail in them, and every way to give a model."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tomli
import tomli_w

from harness.records.run import Check
from harness.report.run_report import build_report
from harness.store.run_directory import load_run
from harness.toolchain import find_toolchain
from tests.end_to_end.command import Harness, document, timed
from tests.end_to_end.suites import BUILDER, CPU, PARAMS

ROOT = Path(__file__).parents[2]
LIST = """
name = "night"
suites = ["net.toml", "gone.toml", "small.toml"]
[measure]
budget_s = 0.2
generations = 1
"""
NET = (
    """
name = "net"
baseline = "stock"
peers = ["onnxruntime"]
[models.net]
onnx = "network.onnx"
[variants.stock]
"""
    + CPU
)


@pytest.fixture
def night(harness: Harness) -> Harness:
    """A folder with a list of three suites, of which the second is not there."""
    (harness.folder / "night.toml").write_text(LIST)
    (harness.folder / "net.toml").write_text(NET)
    shutil.copy(ROOT / "suites/smoke/network.onnx", harness.folder)
    return harness


def test_every_suite_of_a_list_is_run_and_the_weightiest_status_counts(night: Harness) -> None:
    ended = night("run", "night.toml", "--filter", "net/*", "--format", "json")
    assert ended.returncode == 2, ended.stderr
    found = document(ended)
    assert [(Path(suite["suite"]).stem, suite["exit_status"]) for suite in found["suites"]] == [
        ("net", 0),
        ("gone", 2),
        ("small", 0),  # passed over
    ]
    (report,) = found["reports"]
    assert [(row["case"], row["status"]) for row in report["rows"]] == [
        ("net/stock@cpu", "measured"),
        ("net/onnxruntime@cpu", "measured"),
    ]
    assert (report["run"]["settings"]["budget_s"], report["run"]["settings"]["generations"]) == (0.2, 1)
    (check, _) = night.run().checks
    assert check.also_against.startswith("ONNX"), "an ONNX file says what is right, and its inputs"


@pytest.fixture
def defects() -> None:
    """The defects are those of some releases."""
    if find_toolchain().version not in ("3.12.0", "3.13.0"):
        pytest.skip("the defects are those of IREE 3.12 and 3.13")


def test_known_issues_are_known(harness: Harness, defects: None) -> None:
    """One of each kind: wrong outputs of all cases of a model, and of one; a program that does not compile."""
    wanted = [f"--filter={model}/*" for model in ("prelu", "padding", "reverse")]
    ended = harness("run", str(ROOT / "suites/known-issues.toml"), *wanted, "--budget=0.2", "--generations=1")
    assert ended.returncode == 0, ended.stdout
    (path,) = harness.runs()
    report = build_report(run := load_run(path))
    assert timed(run) == {"padding/stock@cpu"}, "what is wrong is not timed"
    assert {row.case: row.status for row in report.rows()} == {
        "prelu/stock@cpu": "expected failure",
        "padding/stock@cpu": "measured",
        "padding/pad-into-producers@cpu": "expected failure",
        "reverse/stock@cpu": "expected failure",
    }
    assert {row.case: row.failure.mismatch for row in report.rows() if row.failure} == {
        "prelu/stock@cpu": True,
        "padding/pad-into-producers@cpu": True,
        "reverse/stock@cpu": False,
    }
    assert "3 failed as expected" in ended.stdout


def test_as_many_silent_defects_are_found_without_expected_files_as_the_docs_say(
    harness: Harness, defects: None
) -> None:
    programs = ROOT / "suites/known-issues"
    content = tomli.loads((ROOT / "suites/known-issues.toml").read_text())
    models = {name: model for name, model in content["models"].items() if model.get("expect") == "mismatch"}
    variants = [expected["cases"] for expected in content.pop("expect") if expected.get("mismatch")]
    models |= {name: content["models"][name] for name in (cases.split("/")[0] for cases in variants)}
    for name, model in models.items():
        kept = {key: value for key, value in model.items() if key not in ("expected", "expect")}
        inputs = [
            {**value, "npy": (programs.parent / value["npy"]).as_posix()} if "npy" in value else value
            for value in model["inputs"]
        ]
        models[name] = {**kept, "mlir": (programs / f"{name}.mlir").as_posix(), "inputs": inputs}
    flagsets = [(ROOT / "suites" / file).resolve().as_posix() for file in content["flagset_files"]]
    matrix = {"include": ["*/stock@cpu", *variants]}
    content |= {"models": models, "flagset_files": flagsets, "matrix": matrix}
    (harness.folder / "silent.toml").write_text(tomli_w.dumps(content))

    assert harness("run", "silent.toml", "--no-measure").returncode == 3
    run = load_run(harness.runs()[-1])
    wrong = [check.case for check in run.checks if check.failure is not None and check.failure.mismatch]
    wrong += [lost.case for lost in run.lost if lost.failure.mismatch]
    assert len(models) == 17
    assert {case.split("/")[0] for case in wrong} == set(models) - {"depth-to-space", "prelu", "gather"}
    ended = harness("run", "silent.toml", "--filter", "loop/*", "--budget=0.1", "--generations=1")
    assert (ended.returncode, load_run(harness.runs()[-1]).rounds) == (3, ()), "what later calls change is not timed"
    docs = " ".join((ROOT / "docs/known-issues.md").read_text().split())
    assert "Seventeen programs give wrong numbers without a word" in docs
    assert "Without expected files, the harness finds 14 of them: `padding`, `loop`," in docs


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
