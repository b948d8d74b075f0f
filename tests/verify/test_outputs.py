"""A case's outputs: its devices, what one run gives, and numpy.allclose's rule with words for what differs."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CaseError
from harness.models.inputs import write_arguments
from harness.models.model import Input
from harness.process import Limits
from harness.records.run import DeviceMemory, OutputRecord, Reference
from harness.toolchain import Toolchain
from harness.verify.cases import keep_outputs, kept_outputs, trim_outputs
from harness.verify.outputs import (
    ModuleCall,
    load_array,
    misfit,
    module_devices,
    parse_times,
    run_benchmark_module,
    run_once,
)
from tests.builders import CPU_FLAGS
from tests.conftest import Compile
from tests.fakes.fake_toolchain import calls
from tests.programs import ON_TWO_DEVICES
from tests.verify.conftest import make_call

# ----------------------------------------------------------------------------------------------------------- devices

A, B, C = "local[0]", "local[1]", "vulkan[0]"


@pytest.mark.parametrize(
    ("devices", "uris", "problem"),
    [
        ({}, ["local-sync", "local-sync"], None),
        ({"a": (A,), "b": (B,)}, ["local-task", "local-sync"], None),
        ({"a": (C, A)}, ["vulkan://GPU-6d65", "local-sync"], None),
        ({"a": ()}, ["local-sync", "local-sync"], None),
        (
            {"a": (A,), "b": (A,)},
            ["local-sync", "local-task"],
            "nothing of the program is for local-task (local[1]), one of 2 devices in uri, since it was compiled for "
            "a = local[0], b = local[0]; shorten uri, or name it in --iree-hal-target-device",
        ),
        (
            {"a": (A,), "b": (C, B)},
            ["local-sync"],
            "the program needs a device b (vulkan[0] or local[1]), and uri has none; add one to uri",
        ),
    ],
)
def test_a_list_of_devices_longer_or_shorter_than_the_program(
    devices: dict[str, tuple[str, ...]], uris: list[str], problem: str | None
) -> None:
    assert misfit(devices, uris) == problem


def test_real_modules_say_what_they_were_compiled_for(compile_text: Compile) -> None:
    for second, places in (("local[1]", (B,)), ("local[1],local[0]", (B, A))):
        targets = ("--iree-hal-target-device=dev_a=local[0]", f"--iree-hal-target-device=dev_b={second}")
        folder = compile_text(ON_TWO_DEVICES, *targets, *CPU_FLAGS[1:])
        assert module_devices(folder / "module.vmfb") == {"dev_a": (A,), "dev_b": places}


# -------------------------------------------------------------------------------------------------------- running once

TWICE_IN_BF16 = """
func.func @main(%a: tensor<2x2xbf16>) -> (tensor<2x2xf32>, tensor<?x2xbf16>, tensor<bf16>) {
  %wide = arith.extf %a : tensor<2x2xbf16> to tensor<2x2xf32>
  %twice = arith.addf %a, %a : tensor<2x2xbf16>
  %scalar = arith.constant dense<-0.5> : tensor<bf16>
  %open = tensor.cast %twice : tensor<2x2xbf16> to tensor<?x2xbf16>
  return %wide, %open, %scalar : tensor<2x2xf32>, tensor<?x2xbf16>, tensor<bf16>
}
"""
MINUTE = Limits(seconds=60)


def failure_of(call: ModuleCall, outputs: int = 1, limits: Limits = MINUTE) -> CaseError:
    """The error of a run that fails, after a look that it is one line about verifying."""
    with pytest.raises(CaseError) as caught:
        run_once(call, outputs, limits)
    assert caught.value.stage == "verify"
    assert "\n" not in str(caught.value)
    return caught.value


def test_outputs_come_in_order_of_one_run_whose_command_names_files_of_the_folder_only(
    fake: Toolchain, tmp_path: Path
) -> None:
    inputs, flags = ("@input0.npy", "4xbf16=@input1.bin"), ("--fake-values=1,2", "--fake-values=3")
    call = make_call(fake, tmp_path, *flags, uris=("a", "b"), inputs=inputs, parameters=("w=w.irpa",))
    assert [output.tolist() for output in run_once(call, 2, MINUTE)] == [[1.0, 2.0], [3.0]]
    (made,) = calls(fake)
    assert made.arguments == (
        *("--module=module.vmfb", "--device=a", "--device=b", "--function=main", "--parameters=w=w.irpa"),
        *("--input=@input0.npy", "--input=4xbf16=@input1.bin", "--output=@output0.npy", "--output=@output1.npy"),
        *flags,
    )


STATUS = "c/runtime/src/iree/vm/x.c:1: INVALID_ARGUMENT; bad shape; while invoking native function f"
UNREAD = "exited with status 0, but an output"


@pytest.mark.parametrize(
    ("flags", "content", "message"),
    [
        (["--fake-exit=1", f"--fake-stderr={STATUS}"], None, "exited with status 1: INVALID_ARGUMENT; bad shape"),
        (["--fake-sleep=60"], None, "ran past its limit of 0.5 s; give it more with --call-timeout"),
        (["--fake-no-output"], None, f"{UNREAD} cannot be read (output0.npy: No such file or directory)"),
        (["--fake-no-output"], b"\x93NUMPY\x01", f"{UNREAD} is no whole .npy file (output0.npy)"),
    ],
)
def test_a_failure_says_why_in_one_sentence(
    fake: Toolchain, tmp_path: Path, flags: list[str], content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "output0.npy").write_bytes(content)
    limits = Limits(seconds=0.5 if "--fake-sleep=60" in flags else 60)
    error = failure_of(make_call(fake, tmp_path, *flags), limits=limits)
    assert str(error) == f"iree-run-module {message}"
    assert error.stderr == (STATUS if STATUS in flags[-1] else "")


def test_bf16_outputs_are_read_though_the_tool_has_no_npy_form_for_them(
    real_toolchain: Toolchain, compile_text: Compile
) -> None:
    folder = compile_text(TWICE_IN_BF16)
    (argument,) = write_arguments([Input(shape=(2, 2), dtype="bf16", fill="constant", value=1.5)], folder)
    (folder / argument.file.name).symlink_to(argument.file)
    wide, twice, scalar = run_once(make_call(real_toolchain, folder, inputs=(argument.flag,)), 3, MINUTE)
    assert wide.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert (twice.dtype.name, twice.tolist()) == ("float32", [[3.0, 3.0], [3.0, 3.0]])
    assert (scalar.shape, float(scalar)) == ((), -0.5)


def test_bf16_files_are_read_as_the_values_they_stand_for(tmp_path: Path) -> None:
    """Other libraries' bf16 arrays are saved by numpy as two bytes without a meaning."""
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0000], np.uint16)
    np.save(tmp_path / "x.npy", bits.view("V2").reshape(2, 2))
    values = load_array(tmp_path / "x.npy")
    assert (values.dtype.name, values.tolist()) == ("float32", [[1.0, -2.0], [np.inf, 0.0]])


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


