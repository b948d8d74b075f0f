"""iree-benchmark-module's JSON and its traps; the rows are those of IREE 3.13.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError
from harness.process import Limits
from harness.records.run import DeviceMemory, Reference
from harness.toolchain import Toolchain
from harness.verify.benchmark_module import (
    REPETITIONS,
    benchmark_command,
    parse_memory,
    parse_times,
    run_benchmark_module,
)
from harness.verify.outputs import ModuleCall
from tests.verify.conftest import MATMUL, Compile, make_call

NAME = "BM_main/process_time/real_time"

TWO_DEVICES = """\
Device: local-sync
[[ iree_hal_allocator_t memory statistics ]]
  HOST_LOCAL:           16B peak /            0B allocated /            0B freed /            0B live
DEVICE_LOCAL:          384B peak /      2749056B allocated /      2749056B freed /            0B live

Device: local-task
[[ iree_hal_allocator_t memory statistics ]]
  HOST_LOCAL:            4B peak /            0B allocated /            0B freed /            0B live
DEVICE_LOCAL:  25510912B peak /            0B allocated /            0B freed /            0B live

"""


def repetition(real_time: Any = 2000.0, unit: str = "ns", **changes: Any) -> dict[str, Any]:
    """A row of one repetition of the function."""
    row = {"name": NAME, "run_name": NAME, "run_type": "iteration", "iterations": 4884, "threads": 1}
    return {**row, "real_time": real_time, "cpu_time": 7.0, "time_unit": unit, **changes}


def aggregate(of: str, real_time: float, unit: str = "time") -> dict[str, Any]:
    """A row of Google Benchmark's own statistics. Its time_unit is ns even where the value is a fraction."""
    row = repetition(real_time, name=f"{NAME}_{of}", run_type="aggregate")
    return {**row, "aggregate_name": of, "aggregate_unit": unit}


def dispatch(real_time: float) -> dict[str, Any]:
    """A row of --dispatch_statistics: an iteration row, but of a dispatch."""
    name = "BM_main/main_dispatch_0_matmul_4x4x8_f32"
    return repetition(real_time, name=name, run_name=name, calls=1.0, percent=100.0)


def document(*rows: dict[str, Any], **context: Any) -> str:
    return json.dumps({"context": {"num_cpus": 2, **context}, "benchmarks": list(rows)})


def test_only_the_functions_own_repetitions_are_taken() -> None:
    text = document(
        repetition(2892.0),
        repetition(2867.5),
        aggregate("mean", 2880.0),
        aggregate("cv", 0.0069, "percentage"),
        dispatch(39.5),
        load_avg=[0.23, 0.4, 0.27],
    )
    assert parse_times(text) == ((2892.0, 2867.5), 0.23)


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)])
def test_every_unit_becomes_nanoseconds(unit: str, factor: float) -> None:
    assert parse_times(document(repetition(1.5, unit))) == ((1.5 * factor,), None)


def test_a_row_of_an_error_is_no_time() -> None:
    error = repetition(0.0, "ms", error_occurred=True, error_message="INVALID_ARGUMENT; bad shape")
    assert parse_times(document(error, repetition(5.0)))[0] == (5.0,)
    with pytest.raises(CaseError, match="measured nothing"):
        parse_times(document(error))


@pytest.mark.parametrize("load", [None, []])
def test_a_system_without_load_average_has_none(load: list[float] | None) -> None:
    context = {} if load is None else {"load_avg": load}
    assert parse_times(document(repetition(), **context))[1] is None
    assert parse_times(json.dumps({"benchmarks": [repetition()]}))[1] is None


@pytest.mark.parametrize("rows", [(), (dispatch(1.0),), (aggregate("mean", 1.0),)])
def test_nothing_measured_is_a_failure(rows: Sequence[dict[str, Any]]) -> None:
    with pytest.raises(CaseError, match=r"^iree-benchmark-module exited with status 0 and measured nothing$"):
        parse_times(document(*rows))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "EXEC @main",
        "[]",
        "{}",
        '{"benchmarks": null}',
        '{"benchmarks": [3]}',
        document(repetition())[:-1],
        document(repetition(unit="fortnights")),
        document(repetition(real_time="soon")),
        json.dumps({"context": None, "benchmarks": [repetition()]}),
        *(
            document({key: value for key, value in repetition().items() if key != gone})
            for gone in ("run_name", "run_type", "real_time", "time_unit")
        ),
    ],
)
def test_another_form_is_a_failure(text: str) -> None:
    with pytest.raises(CaseError, match="printed JSON of an unknown form") as caught:
        parse_times(text)
    assert caught.value.stage == "reference"


