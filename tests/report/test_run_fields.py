"""The columns of a run's rows: in tables, in CSV and in JSON, for other programs."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.records.run import EncodedTensor, Failure, IrCounts, Peak, Run, Storage, Work
from harness.report import render
from harness.report.run_fields import ir_columns, roofline_line
from harness.report.run_report import build_report
from tests.report.builders import make_full_run, make_small_run, make_unfinished_run
from tests.report.test_run_page import peers_run

RUNS = [make_full_run(), make_small_run(generations=1), make_unfinished_run(), peers_run()]


def as_csv(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(run, "csv"))))


def as_json(run: Run) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(render(run, "json"))["rows"]
    return rows


def test_names_stay(snapshot: SnapshotAssertion) -> None:
    assert " ".join(as_json(RUNS[0])[0]) == snapshot
    assert " ".join(as_csv(RUNS[0])[0]) == snapshot


@pytest.mark.parametrize("run", RUNS, ids=["full", "one generation", "unfinished", "peers"])
def test_csv_and_json_have_every_case_with_the_same_figures(run: Run) -> None:
    lines, rows = as_csv(run), as_json(run)
    assert [row["case"] for row in rows] == [case.name for case in run.header.cases]
    assert render(run, "csv").count("\n") == 1 + len(rows)
    for line, row, facts in zip(lines, rows, build_report(run).rows(), strict=True):
        for column in list(line.keys() & row.keys() - {"remarks", "compile_flags", "run_flags"}):
            value = row[column]
            assert isinstance(value, str) or line[column] == ("" if value is None else str(value).lower())
        for prefix, estimate in (("ratio", facts.estimate), ("ratio_to_best_peer", facts.peer_estimate)):
            expected = (None,) * 3 if estimate is None else (estimate.ratio, estimate.low, estimate.high)
            found = [row[name] for name in (prefix, f"{prefix}_low", f"{prefix}_high")]
            assert found == [None if value is None else pytest.approx(value, rel=1e-8) for value in expected]


def op_columns(run: Run) -> dict[str, tuple[Any, ...]]:
    (section,) = build_report(run).sections
    return {column.head: tuple(column.cells) for column in ir_columns(section)}


def test_ops_have_the_suites_order_and_what_was_not_counted_is_no_zero(small_run: Run) -> None:
    stock, fast, _ = small_run.header.cases
    counts = {"input/linalg.*": 1200, "flow/tensor.empty": 0}
    records = (IrCounts(case=stock.name, counts=counts), IrCounts(case=fast.name, counts={"flow/tensor.empty": 0}))
    run = replace(small_run, ir=records)
    assert op_columns(run) == {
        "variant": ("stock", "fast", "inert"),
        "linalg.* (input)": ("1,200", "-", "-"),
        "tensor.empty (flow)": ("0", "0", "-"),
    }
    assert [row["ir"].get("input/linalg.*") for row in as_json(run)] == [1200, None, None]
    assert [line["ir input/linalg.*"] for line in as_csv(run)] == ["1200", "", ""]
    assert op_columns(small_run) == {}
    assert "Operations" not in render(small_run, "markdown", full=True)


def test_what_encodings_cost_stands_beside_the_ops(small_run: Run) -> None:
    """One tensor of 25,200 bytes in tiles, and one of 4 bytes; a case without any has no padding to speak of."""
    tensors = (
        EncodedTensor(name="result", encoded_bytes=30_720, unpadded_bytes=25_200, worst_ratio=256.0),
        EncodedTensor(name="row", encoded_bytes=64, unpadded_bytes=4, worst_ratio=16.0),
    )
    stock, fast, inert = (case.name for case in small_run.header.cases)
    failure = Failure(stage="ir", message="what encodings cost in memory cannot be told: ...; leave storage out")
    records = (
        IrCounts(case=stock, storage=Storage()),
        IrCounts(case=fast, storage=Storage(tensors=tensors)),
        IrCounts(case=inert, storage_failure=failure),
    )
    run = replace(small_run, ir=records)
    assert op_columns(run) == {
        "variant": ("stock", "fast", "inert"),
        "encoded (KiB)": ("0.0", "30.1", "-"),
        "padding (%)": ("-", "22.1", "-"),
        "worst case (times)": ("-", "256.00", "-"),
    }
    columns = ("encoded_bytes", "encoded_unpadded_bytes", "encoded_worst_ratio")
    assert [as_csv(run)[1][column] for column in columns] == ["30784", "25204", "256.0"]
    assert failure.message in list(build_report(run).rows())[2].remarks


def test_what_cannot_be_counted_or_measured_says_why(small_run: Run) -> None:
    failure = Failure(stage="ir", message="a size does not follow from the inputs")
    peak = Peak(device="local-sync", threads=2, failure=failure)
    run = replace(small_run, work=(Work(model="mm", failure=failure),), peaks=(peak,))
    assert roofline_line(build_report(run).sections[0]) == (
        "its arithmetic is not counted: a size does not follow from the inputs; the peaks of 2 cores are not known: "
        "a size does not follow from the inputs"
    )
