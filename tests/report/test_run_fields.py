"""The columns of a run's rows: in tables, in CSV and in JSON, for other programs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from harness.records.run import (
    DeviceMemory,
    EncodedTensor,
    Failure,
    IrCounts,
    Peak,
    Reference,
    Run,
    Storage,
    Work,
)
from harness.report import render
from harness.report.run_fields import FIELDS, ir_columns, main_columns, roofline_columns, roofline_line
from harness.report.run_report import Report, build_report
from tests.report.conftest import make_small_run

WORK = Work(model="mm", operations=268_435_456, compulsory_bytes=3_145_728, footprint_bytes=3_145_728)
HALVES = (
    DeviceMemory(device="local-sync", host_peak_bytes=0, device_peak_bytes=3 * 2**20),
    DeviceMemory(device="local-task", host_peak_bytes=64, device_peak_bytes=2**19),
)
NASTY_OPS = ("flow/a | b", "flow/two\nlines \x1b[31mred", "flow/`<script>` *x* @octocat", "no phase", "")


def as_csv(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(run, "csv"))))


def as_json(run: Run) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(render(run, "json"), parse_constant=refuse)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("name", ["full_run", "small_run", "one_generation_run", "unfinished_run", "nasty_run"])
def test_csv_and_json_have_every_case_with_the_same_figures(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    lines, document = as_csv(run), as_json(run)
    assert [row["case"] for row in document["rows"]] == [case.name for case in run.header.cases]
    assert render(run, "csv").count("\n") == 1 + len(document["rows"])
    for line, row in zip(lines, document["rows"], strict=True):
        assert list(line)[: len(FIELDS)] == list(row)[: len(FIELDS)] == [field.name for field in FIELDS]
        for column in line.keys() & row.keys() - {"remarks", "compile_flags", "run_flags"}:
            value = row[column]
            if value is None:
                assert line[column] == ""
            elif isinstance(value, bool):
                assert line[column] == str(value).lower()
            elif isinstance(value, int | float):
                assert float(line[column]) == value


def test_the_names_are_those_that_other_programs_rely_on(full_run: Run) -> None:
    names = [
        "case",
        "group",
        "model",
        "variant",
        "device",
        "toolchain",
        "baseline",
        "status",
        "same_as",
        "kind",
        "latency_ns",
        "latency_low_ns",
        "latency_high_ns",
        "generations",
        "rounds",
        "ratio",
        "ratio_low",
        "ratio_high",
        "ratio_confidence",
        "ratio_generations",
        "ratio_rounds",
        "peer",
        "ratio_to_best_peer",
        "ratio_to_best_peer_low",
        "ratio_to_best_peer_high",
        "operations_per_s",
        "compulsory_bytes_per_s",
        "operations_per_byte",
        "share_of_peak",
        "share_of_roof",
        "instructions_per_call",
        "reference_ns",
        "dispatches",
        "copies",
        "fills",
        "transient_bytes",
        "encoded_bytes",
        "encoded_unpadded_bytes",
        "encoded_worst_ratio",
        "dispatch_bytes",
        "module_bytes",
        "module_sha256",
        "compile_ns",
        "compile_peak_rss_bytes",
        "host_peak_bytes",
        "device_peak_bytes",
        "checked_against",
        "max_absolute_error",
        "max_relative_error",
        "failure_stage",
        "failure_message",
    ]
    assert [field.name for field in FIELDS] == names
    rows = as_json(full_run)["rows"]
    more = "failure_stderr ir encoded_tensors memory_by_device plugin_effects remarks repro compile_flags run_flags"
    assert set(rows[0]) == {*names, *more.split()}
    assert {*as_csv(full_run)[0]} - {*names} == {
        *("compile_flags", "run_flags", "remarks"),
        *(f"ir {key}" for row in rows for key in row["ir"]),
    }


def test_json_numbers_are_the_runs(full_run: Run) -> None:
    rows = {row["case"]: row for row in as_json(full_run)["rows"]}
    for build in full_run.builds:
        row = rows[build.case]
        assert (row["compile_ns"], row["module_sha256"]) == (build.compile_ns, build.module_sha256)
        if build.statistics is not None and build.sizes is not None:
            assert (row["dispatches"], row["module_bytes"]) == (build.statistics.dispatches, build.sizes.module_bytes)
    estimate = next(row for row in build_report(full_run).rows() if row.variant == "channels-last").estimate
    assert estimate is not None
    row = rows["rdb/channels-last@local-sync"]
    assert (row["ratio"], row["ratio_low"]) == pytest.approx((estimate.ratio, estimate.low), rel=1e-8)
    assert (row["ratio_generations"], row["ratio_rounds"], row["ratio_confidence"]) == (5, 40, 0.95)


def test_json_says_what_the_run_was(full_run: Run) -> None:
    document = as_json(full_run)
    assert document["schema_version"] == 1
    assert document["run"]["id"] == full_run.header.id
    assert document["run"]["environment"] == full_run.header.environment
    assert document["groups"][0]["rounds_by_generation"] == [8, 8, 8, 8, 8]
    assert document["summary"]["planned"] == len(document["rows"])


def test_what_is_no_number_is_none(full_run: Run, small_run: Run) -> None:
    odd: dict[str, dict[str, Any]] = {"load": {"now": math.nan, "peaks": (math.inf,), "file": PurePosixPath("a/b")}}
    document = as_json(replace(small_run, header=replace(small_run.header, environment=odd)))
    assert document["run"]["environment"]["load"] == {"now": None, "peaks": [None], "file": "a/b"}
    checks = tuple(replace(check, max_absolute=math.inf, max_relative=math.nan) for check in full_run.checks)
    run = replace(full_run, checks=checks)
    assert {row["max_absolute_error"] for row in as_json(run)["rows"]} == {None}
    assert {line["max_relative_error"] for line in as_csv(run)} == {""}


def test_json_keeps_names_and_messages_as_they_are(nasty_run: Run) -> None:
    row = as_json(nasty_run)["rows"][1]
    assert row["case"] == nasty_run.header.cases[1].name
    assert row["failure_message"] == "line one | two\nline `three` <details>"


def counted(run: Run, **counts: Mapping[str, int]) -> Run:
    """The run with these op counts, by variant."""
    cases = [case for case in run.header.cases if case.variant in counts]
    return replace(run, ir=tuple(IrCounts(case=case.name, counts=dict(counts[case.variant])) for case in cases))


def op_columns(run: Run) -> dict[str, tuple[Any, ...]]:
    (section,) = build_report(run).sections
    return {column.head: tuple(column.cells) for column in ir_columns(section)}


def test_ops_have_the_suites_order_and_what_was_not_counted_is_no_zero(small_run: Run) -> None:
    stock = {"input/linalg.*": 1200, "flow/tensor.empty": 0, "bufferized/executables:memref.alloc*": 2}
    run = counted(small_run, stock=stock, fast={"flow/tensor.empty": 0, "bufferized/executables:memref.alloc*": 0})
    assert op_columns(run) == {
        "variant": ("stock", "fast", "inert"),
        "linalg.* (input)": ("1,200", "-", "-"),
        "tensor.empty (flow)": ("0", "0", "-"),
        "executables:memref.alloc* (bufferized)": ("2", "0", "-"),
    }
    assert [row["ir"].get("input/linalg.*") for row in as_json(run)["rows"]] == [1200, None, None]
    assert [line["ir input/linalg.*"] for line in as_csv(run)] == ["1200", "", ""]
    assert op_columns(small_run) == {}
    assert "Operations" not in render(small_run, "terminal") + render(small_run, "markdown", full=True)


def test_with_several_toolchains_each_row_names_its_own(small_run: Run) -> None:
    cases = [replace(case, toolchain=f"3.1{number}.0") for number, case in enumerate(small_run.header.cases)]
    run = replace(small_run, header=replace(small_run.header, cases=tuple(cases)))
    assert op_columns(counted(run, stock={"vm/vm.call": 1}))["toolchain"] == ("3.10.0", "3.11.0", "3.12.0")


@pytest.mark.parametrize("name", NASTY_OPS)
def test_ops_of_any_name_break_no_format(small_run: Run, name: str) -> None:
    """A suite cannot name these; a run that was damaged or made elsewhere may have them."""
    run = counted(small_run, stock={name: 1_234_567})
    assert all(line.isprintable() for line in render(run, "terminal").splitlines())
    details = render(run, "markdown", full=True).split("<summary>Operations, by phase of the compiler</summary>")[1]
    table = [line for line in details.split("</details>")[0].splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1 and "1,234,567" in table[2]
    assert len(as_csv(run)) == len(render(run, "csv").splitlines()) - 1 == 3
    assert as_json(run)["rows"][0]["ir"] == {name: 1_234_567}


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
    line = as_csv(run)[1]
    assert (line["encoded_bytes"], line["encoded_unpadded_bytes"], line["encoded_worst_ratio"]) == (
        *("30784", "25204"),
        "256.0",
    )
    assert [row["encoded_tensors"] and row["encoded_tensors"][0]["name"] for row in as_json(run)["rows"]] == [
        *([], "result"),
        None,
    ]
    assert failure.message in list(build_report(run).rows())[2].remarks


@pytest.mark.parametrize(
    ("memory", "peaks"),
    [
        (HALVES, {"peak of 0: local-sync (MiB)": "3.00", "peak of 1: local-task (KiB)": "512"}),
        (HALVES[:1], {}),
        ((), {}),
    ],
)
def test_several_devices_have_a_column_each(
    small_run: Run, memory: tuple[DeviceMemory, ...], peaks: dict[str, str]
) -> None:
    case = small_run.header.cases[0].name
    reference = Reference(case=case, command=("iree-benchmark-module",), real_time_ns=(5.0,), memory=memory)
    run = replace(small_run, references=(reference,))
    (section,) = build_report(run).sections
    columns = main_columns(section)
    assert {column.head: column.cells[0] for column in columns if column.title.startswith("peak")} == peaks
    assert ("device 1 device_peak_bytes" in as_csv(run)[0]) == bool(peaks)
    if peaks:
        first = as_csv(run)[0]
        assert [first[f"device {number} device_peak_bytes"] for number in (0, 1)] == ["3145728", "524288"]
    assert [known["device"] for known in as_json(run)["rows"][0]["memory_by_device"]] == [
        device.device for device in memory
    ]


@pytest.fixture
def counted_run() -> Run:
    run = make_small_run()
    peak = Peak(
        device=run.header.cases[0].device,
        threads=1,
        operations_per_s=117e9,
        operations_by="FMA loop",
        bytes_per_s=33e9,
        bytes_by="dot",
    )
    return replace(run, work=(WORK,), peaks=(peak,))


def test_rows_have_rates_and_shares_of_the_machine(counted_run: Run) -> None:
    stock, _, inert = as_json(counted_run)["rows"]
    assert stock["operations_per_s"] == pytest.approx(268_435_456 / 4.7e-3, rel=0.05)
    assert stock["share_of_roof"] == stock["share_of_peak"] == pytest.approx(0.49, abs=0.03)
    assert stock["operations_per_byte"] == pytest.approx(85.3, abs=0.1)
    assert inert["share_of_roof"] == stock["share_of_roof"]  # it has the timings of the same module
    wide = render(counted_run, "terminal", width=160)
    assert "GFLOP/s" in wide and "of the roof" in wide
    assert "intensity (FLOP/byte)" in render(counted_run, "markdown", full=True)
    assert "intensity" not in render(counted_run, "markdown")
    assert "FLOP" not in render(make_small_run(), "markdown", full=True)


def test_the_section_says_what_bounds_it(counted_run: Run) -> None:
    def report(**changes: Any) -> Report:
        return build_report(replace(counted_run, **changes))

    (section,) = report().sections
    assert roofline_line(section) == (
        "268 MFLOP a call on at least 3.15 MB; one core of this machine: 117 GFLOP/s in f32 (FMA loop), 33 GB/s (dot)"
    )
    assert [column.head for column in roofline_columns(section)][1:] == [
        "arithmetic (GFLOP/s)",
        "of the peak (%)",
        "memory (GB/s)",
        "intensity (FLOP/byte)",
        "of the roof (%)",
    ]
    (section,) = report(work=(replace(WORK, uncounted={"iree_linalg_ext.topk": 2}),), peaks=()).sections
    assert roofline_line(section).endswith(", without iree_linalg_ext.topk (2)")
    failure = Failure(stage="ir", message="a size does not follow from the inputs")
    broken = Peak(device=counted_run.header.cases[0].device, threads=2, failure=failure)
    (section,) = report(work=(Work(model="mm", failure=failure),), peaks=(broken,)).sections
    assert roofline_line(section) == (
        "its arithmetic is not counted: a size does not follow from the inputs; the peaks of 2 cores are not known: "
        "a size does not follow from the inputs"
    )
