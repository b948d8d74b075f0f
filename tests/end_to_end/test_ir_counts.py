"""`[ir]` of a suite, with the real compiler: counts in the run, in every report, in the cache and in comparisons."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.records.run import IrCounts
from harness.store.run_directory import load_run
from tests.end_to_end.compared import document, edit
from tests.end_to_end.conftest import Harness
from tests.end_to_end.counted import LONG, MARKED, STOCK

BASE, HEAD = "results/base", "results/head"
EVERYWHERE = {"flow/flow.dispatch": 1, "flow/executables:arith.addf": 1, "bufferized/memref.alloc*": 0}
COUNTS = {"input/arith.addf": 1, "input/tensor.*": 0, **EVERYWHERE}


def counts_of(harness: Harness, run: str = BASE) -> dict[str, IrCounts]:
    records = load_run(harness.folder / run).ir
    assert len({one.case for one in records}) == len(records), "no case is counted twice"
    return {one.case: one for one in records}


def test_a_run_keeps_the_counts_of_every_case_that_compiled(counted: Harness) -> None:
    found = counts_of(counted)
    assert list(found) == [STOCK, MARKED, LONG]
    assert found[STOCK] == IrCounts(case=STOCK, counts=COUNTS)


def test_a_program_that_a_plugin_rewrote_after_a_phase_has_no_counts_before_it(counted: Harness) -> None:
    assert counts_of(counted)[MARKED] == IrCounts(case=MARKED, counts=EVERYWHERE)


def test_a_case_whose_ops_cannot_be_counted_says_why_and_is_measured_all_the_same(counted: Harness) -> None:
    found = counts_of(counted)[LONG]
    assert found.counts == {}
    assert found.failure is not None
    assert (found.failure.stage, found.failure.message) == (
        "ir",
        "the IR of a dispatch cannot be written (File name too long); give the model's function a short name",
    )
    assert LONG in {turn.case for one in load_run(counted.folder / BASE).rounds for turn in one.turns}


def test_every_report_has_them(counted: Harness) -> None:
    terminal = (counted.folder / "stdout.txt").read_text()
    _, table = terminal.split("Operations, by phase of the compiler\n")
    lines = [line.split() for line in table.splitlines()]
    assert lines[:2] == [
        ["arith.addf", "tensor.*", "flow.dispatch", "executables:arith.addf", "memref.alloc*"],
        ["variant", "(input)", "(input)", "(flow)", "(flow)", "(bufferized)"],
    ]
    assert lines[3:5] == [["stock", "1", "0", "1", "1", "0"], ["marked", "-", "-", "1", "1", "0"]]
    assert "its ops were not counted: the IR of a dispatch cannot be written" in " ".join(terminal.split())

    markdown = counted("report", BASE, "--format", "markdown").stdout
    assert "<summary>Operations, by phase of the compiler</summary>" in markdown
    assert "| marked | - | - | 1 | 1 | 0 |" in markdown
    rows = {row["case"]: row for row in json.loads(counted("report", BASE, "--format", "json").stdout)["rows"]}
    assert {case: row["ir"] for case, row in rows.items()} == {STOCK: COUNTS, MARKED: EVERYWHERE, LONG: {}}
    assert [effect["matched"] for effect in rows[MARKED]["plugin_effects"]] == [1]
    lines_of = csv.DictReader(io.StringIO(counted("report", BASE, "--format", "csv").stdout))
    assert {line["case"]: line["ir input/arith.addf"] for line in lines_of} == {STOCK: "1", MARKED: "", LONG: ""}


def test_a_run_that_was_interrupted_goes_on_with_what_is_not_counted_yet(counted: Harness) -> None:
    run = counted.folder / BASE
    (run / "finished.json").unlink()
    edit(run / "ir.jsonl", lambda one: one.update(counts={"flow/flow.dispatch": 77}))
    kept = (run / "ir.jsonl").read_text().splitlines(keepends=True)
    (run / "ir.jsonl").write_text(kept[2] + kept[0])
    finished = counted("run", "--resume", BASE)
    assert finished.returncode == 0, finished.stderr
    found = counts_of(counted)
    assert list(found) == [LONG, STOCK, MARKED]
    assert found[STOCK].counts == {"flow/flow.dispatch": 77}
    assert found[MARKED].counts == EVERYWHERE


def test_a_second_run_takes_counts_from_the_cache_and_counts_what_it_lacks(counted: Harness) -> None:
    memos = {
        build.case: Path(os.environ["HARNESS_CACHE"]) / "ir" / f"{build.cache_key}.json"
        for build in load_run(counted.folder / BASE).builds
    }
    before = {case: memo.read_text() for case, memo in memos.items() if memo.exists()}
    assert before.keys() == {STOCK, MARKED}, "a failure is not kept"
    kept = json.loads(before[STOCK])
    kept["flow"]["host"]["flow.dispatch"] = 55
    del kept["input"]
    memos[STOCK].write_text(json.dumps(kept))
    memos[MARKED].write_text('{"flow": [1]}')
    finished = counted("run", "counted.toml", "--filter", "twice/*")
    (path,) = (path for path in counted.runs() if path.name not in ("base", "head"))
    found = counts_of(counted, f"results/{path.name}")
    assert finished.returncode == 0, finished.stderr
    assert found[STOCK].counts == {**COUNTS, "flow/flow.dispatch": 55}
    assert found[MARKED].counts == EVERYWHERE, "a memo that is damaged is made again"
    assert json.loads(memos[MARKED].read_text()) == json.loads(before[MARKED])
    memos[STOCK].write_text(before[STOCK])


# -------------------------------------------------------------------------------------------------------- comparisons


def copy_with_other_modules(counted: Harness) -> None:
    """The run as another one, since equal modules have equal counts and nothing of them is compared."""
    shutil.copytree(counted.folder / BASE, counted.folder / HEAD)
    edit(counted.folder / HEAD / "builds.jsonl", lambda build: build.update(module_sha256="0" * 64))


def compared(counted: Harness, change: Callable[[dict[str, Any]], object], returncode: int) -> dict[Any, Any]:
    """Compare the run with one of other modules that has other counts; the rows of op counts, by case and metric."""
    copy_with_other_modules(counted)
    edit(counted.folder / HEAD / "ir.jsonl", lambda one: change(one["counts"]))
    finished = counted("compare", BASE, HEAD, "--no-remeasure", "--format", "json")
    assert finished.returncode == returncode, finished.stderr
    return {(row["case"], row["metric"]): row for row in document(finished)["rows"] if "/" in row["metric"]}


def test_more_ops_violate_a_gate(counted: Harness) -> None:
    rows = compared(counted, lambda counts: counts.update({"flow/flow.dispatch": 4}), returncode=1)
    row = rows[STOCK, "flow/flow.dispatch"]
    assert (row["verdict"], row["gate"], row["base_value"], row["head_value"]) == ("regressed", "violated", 1, 4)
    assert row["reason"] == "4 ops where there was 1; gate dispatches allows no increase"
    assert rows[STOCK, "input/arith.addf"]["gate"] is None


def test_as_many_ops_pass_and_what_one_side_did_not_count_has_no_row(counted: Harness) -> None:
    rows = compared(counted, lambda counts: counts.pop("input/tensor.*", None), returncode=0)
    assert {row["verdict"] for row in rows.values()} == {"unchanged"}
    assert {key: row["gate"] for key, row in rows.items() if row["gate"]} == {
        (STOCK, "flow/flow.dispatch"): "passed",
        (MARKED, "flow/flow.dispatch"): "passed",
    }
    assert (STOCK, "input/arith.addf") in rows
    assert (STOCK, "input/tensor.*") not in rows
    assert (MARKED, "input/arith.addf") not in rows


def test_a_gate_of_ops_that_no_run_counted_is_told_and_not_refused(counted: Harness) -> None:
    (counted.folder / BASE / "ir.jsonl").unlink()
    copy_with_other_modules(counted)
    finished = counted("compare", BASE, HEAD, "--no-remeasure", "--format", "json")
    assert finished.returncode == 0, finished.stderr
    assert document(finished)["notes"] == ["Gate dispatches was not applied: flow/flow.dispatch was not measured"]
