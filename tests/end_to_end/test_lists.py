"""A list of suites through the real tools, what is known to fail in them, and every way to give a model."""

import shutil
from collections.abc import Callable
from pathlib import Path

import iree.runtime
import numpy as np
import pytest
import tomli
import tomli_w

from harness.report.run_report import build_report
from harness.store.run_directory import load_run
from harness.toolchain import find_toolchain
from tests.end_to_end.command import Harness, document, timed
from tests.end_to_end.suites import BUILDER, CPU, PARAMS
from tests.programs import WEIGHTED

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


def test_every_suite_of_a_list_is_run_and_the_weightiest_status_counts(harness: Harness) -> None:
    """Of three suites, the second is not there, and the filter passes over the third."""
    (harness.folder / "night.toml").write_text(LIST)
    (harness.folder / "net.toml").write_text(NET)
    shutil.copy(ROOT / "suites/smoke/network.onnx", harness.folder)
    ended = harness("run", "night.toml", "--filter", "net/*", "--format", "json")
    assert ended.returncode == 2, ended.stderr
    found = document(ended)
    assert [(Path(suite["suite"]).stem, suite["exit_status"]) for suite in found["suites"]] == [
        ("net", 0),
        ("gone", 2),
        ("small", 0),
    ]
    (report,) = found["reports"]
    assert [(row["case"], row["status"]) for row in report["rows"]] == [
        ("net/stock@cpu", "measured"),
        ("net/onnxruntime@cpu", "measured"),
    ]
    assert (report["run"]["settings"]["budget_s"], report["run"]["settings"]["generations"]) == (0.2, 1)
    (check, _) = harness.run().checks
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
    rows = {row.case: (row.status, row.failure and row.failure.mismatch) for row in report.rows()}
    assert rows == {
        "prelu/stock@cpu": ("expected failure", True),
        "padding/stock@cpu": ("measured", None),
        "padding/pad-into-producers@cpu": ("expected failure", True),
        "reverse/stock@cpu": ("expected failure", False),
    }
    assert "3 failed as expected" in ended.stdout


def test_as_many_silent_defects_are_found_without_expected_files_as_the_docs_say(
    harness: Harness, defects: None
) -> None:
    for name in ("suites", "flagsets"):
        shutil.copytree(ROOT / name, harness.folder / name)
    suite = harness.folder / "suites/known-issues.toml"
    content = tomli.loads(suite.read_text())
    models = content["models"].items()
    cases = [expected["cases"] for expected in content.pop("expect") if expected.get("mismatch")]
    silent = {case.split("/")[0] for case in cases}
    silent |= {name for name, model in models if model.get("expect") == "mismatch"}
    for _, model in models:
        model.pop("expected", None)
        model.pop("expect", None)
    suite.write_text(tomli_w.dumps(content))

    asked = [f"--filter={case}" for case in (*cases, *(f"{name}/stock@cpu" for name in silent))]
    assert harness("run", str(suite), *asked, "--no-measure").returncode == 3
    run = load_run(harness.runs()[-1])
    wrong = [check.case for check in run.checks if check.failure is not None and check.failure.mismatch]
    wrong += [lost.case for lost in run.lost if lost.failure.mismatch]
    assert len(silent) == 17
    assert {case.split("/")[0] for case in wrong} == silent - {"depth-to-space", "prelu", "gather"}
    ended = harness("run", str(suite), "--filter", "loop/*", "--budget=0.1", "--generations=1")
    assert (ended.returncode, load_run(harness.runs()[-1]).rounds) == (3, ()), "what later calls change is not timed"
    docs = " ".join((ROOT / "docs/known-issues.md").read_text().split())
    assert "Seventeen programs give wrong numbers without a word" in docs
    assert "Without expected files, the harness finds 14 of them: `padding`, `loop`," in docs


_NONE = "func.func @main() -> f32 {\n%c = arith.constant 1.0 : f32\nreturn %c : f32\n}\n"
_DTYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64")
_MODELS = f"""
[models.weighted]
mlir = "weighted.mlir"
function = "main"
inputs = [{{ shape = [4], value = 2.0 }}]
parameters = {{ model = "weights.irpa" }}
expected = ["y.npy"]

[models.none]
mlir = "none.mlir"
function = "main"
inputs = []

[models.types]
mlir = "types.mlir"
function = "main"
inputs = [{{ shape = [], dtype = "i32" }}, {", ".join(f'{{ shape = [4], dtype = "{dtype}" }}' for dtype in _DTYPES)}]
"""


def _all_types() -> str:
    """A program that gives back a scalar and an argument of each type."""
    kinds = ["tensor<i32>", *(f"tensor<4x{dtype}>" for dtype in _DTYPES)]
    values, types = ", ".join(f"%x{number}" for number in range(len(kinds))), ", ".join(kinds)
    arguments = ", ".join(f"%x{number}: {kind}" for number, kind in enumerate(kinds))
    return f"func.func @main({arguments}) -> ({types}) {{\nreturn {values} : {types}\n}}\n"


def test_arguments_of_every_type_a_scalar_none_and_weights_from_a_parameter_file(
    suite_with: Callable[..., Harness],
) -> None:
    harness = suite_with((f"[models.tiny]\n{BUILDER}\n{PARAMS}", _MODELS))
    for name, text in {"weighted": WEIGHTED, "none": _NONE, "types": _all_types()}.items():
        (harness.folder / f"{name}.mlir").write_text(text)
    index = iree.runtime.ParameterIndex()
    index.add_buffer("w", np.array([1, 2, 3, 4], np.float32).tobytes())
    index.create_archive_file(str(harness.folder / "weights.irpa"))
    np.save(harness.folder / "y.npy", np.array([3, 4, 5, 6], np.float32))
    ended = harness("run", "small.toml", "--budget", "0.1", "--generations", "1", "--filter", "*/stock@*")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = harness.run()
    assert timed(run) == {f"{name}/stock@cpu" for name in ("weighted", "none", "types")}
    checks = {check.case: check.also_against for check in run.checks}
    assert checks == {"weighted/stock@cpu": "expected files", "none/stock@cpu": "", "types/stock@cpu": ""}
    assert harness("export", "small.toml", "weighted").returncode == 0
    exported = {path.name for path in (harness.folder / "weighted").iterdir()}
    assert exported == {"input0.npy", "model.mlir", "parameters0.irpa"}
