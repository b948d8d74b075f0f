"""Op counts in reports: a table of their own, whose columns are the suite's ops, whatever they are called."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from harness.records.run import EncodedTensor, Failure, IrCounts, Run, Storage
from harness.report.columns import ir_columns
from harness.report.csv_ import render_csv
from harness.report.json_ import render_json
from harness.report.run_markdown import render_markdown
from harness.report.run_terminal import render_terminal
from harness.report.table import build_report
from harness.report.values import Report

NASTY = (
    "flow/flow.dispatch",
    "flow/a | b",
    "flow/two\nlines \x1b[31mred",
    "flow/`<script>` *x* @octocat",
    "no phase",
    "",
    "flow/" + "long." * 2_000,
)


def counted(run: Run, **counts: Mapping[str, int]) -> Report:
    """The report of a run whose cases have these counts, by variant."""
    records = tuple(
        IrCounts(case=case.name, counts=dict(counts[case.variant]))
        for case in run.header.cases
        if case.variant in counts
    )
    return build_report(replace(run, ir=records))


def columns(report: Report) -> dict[str, tuple[str, ...]]:
    (section,) = report.sections
    return {column.head: column.cells for column in ir_columns(section)}


def test_a_suite_that_names_no_ops_has_no_table(small_run: Run) -> None:
    report = counted(small_run)
    assert columns(report) == {}
    assert "Operations" not in render_terminal(report, width=120, color=False) + render_markdown(report, full=True)
    assert not [column for column in render_csv(report).splitlines()[0].split(",") if column.startswith("ir ")]


def test_ops_have_the_suites_order_and_what_was_not_counted_is_no_zero(small_run: Run) -> None:
    stock = {"input/linalg.*": 1200, "flow/tensor.empty": 0, "bufferized/executables:memref.alloc*": 2}
    rewritten = {"flow/tensor.empty": 0, "bufferized/executables:memref.alloc*": 0}
    assert columns(counted(small_run, stock=stock, fast=rewritten)) == {
        "variant": ("stock", "fast", "inert"),
        "linalg.* (input)": ("1,200", "-", "-"),
        "tensor.empty (flow)": ("0", "0", "-"),
        "executables:memref.alloc* (bufferized)": ("2", "0", "-"),
    }


def test_with_several_toolchains_each_row_names_its_own(small_run: Run) -> None:
    cases = small_run.header.cases
    renamed = tuple(replace(case, toolchain=f"3.1{number}.0") for number, case in enumerate(cases))
    run = replace(small_run, header=replace(small_run.header, cases=renamed))
    assert columns(counted(run, stock={"vm/vm.call": 1}))["toolchain"] == ("3.10.0", "3.11.0", "3.12.0")


def test_what_does_not_fit_a_terminal_is_named_below(small_run: Run) -> None:
    counts = {f"flow/an.operation.{number}": number for number in range(9)}
    text = render_terminal(counted(small_run, stock=counts), width=80, color=False)
    table = text.split("Operations, by phase of the compiler\n")[1]
    for key in counts:
        assert key.removeprefix("flow/") in table
    assert "No room at this width for an.operation.0 (flow), " in table


def test_json_and_csv_have_every_count(small_run: Run) -> None:
    report = counted(small_run, stock={"input/linalg.*": 4}, fast={"input/linalg.*": 0})
    rows = json.loads(render_json(report))["rows"]
    assert [row["ir"] for row in rows] == [{"input/linalg.*": 4}, {"input/linalg.*": 0}, {}]
    lines = list(csv.DictReader(io.StringIO(render_csv(report))))
    assert [line["ir input/linalg.*"] for line in lines] == ["4", "0", ""]


@pytest.mark.parametrize("name", NASTY, ids=lambda name: name[:20])
def test_ops_of_any_name_break_no_format(small_run: Run, name: str) -> None:
    """A suite cannot name these; a run that was damaged or made elsewhere may have them."""
    report = counted(small_run, stock={name: 1_234_567})
    for width in (40, 80, 120):
        for line in render_terminal(report, width=width, color=False).splitlines():
            assert cell_len(line) <= width or line.startswith(("  ", "- "))
            assert line.isprintable()
    text = render_markdown(report, full=True)
    details = text.split("<summary>Operations, by phase of the compiler</summary>")[1].split("</details>")[0]
    tokens = MarkdownIt("commonmark").enable("table").parse(details)
    assert sum(token.type == "tr_open" for token in tokens) == 4
    assert {token.type for token in tokens if token.type.startswith("html")} == set()
    assert "1,234,567" in details
    lines = list(csv.reader(io.StringIO(render_csv(report))))
    assert len(lines) == len(render_csv(report).splitlines()) == 4
    assert "1234567" in lines[1]
    assert json.loads(render_json(report))["rows"][0]["ir"] == {name: 1_234_567}


def test_what_encodings_cost_stands_beside_the_ops(small_run: Run) -> None:
    """One tensor of 25,200 bytes in tiles, and one of 4 bytes; a case without any has no padding to speak of."""
    tensors = (
        EncodedTensor(name="result", encoded_bytes=30_720, unpadded_bytes=25_200, worst_ratio=256.0),
        EncodedTensor(name="row", encoded_bytes=64, unpadded_bytes=4, worst_ratio=16.0),
    )
    stock, fast, _ = small_run.header.cases
    records = (
        IrCounts(case=stock.name, storage=Storage()),
        IrCounts(case=fast.name, storage=Storage(tensors=tensors)),
    )
    report = build_report(replace(small_run, ir=records))
    assert columns(report) == {
        "variant": ("stock", "fast", "inert"),
        "encoded (KiB)": ("0.0", "30.1", "-"),
        "padding (%)": ("-", "22.1", "-"),
        "worst case (times)": ("-", "256.00", "-"),
    }
    line = list(csv.DictReader(io.StringIO(render_csv(report))))[1]
    assert (line["encoded_bytes"], line["encoded_unpadded_bytes"], line["encoded_worst_ratio"]) == (
        "30784",
        "25204",
        "256.0",
    )
    rows = json.loads(render_json(report))["rows"]
    assert [row["encoded_tensors"] and row["encoded_tensors"][0]["name"] for row in rows] == [[], "result", None]


def test_encodings_that_cannot_be_sized_are_a_remark(small_run: Run) -> None:
    case = small_run.header.cases[0].name
    failure = Failure(stage="ir", message="what encodings cost in memory cannot be told: ...; leave storage out")
    report = build_report(replace(small_run, ir=(IrCounts(case=case, storage_failure=failure),)))
    assert failure.message in next(report.rows()).remarks
