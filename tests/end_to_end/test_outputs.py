"""Wrong numbers of the real compiler, without expected files: found before anything is said of their speed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tomli_w

from harness.store.run_directory import load_run
from harness.toolchain import find_toolchain
from tests.end_to_end.command import Harness

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

SUITE = """
name = "{model}"
baseline = "stock"
[models.{model}]
mlir = "{folder}/{model}.mlir"
function = "main"
check = "{check}"
inputs = [{inputs}]
[variants.stock]
flags = [{flags}]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic",
]
"""
FUSED = '"--iree-dispatch-creation-enable-fuse-padding-into-linalg-producer-ops"'


def suite(folder: Path, name: str, model: str, inputs: str, flags: str = "", check: str = "auto") -> str:
    """A suite of one program of suites/known-issues, without its expected outputs."""
    programs = (ROOT / "suites/known-issues").as_posix()
    (folder / name).write_text(SUITE.format(model=model, folder=programs, inputs=inputs, flags=flags, check=check))
    return name


@pytest.fixture(autouse=True)
def defects() -> None:
    """The defects are those of some releases."""
    if find_toolchain().version not in ("3.12.0", "3.13.0"):
        pytest.skip("the defects are those of IREE 3.12 and 3.13")


def test_a_wrong_baseline_is_refused_by_the_reference(harness: Harness) -> None:
    made = suite(harness.folder, "right.toml", "padding", "{ shape = [4] }")
    assert harness("run", made, "--no-measure").returncode == 0
    made = suite(harness.folder, "wrong.toml", "padding", "{ shape = [4] }", FUSED)
    assert harness("run", made, "--no-measure").returncode == 3
    right, wrong = (check for path in harness.runs() for check in load_run(path).checks)
    assert right.against == wrong.against
    assert right.against.startswith("the float64 reference (linalg by IREE ")
    assert right.failure is None
    assert wrong.failure is not None
    assert wrong.failure.mismatch


def test_a_result_that_later_calls_change_is_not_timed(harness: Harness) -> None:
    """The loop sums up in its argument's buffer."""
    square = ", ".join(["{ shape = [4, 4] }"] * 3)
    made = suite(harness.folder, "loop.toml", "loop", square, check="none")
    assert harness("run", made, "--budget=0.1", "--generations=1").returncode == 3
    run = load_run(harness.runs()[-1])
    (lost,) = run.lost
    assert lost.failure.mismatch
    assert lost.failure.message.startswith("a later call in one process gives other outputs than the first")
    assert not run.rounds


def test_as_many_silent_defects_are_found_without_expected_files_as_the_docs_say(harness: Harness) -> None:
    programs = ROOT / "suites/known-issues"
    content = tomllib.loads((ROOT / "suites/known-issues.toml").read_text())
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
    assert len(models) == 15
    assert {case.split("/")[0] for case in wrong} == set(models) - {"depth-to-space", "prelu"}
    docs = " ".join((ROOT / "docs/known-issues.md").read_text().split())
    assert "Fifteen programs give wrong numbers without a word" in docs
    assert "Without expected files, the harness finds 13 of them: `padding`, `loop`," in docs
