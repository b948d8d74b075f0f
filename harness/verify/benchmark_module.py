"""What iree-benchmark-module says of a case: the figure that IREE's engineers quote, of one process."""

import json
import re
from collections.abc import Mapping
from typing import Any

from harness.errors import CaseError
from harness.process import Limits
from harness.records.run import DeviceMemory, Failure, Reference
from harness.verify.outputs import ModuleCall, require_success

REPETITIONS = 3
MIN_TIME_S = 0.3

# `Device: local-task` heads a device's block, in which `  HOST_LOCAL:   0B peak / 0B allocated / ...` is a line.
_DEVICE = re.compile(r"^Device: *(.*?)\s*$", re.MULTILINE)
_PEAK = re.compile(r"^\s*(HOST_LOCAL|DEVICE_LOCAL):\s*(\d+)B peak", re.MULTILINE)
_UNIT_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def benchmark_command(call: ModuleCall) -> tuple[str, ...]:
    """The command line, as it is run in the call's folder."""
    return (
        "iree-benchmark-module",
        *call.flags,
        *call.run_flags,
        f"--benchmark_repetitions={REPETITIONS}",
        f"--benchmark_min_time={MIN_TIME_S}s",
        "--time_unit=ns",
        "--print_statistics=true",
        "--benchmark_format=json",
    )


def run_benchmark_module(case: str, call: ModuleCall, limits: Limits) -> Reference:
    """Run it once; a failure is a Reference with `failure` set."""
    command = benchmark_command(call)
    try:
        finished = call.run("reference", command, limits)
        require_success("reference", finished, limits)
        times, load = parse_times(finished.stdout)
    except CaseError as error:
        return Reference(case=case, command=command, failure=Failure.of(error))
    memory = parse_memory(finished.stderr)
    return Reference(
        case=case,
        command=command,
        real_time_ns=times,
        host_peak_bytes=sum(device.host_peak_bytes for device in memory) if memory else None,
        device_peak_bytes=sum(device.device_peak_bytes for device in memory) if memory else None,
        memory=memory,
        load_1min=load,
    )


def parse_times(text: str) -> tuple[tuple[float, ...], float | None]:
    """Real time of each of the function's own repetitions in nanoseconds, and the load average that the tool saw."""
    try:
        document: Mapping[str, Any] = json.loads(text)
        rows = [
            float(row["real_time"]) * _UNIT_NS[row["time_unit"]]
            for row in document["benchmarks"]
            if row["run_type"] == "iteration" and str(row["run_name"]).endswith("/process_time/real_time")
            if not row.get("error_occurred")
        ]
        loads = document.get("context", {}).get("load_avg")
        load = float(loads[0]) if loads else None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CaseError("reference", f"iree-benchmark-module printed JSON of an unknown form ({error!r})") from None
    if not rows:
        raise CaseError("reference", "iree-benchmark-module exited with status 0 and measured nothing")
    return tuple(rows), load


def parse_memory(stderr: str) -> tuple[DeviceMemory, ...]:
    """Peak memory of each device; () where statistics are compiled out."""
    _, *parts = _DEVICE.split(stderr)
    blocks = [(name, dict(_PEAK.findall(block))) for name, block in zip(parts[::2], parts[1::2], strict=True)]
    return tuple(
        DeviceMemory(
            device=name,
            host_peak_bytes=int(peaks.get("HOST_LOCAL", 0)),
            device_peak_bytes=int(peaks.get("DEVICE_LOCAL", 0)),
        )
        for name, peaks in blocks
        if peaks
    )
