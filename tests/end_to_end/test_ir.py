"""`[ir]` of a suite, `harness ir` and `harness ablate`, with the real compiler: in runs, reports and cache."""

import json
from pathlib import Path

from harness.records.run import Failure, IrCounts
from harness.store.run_directory import load_run
from tests.end_to_end.command import Harness, document, timed
from tests.end_to_end.suites import LONG, MARKED, STOCK

BASE = "results/base"
EVERYWHERE = {"flow/flow.dispatch": 1, "flow/executables:arith.addf": 1, "bufferized/memref.alloc*": 0}
COUNTS = {"input/arith.addf": 1, "input/tensor.*": 0, **EVERYWHERE}


def test_a_run_keeps_the_counts_of_every_case_or_says_why_it_has_none(counted: Harness) -> None:
    """What a plugin rewrote after a phase has none before it; what cannot be counted is measured all the same."""
    run = load_run(counted.folder / BASE)
    stock, marked, long = run.ir
    assert stock == IrCounts(case=STOCK, counts=COUNTS)
    assert marked == IrCounts(case=MARKED, counts=EVERYWHERE)
    message = "the IR of a dispatch cannot be written (File name too long); give the model's function a short name"
    assert long == IrCounts(case=LONG, failure=Failure(stage="ir", message=message))
    assert LONG in timed(run)


def test_the_ir_itself_can_be_compiled_on(counted: Harness) -> None:
    asked = ("--phase", "flow", "--format", "mlir", "--out", "flow.mlir")
    ended = counted("ir", "counted.toml", STOCK, *asked)
    assert (ended.returncode, ended.stdout) == (0, "")
    text = (counted.folder / "flow.mlir").read_text()
    assert "flow.dispatch @main_dispatch_0" in text
    assert text.endswith("}\n")
    (build, *_) = load_run(counted.folder / "results/base").builds
    flags = " ".join(flag for flag in build.command if flag.startswith("--iree-hal-"))
    assert counted.shell(f"iree-compile flow.mlir --compile-from=flow -o flow.vmfb {flags}").returncode == 0


def test_a_case_of_a_run_beside_one_of_the_suite_under_a_release(counted: Harness) -> None:
    """The run's comes from its build in the cache; the plugin of the other one marks the program at flow."""
    release = f"iree=={load_run(counted.folder / BASE).header.toolchains[0].version}"
    ended = counted("ir", f"{BASE}:{STOCK}", f"{release}:{MARKED}", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    compared = document(ended)
    assert [compared[side]["case"] for side in ("base", "head")] == [STOCK, MARKED]
    assert list(compared["base"]["phases"]) == list(compared["head"]["phases"])
    assert "input" not in compared["base"]["phases"], "the other has no IR before flow"
    (executable,) = compared["executables"]
    assert (executable["matched_by"], executable["difference"]) == ("same code", None)
    assert (compared["program"]["phase"], compared["target"]) == ("flow", [])
    assert [line for line in compared["program"]["lines"] if "switches.mark" in line]

    text = counted("ir", f"{BASE}:{STOCK}", f"{BASE}:{MARKED}", "--phase", "flow", "--format", "mlir").stdout
    assert text.startswith(f"--- {STOCK}\n+++ {MARKED}\n@@ ")
    table = counted("ir", *[f"{BASE}:{STOCK}"] * 2, "--format", "markdown")
    assert "the code of the one executable is the same; what is outside executables is the same." in table.stdout


def test_each_option_of_a_plugin(counted: Harness) -> None:
    asked = ("--model", "twice", "--plugin", "switches", "--budget", "0.2", "--results", "my results")
    ended = counted("ablate", "counted.toml", *asked, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)["rows"]
    before, inside = "input/arith.addf", "flow/executables:arith.addf"
    assert {row["variant"]: (row["ir"].get(before), row["ir"].get(inside), row["same_as"]) for row in rows} == {
        "without": (1, 1, None),
        "none": (1, 1, "without"),
        "only-double": (0, 0, None),
        "only-mark": (None, 1, "without"),
        "all": (None, 0, "only-double"),
    }
    path = Path("my results/counted-ablate-switches-twice.toml")
    assert f"{path}: each option as a variant; `harness run '{path}'` repeats this" in ended.stderr
    assert counted("list", str(path)).stdout.splitlines()[-1] == "5 cases, 0 of them skipped here"
    assert str(counted.folder) not in (counted.folder / path).read_text()


def test_what_a_rewrite_prints_is_kept_and_shown_where_it_is_asked_for(counted: Harness) -> None:
    """Also of a build that comes from the cache."""
    rewrites = counted.folder / "packages/switches/rewrites.py"
    rewrites.write_text(rewrites.read_text().replace("    return 1\n", "    print('marked one')\n    return 1\n"))
    quiet = counted("run", "counted.toml", "--filter", "twice/marked@vm", "--no-measure")
    assert "marked one" not in quiet.stderr + quiet.stdout
    log = counted.runs()[0] / "logs" / "twice,marked@vm.plugins.txt"
    assert log.read_text() == "# plugin switches\nmarked one\n"
    loud = counted("run", "counted.toml", "--filter", "twice/marked@vm", "--no-measure", "-v")
    assert "twice/marked@vm printed:\n# plugin switches\nmarked one\n" in loud.stderr
