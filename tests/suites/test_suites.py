"""Suites name what the scripts beside them write, are what the documentation shows, and ask what their seeds asked."""

import runpy
from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.suite.load import load_suite

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "suites/known-issues"


def test_the_right_outputs_of_known_issues_are_those_that_numpy_computes() -> None:
    written = dict(runpy.run_path(str(KNOWN / "right.py"))["right_outputs"]())
    assert {file.name for file in written} == {file.name for file in KNOWN.glob("*.npy")}
    for file, values in written.items():
        np.testing.assert_allclose(np.load(file), values, rtol=1e-6, err_msg=file.name)


@pytest.mark.parametrize("program", sorted(KNOWN.glob("*.mlir")), ids=lambda path: path.stem)
def test_a_known_issue_is_in_the_suite_and_in_the_documentation(program: Path) -> None:
    suite = load_suite(ROOT / "suites/known-issues.toml").suite
    assert program.name in [model.mlir.name for model in suite.models if model.mlir is not None]
    documented = (ROOT / "docs/known-issues.md").read_text()
    assert program.stem in documented
    # prelu and cbrt with another number or function
    alike = {"prelu-wide", "powf", "atan2", "sinh", "asinh", "atanh", "acosh", "asin-f16", "atanh-f16"}
    assert program.read_text() in documented or program.stem in alike


def test_the_smoke_suite_s_network_is_the_one_its_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "suites/smoke/network.py"))
    assert onnx.load(script["FILE"]) == onnx.load_model_from_string(script["network"]())
