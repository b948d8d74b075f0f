"""Peak memory of each device: columns of sections with several devices, and of nothing else."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from harness.records.run import DeviceMemory, Reference, Run
from harness.report.columns import main_columns
from harness.report.csv_ import render_csv
from harness.report.json_ import render_json
from harness.report.table import build_report
from harness.report.values import Report

HALVES = (
    DeviceMemory(device="local-sync", host_peak_bytes=0, device_peak_bytes=3 * 2**20),
    DeviceMemory(device="local-task", host_peak_bytes=64, device_peak_bytes=2**19),
)


def report_of(run: Run, memory: tuple[DeviceMemory, ...]) -> Report:
    """The report of a run whose first case has this memory."""
    first = run.header.cases[0].name
    reference = Reference(case=first, command=("iree-benchmark-module",), real_time_ns=(5.0,), memory=memory)
    return build_report(replace(run, references=(reference,)))


def peaks(report: Report) -> dict[str, str]:
    """The first row's cells, by head."""
    (section,) = report.sections
    return {column.head: column.cells[0] for column in main_columns(section) if column.title.startswith("peak")}


def test_several_devices_have_a_column_each(small_run: Run) -> None:
    assert peaks(report_of(small_run, HALVES)) == {
        "peak of 0: local-sync (MiB)": "3.00",
        "peak of 1: local-task (KiB)": "512",
    }


@pytest.mark.parametrize("memory", [(), HALVES[:1]])
def test_one_device_has_none(small_run: Run, memory: tuple[DeviceMemory, ...]) -> None:
    report = report_of(small_run, memory)
    assert peaks(report) == {}
    assert "device 0" not in render_csv(report)


def test_csv_has_both_peaks_of_each_device(small_run: Run) -> None:
    first, *_ = csv.DictReader(io.StringIO(render_csv(report_of(small_run, HALVES))))
    assert [first[f"device {number} device_peak_bytes"] for number in (0, 1)] == ["3145728", "524288"]
    assert [first[f"device {number} host_peak_bytes"] for number in (0, 1)] == ["0", "64"]


def test_json_has_them_as_a_list(small_run: Run) -> None:
    first, *_ = json.loads(render_json(report_of(small_run, HALVES)))["rows"]
    assert [one["device"] for one in first["memory_by_device"]] == ["local-sync", "local-task"]