@pytest.mark.parametrize("text", ["EXEC @main", "{}", document(3), document(repetition(unit="fortnights"))])
def test_another_form_is_a_failure(text: str) -> None:
    with pytest.raises(CaseError, match="printed JSON of an unknown form"):
        parse_times(text)


def test_a_reference_keeps_times_peaks_load_and_a_command_that_an_iree_engineer_would_type(
    fake: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.outputs.MIN_TIME_S", 0.3)  # which tests make shorter
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
    call = make_call(fake, tmp_path, "--fake-sleep=60")
    reference = run_benchmark_module("net/stock@cpu", call, Limits(seconds=0.5))
    assert reference.failure is not None
    limit = "iree-benchmark-module ran past its limit of 0.5 s; give it more with --call-timeout"
    assert (reference.failure.stage, reference.failure.message) == ("reference", limit)
    assert reference == Reference(case="net/stock@cpu", command=reference.command, failure=reference.failure)


def kept(cache: Path, value: float, days: float = 0) -> tuple[OutputRecord, ...]:
    """One output of 128 + 400 bytes, last used so many days ago."""
    (record,) = keep_outputs([np.full(100, value, np.float32)], cache)
    then = time.time() - days * 24 * 3600
    os.utime(cache / record.file, (then, then))
    return (record,)


def test_what_is_compared_or_kept_again_is_used_and_what_was_not_for_longest_goes(tmp_path: Path) -> None:
    read, again, old = (kept(tmp_path, value, days) for value, days in ((1, 9), (2, 9), (3, 8)))
    assert kept_outputs(read, tmp_path) is not None
    assert keep_outputs([np.full(100, 2, np.float32)], tmp_path) == again
    trim_outputs(tmp_path, 2 * 528)
    assert [(tmp_path / record.file).exists() for (record,) in (read, again, old)] == [True, True, False]
    assert kept_outputs(old, tmp_path) is None
    trim_outputs(tmp_path, 0)
    assert kept_outputs(read, tmp_path) is not None, "none of today goes"


def test_a_record_of_a_stranger_names_no_other_file(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.zeros(3))
    for file in ("outputs/../mine.npy", "mine.npy", str(tmp_path / "mine.npy")):
        assert kept_outputs((OutputRecord(file=file),), tmp_path) is None
