"""`harness ir` and `harness ablate`, from the command line to their exit status, with the real compiler and runtime."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.store.run_directory import load_run
from harness.suite import load_suite
from tests.end_to_end.conftest import Harness
from tests.end_to_end.counted import LONG, MARKED, STOCK, SUITE
from tests.end_to_end.test_run import wait_for

# ------------------------------------------------------------------------------------------------------------------ ir


def test_ops_by_phase(counted: Harness) -> None:
    phases = ("--phase", "flow", "--phase", "input", "--phase", "flow")
    ops = ("--ops", "linalg.*", "--ops", "arith.*", "--ops", "executables:arith.*")
    finished = counted("ir", "counted.toml", STOCK, *phases, *ops)
    assert finished.returncode == 0, finished.stderr
    lines = [line.split() for line in finished.stdout.splitlines()]
    assert lines[:2] == [[STOCK], ["operation", "input", "flow"]]
    assert lines[3:-1] == [
        ["arith.addf", "1", "1"],
        ["executables:arith.addf", "-", "1"],
        ["linalg.generic", "-", "1"],
        ["linalg.yield", "-", "1"],
    ]


def test_json_is_one_document_with_every_op(counted: Harness) -> None:
    finished = counted("ir", "counted.toml", MARKED, "--format", "json")
    document = json.loads(finished.stdout)
    assert (document["schema_version"], document["case"]) == (1, MARKED)
    assert list(document["phases"]) == ["flow", "stream", "bufferized", "executable-targets"]
    assert document["phases"]["flow"]["host"]["flow.dispatch"] == 1
    assert document["phases"]["flow"]["executables"]["arith.addf"] == 1
    assert document["id"] in counted("list", "counted.toml").stdout


def test_the_ir_itself_can_be_compiled_on(counted: Harness) -> None:
    asked = ("--phase", "flow", "--format", "mlir", "--out", "flow.mlir")
    finished = counted("ir", "counted.toml", STOCK, *asked)
    assert (finished.returncode, finished.stdout) == (0, "")
    text = (counted.folder / "flow.mlir").read_text()
    assert "flow.dispatch @main_dispatch_0" in text
    assert text.endswith("}\n")
    (build, *_) = load_run(counted.folder / "results/base").builds
    tool = Path(counted.command()[0]).with_name("iree-compile")
    flags = [flag for flag in build.command if flag.startswith("--iree-hal-")]
    compiled = [str(tool), "flow.mlir", "--compile-from=flow", "-o", "flow.vmfb", *flags]
    assert subprocess.run(compiled, cwd=counted.folder, check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ((STOCK, "--format", "mlir"), 2, "--format mlir prints one phase; say which with --phase"),
        ((LONG,), 3, "the IR of a dispatch cannot be written (File name too long); give the model's function a short"),
    ],
    ids=["no phase", "no IR"],
)
def test_what_cannot_be_shown(counted: Harness, arguments: tuple[str, ...], status: int, sentence: str) -> None:
    finished = counted("ir", "counted.toml", *arguments)
    assert finished.stderr.splitlines()[-1].startswith(f"harness: {sentence}"), finished.stderr
    assert (finished.returncode, finished.stdout) == (status, "")
    assert "Traceback" not in finished.stderr


# -------------------------------------------------------------------------------------------------------------- ablate


def test_each_option_of_a_plugin(counted: Harness) -> None:
    asked = ("--model", "twice", "--plugin", "switches", "--budget", "0.2", "--results", "my results")
    finished = counted("ablate", "counted.toml", *asked, "--format", "markdown")
    assert finished.returncode == 0, finished.stderr
    table = [line.split("|")[1:-1] for line in finished.stdout.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in cells] for cells in table]
    head = rows[0]
    assert head[0] == "variant"
    assert head[-6:-1] == [
        "arith.addf (input)",
        "tensor.\\* (input)",
        "flow.dispatch (flow)",
        "executables:arith.addf (flow)",
        "memref.alloc\\* (bufferized)",
    ]
    counts = {row[0]: (row[-6], row[-3], row[-1]) for row in rows[2:]}
    assert counts == {
        "without": ("1", "1", ""),
        "none": ("1", "1", "without"),
        "only-double": ("0", "0", ""),
        "only-mark": ("-", "1", "without"),
        "all": ("-", "0", "only-double"),
    }
    assert "_▼ faster ▲ slower = same within 1 %" in finished.stdout

    path = Path("my results/counted-ablate-switches-twice.toml")
    assert f"{path}: each option as a variant; `harness run '{path}'` repeats this" in finished.stderr
    (run,) = (one for one in (counted.folder / "my results").iterdir() if one.is_dir())
    header = load_run(run).header
    assert (header.suite, header.settings["budget_s"]) == (path.as_posix(), 0.2)
    assert load_suite(counted.folder / path).suite.budget_s == 0.2
    again = counted("list", str(path))
    assert again.stdout.splitlines()[-1] == "5 cases, 0 of them skipped here"
    assert str(counted.folder) not in (counted.folder / path).read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--model", "twize", "--plugin", "switches"), "counted.toml: there is no model 'twize'; did you mean"),
        (("--plugin", "switches"), 'Command "ablate" parameter --model requires an argument.'),
    ],
    ids=["there is no such model", "no model is named"],
)
def test_what_cannot_be_ablated(counted: Harness, arguments: tuple[str, ...], sentence: str) -> None:
    before = sorted(counted.folder.rglob("*"))
    finished = counted("ablate", "counted.toml", *arguments)
    assert finished.stderr.startswith(f"harness: {sentence}"), finished.stderr
    assert (finished.returncode, finished.stdout) == (2, "")
    assert sorted(counted.folder.rglob("*")) == before


def test_a_suite_whose_name_has_blanks_and_whose_variant_has_the_plugin_already_and_fails(counted: Harness) -> None:
    broken = '\nflags = ["--iree-preprocessing-pass-pipeline=builtin.module(util.func(no-such-pass))"]\n'
    suite = counted.folder / "my suite.toml"
    suite.write_text(SUITE.replace("mark = true } }]", "mark = true } }]" + broken))
    asked = ("--model", "twice", "--plugin", "switches", "--on", "marked", "--format", "markdown")
    finished = counted("ablate", "my suite.toml", *asked)
    assert finished.returncode == 3
    assert "| failed at compile |" in finished.stdout
    assert finished.stdout.count("'no-such-pass' does not refer to a registered pass") == 5
    made = load_suite(counted.folder / "results/counted-ablate-switches-twice-marked.toml").suite
    assert [len(variant.plugins) for variant in made.variants] == [0, 1, 1, 1, 1]


def test_an_interrupted_ablation_says_how_to_go_on(counted: Harness) -> None:
    child = subprocess.Popen(
        counted.command("ablate", "counted.toml", "--model", "twice", "--plugin", "switches", "--budget", "60"),
        cwd=counted.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(counted.folder / "packages")},
        # Some shells start background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for(lambda: bool(list(counted.folder.glob("results/*ablate*/rounds.jsonl"))))
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    (run,) = (one for one in counted.runs() if "ablate" in one.name)
    assert stderr.splitlines()[-1] == (
        f"harness: interrupted; go on with `harness run --resume {run.relative_to(counted.folder)}`"
    )
    assert (child.returncode, stdout) == (130, "")
