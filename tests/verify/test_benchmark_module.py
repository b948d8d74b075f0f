"""iree-benchmark-module's JSON and its traps; the rows are those of IREE 3.13.0."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError
from harness.process import Limits
from harness.records.run import DeviceMemory, Reference
from harness.toolchain import Toolchain
from harness.verify.benchmark_module import REPETITIONS, parse_times, run_benchmark_module
from harness.verify.outputs import ModuleCall
from tests.conftest import Compile
from tests.verify.conftest import MATMUL, make_call

NAME = "BM_main/process_time/real_time"


def repetition(real_time: Any = 2000.0, unit: str = "ns", **changes: Any) -> dict[str, Any]:
    """A row of one repetition of the function."""
    row = {"name": NAME, "run_name": NAME, "run_type": "iteration", "iterations": 4884, "threads": 1}
    return {**row, "real_time": real_time, "cpu_time": 7.0, "time_unit": unit, **changes}


# Of Google Benchmark's own statistics, whose time_unit is ns even where the value is a fraction, and of a dispatch.
AGGREGATE = repetition(0.0069, run_type="aggregate", aggregate_name="cv", aggregate_unit="percentage")
DISPATCH = repetition(39.5, run_name="BM_main/main_dispatch_0_matmul_4x4x8_f32", calls=1.0, percent=100.0)
ERROR = repetition(0.0, "ms", error_occurred=True, error_message="INVALID_ARGUMENT; bad shape")


def document(*rows: Any, **context: Any) -> str:
    return json.dumps({"context": {"num_cpus": 2, **context}, "benchmarks": list(rows)})


def test_only_the_functions_own_repetitions_are_taken() -> None:
    rows = (repetition(2892.0), repetition(2867.5), AGGREGATE, DISPATCH, ERROR)
    assert parse_times(document(*rows, load_avg=[0.23, 0.4, 0.27])) == ((2892.0, 2867.5), 0.23)
    for unit, factor in (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        assert parse_times(document(repetition(1.5, unit), load_avg=[])) == ((1.5 * factor,), None)
    with pytest.raises(CaseError, match=r"^iree-benchmark-module exited with status 0 and measured nothing$"):
        parse_times(document(*rows[2:]))


@pytest.mark.parametrize(
    "text",
    [
        *("EXEC @main", "[]", "{}", '{"benchmarks": null}', document(3)),
        *(document(repetition(unit="fortnights")), document(repetition(real_time="soon"))),
    ],
)
def test_another_form_is_a_failure(text: str) -> None:
    with pytest.raises(CaseError, match="printed JSON of an unknown form") as caught:
        parse_times(text)
    assert caught.value.stage == "reference"


def message_of(call: ModuleCall, seconds: float = 60) -> str:
    """What went wrong, after a look that nothing else is claimed."""
    reference = run_benchmark_module("net/stock@cpu", call, Limits(seconds=seconds))
    assert reference.failure is not None
    assert reference.failure.stage == "reference"
    assert reference == Reference(case="net/stock@cpu", command=reference.command, failure=reference.failure)
    return reference.failure.message


def test_a_reference_keeps_times_peaks_load_and_a_command_that_an_iree_engineer_would_type(
    fake: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.benchmark_module.MIN_TIME_S", 0.3)  # which tests make shorter
    call = make_call(fake, tmp_path, "--fake-times-ns=5,6,7", parameters=("w=w.irpa",), inputs=("4xf32",))
    assert run_benchmark_module("net/stock@cpu", call, Limits(seconds=60)) == Reference(
        case="net/stock@cpu",
        command=(
            "iree-benchmark-module",
            *("--module=module.vmfb", "--device=local-sync", "--function=main", "--parameters=w=w.irpa"),
            *("--input=4xf32", "--fake-times-ns=5,6,7", "--benchmark_repetitions=3", "--benchmark_min_time=0.3s"),
            *("--time_unit=ns", "--print_statistics=true", "--benchmark_format=json"),
        ),
        real_time_ns=(5.0, 6.0, 7.0),
        host_peak_bytes=0,
        device_peak_bytes=64,
        memory=(DeviceMemory(device="fake", host_peak_bytes=0, device_peak_bytes=64),),
        load_1min=0.5,
    )


def test_a_failure_is_kept(fake: Toolchain, tmp_path: Path) -> None:
    silent, slow = (make_call(fake, tmp_path, flag) for flag in ("--fake-no-output", "--fake-sleep=60"))
    assert message_of(silent).startswith("iree-benchmark-module printed JSON of an unknown form")
    limit = "iree-benchmark-module ran past its limit of 0.5 s; give it more with --call-timeout"
    assert message_of(slow, seconds=0.5) == limit


def test_the_real_tool_on_a_tiny_matmul(real_toolchain: Toolchain, compile_text: Compile) -> None:
    call = make_call(real_toolchain, compile_text(MATMUL), "--dispatch_statistics", inputs=("4x8xf32=1", "8x4xf32=1"))
    reference = run_benchmark_module("net/stock@cpu", call, Limits(seconds=60))
    assert reference.failure is None
    assert len(reference.real_time_ns) == REPETITIONS
    assert all(time_ns > 0 for time_ns in reference.real_time_ns)
    assert (reference.device_peak_bytes or 0) > 0
    assert reference.load_1min is not None
    refused = message_of(replace(call, inputs=call.inputs[:1]))
    assert refused.startswith("iree-benchmark-module exited with status 1: INVALID_ARGUMENT; input list")