def test_each_device_has_peaks_of_its_own() -> None:
    assert parse_memory(TWO_DEVICES) == (
        DeviceMemory(device="local-sync", host_peak_bytes=16, device_peak_bytes=384),
        DeviceMemory(device="local-task", host_peak_bytes=4, device_peak_bytes=25_510_912),
    )


@pytest.mark.parametrize("text", ["", "c/runtime/x.c:1: UNAVAILABLE; no device\n"])
def test_without_statistics_there_are_no_peaks(text: str) -> None:
    assert parse_memory(text) == ()


def run_it(call: ModuleCall, seconds: float = 60) -> Reference:
    return run_benchmark_module("net/stock@cpu", call, Limits(seconds=seconds))


def message_of(reference: Reference) -> str:
    """What went wrong, after a look that nothing else is claimed."""
    assert reference.failure is not None
    assert reference.failure.stage == "reference"
    assert "\n" not in reference.failure.message
    assert (reference.real_time_ns, reference.host_peak_bytes, reference.load_1min) == ((), None, None)
    return reference.failure.message


def test_the_command_is_one_that_an_iree_engineer_would_type(
    fake: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.benchmark_module.MIN_TIME_S", 0.3)  # which tests make shorter
    call = make_call(fake, tmp_path, "--task_topology_max_group_count=1", parameters=("w=w.irpa",), inputs=("4xf32",))
    assert benchmark_command(call) == (
        "iree-benchmark-module",
        "--module=module.vmfb",
        "--device=local-sync",
        "--function=main",
        "--parameters=w=w.irpa",
        "--input=4xf32",
        "--task_topology_max_group_count=1",
        "--benchmark_repetitions=3",
        "--benchmark_min_time=0.3s",
        "--time_unit=ns",
        "--print_statistics=true",
        "--benchmark_format=json",
    )


def test_a_reference_keeps_times_peaks_load_and_command(fake: Toolchain, tmp_path: Path) -> None:
    call = make_call(fake, tmp_path, "--fake-times-ns=5,6,7")
    assert run_it(call) == Reference(
        case="net/stock@cpu",
        command=benchmark_command(call),
        real_time_ns=(5.0, 6.0, 7.0),
        host_peak_bytes=0,
        device_peak_bytes=64,
        memory=(DeviceMemory(device="fake", host_peak_bytes=0, device_peak_bytes=64),),
        load_1min=0.5,
    )


@pytest.mark.parametrize(
    ("flag", "seconds", "message"),
    [
        ("--fake-exit=2", 60, "iree-benchmark-module exited with status 2"),
        ("--fake-no-output", 60, "iree-benchmark-module printed JSON of an unknown form"),
        ("--fake-sleep=60", 0.5, "iree-benchmark-module ran past its limit of 0.5 s; give it more with --call-timeout"),
    ],
)
def test_a_failure_is_kept(fake: Toolchain, tmp_path: Path, flag: str, seconds: float, message: str) -> None:
    assert message_of(run_it(make_call(fake, tmp_path, flag), seconds)).startswith(message)


def test_the_real_tool_on_a_tiny_matmul(
    real_toolchain: Toolchain, compile_text: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.benchmark_module.MIN_TIME_S", 0.01)
    call = make_call(real_toolchain, compile_text(MATMUL), "--dispatch_statistics", inputs=("4x8xf32=1", "8x4xf32=1"))
    reference = run_it(call)
    assert reference.failure is None
    assert len(reference.real_time_ns) == REPETITIONS
    assert all(time_ns > 0 for time_ns in reference.real_time_ns)
    assert (reference.device_peak_bytes or 0) > 0
    assert reference.load_1min is not None

    refused = run_it(replace(call, inputs=call.inputs[:1]))
    assert message_of(refused).startswith("iree-benchmark-module exited with status 1: INVALID_ARGUMENT; input list")
