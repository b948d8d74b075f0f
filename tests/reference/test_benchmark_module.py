"""iree-benchmark-module's JSON and its traps; the rows are those of IREE 3.13.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import CaseError
from harness.process import Limits, run
from harness.records.run import DeviceMemory, Reference
from harness.toolchain import Toolchain
from harness.verify.benchmark_module import (
    REPETITIONS,
    benchmark_command,
    parse_memory,
    parse_times,
    run_benchmark_module,
)
from tests.builders import CPU_FLAGS
from tests.fakes.fake_toolchain import make_fake_toolchain

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


@given(st.lists(st.floats(0, 1e12), min_size=1), st.floats(0, 1000))
def test_any_times_come_back_in_order(times: list[float], load: float) -> None:
    assert parse_times(document(*map(repetition, times), load_avg=[load, 0, 0])) == (tuple(times), load)


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
        "null",
        '{"benchmarks": null}',
        '{"benchmarks": [3]}',
        document(repetition(unit="fortnights")),
        document(repetition(real_time="soon")),
        json.dumps({"context": None, "benchmarks": [repetition()]}),
        *(document({key: value for key, value in repetition().items() if key != gone}) for gone in repetition()),
    ],
)
def test_another_form_is_a_failure_or_makes_no_difference(text: str) -> None:
    try:
        assert parse_times(text) == ((2000.0,), None)
    except CaseError as error:
        assert error.stage == "reference"
        assert "printed JSON of an unknown form" in str(error)


@given(cut=st.integers(0, len(document(repetition())) - 1))
def test_a_text_that_was_cut_short_is_a_failure(cut: int) -> None:
    with pytest.raises(CaseError, match="printed JSON of an unknown form"):
        parse_times(document(repetition())[:cut])


def test_each_device_has_peaks_of_its_own() -> None:
    assert parse_memory(TWO_DEVICES) == (
        DeviceMemory(device="local-sync", host_peak_bytes=16, device_peak_bytes=384),
        DeviceMemory(device="local-task", host_peak_bytes=4, device_peak_bytes=25_510_912),
    )


@pytest.mark.parametrize("text", ["", "c/runtime/x.c:1: UNAVAILABLE; no device\n"])
def test_without_statistics_there_are_no_peaks(text: str) -> None:
    assert parse_memory(text) == ()


def command_of(*run_flags: str, inputs: Sequence[str] = ()) -> tuple[str, ...]:
    return benchmark_command(
        function="main",
        inputs=inputs,
        parameters=["w=w.irpa"] if not inputs else [],
        uri="local-sync",
        run_flags=run_flags,
    )


def run_it(toolchain: Toolchain, command: Sequence[str], folder: Path, seconds: float = 60) -> Reference:
    limits = Limits(seconds=seconds)
    return run_benchmark_module("net/stock@cpu", toolchain, command, folder, limits=limits, cpus=None)


def message_of(reference: Reference) -> str:
    """What went wrong, after a look that nothing else is claimed."""
    assert reference.failure is not None
    assert reference.failure.stage == "reference"
    assert "\n" not in reference.failure.message
    assert (reference.real_time_ns, reference.host_peak_bytes, reference.load_1min) == ((), None, None)
    return reference.failure.message


def test_the_command_is_one_that_an_iree_engineer_would_type() -> None:
    assert command_of("--task_topology_max_group_count=1") == (
        "iree-benchmark-module",
        "--module=module.vmfb",
        "--device=local-sync",
        "--function=main",
        "--parameters=w=w.irpa",
        "--task_topology_max_group_count=1",
        "--benchmark_repetitions=3",
        "--benchmark_min_time=0.3s",
        "--time_unit=ns",
        "--print_statistics=true",
        "--benchmark_format=json",
    )


def test_a_reference_keeps_times_peaks_load_and_command(tmp_path: Path) -> None:
    fake = make_fake_toolchain(tmp_path / "toolchain")
    command = command_of("--fake-times-ns=5,6,7")
    assert run_it(fake, command, tmp_path) == Reference(
        case="net/stock@cpu",
        command=command,
        real_time_ns=(5.0, 6.0, 7.0),
        host_peak_bytes=0,
        device_peak_bytes=64,
        memory=(DeviceMemory(device="fake", host_peak_bytes=0, device_peak_bytes=64),),
        load_1min=0.5,
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--fake-exit=2"], "iree-benchmark-module exited with status 2"),
        (["--fake-signal=ABRT"], "iree-benchmark-module was ended by SIGABRT"),
        (["--fake-no-output"], "iree-benchmark-module printed JSON of an unknown form"),
    ],
)
def test_a_failure_is_kept_with_what_was_printed(tmp_path: Path, flags: list[str], said: str) -> None:
    fake = make_fake_toolchain(tmp_path / "toolchain")
    assert message_of(run_it(fake, command_of(*flags), tmp_path)).startswith(said)


def test_a_failure_says_the_status_of_the_tool(tmp_path: Path) -> None:
    status = "c/runtime/src/iree/hal/x.c:1: UNAVAILABLE; no device; while invoking native function f"
    always = {"iree-benchmark-module": ["--fake-exit=1", "--fake-no-output", f"--fake-stderr={status}"]}
    reference = run_it(make_fake_toolchain(tmp_path / "toolchain", always=always), command_of(), tmp_path)
    assert message_of(reference).startswith("iree-benchmark-module exited with status 1: UNAVAILABLE; no device")
    assert reference.failure is not None
    assert status in reference.failure.stderr


def test_a_hang_is_ended_and_says_how_to_wait_longer(tmp_path: Path) -> None:
    fake = make_fake_toolchain(tmp_path / "toolchain")
    assert message_of(run_it(fake, command_of("--fake-sleep=60"), tmp_path, seconds=0.2)) == (
        "iree-benchmark-module ran past its limit of 0.2 s; give it more with --call-timeout"
    )


def test_a_missing_tool_is_a_failure(tmp_path: Path) -> None:
    broken = make_fake_toolchain(tmp_path / "toolchain", missing=["iree-benchmark-module"])
    assert message_of(run_it(broken, command_of(), tmp_path)) == (
        "iree-benchmark-module cannot be started (No such file or directory); reinstall the toolchain"
    )


_MATMUL = """
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
"""


def test_the_real_tool_on_a_tiny_matmul(
    real_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.benchmark_module.MIN_TIME_S", 0.01)
    (tmp_path / "model.mlir").write_text(_MATMUL)
    compiled = run(
        [str(real_toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", *CPU_FLAGS],
        cwd=tmp_path,
        limits=Limits(seconds=60),
    )
    assert compiled.ok, compiled.stderr[:2000]
    inputs = ["4x8xf32=1", "8x4xf32=1"]
    reference = run_it(real_toolchain, command_of("--dispatch_statistics", inputs=inputs), tmp_path)
    assert reference.failure is None
    assert len(reference.real_time_ns) == REPETITIONS
    assert all(time_ns > 0 for time_ns in reference.real_time_ns)
    assert reference.device_peak_bytes is not None
    assert reference.device_peak_bytes > 0
    assert reference.load_1min is not None

    refused = run_it(real_toolchain, command_of(inputs=inputs[:1]), tmp_path)
    assert message_of(refused).startswith("iree-benchmark-module exited with status 1: INVALID_ARGUMENT; input list")
