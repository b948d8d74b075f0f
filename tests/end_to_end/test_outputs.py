"""Wrong numbers of the real compiler, without expected files: found before anything is said of their speed."""

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


@pytest.fixture(autouse=True)
def defects() -> None:
    """The defects are those of some releases."""
    if find_toolchain().version not in ("3.12.0", "3.13.0"):
        pytest.skip("the defects are those of IREE 3.12 and 3.13")


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
    assert len(models) == 17
    assert {case.split("/")[0] for case in wrong} == set(models) - {"depth-to-space", "prelu", "gather"}
    ended = harness("run", "silent.toml", "--filter", "loop/*", "--budget=0.1", "--generations=1")
    assert (ended.returncode, load_run(harness.runs()[-1]).rounds) == (3, ()), "what later calls change is not timed"
    docs = " ".join((ROOT / "docs/known-issues.md").read_text().split())
    assert "Seventeen programs give wrong numbers without a word" in docs
    assert "Without expected files, the harness finds 14 of them: `padding`, `loop`," in docs
