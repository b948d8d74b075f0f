"""A list of suites through the real tools: each in turn, and what is known to fail in them."""

import shutil
from pathlib import Path

import pytest
import tomli
import tomli_w

from harness.report.run_report import build_report
from harness.store.run_directory import load_run
from harness.toolchain import find_toolchain
from tests.end_to_end.command import Harness, document, timed
from tests.end_to_end.suites import CPU

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
